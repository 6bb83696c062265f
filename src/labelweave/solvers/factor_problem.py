"""What the minimisation over one factor asks of its problem.

A factor is an array of shape (m, k).  A problem may fall apart into *blocks* that do not see each other:
its rows, its columns, or the whole as a single one.  What is known of a block is an entry of an array of
shape (m, 1), (1, k) or (1, 1), so that it multiplies a factor as it stands.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.arrays import Workers

__all__ = ["Array", "FactorPoint", "FactorProblem", "Scalars"]

Scalars = npt.NDArray[np.float64]  # one number a block


class FactorPoint(Protocol):
    """The objective to second order at one factor."""

    @property
    def values(self) -> Scalars:
        """The objective, one number a block."""

    @property
    def gradient(self) -> Array:
        """Its gradient, shape (m, k)."""

    def curve(self, direction: Array, image: Array) -> Array:
        """Multiply by the Hessian.

        Returns (m, k): the product, an array of its own.
        Shapes: direction (m, k), image (n, k).
        """

    def precondition(self, residual: Array) -> Array:
        """Multiply by an approximate inverse of the Hessian, positive definite and self-adjoint.

        Shapes: residual (m, k), result (m, k).
        """


class FactorProblem(Protocol):
    """A convex objective of one factor."""

    @property
    def is_quadratic(self) -> bool:
        """Whether its second derivatives are the same everywhere."""

    @property
    def workers(self) -> Workers:
        """The threads for sums of factors."""

    def image(self, factor: Array) -> Array:
        """Map a factor to what the loss sees of it.

        Shapes: factor (m, k), result (n, k).
        """

    def evaluate(self, factor: Array, image: Array) -> FactorPoint:
        """Give value, gradient and curvature at a factor with a known image.

        Returns the objective to second order.
        Shapes: factor (m, k), image (n, k).
        """

    def values(self, factor: Array, image: Array) -> Scalars:
        """Compute the values alone.

        Shapes: factor (m, k), image (n, k).
        """

    def inner(self, left: Array, right: Array, image: Array) -> Scalars:
        """Compute inner products, block by block.

        image (n, k): the image of the right one.
        Shapes: left, right (m, k).
        """
