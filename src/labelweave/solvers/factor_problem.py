"""What the minimisation over one factor asks of its problem.

A factor is an array of shape (m, k).  A problem may fall apart into *blocks* that do not see each other:
its rows, its columns, or the whole as a single one.  What is known of a block is an entry of an array of
shape (m, 1), (1, k) or (1, 1), so that it multiplies a factor as it stands.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers

__all__ = ["Array", "FactorPoint", "FactorProblem", "Scalars"]

Array = npt.NDArray[Any]
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

        Parameters
        ----------
        direction : ndarray of shape (m, k)
            The vector.
        image : ndarray of shape (n, k)
            Its image.

        Returns
        -------
        ndarray of shape (m, k)
            The product, an array of its own.
        """

    def precondition(self, residual: Array) -> Array:
        """Multiply by an approximate inverse of the Hessian, positive definite and self-adjoint.

        Parameters
        ----------
        residual : ndarray of shape (m, k)
            The vector.

        Returns
        -------
        ndarray of shape (m, k)
            The product.
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

        Parameters
        ----------
        factor : ndarray of shape (m, k)
            The factor.

        Returns
        -------
        ndarray of shape (n, k)
            Its image.
        """

    def evaluate(self, factor: Array, image: Array) -> FactorPoint:
        """Give value, gradient and curvature at a factor with a known image.

        Parameters
        ----------
        factor : ndarray of shape (m, k)
            The factor.
        image : ndarray of shape (n, k)
            Its image.

        Returns
        -------
        FactorPoint
            The objective to second order.
        """

    def values(self, factor: Array, image: Array) -> Scalars:
        """Compute the values alone.

        Parameters
        ----------
        factor : ndarray of shape (m, k)
            The factor.
        image : ndarray of shape (n, k)
            Its image.

        Returns
        -------
        ndarray of float64
            One number a block.
        """

    def inner(self, left: Array, right: Array, image: Array) -> Scalars:
        """Compute inner products, block by block.

        Parameters
        ----------
        left, right : ndarray of shape (m, k)
            The vectors.
        image : ndarray of shape (n, k)
            The image of the right one.

        Returns
        -------
        ndarray of float64
            One number a block.
        """
