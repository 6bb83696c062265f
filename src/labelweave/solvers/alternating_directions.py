"""The alternating direction method of multipliers on a box-constrained quadratic dual.

The problem, for an operator A = K (x) R that couples everything, is

    max_B  <T, B> - 1/2 <B, A B>,      lower <= B <= upper entry by entry.

A copy V of B carries the box and rho is the penalty on their difference (Boyd et al., "Distributed
optimization and statistical learning via the alternating direction method of multipliers", 2011,
section 5).  Every step is one solve with A + rho I, all labels at once, and a clip:

    (A + rho) B = T + rho (V - W),    V = clip(a B + (1 - a) V + W),    W = W + a B + (1 - a) V_old - V.

A problem may offer solves with a nearby operator H instead.  T then carries a correction, renewed
every round (:mod:`labelweave.solvers.corrected_steps`), and the result is that of A all the same.

Primal points are the B: their scores are smooth, while clipping shakes those of V along the few
huge eigenvalues of A.  On Animals with Attributes (6,000 images, RBF) the gap between the primal
value at B and the dual one at V is 1e-3 after 20 steps; with both at V it takes 140.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from labelweave.array_types import Array
from labelweave.solvers.active_set_newton import newton_steps
from labelweave.solvers.best_points import BestPoints
from labelweave.solvers.box_values import (
    dual_value,
    dual_value_above,
    primal_value,
    relative_gap,
)
from labelweave.solvers.corrected_steps import CorrectedSteps
from labelweave.solvers.interior_point import interior_steps, interior_work
from labelweave.solvers.result import SolverResult, Status
from labelweave.solvers.split_dual import SplitDual, SplitState
from labelweave.solvers.trace import TraceRecord

__all__ = ["AlternatingDirections"]


_RELAXATION = 1.6
_BALANCE = 0.6  # aimed at between the relative primal and dual residuals
_CHEAP_BAND, _DEAR_BAND = 2.0, 5.0  # how far the balance may be off before the penalty is changed
_LARGEST_CHANGE = 10.0
_FIRST_BALANCE, _BALANCE_GROWTH = 5, 1.5  # the first round of a change; how much later the next may come
_TINY = 1e-30
_NEWTON = 1e-3  # the gap at which Newton steps are tried
_FAILED_CHECKS = 3  # in a row without progress in single precision: rounding
_CLEARLY = 1.5  # times the tolerance, or more, is not within reach of another round or two
_ROUNDING = 0.05  # ... and at a gap below this
_WRONG = 1e-3  # a gap this far below 0 cannot be rounding
_PROGRESS = 0.95  # a gap has shrunk if it is below this share of the one before
_PAUSE = 20  # a check in vain is followed by another after this part of the rounds so far
_FIRST_CHECK = 5  # and at least every doubling of the rounds


class AlternatingDirections:
    """Maximise a box-constrained quadratic dual to a relative duality gap.

    tol: the relative duality gap to reach.
    max_iter: the largest number of rounds.
    on_check: called with a TraceRecord every round, whose objectives are NaN and whose gap is an estimate in
        rounds without a check; a true result stops the run.
    hands_over: whether a run in single precision ends early, as stalled, where another one in double
        precision does better.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        on_check: Callable[[TraceRecord], bool] | None = None,
        *,
        hands_over: bool = False,
    ) -> None:
        self.tol, self.max_iter, self.on_check = tol, max_iter, on_check
        self.hands_over = hands_over

    def solve(self, problem: SplitDual, start: SplitState | None = None) -> tuple[SolverResult, SplitState]:
        """Run until the gap is small enough, the rounds are used up or the user interrupts.

        start: where to begin; by default at zero.
        result: why the run stopped, and the trace.
        """
        return _Run(self, problem, start).to_the_end()


