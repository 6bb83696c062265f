"""Dual coordinate ascent by blocks of rows, for kernel machines whose kernel is not factorised.

A visit takes the kernel rows of a block, sweeps over the block's variables until little more is
gained, and lets all scores follow in one matrix product.  Half of the rows to visit are those
with the largest shares of the duality gap, half are drawn at random; blocks are mixed from both.

Measured on Animals with Attributes and RCV1 (2,000 rows, RBF, C from 1 to 100, passes over the
rows to a gap of 1e-3): without the large shares 25 to 262 passes, with half of them 22 to 89, and
with nine in ten up to 101 where 28 will do.  Rows that return in turn rather than at random keep meeting
the same company: 285 passes instead of 107.  Going on in a block beyond 4 sweeps saves passes at large C.
Where kernel rows are cached and do not all fit, every other round visits cached rows only: with
room for a tenth of 4,000 rows that takes a quarter off the kernel rows computed and off the time.

The stopping rule is the relative duality gap, which the shares add up to exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from labelweave.array_types import Array
from labelweave.solvers.box_values import relative_gap
from labelweave.solvers.result import SolverResult, Status
from labelweave.solvers.trace import TraceRecord

__all__ = ["BlockAscent", "BlockDual"]


_PART = 4  # a round visits a quarter of the rows, or one block
_GREEDY = 0.5  # share of the rows to visit that have the largest shares of the gap
_RENEWAL = 64  # rounds after which scores that drift are made anew
_FAILED_CHECKS = 6  # certificates above the tolerance where the scores in use promised less
_PROGRESS = 0.95  # a gap has shrunk if it is below this share of the one before
_PATIENCE = 64  # rounds without progress, and as many as there had been
_RISING = 0.01  # but not while the dual rises by this share of the gap


class BlockDual(Protocol):
    """What the solver asks of a problem: max <T, B> - tr(B^T K B R) / 2 over lower <= B <= upper."""

    n_rows: int
    block_rows: int
    """The most rows of a visit."""
    drifts: bool
    """Whether scores are kept in so low a precision that they need to be made anew now and then."""

    def rows_at_hand(self) -> Array | None:
        """Give the rows that cost less to visit; None where all cost the same."""

    def ascend(self, rows: Array) -> None:
        """Move the variables of a block of rows, then the scores of all rows.

        rows: different rows, at most ``block_rows``.
        """

    def measure(self, shares: Array) -> tuple[float, float]:
        """Compute the objectives at the variables and scores in use.

        shares (n_rows,): receives every row's share of the duality gap; they add up to it.
        primal: an upper bound of the optimum.
        dual: A lower bound of it.
        """

    def certify(self) -> tuple[float, float]:
        """Make the scores anew, then compute the objectives in double precision.

        primal: an upper bound of the optimum.
        dual: A lower bound of it.
        """


class BlockAscent:
    """Maximise the dual of a kernel machine by blocks of rows, to a relative duality gap.

    tol: the relative duality gap to reach.
    max_iter: the largest number of rounds, each of a quarter of the rows (or one block).
    on_check: called with a TraceRecord every round; a true result stops the run.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        seed: int = 0,
        on_check: Callable[[TraceRecord], bool] | None = None,
    ) -> None:
        self.tol, self.max_iter, self.seed, self.on_check = tol, max_iter, seed, on_check

    def solve(self, problem: BlockDual) -> SolverResult:
        """Run until the gap is small enough, the rounds are used up or the user interrupts.

        problem: the problem; its variables and scores are changed in place.
        Returns why the run stopped, and the trace.
        """
        return _Run(self, problem).to_the_end()


class _Run:
    """The state of one run."""

    def __init__(self, solver: BlockAscent, problem: BlockDual) -> None:
        self.solver, self.problem = solver, problem
        self.started = time.perf_counter()
        self.generator = np.random.default_rng(solver.seed)
        self.shares = np.empty(problem.n_rows)
        n_blocks = max(1, problem.n_rows // problem.block_rows // _PART)
        self.n_visited = min(problem.n_rows, n_blocks * problem.block_rows)
        self.rounds = self.failed = self.next_certificate = 0
        self.best_gap, self.best_round, self.best_dual = np.inf, 0, -np.inf
        self.is_certified = False
        self.trace: list[TraceRecord] = []

    def to_the_end(self) -> SolverResult:
        try:
            status = self.rounds_until_done()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status is not Status.CONVERGED:
            # an interrupted visit leaves scores that lag behind the variables: certify makes them anew
            self.trace.append(self.record(*self.problem.certify()))
        return SolverResult(status, self.rounds, self.trace)

    def rounds_until_done(self) -> Status:
        self.problem.measure(self.shares)
        while self.rounds < self.solver.max_iter:
            self.one_round()
            record = self.check()
            self.trace.append(record)
            stop = self.solver.on_check is not None and self.solver.on_check(record)
            if self.is_certified and record.gap <= self.solver.tol:
                return Status.CONVERGED
            if stop:
                return Status.INTERRUPTED
            if self.is_stalled(record):
                return Status.STALLED
        return Status.ITERATION_LIMIT

    def one_round(self) -> None:
        self.rounds += 1
        rows, size = self.rows_to_visit(), self.problem.block_rows
        for start in range(0, len(rows), size):
            self.problem.ascend(rows[start : start + size])

    def rows_to_visit(self) -> Array:
        """Choose rows, every other time among those at hand."""
        rows = self.problem.rows_at_hand() if self.rounds % 2 == 0 else None
        if rows is None:
            rows = np.arange(self.problem.n_rows)
        n_visited = min(len(rows), self.n_visited)
        n_greedy = int(_GREEDY * n_visited)
        by_share = rows[np.argsort(-self.shares[rows], kind="stable")]
        others = self.generator.permutation(by_share[n_greedy:])[: n_visited - n_greedy]
        chosen: Array = self.generator.permutation(np.concatenate([by_share[:n_greedy], others]))
        return chosen

    def check(self) -> TraceRecord:
        """Measure the gap; where it is small enough, do so with fresh scores."""
        if self.problem.drifts and self.rounds % _RENEWAL == 0:
            self.problem.certify()
        record = self.record(*self.problem.measure(self.shares))
        self.is_certified = record.gap <= self.solver.tol and self.rounds >= self.next_certificate
        if not self.is_certified:
            return record
        record = self.record(*self.problem.certify())
        if record.gap > self.solver.tol:
            self.failed += 1
            self.next_certificate = self.rounds + 2**self.failed
            self.problem.measure(self.shares)
        return record

    def is_stalled(self, record: TraceRecord) -> bool:
        """Whether the gap has stopped falling, though no longer because the dual rises."""
        if record.gap < _PROGRESS * self.best_gap:
            self.best_gap, self.best_round, self.best_dual = record.gap, self.rounds, record.dual
        rise = record.dual - self.best_dual
        is_late = self.rounds > _PATIENCE + 2 * self.best_round
        is_flat = rise <= _RISING * abs(record.primal - record.dual)
        return self.failed >= _FAILED_CHECKS or (is_late and is_flat)

    def record(self, primal: float, dual: float) -> TraceRecord:
        return TraceRecord(
            iteration=self.rounds,
            time=time.perf_counter() - self.started,
            primal=primal,
            dual=dual,
            gap=relative_gap(primal, dual),
            active_share=self.n_visited / max(1, self.problem.n_rows),
        )
