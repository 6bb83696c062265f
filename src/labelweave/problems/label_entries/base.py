"""What the factors of a low-rank model see of the labels (Yu et al. 2014, sections 3.1 and 3.2).

The loss is a sum over entries (i, j) of ``w_ij loss(y_ij, a_i . h_j)``.  One factor moves, its *image*
of shape (rows, k); the other one is *fixed*, of shape (columns, k).  Rows of the image do not see each
other, so everything is given row by row.  The same labels seen from the other side, with the
factors in each other's role, are the *transposed* entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "EntryPoint", "LabelEntries", "SlopeOperator", "weighted_rows"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class EntryPoint:
    """The loss, to second order, at one image.

    Parameters
    ----------
    values : ndarray of float64, shape (rows,)
        The loss of each row.
    slopes : ndarray of shape (rows, k)
        Derivatives by the image: D H with D_ij = w_ij loss'(s_ij) (equation 9).
    curve : callable
        From a direction B of shape (rows, k) to U H of shape (rows, k), with
        U_ij = w_ij loss''(s_ij) b_i . h_j (equation 10).
    weights : ndarray of shape (rows,)
        Sums of second derivatives over each row, as shares of the sum of ``column_weights``; for a
        preconditioner, which takes U_ij to be about ``weights_i column_weights_j``.
    """

    values: npt.NDArray[np.float64]
    slopes: Array
    curve: Callable[[Array], Array]
    weights: Array


@dataclass(frozen=True)
class SlopeOperator:
    """The matrix D of slopes of all entries, and the conjugate losses at its multiples.

    Parameters
    ----------
    matmul : callable
        From v of shape (columns, p) to D v of shape (rows, p).
    adjoint : callable
        From u of shape (rows, p) to D^T u of shape (columns, p).
    conjugate : callable
        From a share t between 0 and 1 to the sum of the conjugates of ``w loss`` at t D.
    """

    matmul: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]
    conjugate: Callable[[float], float]


class LabelEntries(Protocol):
    """The loss of all entries."""

    shape: tuple[int, int]
    is_quadratic: bool
    has_uniform_curvature: bool  # whether the curvature of every row is a multiple of H^T H
    column_weights: Array  # how much each column counts, in any unit

    @property
    def transposed(self) -> LabelEntries:
        """The same entries, rows and columns exchanged."""

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        """Evaluate the loss to second order.

        Parameters
        ----------
        image : ndarray of shape (rows, k)
            The image of the factor that moves.
        fixed : ndarray of shape (columns, k)
            The other factor.

        Returns
        -------
        EntryPoint
            Values, slopes and curvature.
        """

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        """Compute the loss of each row.

        Parameters
        ----------
        image : ndarray of shape (rows, k)
            The image of the factor that moves.
        fixed : ndarray of shape (columns, k)
            The other factor.

        Returns
        -------
        ndarray of float64, shape (rows,)
            The losses.
        """

    def slope_operator(self, image: Array, fixed: Array) -> SlopeOperator:
        """Give the matrix of slopes as an operator.

        Parameters
        ----------
        image : ndarray of shape (rows, k)
            The image of the factor that moves.
        fixed : ndarray of shape (columns, k)
            The other factor.

        Returns
        -------
        SlopeOperator
            The matrix.
        """


def weighted_rows(table: Array, weights: Array) -> Array:
    """Multiply every row of a table by its weight.

    Parameters
    ----------
    table : ndarray of shape (n, k)
        The table.
    weights : ndarray of shape (n,)
        The weights.

    Returns
    -------
    ndarray of shape (n, k)
        The product; the table itself where all weights are 1.
    """
    return table if (weights == 1).all() else table * weights[:, None]
