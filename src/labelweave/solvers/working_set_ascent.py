"""The kernel solver of the M3L paper: pairs of variables along one label, other labels updated later.

M3L, journal version, section 5.1 and appendix A, algorithm 1.  A visit takes the
label with the largest projected slope and at most as many steps along it as there
are labels; it ends sooner when the slopes there have become small beside what they
were, which saves up to half the steps when labels covary (Animals with Attributes).
The first variable of a step is the one with the largest projected slope, the second
the one with which the pair could gain most (equation 30).  Only after the visit do
the scores of the other labels follow, all at once; labels that do not covary with
the visited one are not touched.

The stopping rule is the relative duality gap, measured once a round.  A round is
as many steps as there are rows (or labels, if there are more of them), so that
the measurement costs a small share of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from labelweave._loops.working_set import (
    begin_visit,
    choose_second,
    largest_slopes,
    spread_scores,
    take_step,
)
from labelweave.array_types import Array, PerLabel, PerRow
from labelweave.solvers.result import SolverResult, Status
from labelweave.solvers.trace import TraceRecord

__all__ = ["WorkingSetAscent", "WorkingSetDual"]


_FEWEST_STEPS = 16  # the cap on a visit's steps with few labels, to pay for going to a label and back
_ENOUGH = 0.3  # a visit ends when the largest slope is below this share of the one it found
_FLAT = 1e-14  # a slope below this share of the largest target is rounding


class WorkingSetDual(Protocol):
    """What the solver asks of a problem: max <T, B> - tr(B^T K B R) / 2 over lower <= B <= upper.

    Arrays have shape (n, L) and float64 numbers, the rows of a label beside each other
    (column-major order).  An unobserved entry has both bounds 0.  At the start ``scores`` belongs
    to ``beta``.
    """

    targets: Array
    """T: the slope of every variable where all scores are 0."""
    lower: Array
    """Lower bounds."""
    upper: Array
    """Upper bounds."""
    beta: Array
    """B, the dual variables, between their bounds; changed in place."""
    scores: Array
    """K B R; changed in place."""
    kernel_diagonal: Array
    """Diagonal of K, shape (n,)."""

    def kernel_row(self, row: int) -> PerRow:
        """Give one row of K.

        Returns the row, contiguous; not changed before the next call but one.
        """

    def covariance_column(self, label: int) -> PerLabel:
        """Give one column of R.

        Returns the covariances of that label with every label.
        """

    def measure(self) -> tuple[float, float]:
        """Compute the objectives at the variables and scores in use.

        primal: an upper bound of the optimum.
        dual: A lower bound of it.
        """

    def certify(self) -> tuple[float, float]:
        """Make ``scores`` anew from the variables, in place, then compute the objectives.

        primal: an upper bound of the optimum.
        dual: A lower bound of it.
        """


class WorkingSetAscent:
    """Maximise the dual of a kernel machine by pairs of variables, to a relative duality gap.

    tol: the relative duality gap to reach.
    max_iter: the largest number of rounds of about max(n, L) steps.
    on_check: called with every TraceRecord; a true result stops the run.
    """

    def __init__(
        self, tol: float, max_iter: int, on_check: Callable[[TraceRecord], bool] | None = None
    ) -> None:
        self.tol, self.max_iter, self.on_check = tol, max_iter, on_check

    def solve(self, problem: WorkingSetDual) -> SolverResult:
        """Run until the gap is small enough, no step is left, the rounds are used up or the user interrupts.

        problem: the problem; its variables and scores are changed in place.
        Returns why the run stopped, and the trace.  It stalled if rounding leaves no step to take above the
            tolerance.
        """
        return _Run(self, problem).to_the_end()


class _Run:
    """The state of one run.  Whole arrays are seen as (L, n)."""

    def __init__(self, solver: WorkingSetAscent, problem: WorkingSetDual) -> None:
        self.solver, self.problem = solver, problem
        self.started = time.perf_counter()
        self.n_rows, self.n_labels = problem.beta.shape
        self.state = (
            problem.targets.T, problem.scores.T, problem.beta.T, problem.lower.T, problem.upper.T,
        )  # fmt: skip
        self.start, self.moved, self.slopes, self.bounds = np.empty((4, self.n_rows))
        self.maxima = np.empty(self.n_labels)
        self.flat = _FLAT * np.abs(problem.targets).max(initial=0.0)
        self.rounds = self.steps = 0
        self.trace: list[TraceRecord] = []

    def to_the_end(self) -> SolverResult:
        try:
            status = self.rounds_until_done()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status is not Status.CONVERGED:
            # an interrupted visit leaves scores that lag behind the variables: certify makes them anew
            self.record(*self.problem.certify())
        return SolverResult(status, self.rounds, self.trace)

    def rounds_until_done(self) -> Status:
        largest_slopes(*self.state, self.maxima)
        dry_rounds = 0  # two in a row, as the first may be due to scores that drifted
        while self.rounds < self.solver.max_iter and dry_rounds < 2:
            self.one_round()
            dry_rounds = dry_rounds + 1 if self.steps == 0 else 0
            record = self.check()
            stop = self.solver.on_check is not None and self.solver.on_check(record)
            if record.gap <= self.solver.tol:
                return Status.CONVERGED
            if stop:
                return Status.INTERRUPTED
        return Status.ITERATION_LIMIT if dry_rounds < 2 else Status.STALLED

    def one_round(self) -> None:
        self.rounds += 1
        self.steps = 0
        while self.steps < max(self.n_rows, self.n_labels):
            label = int(self.maxima.argmax())
            if self.maxima[label] <= self.flat:
                break
            self.visit(label)

    def visit(self, label: int) -> None:
        """Go along one label until its slopes are small, then let the scores of all labels follow."""
        column = self.problem.covariance_column(label)
        arrays = [array[label] for array in self.state]
        largest, first = begin_visit(*arrays, self.start, self.moved, self.slopes)
        steps, enough = 0, max(self.flat, _ENOUGH * largest)
        while steps < max(_FEWEST_STEPS, self.n_labels) and largest > enough:
            taken, largest, first = self.step(first, column[label], arrays[2:])
            if not taken:
                largest = 0.0  # no step that is more than rounding is left here
                break
            steps += 1
        self.maxima[label] = largest
        if steps:
            spread_scores(self.moved, column, *self.state, self.maxima)
        self.steps += steps

    def step(self, first: int, variance: float, box: list[Array]) -> tuple[bool, float, int]:
        """Choose the second variable and take the best step of both; ``box`` is beta, lower and upper."""
        first_row, second = self.problem.kernel_row(first), -1
        if variance > 0:
            second = choose_second(
                first, first_row, self.problem.kernel_diagonal, self.slopes, self.bounds
            )  # fmt: skip
        second_row = first_row if second < 0 else self.problem.kernel_row(second)
        taken: tuple[bool, float, int] = take_step(
            first, second, first_row, second_row, variance, self.start, *box, self.moved, self.slopes
        )
        return taken

    def check(self) -> TraceRecord:
        """Measure the gap; where it is small enough, or no step was left, do so with fresh scores."""
        primal, dual = self.problem.measure()
        is_small = primal - dual <= self.solver.tol * max(1.0, abs(primal))
        if is_small or self.steps == 0:
            primal, dual = self.problem.certify()
            largest_slopes(*self.state, self.maxima)
        return self.record(primal, dual)

    def record(self, primal: float, dual: float) -> TraceRecord:
        record = TraceRecord(
            iteration=self.rounds,
            time=time.perf_counter() - self.started,
            primal=primal,
            dual=dual,
            gap=(primal - dual) / max(1.0, abs(primal)),
            active_share=min(1.0, 2 * self.steps / max(1, self.n_rows * self.n_labels)),
        )
        self.trace.append(record)
        return record