class _Run:
    """The state of one run."""

    def __init__(self, solver: AlternatingDirections, problem: SplitDual, start: SplitState | None) -> None:
        self.solver, self.problem = solver, problem
        self.started = time.perf_counter()
        self.state = start or self.at_zero()
        problem.set_penalty(self.state.penalty)
        self.target: Array = problem.targets
        self.scores = np.zeros_like(problem.targets)
        self.residuals = (1.0, 1.0)
        self.best = BestPoints(problem)
        self.corrections = CorrectedSteps(problem, self.state.boxed)
        if start is not None:
            self.take_up()
        self.rounds, self.next_check, self.failed = 0, _FIRST_CHECK, 0
        self.missed = (np.inf, 1.0)
        self.next_balance = _FIRST_BALANCE
        self.is_coarse = problem.targets.dtype != np.float64
        self.hands_over = self.is_coarse and solver.hands_over
        self.not_before = 0
        self.polish_from = 0
        self.trace: list[TraceRecord] = []

    def at_zero(self) -> SplitState:
        zero = np.zeros_like(self.problem.targets)
        return SplitState(zero, zero, zero.copy(), self.problem.first_penalty())

    def take_up(self) -> None:
        """Begin at a point that is not 0: value it, and correct the first solves from there."""
        self.measure()
        if not self.problem.is_exact:
            (scores,) = self.problem.scores(self.state.boxed)
            dual = self.best.note_dual(self.state.boxed, scores)
            self.target = self.problem.targets + self.corrections.renew(self.state.boxed, scores, dual)

    def to_the_end(self) -> tuple[SolverResult, SplitState]:
        try:
            status = self.rounds_until_done()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status is not Status.CONVERGED:
            self.measure()
            if self.is_reached(self.certify().gap):
                status = Status.CONVERGED
        best = SplitState(self.best.free, self.best.boxed, self.state.shift, self.state.penalty)
        return SolverResult(status, self.rounds, self.trace), best

    def rounds_until_done(self) -> Status:
        while self.rounds < self.solver.max_iter:
            hoped = self.one_round()
            foreseen = self.foreseen(hoped)
            near = foreseen <= self.solver.tol and self.rounds >= self.not_before
            due = near or self.rounds >= self.next_check
            record = self.check(hoped) if due else self.describe(np.nan, np.nan, foreseen)
            stop = self.solver.on_check is not None and self.solver.on_check(record)
            if due and self.is_reached(record.gap):
                return Status.CONVERGED
            if due and record.gap < -_WRONG:
                return Status.INDEFINITE
            if stop:
                return Status.INTERRUPTED
            if self.failed >= _FAILED_CHECKS:
                return Status.STALLED
        return Status.ITERATION_LIMIT

    def is_reached(self, gap: float) -> bool:
        return -_WRONG <= gap <= self.solver.tol

    def one_round(self) -> float:
        """Take the steps of a round and give the gap that one may hope for, at most the true one."""
        self.rounds += 1
        for _ in range(self.problem.steps_a_round):
            self.step()
        state, problem = self.state, self.problem
        primal = primal_value(problem, state.free, self.scores)
        if problem.is_exact:
            dual = dual_value_above(problem, state.free, self.scores, state.boxed)
        else:
            (boxed_scores,) = problem.scores(state.boxed)
            dual = self.best.note_dual(state.boxed, boxed_scores)
            self.target = problem.targets + self.corrections.renew(state.boxed, boxed_scores, dual)
        self.balance_penalty()
        return relative_gap(min(primal, self.best.primal), max(dual, self.best.dual))

    def foreseen(self, hoped: float) -> float:
        """Foresee the gap that a check would find: what it found last, falling like the residual squared."""
        missed, residual = self.missed
        return hoped + missed * min(1.0, (self.residuals[0] / residual) ** 2)

    def step(self) -> None:
        state, penalty = self.state, self.state.penalty
        right = state.boxed - state.shift
        right *= penalty
        right += self.target
        free = self.problem.solve(right)
        # A B, as far as the solve and the correction tell: right - penalty B - (T' - T)
        self.scores = right - penalty * free
        if self.target is not self.problem.targets:
            self.scores -= self.target - self.problem.targets
        moved = _RELAXATION * free + (1 - _RELAXATION) * state.boxed
        moved += state.shift
        boxed = np.clip(moved, self.problem.lower, self.problem.upper)
        self.residuals = (
            _norm(free - boxed) / max(_norm(boxed), _TINY),
            penalty * _norm(boxed - state.boxed) / max(_norm(self.scores), _TINY),
        )
        moved -= boxed
        self.state = SplitState(free, boxed, moved, penalty)

    def balance_penalty(self) -> None:
        """Keep the residuals of the two parts of the method in proportion."""
        cheap = self.problem.penalty_changes_are_cheap
        due = self.rounds >= self.next_balance if cheap else self.rounds in (6, 15, 40, 100, 250, 600)
        if not due or not any(self.residuals):
            return
        off = max(self.residuals[0], _TINY) / max(self.residuals[1], _TINY) / _BALANCE
        band = _CHEAP_BAND if cheap else _DEAR_BAND
        if 1 / band < off < band:
            return
        # the method converges at any one penalty, but need not while it keeps changing
        self.next_balance = max(self.rounds + _FIRST_BALANCE, int(_BALANCE_GROWTH * self.rounds))
        factor = float(np.clip(np.sqrt(off), 1 / _LARGEST_CHANGE, _LARGEST_CHANGE))
        factor = max(factor, self.problem.smallest_penalty / self.state.penalty)
        self.state.penalty *= factor
        self.state.shift /= self.problem.targets.dtype.type(factor)
        self.problem.set_penalty(self.state.penalty)

    def check(self, hoped: float) -> TraceRecord:
        """Measure the objectives, in double precision if they are as near as asked for."""
        before = self.best.gap
        free_scores = self.measure()
        now = self.best.gap
        if now > max(self.solver.tol, hoped) and now > _PROGRESS * before:
            self.refine_primal(free_scores)
        record = self.record(self.best.primal, self.best.dual)
        if record.gap <= self.solver.tol:
            self.trace.pop()
            record = self.certify()
        if record.gap > self.solver.tol and not self.is_coarse and self.rounds >= self.polish_from:
            record = self.polish(record)
        in_vain = record.gap > max(self.solver.tol, _PROGRESS * before)
        by_rounding = in_vain and self.is_coarse and record.gap < _ROUNDING
        self.failed = self.failed + 1 if by_rounding else 0
        self.not_before = self.rounds + self.rounds // _PAUSE if in_vain else 0
        if self.hands_over and record.gap > self.solver.tol:
            done = self.interior_points_pay() or self.is_held_by_rounding(hoped, record.gap)
            self.failed = _FAILED_CHECKS if done else self.failed
        self.missed = max(record.gap - hoped, 0.0), max(self.residuals[0], _TINY)
        self.next_check = min(2 * self.rounds, max(self.solver.max_iter, self.rounds + 1))
        return record

    def is_held_by_rounding(self, hoped: float, gap: float) -> bool:
        """Tell whether the residual has fallen far enough and the gap has not followed it.

        Solves that are not exact leave a part of the gap that does not follow the residual either.
        """
        foreseen = self.foreseen(hoped)
        reached = self.problem.is_exact and max(foreseen, hoped) <= self.solver.tol
        return reached and gap > _CLEARLY * self.solver.tol and gap - hoped > 3 * (foreseen - hoped)

    def interior_points_pay(self) -> bool:
        factor = self.problem.low_rank_factor()
        spent = self.rounds * self.problem.round_work()
        return factor is not None and interior_work(self.problem, factor) <= spent

    def measure(self) -> Array:
        """Compute the objectives where the run stands, keep the best, and give the scores of B."""
        state, problem = self.state, self.problem
        free_scores, boxed_scores = problem.scores(state.free, state.boxed)
        self.best.note_primal(state.free, free_scores)
        self.best.note_dual(state.boxed, boxed_scores)
        return free_scores

    def refine_primal(self, scores: Array) -> None:
        """Take off B what rounding put there: the scores found are not those that were solved for."""
        refined = self.state.free + self.problem.solve(self.scores - scores)
        self.best.note_primal(refined, *self.problem.scores(refined))

    def polish(self, record: TraceRecord) -> TraceRecord:
        """Try a local method for as much work as was done so far, and go on from where it ends if nearer."""
        problem, penalty, tol = self.problem, self.state.penalty, self.solver.tol
        spent, factor = self.rounds * problem.round_work(), problem.low_rank_factor()
        if factor is not None:
            end = interior_steps(problem, factor, tol, spent)
        elif record.gap <= _NEWTON:
            end = newton_steps(problem, self.best.boxed, penalty, tol, spent)
        else:
            return record
        self.polish_from = 2 * self.rounds
        if end is None or end.gap >= record.gap:
            return record
        self.state = SplitState(end.free, end.boxed, end.slopes / penalty, penalty)
        self.best.free, self.best.boxed = end.free, end.boxed
        record = self.certify()
        self.best.replace(end.free, end.boxed, record.primal, record.dual)
        return record

    def certify(self) -> TraceRecord:
        """Measure the objectives of the result in double precision, on the true operator."""
        settled = self.problem.settled(self.best.free, self.best.boxed, self.solver.tol)
        return self.record(
            primal_value(settled, settled.kept, settled.kept_scores),
            dual_value(settled, settled.boxed, settled.boxed_scores),
        )

    def record(self, primal: float, dual: float) -> TraceRecord:
        record = self.describe(primal, dual, relative_gap(primal, dual))
        self.trace.append(record)
        return record

    def describe(self, primal: float, dual: float, gap: float) -> TraceRecord:
        seconds = time.perf_counter() - self.started
        return TraceRecord(self.rounds, seconds, primal, dual, gap, active_share=1.0)


def _norm(table: Array) -> float:
    return float(np.linalg.norm(table))
