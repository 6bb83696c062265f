"""The kernel solver of the M3L paper: pairs of variables along one label, other labels updated later.

M3L, journal version, section 5.1 and appendix A, algorithm 1.  A visit selects the label with the largest
projected gradient and takes at most as many steps in it as there are labels; it ends early when the gradients
there have become relatively small, which saves up to half the steps when labels covary (Animals with
Attributes).  The first variable of a step is the one with the largest projected gradient, the second the one
with which the pair could gain most (equation 30).  The scores of the other labels are updated only after the
visit, all at once; labels that do not covary with the visited one are unchanged.

The stopping rule is the relative duality gap, measured once per round.  A round has as many steps as there
are rows (or labels, if there are more), so that the cost of the measurement is a small share of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from labelweave.foundation.array_types import Array, PerLabel, PerRow
from labelweave.solvers.frame import Certificate, Round, Solver, State, Status, TraceRecord

_FEWEST_STEPS = 16  # the limit of steps per visit with few labels, to amortize the cost of a visit
_ENOUGH = 0.3  # a visit ends when the largest gradient is below this share of the initial one
_FLAT = 1e-14  # a gradient below this share of the largest target is rounding


class WorkingSetDual(Protocol):
    """The problem of the solver: max <T, B> - tr(B^T K B R) / 2 over lower <= B <= upper.

    Arrays have shape (n, L) and float64 numbers, with contiguous rows per label (column-major order).  Both
    bounds of an unobserved entry are 0.
    """

    targets: Array
    """T: the gradient of every variable where all scores are 0."""
    lower: Array
    """Lower bounds."""
    upper: Array
    """Upper bounds."""
    kernel_diagonal: Array
    """Diagonal of K, shape (n,)."""

    def start(self) -> tuple[Array, Array]:
        """Return variables B, all 0, and their scores K B R."""

    def kernel_row(self, row: int) -> PerRow:
        """Return one row of K, contiguous; valid until the second next call."""

    def covariance_column(self, label: int) -> PerLabel:
        """Return one column of R."""

    def measure(self, beta: Array, scores: Array) -> tuple[float, float]:
        """Compute primal and dual value."""

    def settled(self, beta: Array) -> Any:
        """Return the point, which is primal and dual, with scores recomputed."""


@dataclass(frozen=True, kw_only=True)
class WorkingSetState(State):
    """The state of a run; arrays are changed in place.

    beta, scores (n, L): the variables and K B R.
    maxima (L,): the largest projected gradient per label.
    dry_rounds: consecutive rounds without a step.
    """

    beta: Array
    scores: Array
    maxima: PerLabel
    dry_rounds: int = 0


class WorkingSetAscent(Solver[WorkingSetDual, WorkingSetState]):
    """Maximize the dual of a kernel machine by pairs of variables, to a relative duality gap.

    It stalls if rounding prevents further steps above the tolerance.
    """

    def __init__(self, tol: float, max_iter: int) -> None:
        self.tol, self.max_iter = tol, max_iter

    def start(self, problem: WorkingSetDual, point: tuple[Array, Array] | None = None) -> WorkingSetState:
        from labelweave.foundation.loops.kernel_ascent import largest_gradients

        beta, scores = problem.start() if point is None else point
        state = WorkingSetState(beta=beta, scores=scores, maxima=np.empty(beta.shape[1]))
        largest_gradients(*_by_label(problem, state), state.maxima)
        return state

    def round(self, problem: WorkingSetDual, state: WorkingSetState) -> Round[WorkingSetState]:
        from labelweave.foundation.loops.kernel_ascent import largest_gradients

        steps = _Visits(problem, state).one_round()
        # two consecutive rounds without a step, as the first may be due to drifted scores
        dry_rounds = state.dry_rounds + 1 if steps == 0 else 0
        state = replace(state, rounds=state.rounds + 1, dry_rounds=dry_rounds)
        primal, dual = problem.measure(state.beta, state.scores)
        record, settled = _record(state, primal, dual, steps), None
        if record.gap <= self.tol or steps == 0:  # measure again, with recomputed scores
            settled = problem.settled(state.beta)
            state.scores[:] = settled.kept_scores
            record = _record(state, *problem.measure(state.beta, state.scores), steps)
            largest_gradients(*_by_label(problem, state), state.maxima)
        status = Status.STALLED if dry_rounds == 2 else None
        return Round(state, record, Status.CONVERGED if record.gap <= self.tol else status, settled)

    def certify(self, problem: WorkingSetDual, state: WorkingSetState, status: Status) -> Certificate:
        settled = problem.settled(state.beta)
        values = problem.measure(settled.boxed, settled.boxed_scores)
        return Certificate(_record(state, *values, 0), status, settled)

    def recover(self, problem: WorkingSetDual, state: WorkingSetState) -> WorkingSetState:
        from labelweave.foundation.loops.kernel_ascent import largest_gradients

        state.scores[:] = problem.settled(state.beta).kept_scores
        largest_gradients(*_by_label(problem, state), state.maxima)
        return state


def _by_label(problem: WorkingSetDual, state: WorkingSetState) -> tuple[Array, ...]:
    """Return targets, scores, variables and bounds as (L, n)."""
    return problem.targets.T, state.scores.T, state.beta.T, problem.lower.T, problem.upper.T


class _Visits:
    """The visits of one round; arrays are views of shape (L, n)."""

    def __init__(self, problem: WorkingSetDual, state: WorkingSetState) -> None:
        self.problem, self.maxima = problem, state.maxima
        self.tables = _by_label(problem, state)
        self.n_labels, self.n_rows = self.tables[0].shape
        self.start, self.moved, self.gradients, self.bounds = np.empty((4, self.n_rows))
        self.flat = _FLAT * np.abs(problem.targets).max(initial=0.0)

    def one_round(self) -> int:
        """Take about as many steps as there are rows, or labels, and return their number."""
        steps = 0
        while steps < max(self.n_rows, self.n_labels):
            label = int(self.maxima.argmax())
            if self.maxima[label] <= self.flat:
                break
            steps += self.visit(label)
        return steps

    def visit(self, label: int) -> int:
        """Take steps in one label until its gradients are small, then update the scores of all labels."""
        from labelweave.foundation.loops.kernel_ascent import begin_visit, spread_scores

        column = self.problem.covariance_column(label)
        arrays = [array[label] for array in self.tables]
        largest, first = begin_visit(*arrays, self.start, self.moved, self.gradients)
        steps, enough = 0, max(self.flat, _ENOUGH * largest)
        while steps < max(_FEWEST_STEPS, self.n_labels) and largest > enough:
            taken, largest, first = self.step(first, column[label], arrays[2:])
            if not taken:
                largest = 0.0  # all remaining steps here are rounding
                break
            steps += 1
        self.maxima[label] = largest
        if steps:
            spread_scores(self.moved, column, *self.tables, self.maxima)
        return steps

    def step(self, first: int, variance: float, box: list[Array]) -> tuple[bool, float, int]:
        """Choose the second variable and take the optimal step in both; ``box`` is beta, lower and upper."""
        from labelweave.foundation.loops.kernel_ascent import choose_second, take_step

        first_row, second = self.problem.kernel_row(first), -1
        if variance > 0:
            diagonal = self.problem.kernel_diagonal
            second = choose_second(first, first_row, diagonal, self.gradients, self.bounds)
        second_row = first_row if second < 0 else self.problem.kernel_row(second)
        return take_step(
            first, second, first_row, second_row, variance, self.start, *box, self.moved, self.gradients
        )


def _record(state: WorkingSetState, primal: float, dual: float, steps: int) -> TraceRecord:
    share = min(1.0, 2 * steps / max(1, state.beta.size))
    return TraceRecord.of(primal, dual, active_share=share)
