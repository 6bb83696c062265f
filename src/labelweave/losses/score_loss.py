"""What a solver of Newton's kind asks of a loss.

Scores come as arrays of shape (rows, groups, columns).  The groups are fits of their own, such as
the folds of a cross-validation or labels that nothing ties together; the columns of a
group belong together.  A fit whose weight for a row is 0 does not see that row.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Evaluation", "Root", "ScoreLoss"]

Array = npt.NDArray[Any]


class Evaluation(NamedTuple):
    """A loss at some scores.

    Parameters
    ----------
    values : ndarray of float64, shape (groups,)
        Sums over the rows.
    residuals : ndarray of shape (rows, groups, columns)
        Minus the slopes: weight times target minus expectation.
    state : ndarray of shape (rows, groups, columns)
        What :meth:`ScoreLoss.curve` needs.
    """

    values: Array
    residuals: Array
    state: Array


class Root(NamedTuple):
    """A root V of the second derivatives ``W = V V^T``: ``V = S (I - U U^T)`` in every row and group.

    Parameters
    ----------
    scale : ndarray of shape (rows, groups, columns)
        The diagonal of S.
    shares : ndarray of shape (rows, groups, columns), or None
        U, of length 1 in every row and group; None for ``V = S``.
    """

    scale: Array
    shares: Array | None


class ScoreLoss(Protocol):
    """A convex loss, a sum over rows."""

    shape: tuple[int, int, int]
    """Rows, groups, columns."""

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> Evaluation:
        """Compute values, residuals and what curvatures need.

        Parameters
        ----------
        scores : ndarray of shape (rows, groups, columns)
            The scores of some rows and groups.
        rows : slice
            Which rows.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        Evaluation
            The loss there.
        """

    def values(self, scores: Array, rows: slice, groups: Array) -> npt.NDArray[np.float64]:
        """Compute the values alone.

        Parameters
        ----------
        scores : ndarray of shape (rows, groups, columns)
            The scores of some rows and groups.
        rows : slice
            Which rows.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        ndarray of float64, shape (groups,)
            Sums over the rows.
        """

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        """Multiply by the matrix of second derivatives.

        Parameters
        ----------
        state : ndarray of shape (rows, groups, columns)
            From :meth:`evaluate`.
        vectors : ndarray of shape (rows, groups, columns)
            What to multiply.
        rows : slice
            Which rows.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        ndarray of shape (rows, groups, columns)
            The product, a new array.
        """

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        """Add the matrices of second derivatives over the rows.

        Parameters
        ----------
        state : ndarray of shape (rows, groups, columns)
            From :meth:`evaluate`.
        rows : slice
            Which rows.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        ndarray of float64, shape (columns, columns)
            The sum over rows and groups.
        """

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        """Compute the trace of the matrix of second derivatives of every row and group.

        Parameters
        ----------
        state : ndarray of shape (rows, groups, columns)
            From :meth:`evaluate`.
        rows : slice
            Which rows.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        ndarray of float64, shape (rows, groups)
            The traces.
        """

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        """Compute a root of the matrices of second derivatives.

        Parameters
        ----------
        state : ndarray of shape (rows, groups, columns)
            From :meth:`evaluate`.
        rows : slice
            Which rows.
        groups : ndarray of int
            Which groups.

        Returns
        -------
        Root
            The root.
        """
