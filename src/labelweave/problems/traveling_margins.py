"""The max-margin dual for distributed solves: rows stay in place and blocks of labels travel.

Rows lie in partitions.  A block of labels with its weights goes from one to the next and visits each
several times per round, for a *piece* of its rows that is drawn again in each round.  A visit is a
sweep of the ordinary loop over these rows, with the variables of all others held fixed: coordinate ascent in
another order.  Sweeps over all rows of a partition at once take three times as many rounds, since all rows
share a direction (with non-negative features, their mean), in which coordinate ascent in an order that
is not random is slow; extra sweeps over the rows of a piece with large gains do not save rounds.  Rows with
small gains are skipped for whole rounds instead.

A block is up to ``WIDTH`` labels if these are independent.  If a covariance R couples them it is all
that it couples, in *slabs* of ``WIDTH``: one visit updates a row for all of them.  Such a block has
``CONCURRENT_VISITS`` visits at a time: these start from the same weights, and their updates are added.  A
visit does not see the updates of the others, so within it R is multiplied by the *caution*, and so are
curvatures and its own changes of scores (the local problems of CoCoA+, Ma et al., "Adding vs. averaging in
distributed primal-dual optimization", ICML 2015, but of small pieces); the sum is without this factor.  It
never lowers the dual at a caution of ``CONCURRENT_VISITS``.  Less is faster and usually does not either, so
the caution starts low and rises after a full round with a larger gap than the last; it never falls.
A visit is a function of the rows, of the *shared state* (weights, intercepts and their update state) and of
the *row state* (the variables of these rows in this block); it returns both and changes nothing in place.

Intercepts are updated as in :mod:`labelweave.problems.swept_margins`, but at the end of a round, when
all rows have responded to the last update: updates after every visit would be ahead of the rows still to
be visited.  They never return to the constant feature, which couples all rows: with it 6,000 rows of RCV1
in 16 partitions are at a gap of 2e-1 after 100 rounds, and without it converge in 39.  What slows a label
there (a curvature estimate far too large) halves its stiffness instead.

Fixed intercepts alone would oscillate where weights respond slowly, as with dense rows.  So within a round
they follow the variables by a small share, the *damping*: the term of a proximal method of multipliers
(Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
1976), for which the constant feature has a small value instead of 1.  The damping rises after a full round
with a larger gap than the last, and falls otherwise.

With R the intercepts are b = R c, and the saddle form of the dual is

    max_B min_c  D_0(B) - b^T B^T 1 + c^T R c / 2,      D_0: the dual without the constant feature.

The gradient in c is R (c - B^T 1); with the stiffness of the labels in the diagonal H, the Newton step
is (I + H R)^-1 (B^T 1 - c), also where R is singular.  Any c and any feasible B have a valid gap.
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
from labelweave.problems.swept_margins import (
    CoupledMargins,
    IndependentMargins,
    Moves,
    objectives_of,
    totals_of,
)
from labelweave.solvers.dual_coordinate_ascent import IDLE_GAIN, RUN
from labelweave.solvers.frame import State

CONCURRENT_VISITS = 2
"""Concurrent visits of a block of coupled labels: a round gains less, but two workers share it."""
_CAUTION, _MORE_CAUTION = 1.25, 1.25  # initial value, and factor where the gap does not shrink
_LONGEST = 0.5  # change of an intercept per round, in margins: beyond, other rows are free
_DAMPING, _LEAST_RISEN, _MOST_DAMPING = 0.03, 0.03, 0.1  # shares of the typical squared norm of a row
_DAMPING_RISES, _DAMPING_FALLS = 2.0, 0.7
_SLOW = 0.7  # share of a gradient left after a step: it was too short, or far too long if the sign changed


@dataclass(frozen=True, kw_only=True)
class SharedState(State):
    """The state of a block that travels between partitions.

    weights (slabs, d, WIDTH), intercepts (slabs, WIDTH): current values, in the precision of solving.
    pulls (slabs, WIDTH): c, with the intercepts R c.
    moves: how the intercepts move; its totals are the sums of all variables.
    met_gap: the gap over all rows in the last full round; meeting: its partial sum in this round.
    free (slabs, WIDTH): the inverse norms of rows with free variables, summed in the last full round.
    caution: the factor of R in a visit, 1 without concurrent ones.
    damping: the share of the typical squared norm of a row with which intercepts follow the variables.
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
    """The state of a block that stays with the rows of a partition.

    beta (slabs, n, WIDTH): the dual variables, rows in the order of :class:`OrderedRows`.
    gains (n,): the dual gain of each row's last visit, and their mean at the start of the round.
    """

    beta: Array
    gains: Array
    mean_gain: float


