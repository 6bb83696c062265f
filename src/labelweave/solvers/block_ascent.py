"""Dual coordinate ascent by blocks of rows, for kernel machines without a factorization of the kernel.

A visit loads the kernel rows of a block, sweeps over the block's variables until the gain is small, and
updates all scores in one matrix product.  Half of the rows to visit are those with the largest shares of the
duality gap, half are drawn at random; blocks contain both.

Measured on Animals with Attributes and RCV1 (2,000 rows, RBF, C from 1 to 100, passes over the
rows to a gap of 1e-3): without the large shares 25 to 262 passes, with half of them 22 to 89, and
with 90 % up to 101 instead of 28.  Rows in cyclic instead of random order always share a block with the same
rows: 285 passes instead of 107.  More than 4 sweeps in a block save passes at large C.  Where kernel rows are
cached and do not all fit, every other round visits cached rows only: with room for a tenth of 4,000 rows,
this reduces kernel computations and time by a quarter.

The stopping rule is the relative duality gap, which the shares add up to exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.solvers.frame import Certificate, Round, Solver, State, Status, TraceRecord, rounds_foreseen

_PART = 4  # a round visits a quarter of the rows, or one block
_GREEDY = 0.5  # share of visited rows chosen for the largest shares of the gap
_RENEWAL = 64  # rounds after which drifting scores are recomputed
_FAILED_CHECKS = 6  # certificates above the tolerance that the working scores had met
_PROGRESS = 0.95  # a gap has decreased if it is below this share of the previous one
_PATIENCE = 64  # rounds without progress, and as many as before
_FIRST_LOOK = 28  # rounds before the first estimate; earlier the gap falls alike on easy and hard problems
_SLOWING = 1.5  # factor on the rounds extrapolated from the decrease of the gap in the last half
_RISING = 0.01  # but not while the dual increases by this share of the gap, or of itself if smaller


class BlockDual(Protocol):
    """The problem of the solver: max <T, B> - tr(B^T K B R) / 2 over lower <= B <= upper."""

    n_rows: int
    block_rows: int
    """The most rows of a visit."""
    drifts: bool
    """Whether scores are kept in so low a precision that they need to be made anew now and then."""

    def start(self) -> tuple[Array, Array]:
        """Return variables B, all 0, and their scores."""

    def cache_content(self) -> Any:
        """Return which kernel rows are cached."""

    def refill(self, content: Any) -> None:
        """Load these kernel rows into the cache."""

    def rows_at_hand(self) -> Array | None:
        """Return the rows that are cheaper to visit; None if all cost the same."""

    def ascend(self, beta: Array, scores: Array, rows: Array) -> None:
        """Update the variables of distinct rows, at most ``block_rows``, then the scores of all rows."""

    def measure(self, beta: Array, scores: Array, shares: Array) -> tuple[float, float]:
        """Compute primal and dual value; ``shares`` receives every row's share of the gap."""

    def settled(self, beta: Array) -> Any:
        """Return the point, which is primal and dual, with scores recomputed in double precision."""


@dataclass(frozen=True, kw_only=True)
class BlockAscentState(State):
    """The state of a run; arrays are changed in place.

    beta, scores (n, L): the variables and K B R.
    shares (n,): the share of each row in the duality gap.
    at_hand: the kernel rows in the cache.
    failed: certificates that did not confirm the measured gap; each delays the next one.
    best_gap, best_round, best_dual: the smallest gap measured so far.
    """

    beta: Array
    scores: Array
    shares: Array
    generator: np.random.Generator
    at_hand: Any
    failed: int = 0
    next_certificate: int = 0
    best_gap: float = np.inf
    best_round: int = 0
    best_dual: float = -np.inf


