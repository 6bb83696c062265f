"""What a solver of Newton's kind asks of a loss.

Scores come as arrays of shape (rows, groups, columns).  The groups are fits of their own, such as
the folds of a cross-validation or labels that nothing ties together; the columns of a
group belong together.  A fit whose weight for a row is 0 does not see that row.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays.linear_algebra import like


class Evaluation(NamedTuple):
    """A loss at some scores.

    residuals (rows, groups, columns): minus the gradient: weight times target minus expectation.
    Shapes: values (groups,), state (rows, groups, columns).
    """

    values: Array
    residuals: Array
    state: Array


class Root(NamedTuple):
    """A root V of the second derivatives ``W = V V^T``: ``V = S (I - U U^T)`` in every row and group.

    shares (rows, groups, columns): U, of length 1 in every row and group; None for ``V = S``.
    Shapes: scale (rows, groups, columns).
    """

    scale: Array
    shares: Array | None


class ScoreLoss(Protocol):
    """A loss, a sum over rows; convex, but for rows known in part of :class:`SoftmaxLoss`.

    Scores, states and vectors are of some rows and groups: shape (rows, groups, columns).
    """

    shape: tuple[int, int, int]
    """Rows, groups, columns."""
    least: float
    """What the loss is at least, 0 or minus infinity."""

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> Evaluation:
        """Compute values, residuals and what curvatures need."""

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        """Multiply by the matrix of second derivatives; the product is a new array."""

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        """Add the matrices of second derivatives over rows and groups: shape (columns, columns)."""

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        """Compute the trace of the matrix of second derivatives of every row and group."""

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        """Compute a root of the matrices of second derivatives."""


class ShiftedLoss:
    """A loss of scores that are counted from ones known a priori.

    known (n, L): the known scores.
    is_separate: whether the groups of the loss count labels within fits.
    """

    def __init__(self, loss: ScoreLoss, known: RowsByLabels, *, is_separate: bool) -> None:
        self.loss, self.known, self.is_separate, self.shape = loss, known, is_separate, loss.shape
        self.least = loss.least

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> Evaluation:
        known = self.known[rows]
        shift = known[:, groups % known.shape[1], None] if self.is_separate else known[:, None, :]
        return self.loss.evaluate(scores + like(shift, scores), rows, groups)

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        return self.loss.curve(state, vectors, rows, groups)

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        return self.loss.mean_curvature(state, rows, groups)

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        return self.loss.row_curvatures(state, rows, groups)

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        return self.loss.root(state, rows, groups)