class Piece(NamedTuple):
    """Some rows of a partition.

    number: the number of the piece among all.
    generator: draws the pieces of a round, the same for all of them.
    """

    number: int
    n_pieces: int
    generator: np.random.Generator

    def rows(self, n_rows: int) -> Array:
        runs = np.array_split(self.generator.permutation(-(-n_rows // RUN)), self.n_pieces)[self.number]
        rows = (runs[:, None] * RUN + np.arange(RUN)).ravel()
        return np.asarray(rows[rows < n_rows])


class OneBlock(MarginDual):
    """One block of labels (k,) over some rows, in the same row order on every machine."""

    def __init__(self, data: OrderedRows, labels: Array) -> None:
        super().__init__(data.some_labels(labels), data.dtype)

    def _ordered_labels(self) -> Array:
        return np.arange(self.data.labels.n_labels)


class RowsBlock(OneBlock, IndependentMargins):
    """A block of independent labels over all rows."""


class Visited(OneBlock):
    """A block of labels over the rows of one partition among several."""

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.label_blocks), WIDTH

    def first_shared(self) -> SharedState:
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

    def _following(self, shared: SharedState) -> float:
        """Return the share by which the intercepts follow the variables in a visit."""
        return min(1.0, shared.damping * self._usual_norm)

    def first_rows(self) -> RowState:
        beta = np.zeros((self._shape[0], self.n_rows, WIDTH), self.dtype)
        return RowState(beta=beta, gains=np.zeros(self.n_rows, self.dtype), mean_gain=0.0)

    def visit(
        self, shared: SharedState, state: RowState, piece: Piece, *, is_full: bool
    ) -> tuple[SharedState, RowState]:
        """Sweep over a piece of these rows; over all of it, or only rows that gained in their last visit."""
        point = MarginPoint(
            beta=state.beta.copy(),
            weights=shared.weights.copy(),
            gains=state.gains[None].copy(),
            intercepts=shared.intercepts.copy(),
            moves=shared.moves.copy(),
        )
        following = self._following(shared)
        point.moves.share[:] = following
        mean_gain = float(state.gains.mean()) if piece.number == 0 else state.mean_gain
        rows = piece.rows(self.n_rows)
        if not is_full:
            rows = rows[state.gains[rows] > IDLE_GAIN * mean_gain]
        met_gap = self.sweep(point, 0, rows, IDLE_GAIN * mean_gain)
        on = replace(
            shared,
            weights=point.weights,
            intercepts=point.intercepts,
            pulls=shared.pulls + following * (point.moves.totals - shared.moves.totals),
            moves=point.moves,
            meeting=shared.meeting + met_gap,
        )
        return on, RowState(beta=point.beta, gains=point.gains[0], mean_gain=mean_gain)

    def sums_in_use(self, state: RowState, shared: SharedState) -> Array:
        """Sum hinge losses, beta * target and beta * score at the current weights: (3, slabs, WIDTH)."""
        return self._own_sums(self.label_blocks, state.beta, shared.weights, shared.intercepts)

    def _own_sums(self, blocks: Sequence[LabelBlock], beta: Array, weights: Array, constants: Array) -> Array:
        """Compute the sums; prior scores are subtracted where variables are multiplied."""
        parts = zip(blocks, beta, weights, constants, strict=True)
        sums = np.stack([self.sums(*part) for part in parts], axis=1)
        sums[1:] -= np.stack([self.known_sums(number, slab) for number, slab in enumerate(beta)])
        return sums

    def exact_product(self, state: RowState) -> Array:
        """Compute X^T B over these rows in double precision: (slabs, d, WIDTH)."""
        return np.stack([self.product(beta) for beta in self._exact(state)])

    def exact_sums(self, state: RowState, weights: Array, intercepts: Array) -> Array:
        """Compute :meth:`sums_in_use` at other weights, in double precision, and B: (4, slabs, WIDTH)."""
        beta = self._exact(state)
        around = weights if self.known is None else weights + self.known
        sums = self._own_sums(self.exact_blocks, beta, around, intercepts)
        return np.concatenate([sums, beta.sum(axis=1)[None]])

    def _exact(self, state: RowState) -> Array:
        none = np.empty(0)
        point = MarginPoint(state.beta, none, none, none)
        return np.stack([self.exact_beta(point, number) for number in range(self._shape[0])])


class TravelingBlock(Visited, RowsBlock):
    """One block of independent labels."""

    def _move_intercepts(self, point: MarginPoint, block: int, was_full: bool, met_gap: float) -> None:
        """Do nothing: :func:`end_of_round` updates the intercepts."""


class TravelingLabels(Visited, CoupledMargins):
    """All labels, which a covariance couples, in slab order."""

    def __init__(self, data: OrderedRows, labels: Array) -> None:
        super().__init__(data, labels)
        self.bias = self.dtype.type(0)  # set per visit, to the share by which intercepts follow

    def first_shared(self) -> SharedState:
        return replace(super().first_shared(), caution=_CAUTION)

    def visit(
        self, shared: SharedState, state: RowState, piece: Piece, *, is_full: bool
    ) -> tuple[SharedState, RowState]:
        cautious = copy(self)
        cautious.bias = np.float64(self._following(shared)).astype(self.dtype)
        cautious._structure = (np.multiply(self._structure[0], shared.caution, dtype=self.dtype),)
        return super(TravelingLabels, cautious).visit(shared, state, piece, is_full=is_full)

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
    """Add the updates of visits that started from the same shared."""
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
    shared: SharedState, *, was_full: bool, intercept: bool, covariance: Array | None = None
) -> SharedState:
    """Update the intercepts after all rows were visited, and re-estimate their stiffness.

    was_full: whether all rows were visited, or only those with gains.
    covariance (L, L): R in block order; None where labels are independent.
    """
    moves = shared.moves.copy()
    ended = replace(shared, moves=moves, meeting=0.0)
    if was_full:
        is_worse = shared.meeting > shared.met_gap
        caution, damping = shared.caution, _DAMPING_FALLS * shared.damping
        if is_worse:
            damping = min(_MOST_DAMPING, max(_LEAST_RISEN, _DAMPING_RISES * shared.damping))
            if covariance is not None:
                caution = float(min(CONCURRENT_VISITS, _MORE_CAUTION * caution))
        ended = replace(
            ended, met_gap=shared.meeting, free=moves.free.copy(), caution=caution, damping=damping
        )
    moves.free[:] = 0
    if not intercept:
        return replace(ended, damping=0.0)
    gradient, before = moves.totals - shared.pulls, moves.gradient
    is_slow = np.abs(gradient) > _SLOW * np.abs(before)
    factor = np.where(gradient * before < 0, 2.0, 0.5)
    moves.stiffness[:] = np.where(is_slow & (before != 0), moves.stiffness * factor, moves.stiffness)
    moves.gradient[:] = gradient
    stiff = np.maximum(moves.stiffness * ended.free, np.abs(gradient) / _LONGEST)
    pulls = shared.pulls + _newton_step(gradient, stiff, covariance)
    return replace(
        ended, pulls=pulls, intercepts=spread_by(covariance, pulls).astype(shared.intercepts.dtype)
    )


def _newton_step(gradient: Array, stiff: Array, covariance: Array | None) -> Array:
    if covariance is None:
        return np.asarray(gradient / (1 + stiff))
    n_labels, step = len(covariance), np.zeros(gradient.shape)
    system = np.eye(n_labels) + stiff.ravel()[:n_labels, None] * covariance
    step.ravel()[:n_labels] = np.linalg.solve(system, gradient.ravel()[:n_labels])
    return step


def spread_by(covariance: Array | None, table: Array) -> Array:
    """Multiply one number (slabs, WIDTH), or one column (slabs, d, WIDTH), per label by R."""
    if covariance is None:
        return table
    n_labels, slabs = len(covariance), len(table)
    wide = table.reshape(slabs, -1, WIDTH).transpose(1, 0, 2).reshape(-1, slabs * WIDTH)
    out = np.zeros(wide.shape)
    out[:, :n_labels] = wide[:, :n_labels] @ covariance
    return np.ascontiguousarray(out.reshape(-1, slabs, WIDTH).transpose(1, 0, 2)).reshape(table.shape)


def block_objectives(
    shared: SharedState, sums: Array, totals: Array, *, intercept: bool, covariance: Array | None = None
) -> tuple[float, float]:
    """Combine primal and dual value of a block, from sums over all rows.

    sums (3, slabs, WIDTH): of the hinge losses, beta * target and beta * score.
    totals (slabs, WIDTH): of beta.
    """
    constants = spread_by(covariance, shared.pulls)
    own = totals * spread_by(covariance, totals) if intercept else 0.0
    return totals_of(objectives_of(sums, constants, totals, shared.pulls * constants, own))


def in_tree_order(parts: Sequence[Any]) -> Any:
    """Add arrays pairwise, so that the bits of the sum only depend on their order."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [first + second for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]
