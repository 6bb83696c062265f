"""What Newton's method asks of a penalised likelihood."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, GroupedColumns, RowsByRows
from labelweave.arrays import Workers

__all__ = ["NewtonProblem", "Preconditioner"]


class Preconditioner(Protocol):
    """An approximate inverse of ``I + W K``, self-adjoint in the inner product of K."""

    def apply(self, residual: GroupedColumns, image: GroupedColumns) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r``.

        Shapes: solution, image (n, groups, columns).
        """


class NewtonProblem(Protocol):
    """Groups of columns, each with an objective ``sum_i loss_i(u_i) + 1/2 <a, K a>``, ``u = K a``.

    Losses are convex and nowhere below 0.
    """

    shape: tuple[int, int, int]
    """Rows, groups, columns of a group."""
    workers: Workers

    def product(self, vectors: GroupedColumns, groups: Array) -> GroupedColumns:
        """Multiply by K.

        Returns the product, a new array.
        """

    def evaluate(self, scores: GroupedColumns, groups: Array) -> tuple[npt.NDArray[np.float64], Array, Array]:
        """Evaluate the losses.

        Shapes: values (groups,), residuals (n, groups, columns), curvature (n, groups, columns).
        """

    def along(self, scores: Array, direction: Array, groups: Array, rows: slice) -> tuple[Array, Array]:
        """Evaluate the losses of some rows along a direction.

        scores, direction (rows, groups, columns): the scores of these rows and how they change.
        values, slopes (groups,): the losses and their derivatives along the direction.
        """

    def curve(self, curvature: Array, vectors: Array, groups: Array, rows: slice) -> Array:
        """Multiply by W, for some rows.

        Returns (rows, groups, columns): the product, a new array.
        Shapes: curvature (rows, groups, columns), vectors (rows, groups, columns).
        """

    def preconditioner(self, curvature: GroupedColumns, groups: Array) -> Preconditioner | None:
        """Make a preconditioner.

        Returns none where it would not pay.
        """

    def root(self, curvature: GroupedColumns, groups: Array) -> tuple[Array, Array | None]:
        """Compute S and U with ``W = V V^T``, ``V = S (I - U U^T)`` in every row and group.

        shares (n, groups, columns): U, of length 1 in every row and group; None for 0.
        Shapes: scale (n, groups, columns).
        """

    def variances(self, groups: Array) -> GroupedColumns:
        """Compute the diagonal of K."""

    def row_covariances(self, vectors: GroupedColumns) -> GroupedColumns:
        """Multiply by K's blocks on the diagonal, one a row, for groups that hold all labels.

        Returns the product, a new array.
        """

    def dense_prior(self, group: int, column: int) -> RowsByRows:
        """Write out K between the rows of a column that K does not tie to others."""
