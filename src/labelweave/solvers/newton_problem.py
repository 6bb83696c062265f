"""What Newton's method asks of a penalised likelihood."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers

__all__ = ["NewtonProblem", "Preconditioner"]

Array = npt.NDArray[Any]


class Preconditioner(Protocol):
    """An approximate inverse of ``I + W K``, self-adjoint in the inner product of K."""

    def apply(self, residual: Array, image: Array) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r`` from r and K r, all of shape (n, groups, columns)."""


class NewtonProblem(Protocol):
    """Groups of columns, each with an objective ``sum_i loss_i(u_i) + 1/2 <a, K a>``, ``u = K a``.

    Losses are convex and nowhere below 0.
    """

    shape: tuple[int, int, int]
    """Rows, groups, columns of a group."""
    workers: Workers

    def product(self, vectors: Array, groups: Array) -> Array:
        """Compute K times vectors of shape (n, groups, columns)."""

    def evaluate(self, scores: Array, groups: Array) -> tuple[npt.NDArray[np.float64], Array, Array]:
        """Compute the losses, shape (groups,), their negative slopes, and what :meth:`curve` needs."""

    def along(self, scores: Array, direction: Array, groups: Array, rows: slice) -> tuple[Array, Array]:
        """Compute the losses of some rows and their derivatives along a direction, each a number a group."""

    def curve(self, curvature: Array, vectors: Array, groups: Array, rows: slice) -> Array:
        """Compute W times vectors, for some rows."""

    def preconditioner(self, curvature: Array, groups: Array) -> Preconditioner | None:
        """Make a preconditioner for a curvature, or none."""

    def root(self, curvature: Array, groups: Array) -> tuple[Array, Array | None]:
        """Compute S and U with ``W = V V^T``, ``V = S (I - U U^T)`` in every row and group.

        Both have the shape (n, groups, columns); S is diagonal, and U, if there is one, of length 1.
        """

    def variances(self, groups: Array) -> Array:
        """Compute the diagonal of K, of shape (n, groups, columns) or (n, 1, columns)."""

    def row_covariances(self, vectors: Array) -> Array:
        """Multiply by K's blocks on the diagonal, one a row, for groups that hold all labels."""

    def dense_prior(self, group: int, column: int) -> Array:
        """Write out K between the rows of a column that K does not tie to others, a new array."""