class BlockAscent(Solver[BlockDual, BlockAscentState]):
    """Maximize the dual of a kernel machine by blocks of rows, to a relative duality gap.

    A round visits a quarter of the rows, or one block.

    rival: the time of another solver in rounds; the run hands over if it expects to need more.
    """

    def __init__(self, tol: float, max_iter: int, seed: int = 0, *, rival: float = np.inf) -> None:
        self.tol, self.max_iter, self.seed, self.rival = tol, max_iter, seed, rival

    def start(self, problem: BlockDual, point: tuple[Array, Array] | None = None) -> BlockAscentState:
        beta, scores = problem.start() if point is None else point
        state = BlockAscentState(
            beta=beta,
            scores=scores,
            shares=np.empty(problem.n_rows),
            generator=np.random.default_rng(self.seed),
            at_hand=problem.cache_content(),
        )
        problem.measure(beta, scores, state.shares)
        return state

    def round(self, problem: BlockDual, state: BlockAscentState) -> Round[BlockAscentState]:
        problem.refill(state.at_hand)
        rows, size = _rows_to_visit(problem, state), problem.block_rows
        for start in range(0, len(rows), size):
            problem.ascend(state.beta, state.scores, rows[start : start + size])
        state = replace(state, rounds=state.rounds + 1, at_hand=problem.cache_content())
        return self._checked(problem, state)

    def certify(self, problem: BlockDual, state: BlockAscentState, status: Status) -> Certificate:
        settled = problem.settled(state.beta)
        values = problem.measure(settled.boxed, settled.boxed_scores, np.empty(problem.n_rows))
        return Certificate(_record(problem, *values), status, settled)

    def recover(self, problem: BlockDual, state: BlockAscentState) -> BlockAscentState:
        state.scores[:] = problem.settled(state.beta).boxed_scores
        return state

    def _gives_way(self, state: BlockAscentState, record: TraceRecord) -> bool:
        is_due = np.isfinite(self.rival) and state.rounds >= _FIRST_LOOK and record.gap > self.tol
        gaps = [*(earlier.gap for earlier in state.trace), record.gap]
        return bool(is_due) and _SLOWING * rounds_foreseen(gaps, self.tol) > self.rival

    def _checked(self, problem: BlockDual, state: BlockAscentState) -> Round[BlockAscentState]:
        if problem.drifts and state.rounds % _RENEWAL == 0:
            state.scores[:] = problem.settled(state.beta).boxed_scores
        record = _record(problem, *problem.measure(state.beta, state.scores, state.shares))
        status, settled = None, None
        if record.gap <= self.tol and state.rounds >= state.next_certificate:
            record, _, settled = self.certify(problem, state, Status.CONVERGED)
            status = Status.CONVERGED if record.gap <= self.tol else None
            state.scores[:] = settled.boxed_scores
            if status is None:
                failed = state.failed + 1
                state = replace(state, failed=failed, next_certificate=state.rounds + 2**failed)
                problem.measure(state.beta, state.scores, state.shares)
        if record.gap < _PROGRESS * state.best_gap:
            state = replace(state, best_gap=record.gap, best_round=state.rounds, best_dual=record.dual)
        if status is None and _is_stalled(state, record):
            status = Status.STALLED if np.isinf(self.rival) else Status.HANDED_OVER
        elif _is_late(state):  # the dual still increased: check whether that continues
            state = replace(state, best_round=state.rounds, best_dual=record.dual)
        if status is None and self._gives_way(state, record):
            status = Status.HANDED_OVER
        return Round(state, record, status, settled)


def _rows_to_visit(problem: BlockDual, state: BlockAscentState) -> Array:
    """Choose rows, every other time among the cached ones."""
    is_cheap = state.rounds % 2 == 1
    rows = problem.rows_at_hand() if is_cheap else None
    if rows is None:
        rows = np.arange(problem.n_rows)
    n_visited = min(len(rows), _n_visited(problem))
    n_greedy = int(_GREEDY * n_visited)
    by_share = rows[np.argsort(-state.shares[rows], kind="stable")]
    others = state.generator.permutation(by_share[n_greedy:])[: n_visited - n_greedy]
    return state.generator.permutation(np.concatenate([by_share[:n_greedy], others]))


def _n_visited(problem: BlockDual) -> int:
    n_blocks = max(1, problem.n_rows // problem.block_rows // _PART)
    return min(problem.n_rows, n_blocks * problem.block_rows)


def _is_stalled(state: BlockAscentState, record: TraceRecord) -> bool:
    """Return whether the gap stopped decreasing while the dual no longer increases."""
    rise = record.dual - state.best_dual
    is_flat = rise <= _RISING * min(abs(record.primal - record.dual), abs(record.dual))
    return state.failed >= _FAILED_CHECKS or (_is_late(state) and is_flat)


def _is_late(state: BlockAscentState) -> bool:
    return state.rounds > _PATIENCE + 2 * state.best_round


def _record(problem: BlockDual, primal: float, dual: float) -> TraceRecord:
    share = _n_visited(problem) / max(1, problem.n_rows)
    return TraceRecord.of(primal, dual, active_share=share)
