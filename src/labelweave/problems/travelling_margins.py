"""The max-margin dual when rows stay where they are and blocks of labels travel.

Rows lie in partitions.  A block of labels with its weights goes from one to the next and comes to each
several times a round, for a *piece* of its rows that is drawn anew each round.  What it does there is a
sweep of the ordinary loop over these rows, with the variables of all others held fixed: coordinate ascent in
another order.  Sweeps over all rows of a partition at once take three times as many rounds, since all rows
share a direction (where features are not negative, their mean), in which coordinate ascent in an order that
is not random is slow; hot sweeps over a piece take as many rounds as without.  Rows that gained little are
left out of whole rounds instead.

A block is up to ``WIDTH`` labels where these are independent.  Where a covariance R couples them it is all
that it couples, in *slabs* of ``WIDTH``: one visit takes one row with all of them.  Such a block is at
``CONCURRENT_VISITS`` places at once: these visits begin at the same weights, and their moves are added.  A
visit does not see what the others move, so it takes curvatures and its own moves of scores ``caution`` times
as large (the local problems of CoCoA+, Ma et al., "Adding vs. averaging in distributed primal-dual
optimization", ICML 2015, but of small pieces).  The sum never lowers the dual at a caution of
``CONCURRENT_VISITS``; less is faster and mostly does too, so the caution begins low and rises when a full
round met no smaller gap than the last.
A visit is a function of the rows, of the *traveller* (weights, intercepts and what moves these) and of the
*seat* (the variables of these rows in this block); it gives a traveller and a seat and changes nothing in
place.

Intercepts are moved as in :mod:`labelweave.problems.swept_margins`, but at the end of a round, when
all rows have answered the last move: after every visit they would run ahead of the rows that are still to
be visited.  They never go back to the constant feature, which couples all rows: with it 6,000 rows of RCV1
in 16 partitions are at a gap of 2e-1 after 100 rounds, which take 39 without.  What makes a label lag there
(a curvature taken far too large) halves its stiffness instead.

Held intercepts alone would swing where weights answer slowly, as those of dense rows do.  So within a round
they follow the variables by a small share, the *damping*: the term of a proximal method of multipliers
(Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
1976), for which the constant feature has a small value in place of 1.  The damping rises when a full round
met no smaller gap than the last, and falls else.

With R the intercepts are b = R c, and the saddle form of the dual is

    max_B min_c  D_0(B) - b^T B^T 1 + c^T R c / 2,      D_0: the dual without the constant feature.

The gradient in c is R (c - B^T 1); with the stiffness of the labels in the diagonal H, the step of Newton's
method is (I + H R)^-1 (B^T 1 - c), also where R is singular.  Any c and any feasible B give a valid gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.loops import WIDTH
from labelweave.problems.margin_dual import LabelBlock, MarginDual, MarginPoint, OrderedRows
from labelweave.problems.swept_margins import CoupledMargins, IndependentMargins, Moves, objectives_of
from labelweave.solvers.dual_coordinate_ascent import IDLE_GAIN, RUN
from labelweave.solvers.frame import State

CONCURRENT_VISITS = 2
"""Places that a block of coupled labels is at at once: more gain less a round, which two workers pay for."""
_CAUTION, _MORE_CAUTION = 1.25, 1.25  # at the begin, and times that where the gap does not shrink
_LONGEST = 0.5  # move of an intercept in a round, in margins: beyond, other rows are free
_DAMPING, _LEAST_RISEN, _MOST_DAMPING = 0.03, 0.03, 0.1  # shares of the usual squared norm of a row
_DAMPING_RISES, _DAMPING_FALLS = 2.0, 0.7
_SLOW = 0.7  # of a gradient that is left after a move: the move was too short, or far too long if it turned


@dataclass(frozen=True, kw_only=True)
class SharedState(State):
    """What of a block goes from partition to partition.

    weights (slabs, d, WIDTH), intercepts (slabs, WIDTH): as in use, in the precision of solving.
    pulls (slabs, WIDTH): c, of which the intercepts are R c.
    moves: how the intercepts move; its totals are the sums of all variables.
    met_gap: what the last full round met at all rows; meeting: what this round met until now.
    free (slabs, WIDTH): the inverse norms of rows with free variables, summed in the last full round.
    caution: by which visits at the same time take curvatures for larger.
    damping: by which share of the usual squared norm of a row intercepts follow the variables in a round.
    """

    weights: Array
    intercepts: Array
    pulls: Array
    moves: Moves
    met_gap: float
    meeting: float
    free: Array
    caution: float = 1.0
    damping: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RowState(State):
    """What of a block stays with the rows of a partition.

    beta (slabs, n, WIDTH): the dual variables, rows in the order of :class:`OrderedRows`.
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
        runs = np.array_split(self.generator.permutation(-(-n_rows // RUN)), self.n_pieces)[self.number]
        rows = (runs[:, None] * RUN + np.arange(RUN)).ravel()
        return np.asarray(rows[rows < n_rows])


class RowsBlock(IndependentMargins):
    """One block of labels (k,) over some rows, in an order that rows elsewhere have too."""

    def __init__(self, data: OrderedRows, labels: Array) -> None:
        super().__init__(data.some_labels(labels), data.dtype)

    def _ordered_labels(self) -> Array:
        return np.arange(self.data.labels.n_labels)


class Visited(MarginDual):
    """A block of labels over the rows of one partition of several."""

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.label_blocks), WIDTH

    def first_traveller(self) -> SharedState:
        begin = self._at_zero()
        return SharedState(
            weights=begin.weights,
            intercepts=begin.intercepts,
            pulls=np.zeros(self._shape),
            moves=Moves.at_zero(self._shape[0], False, self.dtype),
            met_gap=np.inf,
            meeting=0.0,
            free=np.zeros(self._shape),
            damping=_DAMPING if self.data.intercept else 0.0,
        )

    @cached_property
    def _usual_norm(self) -> float:
        return float(np.median(self.squared_norms))

    def _following(self, traveller: SharedState) -> float:
        """Say by how much the intercepts follow the variables in a visit."""
        return min(1.0, traveller.damping * self._usual_norm)

    def first_seat(self) -> RowState:
        beta = np.zeros((self._shape[0], self.n_rows, WIDTH), self.dtype)
        return RowState(beta=beta, gains=np.zeros(self.n_rows, self.dtype), mean_gain=0.0)

    def visit(
        self, traveller: SharedState, seat: RowState, piece: Piece, *, is_full: bool
    ) -> tuple[SharedState, RowState]:
        """Sweep over a piece of these rows; over all of it, or only rows that gained by their last visit."""
        point = MarginPoint(
            beta=seat.beta.copy(),
            weights=traveller.weights.copy(),
            gains=seat.gains[None].copy(),
            intercepts=traveller.intercepts.copy(),
            moves=traveller.moves.copy(),
        )
        following = self._following(traveller)
        point.moves.share[:] = following
        mean_gain = float(seat.gains.mean()) if piece.number == 0 else seat.mean_gain
        rows = piece.rows(self.n_rows)
        if not is_full:
            rows = rows[seat.gains[rows] > IDLE_GAIN * mean_gain]
        met_gap = self.sweep(point, 0, rows, IDLE_GAIN * mean_gain)
        on = replace(
            traveller,
            weights=point.weights,
            intercepts=point.intercepts,
            pulls=traveller.pulls + following * (point.moves.totals - traveller.moves.totals),
            moves=point.moves,
            meeting=traveller.meeting + met_gap,
        )
        return on, RowState(beta=point.beta, gains=point.gains[0], mean_gain=mean_gain)

    def sums_in_use(self, seat: RowState, traveller: SharedState) -> Array:
        """Sum hinge losses, beta * target and beta * score at the weights in use: (3, slabs, WIDTH)."""
        return self._own_sums(self.label_blocks, seat.beta, traveller.weights, traveller.intercepts)

    def _own_sums(self, blocks: Sequence[LabelBlock], beta: Array, weights: Array, constants: Array) -> Array:
        """Sum; scores that are known before the fit are taken off where variables are multiplied."""
        parts = zip(blocks, beta, weights, constants, strict=True)
        sums = np.stack([self.sums(*part) for part in parts], axis=1)
        sums[1:] -= np.stack([self.known_sums(number, slab) for number, slab in enumerate(beta)])
        return sums

    def exact_product(self, seat: RowState) -> Array:
        """Compute X^T B over these rows in double precision: (slabs, d, WIDTH)."""
        return np.stack([self.product(beta) for beta in self._exact(seat)])

    def exact_sums(self, seat: RowState, weights: Array, intercepts: Array) -> Array:
        """Sum as :meth:`sums_in_use` at other weights, in double precision, and B: (4, slabs, WIDTH)."""
        beta = self._exact(seat)
        around = weights if self.known is None else weights + self.known
        sums = self._own_sums(self.exact_blocks, beta, around, intercepts)
        return np.concatenate([sums, beta.sum(axis=1)[None]])

    def _exact(self, seat: RowState) -> Array:
        none = np.empty(0)
        point = MarginPoint(seat.beta, none, none, none)
        return np.stack([self.exact_beta(point, number) for number in range(self._shape[0])])


class TravellingBlock(Visited, RowsBlock):
    """One block of independent labels."""

    def _move_intercepts(self, point: MarginPoint, block: int, was_full: bool, met_gap: float) -> None:
        """Leave that to :func:`end_of_round`."""


class TravellingLabels(Visited, CoupledMargins):
    """All labels, which a covariance couples, in the order in which they go into slabs."""

    def __init__(self, data: OrderedRows, labels: Array) -> None:
        super().__init__(data.some_labels(labels), data.dtype)
        self.bias = self.dtype.type(0)  # of a visit, it is as much as intercepts follow

    def _ordered_labels(self) -> Array:
        return np.arange(self.data.labels.n_labels)

    def first_traveller(self) -> SharedState:
        return replace(super().first_traveller(), caution=_CAUTION)

    def visit(
        self, traveller: SharedState, seat: RowState, piece: Piece, *, is_full: bool
    ) -> tuple[SharedState, RowState]:
        cautious = copy(self)
        cautious.bias = np.float64(self._following(traveller)).astype(self.dtype)
        cautious._structure = (np.multiply(self._structure[0], traveller.caution, dtype=self.dtype),)
        return super(TravellingLabels, cautious).visit(traveller, seat, piece, is_full=is_full)

    def sweep(self, point: MarginPoint, block: int, rows: Array, threshold: float) -> float:
        before = point.beta[:, rows].sum(axis=1, dtype=np.float64)
        gap = super().sweep(point, block, rows, threshold)
        beta, upper = point.beta[:, rows], self.upper
        bound = upper[rows, None] if upper.ndim == 1 else upper[:, rows]
        is_free = (beta != 0) & (np.abs(beta) < bound)
        point.moves.totals[:] += beta.sum(axis=1, dtype=np.float64) - before
        point.moves.free[:] += (1 / self.squared_norms[rows]) @ is_free
        return gap


def brought_together(before: SharedState, after: Sequence[SharedState]) -> SharedState:
    """Add what visits moved that began at the same traveller."""
    moves, weights = before.moves.copy(), before.weights.copy()
    intercepts, pulls = before.intercepts.copy(), before.pulls.copy()
    share, meeting = weights.dtype.type(1 / before.caution), before.meeting
    for one in after:
        weights += share * (one.weights - before.weights)
        intercepts += share * (one.intercepts - before.intercepts)
        pulls += one.pulls - before.pulls
        moves.totals[:] += one.moves.totals - before.moves.totals
        moves.free[:] += one.moves.free - before.moves.free
        meeting += one.meeting - before.meeting
    return replace(before, weights=weights, intercepts=intercepts, pulls=pulls, moves=moves, meeting=meeting)


def end_of_round(
    traveller: SharedState, *, was_full: bool, intercept: bool, covariance: Array | None = None
) -> SharedState:
    """Move the intercepts after all rows were visited, and learn how stiff they are.

    was_full: whether all rows were, or only those that gained.
    covariance (L, L): R in the order of the block; None where labels are independent.
    """
    moves = traveller.moves.copy()
    ended = replace(traveller, moves=moves, meeting=0.0)
    if was_full:
        is_worse = traveller.meeting > traveller.met_gap
        caution, damping = traveller.caution, _DAMPING_FALLS * traveller.damping
        if is_worse:
            damping = min(_MOST_DAMPING, max(_LEAST_RISEN, _DAMPING_RISES * traveller.damping))
            caution = (
                caution if covariance is None else float(min(CONCURRENT_VISITS, _MORE_CAUTION * caution))
            )
        ended = replace(
            ended, met_gap=traveller.meeting, free=moves.free.copy(), caution=caution, damping=damping
        )
    moves.free[:] = 0
    if not intercept:
        return replace(ended, damping=0.0)
    gradient, before = moves.totals - traveller.pulls, moves.gradient
    is_slow = np.abs(gradient) > _SLOW * np.abs(before)
    factor = np.where(gradient * before < 0, 2.0, 0.5)
    moves.stiffness[:] = np.where(is_slow & (before != 0), moves.stiffness * factor, moves.stiffness)
    moves.gradient[:] = gradient
    stiff = np.maximum(moves.stiffness * ended.free, np.abs(gradient) / _LONGEST)
    pulls = traveller.pulls + _newton_step(gradient, stiff, covariance)
    return replace(
        ended, pulls=pulls, intercepts=spread_by(covariance, pulls).astype(traveller.intercepts.dtype)
    )


def _newton_step(gradient: Array, stiff: Array, covariance: Array | None) -> Array:
    if covariance is None:
        return np.asarray(gradient / (1 + stiff))
    n_labels, step = len(covariance), np.zeros(gradient.shape)
    system = np.eye(n_labels) + stiff.ravel()[:n_labels, None] * covariance
    step.ravel()[:n_labels] = np.linalg.solve(system, gradient.ravel()[:n_labels])
    return step


def spread_by(covariance: Array | None, table: Array) -> Array:
    """Multiply a number (slabs, WIDTH), or a column (slabs, d, WIDTH), a label by R."""
    if covariance is None:
        return table
    n_labels, slabs = len(covariance), len(table)
    wide = table.reshape(slabs, -1, WIDTH).transpose(1, 0, 2).reshape(-1, slabs * WIDTH)
    out = np.zeros(wide.shape)
    out[:, :n_labels] = wide[:, :n_labels] @ covariance
    return np.ascontiguousarray(out.reshape(-1, slabs, WIDTH).transpose(1, 0, 2)).reshape(table.shape)


def block_objectives(
    traveller: SharedState, sums: Array, totals: Array, *, intercept: bool, covariance: Array | None = None
) -> tuple[float, float]:
    """Put primal and dual value of a block together, from sums over all rows.

    sums (3, slabs, WIDTH): of the hinge losses, beta * target and beta * score.
    totals (slabs, WIDTH): of beta.
    """
    constants = spread_by(covariance, traveller.pulls)
    own = totals * spread_by(covariance, totals) if intercept else 0.0
    primal, dual = objectives_of(sums, constants, totals, traveller.pulls * constants, own)
    return float(primal.sum()), float(dual.sum())


def in_tree_order(parts: Sequence[Any]) -> Any:
    """Add arrays pairwise, so that the bits of the sum depend on their order alone."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [first + second for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]
