"""Dual coordinate ascent over blocks of variables, with visits where they pay.

The method is that of Hsieh et al. (2008), which section 6 of the M3L paper
builds on, turned round: a block holds the variables of many labels, and one
visit takes one example with all of them.  Instead of shrinking by the sign of a
projected gradient, every visit leaves behind the dual gain that it brought; a
round is one sweep over all rows in random order, followed by sweeps over those
rows only whose last gain was not small.  Rows at their bounds gain nothing and
so drop out.

The stopping rule is the relative duality gap.  A cheap overestimate comes with
every full sweep (each row's share of the gap when it was visited); the exact
gap is measured when that estimate says it may be small enough.
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
_FIRST_LOOK = 12  # rounds before the rest is foreseen
_SLOWING = 1.5  # times as many rounds as there would be if the gap went on falling as in the last half
RUN = 16
"""Rows visited in the order in which they lie in memory, which serves these faster than single ones."""


class BoxDual(Protocol):
    """What the solver asks of a problem: a dual over blocks of variables, with certificates.

    A point is the problem's own record of its variables and of what follows them; sweeps change it in place.
    """

    n_rows: int
    n_blocks: int
    """Blocks of variables."""
    blocks_are_independent: bool
    """Whether blocks may be swept at the same time."""

    def start(self) -> Any:
        """Return the point 0."""

    def map_blocks(self, of_block: Callable[[int], Any], blocks: Iterable[int]) -> list[Any]:
        """Call a function for some blocks, at the same time where they are independent."""

    def round(
        self, point: Any, block: int, orders: Array, run: int, hot_gain: float, idle_gain: float,
        mean_gain: float,
    ) -> tuple[float, float, int]:  # fmt: skip
        """Sweep all rows of one block, and then, once for each further order, those that still gain.

        orders (sweeps, runs): the order in which a sweep takes runs of ``run`` neighbours among its rows.
        hot_gain, idle_gain: rows are visited again, and steps are taken, above these shares of the mean gain.
        mean_gain: of the last full sweep.
        Returns the gap that the first sweep met, its mean gain, and the number of visits.
        """

    def measure(self, point: Any, block: int) -> tuple[float, float]:
        """Compute primal and dual value of a block at the weights in use."""

    def certify(self, point: Any, block: int) -> tuple[float, float]:
        """Compute them in double precision, at weights made anew from the dual variables, and keep those."""

    def follow(self, point: Any) -> None:
        """Make anew what follows the variables."""

    def solution(self) -> Any:
        """Return the weights of the point last certified."""


@dataclass(frozen=True, kw_only=True)
class SweepState(State):
    """Where a run stands; arrays have a number a block and are changed in place.

    generators: the order of the visits, a stream a block.
    is_open: whether a block is still swept.
    met_gaps: the gap that the last full sweep met.
    check_below: the sum of these at which the gap is measured.
    falling: this sum after each round, where the run may hand over.
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
    """Maximise a box-constrained dual to a relative duality gap.

    seed: fixes the order of the visits.
    rival: rounds that another solver is expected to take the time of; where more of them are still to be
        expected, or rounding hides what is left of the gap, the run hands over.
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
        """Tell whether more rounds are to come than the rival takes, or half of those allowed are used up."""
        to_come = _SLOWING * rounds_foreseen(state.falling, self.tol * abs(state.trace[-1].primal))
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
        """Measure the gap, close the blocks that are done, and set when to look again."""
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
        # the gaps met in a sweep are about the gap before it: look again when it may be small enough
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
