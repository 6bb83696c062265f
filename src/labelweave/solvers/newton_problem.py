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
        """Compute ``M^-1 r`` and ``K M^-1 r``.

        Parameters
        ----------
        residual : ndarray of float64, shape (n, groups, columns)
            r.
        image : ndarray of float64, shape (n, groups, columns)
            K r.

        Returns
        -------
        solution, image : ndarray of float64, shape (n, groups, columns)
            New arrays.
        """


class NewtonProblem(Protocol):
    """Groups of columns, each with an objective ``sum_i loss_i(u_i) + 1/2 <a, K a>``, ``u = K a``.

    Losses are convex and nowhere below 0.
    """

    shape: tuple[int, int, int]
    """Rows, groups, columns of a group."""
    workers: Workers

    def product(self, vectors: Array, groups: Array) -> Array:
        """Multiply by K.

        Parameters
        ----------
        vectors : ndarray of float64, shape (n, groups, columns)
            What to multiply.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        ndarray of float64, shape (n, groups, columns)
            The product, a new array.
        """

    def evaluate(self, scores: Array, groups: Array) -> tuple[npt.NDArray[np.float64], Array, Array]:
        """Evaluate the losses.

        Parameters
        ----------
        scores : ndarray of float64, shape (n, groups, columns)
            u.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        values : ndarray of float64, shape (groups,)
            The losses.
        residuals : ndarray of float64, shape (n, groups, columns)
            Their negative slopes.
        curvature : ndarray of shape (n, groups, columns)
            What :meth:`curve` needs.
        """

    def along(self, scores: Array, direction: Array, groups: Array, rows: slice) -> tuple[Array, Array]:
        """Evaluate the losses of some rows along a direction.

        Parameters
        ----------
        scores, direction : ndarray of float64, shape (rows, groups, columns)
            The scores of these rows and how they change.
        groups : ndarray of int
            Which groups.
        rows : slice
            Which rows.

        Returns
        -------
        values, slopes : ndarray of float64, shape (groups,)
            The losses and their derivatives along the direction.
        """

    def curve(self, curvature: Array, vectors: Array, groups: Array, rows: slice) -> Array:
        """Multiply by W, for some rows.

        Parameters
        ----------
        curvature : ndarray of shape (rows, groups, columns)
            From :meth:`evaluate`.
        vectors : ndarray of float64, shape (rows, groups, columns)
            What to multiply.
        groups : ndarray of int
            Which groups.
        rows : slice
            Which rows.

        Returns
        -------
        ndarray of float64, shape (rows, groups, columns)
            The product, a new array.
        """

    def preconditioner(self, curvature: Array, groups: Array) -> Preconditioner | None:
        """Make a preconditioner.

        Parameters
        ----------
        curvature : ndarray of shape (n, groups, columns)
            From :meth:`evaluate`.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        Preconditioner or None
            None where it would not pay.
        """

    def root(self, curvature: Array, groups: Array) -> tuple[Array, Array | None]:
        """Compute S and U with ``W = V V^T``, ``V = S (I - U U^T)`` in every row and group.

        Parameters
        ----------
        curvature : ndarray of shape (n, groups, columns)
            From :meth:`evaluate`.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        scale : ndarray of float64, shape (n, groups, columns)
            The diagonal of S.
        shares : ndarray of float64, shape (n, groups, columns), or None
            U, of length 1 in every row and group; None for 0.
        """

    def variances(self, groups: Array) -> Array:
        """Compute the diagonal of K.

        Parameters
        ----------
        groups : ndarray of int
            Which groups.

        Returns
        -------
        ndarray of float64, shape (n, groups, columns) or (n, 1, columns)
            The prior variances.
        """

    def row_covariances(self, vectors: Array) -> Array:
        """Multiply by K's blocks on the diagonal, one a row, for groups that hold all labels.

        Parameters
        ----------
        vectors : ndarray of float64, shape (n, groups, columns)
            What to multiply.

        Returns
        -------
        ndarray of float64, shape (n, groups, columns)
            The product, a new array.
        """

    def dense_prior(self, group: int, column: int) -> Array:
        """Write out K between the rows of a column that K does not tie to others.

        Parameters
        ----------
        group : int
            Which group.
        column : int
            Which of its columns.

        Returns
        -------
        ndarray of float64, shape (n, n)
            A new array.
        """
