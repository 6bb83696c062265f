"""The max-margin dual of independent labels when rows stay where they are and blocks of labels travel.

Rows lie in *stops*, all of a partition or a part of it.  A block of up to ``WIDTH`` labels with its weights
goes from stop to stop, in an order drawn anew each round.  What it does there is a sweep of the ordinary
loop over the rows of the stop, with the variables of all other rows held fixed: coordinate ascent in
another order.  Hot sweeps there would settle rows that the other stops are to move again; rows that gained
little are left out of whole rounds instead.

A visit is a function of the rows, of the *traveller* (weights, intercepts and what moves these) and of the
*seat* (the variables of these rows in this block); it gives a traveller and a seat and changes nothing in
place.

Intercepts are moved as in :mod:`labelweave.problems.independent_margins`, but at the end of a round, when
all rows have answered the last move: after every visit they would run ahead of the rows that are still to
be visited.  They never go back to the constant feature, which couples all rows: with it 6,000 rows of RCV1
in 16 stops are at a gap of 2e-1 after 100 rounds, which take 39 without.  What makes a label lag there (a
curvature taken far too large) halves its stiffness instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave._loops import WIDTH
from labelweave.array_types import Array
from labelweave.problems.independent_margins import IndependentMargins, Moves
from labelweave.problems.margin_dual import MarginDual, MarginPoint, OrderedRows
from labelweave.solvers.dual_coordinate_ascent import DualCoordinateAscent, SweepState
from labelweave.solvers.frame import State, generator_at, stream_of

_SLOW = 0.7  # of a gradient that is left after a move: the move was too short, or far too long if it turned


@dataclass(frozen=True, kw_only=True)
class Traveller(State):
    """What of a block goes from stop to stop.

    weights (d, WIDTH), intercepts (WIDTH,): as in use, in the precision of solving.
    moves: how the intercepts move; its totals are the sums of the variables at all stops.
    met_gap: the sum over stops of the gap that the last full sweep met there.
    free (WIDTH,): the sum over stops of the inverse norms of rows with free variables.
    """

    weights: Array
    intercepts: Array
    moves: Moves
    met_gap: float
    free: Array


@dataclass(frozen=True, kw_only=True)
class Seat(State):
    """What of a block stays with the rows of a stop.

    beta (n, WIDTH): the dual variables, rows in the order of :class:`OrderedRows`.
    gains (n,): the dual gain of each row's last visit, and their mean.
    generator: the order of the visits.
    met_gap, free (WIDTH,): the shares that this stop has in the traveller's sums.
    """

    beta: Array
    gains: Array
    generator: np.random.Generator
    mean_gain: float
    met_gap: float
    free: Array


def first_traveller(n_features: int, dtype: npt.DTypeLike) -> Traveller:
    """Give the traveller at the point 0."""
    return Traveller(
        weights=np.zeros((n_features, WIDTH), dtype),
        intercepts=np.zeros(WIDTH, dtype),
        moves=Moves.at_zero(1, False, dtype),
        met_gap=0.0,
        free=np.zeros(WIDTH, dtype),
    )


def first_seat(n_rows: int, dtype: npt.DTypeLike, generator: np.random.Generator) -> Seat:
    """Give the seat at the point 0."""
    return Seat(
        beta=np.zeros((n_rows, WIDTH), dtype),
        gains=np.zeros(n_rows, dtype),
        generator=generator,
        mean_gain=0.0,
        met_gap=0.0,
        free=np.zeros(WIDTH, dtype),
    )


class RowsBlock(IndependentMargins):
    """One block of labels over some rows, by the ordinary algorithm.

    labels (k,): their numbers; they keep this order, which rows elsewhere have too.
    """

    def __init__(self, data: OrderedRows, labels: Array) -> None:
        super().__init__(data.some_labels(labels), data.dtype)

    def _ordered_labels(self) -> Array:
        return np.arange(self.data.labels.n_labels)


class StopBlock(RowsBlock):
    """One block of labels over the rows of one stop of several."""

    _free: Any = None
    round = MarginDual.round  # sweep by sweep, as intercepts move between stops

    def visit(self, traveller: Traveller, seat: Seat, *, is_full: bool) -> tuple[Traveller, Seat]:
        """Sweep over these rows.

        is_full: whether all rows are visited, or only those that gained by their last visit.
        """
        here = copy(self)  # threads visit the same rows with other travellers
        here._free = seat.free
        point = MarginPoint(
            beta=seat.beta[None].copy(),
            weights=traveller.weights[None].copy(),
            gains=seat.gains[None].copy(),
            intercepts=traveller.intercepts[None].copy(),
            moves=traveller.moves.copy(),
        )
        state = SweepState(
            point=point,
            generators=[generator_at(stream_of(seat.generator))],
            is_open=np.ones(1, bool),
            met_gaps=np.full(1, np.inf),
            mean_gains=np.array([seat.mean_gain]),
            visits=np.zeros(1),
        )
        solver = DualCoordinateAscent(0.0, 1)
        if is_full:
            solver.round_of_block(here, state, 0, hot_sweeps=0)
        else:
            state.met_gaps[0] = seat.met_gap
            solver.sweep_gaining(here, state, 0)
        left = Seat(
            beta=point.beta[0],
            gains=point.gains[0],
            generator=state.generators[0],
            mean_gain=float(state.mean_gains[0]),
            met_gap=float(state.met_gaps[0]),
            free=here._free,
        )
        on = Traveller(
            weights=point.weights[0],
            intercepts=point.intercepts[0],
            moves=point.moves,
            met_gap=traveller.met_gap - seat.met_gap + left.met_gap,
            free=traveller.free - seat.free + left.free,
        )
        return on, left

    def _move_intercepts(self, point: MarginPoint, block: int, was_full: bool, met_gap: float) -> None:
        """Leave that to :func:`end_of_round`."""
        if was_full:
            self._free = point.moves.free[block].copy()
        point.moves.free[block] = 0

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


def end_of_round(traveller: Traveller, *, intercept: bool) -> Traveller:
    """Move the intercepts after all stops were visited, and learn how stiff they are."""
    if not intercept:
        return traveller
    moves = traveller.moves.copy()
    gradient, before = moves.totals[0] - traveller.intercepts, moves.gradient[0]
    is_slow = np.abs(gradient) > _SLOW * np.abs(before)
    factor = np.where(gradient * before < 0, 2.0, 0.5)
    moves.stiffness[0] = np.where(is_slow & (before != 0), moves.stiffness[0] * factor, moves.stiffness[0])
    moves.gradient[0] = gradient
    step = gradient / (1 + moves.stiffness[0] * traveller.free)
    intercepts = (traveller.intercepts + step).astype(traveller.intercepts.dtype)
    return replace(traveller, intercepts=intercepts, moves=moves)


def in_tree_order(parts: Sequence[Any]) -> Any:
    """Add arrays pairwise, so that the bits of the sum depend on their order alone."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [first + second for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]
