"""Dual coordinate ascent over blocks of variables, focused on rows with large gains.

The method is that of Hsieh et al. (2008), on which section 6 of the M3L paper builds, transposed: a block
holds the variables of many labels, and one visit updates all of them for one example.  Instead of shrinking
by the sign of a projected gradient, every visit records its dual gain; a round is one sweep over all rows in
random order, followed by sweeps over only the rows whose last gain was not small.  Rows at their bounds gain
nothing and so drop out.

The stopping rule is the relative duality gap.  Every full sweep yields a cheap overestimate (each row's share
of the gap when it was visited); the exact gap is measured when this estimate is small enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.solvers.frame import Certificate, Round, Solver, State, Status, TraceRecord, rounds_foreseen

_HOT_SWEEPS = 4  # sweeps over rows with large gains after each full one
_HOT_GAIN = 0.3  # a row is visited again if its gain was above this share of the mean
IDLE_GAIN = 0.02
"""A step is not taken if its gain is below this share of the mean."""
_FIRST_LOOK = 12  # rounds before the first estimate of the rest
_SLOWING = 1.5  # factor on the rounds extrapolated from the decrease of the gap in the last half
RUN = 16
"""Rows visited in the order in which they lie in memory, which serves these faster than single ones."""


class BoxDual(Protocol):
    """The problem of the solver: a dual over blocks of variables, with certificates.

    A point is the problem's record of its variables and derived arrays; sweeps change it in place.
    """

    n_rows: int
    n_blocks: int
    """Blocks of variables."""
    blocks_are_independent: bool
    """Whether blocks may be swept at the same time."""

    def start(self) -> Any:
        """Return the point 0."""

    def map_blocks(self, of_block: Callable[[int], Any], blocks: Iterable[int]) -> list[Any]:
        """Call a function for some blocks, in parallel if they are independent."""

    def round(
        self, point: Any, block: int, orders: Array, run: int, hot_gain: float, idle_gain: float,
        mean_gain: float,
    ) -> tuple[float, float, int]:  # fmt: skip
        """Sweep all rows of one block, and then, once per further order, those that still gain.

        orders (sweeps, runs): the order in which a sweep visits runs of ``run`` consecutive rows.
        hot_gain, idle_gain: rows are visited again, and steps are taken, above these shares of the mean gain.
        mean_gain: of the last full sweep.
        Returns the gap met in the first sweep, its mean gain, and the number of visits.
        """

    def measure(self, point: Any, block: int) -> tuple[float, float]:
        """Compute primal and dual value of a block at the working weights."""

    def certify(self, point: Any, block: int) -> tuple[float, float]:
        """Compute both in double precision, at weights recomputed from the dual variables, and keep these."""

    def follow(self, point: Any) -> None:
        """Recompute the arrays derived from the variables."""

    def solution(self) -> Any:
        """Return the weights of the last certified point."""


@dataclass(frozen=True, kw_only=True)
class SweepState(State):
    """The state of a run; arrays have one number per block and are changed in place.

    generators: the order of the visits, one random stream per block.
    is_open: whether a block is still swept.
    met_gaps: the gap met in the last full sweep.
    check_below: the sum of these below which the gap is measured.
    falling: this sum after each round, if the run may hand over.
    """

    point: Any
    generators: list[np.random.Generator]
    is_open: Array
    met_gaps: Array
    mean_gains: Array
    visits: Array
    check_below: float = np.inf
    falling: tuple[float, ...] = ()


class DualCoordinateAscent(Solver[BoxDual, SweepState]):
    """Maximize a box-constrained dual to a relative duality gap.

    seed: fixes the order of the visits.
    rival: the time of another solver in rounds; the run hands over if it expects to need more, or if rounding
        hides the remaining gap.
    """

    def __init__(self, tol: float, max_iter: int, seed: int = 0, *, rival: float = np.inf) -> None:
        self.tol, self.max_iter, self.seed, self.rival = tol, max_iter, seed, rival

    def start(self, problem: BoxDual, point: Any = None) -> SweepState:
        n_blocks = problem.n_blocks
        children = np.random.SeedSequence(self.seed).spawn(n_blocks)
        return SweepState(
            point=problem.start() if point is None else point,
            generators=[np.random.default_rng(child) for child in children],
            is_open=np.ones(n_blocks, bool),
            met_gaps=np.full(n_blocks, np.inf),
            mean_gains=np.zeros(n_blocks),
            visits=np.zeros(n_blocks),
        )

    def round(self, problem: BoxDual, state: SweepState) -> Round[SweepState]:
        state.visits[:] = 0
        problem.map_blocks(
            lambda block: self.round_of_block(problem, state, block), np.flatnonzero(state.is_open)
        )
        state = replace(state, rounds=state.rounds + 1)
        met = state.met_gaps.sum()
        if np.isfinite(self.rival):
            state = replace(state, falling=(*state.falling, float(met)))
        gives_way = len(state.falling) >= _FIRST_LOOK and self._is_late(state)
        if met > state.check_below and not gives_way:
            return Round(state)
        found = self._checked(problem, state)
        is_over = found.status is None and gives_way
        return found._replace(status=Status.HANDED_OVER) if is_over else found

    def _is_late(self, state: SweepState) -> bool:
        """Return whether the rest takes more rounds than the rival, or half of the limit is used."""
        primal = state.trace[-1].primal if state.trace else np.nan  # without a check, as after an overflow
        to_come = _SLOWING * rounds_foreseen(state.falling, self.tol * abs(primal))
        return to_come > self.rival or 2 * state.rounds >= self.max_iter

    def round_of_block(self, problem: BoxDual, state: SweepState, block: int) -> None:
        runs = np.tile(np.arange(-(-problem.n_rows // RUN)), (1 + _HOT_SWEEPS, 1))
        state.met_gaps[block], state.mean_gains[block], visits = problem.round(
            state.point, block, state.generators[block].permuted(runs, axis=1), RUN, _HOT_GAIN, IDLE_GAIN,
            float(state.mean_gains[block]),
        )  # fmt: skip
        state.visits[block] += visits

    def certify(self, problem: BoxDual, state: SweepState, status: Status) -> Certificate:
        record = _record(problem, state, *_values(problem, state, problem.certify))
        return Certificate(record, status, problem.solution())

    def recover(self, problem: BoxDual, state: SweepState) -> SweepState:
        problem.follow(state.point)
        return state

    def _checked(self, problem: BoxDual, state: SweepState) -> Round[SweepState]:
        """Measure the gap, close the converged blocks, and schedule the next check."""
        primal, dual = _values(problem, state, problem.measure)
        record = _record(problem, state, primal, dual)
        status, answer = None, None
        if record.gap <= self.tol:
            record, _, answer = self.certify(problem, state, Status.CONVERGED)
            hidden = Status.HANDED_OVER if np.isfinite(self.rival) else None
            status = Status.CONVERGED if record.gap <= self.tol else hidden
        is_open, met_gaps = state.is_open, state.met_gaps
        if problem.blocks_are_independent:
            still_open = primal - dual > self.tol * np.abs(primal)
            is_open = still_open if still_open.any() else np.ones_like(still_open)
            # a closed block is not swept again, so its gap is the one just measured
            met_gaps = np.where(is_open, met_gaps, np.maximum(primal - dual, 0))
        # the gaps met in a sweep approximate the gap before it: check again when it may be small enough
        check_below = max(met_gaps.sum() / 10, 1.5 * self.tol * abs(record.primal))
        state = replace(state, is_open=is_open, met_gaps=met_gaps, check_below=float(check_below))
        return Round(state, record, status, answer)


def _values(
    problem: BoxDual, state: SweepState, of_block: Callable[[Any, int], tuple[float, float]]
) -> tuple[Array, Array]:
    found = problem.map_blocks(lambda block: of_block(state.point, block), range(problem.n_blocks))
    pairs = np.array(found).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _record(problem: BoxDual, state: SweepState, primals: Array, duals: Array) -> TraceRecord:
    possible_visits = problem.n_blocks * problem.n_rows * (1 + _HOT_SWEEPS)
    share = float(state.visits.sum() / max(1, possible_visits))
    return TraceRecord.of(float(primals.sum()), float(duals.sum()), active_share=share)
