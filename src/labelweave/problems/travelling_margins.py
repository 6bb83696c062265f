"""The max-margin dual of independent labels when rows stay where they are and blocks of labels travel.

Rows lie in partitions.  A block of up to ``WIDTH`` labels with its weights goes from one to the next and
comes to each several times a round, for a *piece* of its rows that is drawn anew each round.  What it does
there is a sweep of the ordinary loop over these rows, with the variables of all others held fixed: coordinate
ascent in another order.  Sweeps over all rows of a partition at once take three times as many rounds, since
all rows share a direction (where features are not negative, their mean), in which coordinate ascent in an
order that is not random is slow; hot sweeps over a piece take as many rounds as without.  Rows that gained
little are left out of whole rounds instead.

A visit is a function of the rows, of the *traveller* (weights, intercepts and what moves these) and of the
*seat* (the variables of these rows in this block); it gives a traveller and a seat and changes nothing in
place.

Intercepts are moved as in :mod:`labelweave.problems.independent_margins`, but at the end of a round, when
all rows have answered the last move: after every visit they would run ahead of the rows that are still to
be visited.  They never go back to the constant feature, which couples all rows: with it 6,000 rows of RCV1
in 16 partitions are at a gap of 2e-1 after 100 rounds, which take 39 without.  What makes a label lag there
(a curvature taken far too large) halves its stiffness instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave._loops import WIDTH
from labelweave.array_types import Array
from labelweave.problems.independent_margins import IndependentMargins, Moves
from labelweave.problems.margin_dual import MarginPoint, OrderedRows
from labelweave.solvers.dual_coordinate_ascent import IDLE_GAIN, RUN
from labelweave.solvers.frame import State

_SLOW = 0.7  # of a gradient that is left after a move: the move was too short, or far too long if it turned


@dataclass(frozen=True, kw_only=True)
class Traveller(State):
    """What of a block goes from partition to partition.

    weights (d, WIDTH), intercepts (WIDTH,): as in use, in the precision of solving.
    moves: how the intercepts move; its totals are the sums of all variables.
    met_gap: what the last full round met at all rows; meeting: what this round met until now.
    free (WIDTH,): the inverse norms of rows with free variables, summed in the last full round.
    """

    weights: Array
    intercepts: Array
    moves: Moves
    met_gap: float
    meeting: float
    free: Array


@dataclass(frozen=True, kw_only=True)
class Seat(State):
    """What of a block stays with the rows of a partition.

    beta (n, WIDTH): the dual variables, rows in the order of :class:`OrderedRows`.
    gains (n,): the dual gain of each row's last visit, and their mean at the begin of the round.
    """

    beta: Array
    gains: Array
    mean_gain: float


class Piece(NamedTuple):
    """Some rows of a partition.

    number: which of so many pieces.
    generator: draws the pieces of a round, the same for all of them.
    """

    number: int
    n_pieces: int
    generator: np.random.Generator

    def rows(self, n_rows: int) -> Array:
        """Give the rows, run by run."""
        runs = np.array_split(self.generator.permutation(-(-n_rows // RUN)), self.n_pieces)[self.number]
        rows = (runs[:, None] * RUN + np.arange(RUN)).ravel()
        return np.asarray(rows[rows < n_rows])


def first_traveller(n_features: int, dtype: npt.DTypeLike) -> Traveller:
    """Give the traveller at the point 0."""
    return Traveller(
        weights=np.zeros((n_features, WIDTH), dtype),
        intercepts=np.zeros(WIDTH, dtype),
        moves=Moves.at_zero(1, False, dtype),
        met_gap=np.inf,
        meeting=0.0,
        free=np.zeros(WIDTH, dtype),
    )


def first_seat(n_rows: int, dtype: npt.DTypeLike) -> Seat:
    """Give the seat at the point 0."""
    return Seat(beta=np.zeros((n_rows, WIDTH), dtype), gains=np.zeros(n_rows, dtype), mean_gain=0.0)


class RowsBlock(IndependentMargins):
    """One block of labels over some rows, by the ordinary algorithm.

    labels (k,): their numbers; they keep this order, which rows elsewhere have too.
    """

    def __init__(self, data: OrderedRows, labels: Array) -> None:
        super().__init__(data.some_labels(labels), data.dtype)

    def _ordered_labels(self) -> Array:
        return np.arange(self.data.labels.n_labels)


class TravellingBlock(RowsBlock):
    """One block of labels over the rows of one partition of several."""

    def visit(
        self, traveller: Traveller, seat: Seat, piece: Piece, *, is_full: bool
    ) -> tuple[Traveller, Seat]:
        """Sweep over a piece of these rows.

        is_full: whether all of them are visited, or only those that gained by their last visit.
        """
        point = MarginPoint(
            beta=seat.beta[None].copy(),
            weights=traveller.weights[None].copy(),
            gains=seat.gains[None].copy(),
            intercepts=traveller.intercepts[None].copy(),
            moves=traveller.moves.copy(),
        )
        mean_gain = float(seat.gains.mean()) if piece.number == 0 else seat.mean_gain
        rows = piece.rows(self.n_rows)
        if not is_full:
            rows = rows[seat.gains[rows] > IDLE_GAIN * mean_gain]
        met_gap = self.sweep(point, 0, rows, IDLE_GAIN * mean_gain)
        on = replace(
            traveller,
            weights=point.weights[0],
            intercepts=point.intercepts[0],
            moves=point.moves,
            meeting=traveller.meeting + met_gap,
        )
        return on, Seat(beta=point.beta[0], gains=point.gains[0], mean_gain=mean_gain)

    def _move_intercepts(self, point: MarginPoint, block: int, was_full: bool, met_gap: float) -> None:
        """Leave that to :func:`end_of_round`."""

    def sums_in_use(self, traveller: Traveller, seat: Seat) -> Array:
        """Sum hinge losses, beta * target and beta * score at the weights in use, (3, WIDTH)."""
        return self.sums(self.label_blocks[0], seat.beta, traveller.weights, traveller.intercepts)

    def exact_product(self, seat: Seat) -> Array:
        """Compute the weights that follow these variables in double precision, (d, WIDTH)."""
        return self.product(self._exact(seat))

    def exact_sums(self, seat: Seat, weights: Array, intercepts: Array) -> Array:
        """Sum as :meth:`sums_in_use` at other weights, in double precision, and the variables: (4, WIDTH)."""
        beta = self._exact(seat)
        return np.vstack([self.sums(self.exact_blocks[0], beta, weights, intercepts), beta.sum(axis=0)])

    def _exact(self, seat: Seat) -> Array:
        none = np.empty(0)
        return self.exact_beta(MarginPoint(seat.beta[None], none, none, none), 0)


def end_of_round(traveller: Traveller, *, was_full: bool, intercept: bool) -> Traveller:
    """Move the intercepts after all rows were visited, and learn how stiff they are.

    was_full: whether all rows were, or only those that gained.
    """
    moves = traveller.moves.copy()
    ended = replace(traveller, moves=moves, meeting=0.0)
    if was_full:
        ended = replace(ended, met_gap=traveller.meeting, free=moves.free[0].copy())
    moves.free[0] = 0
    if not intercept:
        return ended
    gradient, before = moves.totals[0] - traveller.intercepts, moves.gradient[0]
    is_slow = np.abs(gradient) > _SLOW * np.abs(before)
    factor = np.where(gradient * before < 0, 2.0, 0.5)
    moves.stiffness[0] = np.where(is_slow & (before != 0), moves.stiffness[0] * factor, moves.stiffness[0])
    moves.gradient[0] = gradient
    step = gradient / (1 + moves.stiffness[0] * ended.free)
    return replace(ended, intercepts=(traveller.intercepts + step).astype(traveller.intercepts.dtype))


def in_tree_order(parts: Sequence[Any]) -> Any:
    """Add arrays pairwise, so that the bits of the sum depend on their order alone."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [first + second for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]
