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

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from labelweave._loops.visits import in_runs, rows_above
from labelweave.array_types import Array
from labelweave.solvers.result import SolverResult, Status
from labelweave.solvers.trace import TraceRecord

__all__ = ["BoxDual", "DualCoordinateAscent"]


_HOT_SWEEPS = 4  # sweeps over rows with large gains after each full one
_HOT_GAIN = 0.3  # a row is visited again if its gain was above this share of the mean
_RUN = 16  # rows visited in the order in which they lie in memory
_IDLE_GAIN = 0.02  # a step is not taken if its gain is below this share of the mean


class BoxDual(Protocol):
    """What the solver asks of a problem: a dual over blocks of variables, with certificates."""

    n_rows: int
    n_blocks: int
    blocks_are_independent: bool
    """Whether blocks may be swept at the same time."""

    def sweep(self, block: int, rows: Array, threshold: float) -> float:
        """Visit rows of one block in order and take the steps that are worth it.

        rows: the rows to visit, in this order.
        threshold: steps that gain no more than this are not taken.
        Returns the sum over rows of their share of the duality gap, each as it was met.
        """

    def gains(self, block: int) -> Array:
        """Give the dual gain of each row's last visit.

        Shapes: result (n_rows,).
        """

    def measure(self, block: int) -> tuple[float, float]:
        """Compute the objectives of a block at the weights in use.

        primal: an upper bound of the block's optimum.
        dual: A lower bound of it.
        """

    def certify(self, block: int) -> tuple[float, float]:
        """Compute the objectives in double precision, at weights made anew from the dual variables.

        primal: an upper bound of the block's optimum.
        dual: A lower bound of it.
        """


class DualCoordinateAscent:
    """Maximise a box-constrained dual to a relative duality gap.

    tol: the relative duality gap to reach.
    max_iter: the largest number of rounds.
    n_threads: threads, used when the blocks are independent.  The result does not depend on it.
    seed: fixes the order of the visits.
    on_check: called with every TraceRecord; a true result stops the run.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        n_threads: int = 1,
        seed: int = 0,
        on_check: Callable[[TraceRecord], bool] | None = None,
    ) -> None:
        self.tol, self.max_iter, self.n_threads = tol, max_iter, n_threads
        self.seed, self.on_check = seed, on_check

    def solve(self, problem: BoxDual) -> SolverResult:
        """Run until the gap is small enough, the rounds are used up or the user interrupts.

        problem: the problem; its variables are changed in place.
        Returns why the run stopped, and the trace.
        """
        return _Run(self, problem).to_the_end()


def _in_random_runs(rows: Array, generator: np.random.Generator) -> Array:
    """Order rows at random in runs of neighbours, which the memory serves faster than single rows."""
    n_runs = -(-len(rows) // _RUN)
    ordered: Array = in_runs(rows, generator.permutation(n_runs), _RUN)
    return ordered


class _Run:
    """The state of one run."""

    def __init__(self, solver: DualCoordinateAscent, problem: BoxDual) -> None:
        self.solver, self.problem = solver, problem
        self.started = time.perf_counter()
        children = np.random.SeedSequence(solver.seed).spawn(problem.n_blocks)
        self.generators = [np.random.default_rng(child) for child in children]
        self.open = np.ones(problem.n_blocks, bool)
        self.met_gaps = np.full(problem.n_blocks, np.inf)
        self.mean_gains = np.zeros(problem.n_blocks)
        self.visits = np.zeros(problem.n_blocks)
        self.rounds = 0
        self.check_below = np.inf
        self.apply: Callable[..., Iterable[Any]] = map
        self.trace: list[TraceRecord] = []

    def to_the_end(self) -> SolverResult:
        threads = self.solver.n_threads if self.problem.blocks_are_independent else 1
        with ThreadPoolExecutor(threads) as pool:
            self.apply = pool.map if threads > 1 else map
            try:
                status = self.rounds_until_done()
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
        # the pool has waited for the sweeps that an interruption left running
        self.apply = map
        if status is not Status.CONVERGED:
            self.record(*self.values(self.problem.certify))
        return SolverResult(status, self.rounds, self.trace)

    def rounds_until_done(self) -> Status:
        while self.rounds < self.solver.max_iter:
            self.one_round()
            if self.met_gaps.sum() <= self.check_below:
                record = self.check()
                stop = self.solver.on_check is not None and self.solver.on_check(record)
                if record.gap <= self.solver.tol:
                    return Status.CONVERGED
                if stop:
                    return Status.INTERRUPTED
        return Status.ITERATION_LIMIT

    def one_round(self) -> None:
        self.rounds += 1
        self.visits[:] = 0
        for _ in self.apply(self.round_of_block, np.flatnonzero(self.open)):
            pass

    def round_of_block(self, block: int) -> None:
        everything = np.arange(self.problem.n_rows)
        self.met_gaps[block] = self.sweep(block, everything)
        self.mean_gains[block] = self.problem.gains(block).mean()
        for _ in range(_HOT_SWEEPS):
            least = _HOT_GAIN * self.mean_gains[block]
            self.sweep(block, rows_above(self.problem.gains(block), least))

    def sweep(self, block: int, rows: Array) -> float:
        self.visits[block] += len(rows)
        threshold = _IDLE_GAIN * self.mean_gains[block]
        return self.problem.sweep(block, _in_random_runs(rows, self.generators[block]), threshold)

    def check(self) -> TraceRecord:
        """Measure the gap, close the blocks that are done, and set when to look again."""
        tol = self.solver.tol
        primal, dual = self.values(self.problem.measure)
        record = self.record(primal, dual)
        if record.gap <= tol:
            self.trace.pop()
            record = self.record(*self.values(self.problem.certify))
        if self.problem.blocks_are_independent:
            still_open = primal - dual > tol * np.abs(primal)
            self.open = still_open if still_open.any() else np.ones_like(still_open)
            # a closed block is not swept again, so its gap is the one just measured
            self.met_gaps = np.where(self.open, self.met_gaps, np.maximum(primal - dual, 0))
        # the gaps met in a sweep are about the gap before it: look again when it may be small enough
        self.check_below = max(self.met_gaps.sum() / 10, 1.5 * tol * max(1.0, abs(record.primal)))
        return record

    def values(self, of_block: Callable[[int], tuple[float, float]]) -> tuple[Array, Array]:
        pairs = np.array(list(self.apply(of_block, range(self.problem.n_blocks))))
        return pairs[:, 0], pairs[:, 1]

    def record(self, primals: Array, duals: Array) -> TraceRecord:
        primal, dual = float(primals.sum()), float(duals.sum())
        possible_visits = self.problem.n_blocks * self.problem.n_rows * (1 + _HOT_SWEEPS)
        record = TraceRecord(
            iteration=self.rounds,
            time=time.perf_counter() - self.started,
            primal=primal,
            dual=dual,
            gap=(primal - dual) / max(1.0, abs(primal)),
            active_share=float(self.visits.sum() / max(1, possible_visits)),
        )
        self.trace.append(record)
        return record
