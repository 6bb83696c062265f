"""What the factors of a low-rank model see of the labels (Yu et al. 2014, sections 3.1 and 3.2).

The loss is a sum over entries (i, j) of ``w_ij loss(y_ij, a_i . h_j)``.  One factor moves, its *image*
of shape (rows, k); the other one is *fixed*, of shape (columns, k).  Rows of the image do not see each
other, so everything is given row by row.  The same labels seen from the other side, with the
factors in each other's role, are the *transposed* entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array

__all__ = ["Array", "EntryPoint", "GradientOperator", "LabelEntries"]


@dataclass(frozen=True)
class EntryPoint:
    """The loss, to second order, at one image.

    values (rows,): the loss of each row.
    gradients (rows, k): derivatives by the image: D H with D_ij = w_ij loss'(s_ij) (equation 9).
    curve: from a direction B of shape (rows, k) to U H of shape (rows, k), with U_ij = w_ij loss''(s_ij) b_i
        . h_j (equation 10).
    weights (rows,): sums of second derivatives over each row, as shares of the sum of ``column_weights``; for
        a preconditioner, which takes U_ij to be about ``weights_i column_weights_j``.
    """

    values: npt.NDArray[np.float64]
    gradients: Array
    curve: Callable[[Array], Array]
    weights: Array


@dataclass(frozen=True)
class GradientOperator:
    """The matrix D of gradients of all entries, and the conjugate losses at its multiples.

    matmul: from v of shape (columns, p) to D v of shape (rows, p).
    adjoint: from u of shape (rows, p) to D^T u of shape (columns, p).
    conjugate: from a share t between 0 and 1 to the sum of the conjugates of ``w loss`` at t D.
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

        image (rows, k): the image of the factor that moves.
        Shapes: fixed (columns, k).
        """

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        """Compute the loss of each row.

        image (rows, k): the image of the factor that moves.
        Shapes: fixed (columns, k), result (rows,).
        """

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        """Give the matrix of gradients as an operator.

        image (rows, k): the image of the factor that moves.
        Shapes: fixed (columns, k).
        """
