"""The alternating direction method of multipliers (ADMM) on a box-constrained quadratic dual.

The problem, for an operator A = K (x) R that couples all variables, is

    max_B  <T, B> - 1/2 <B, A B>,      lower <= B <= upper entry by entry.

A copy V of B is subject to the box, and rho is the penalty on their difference (Boyd et al., "Distributed
optimization and statistical learning via the alternating direction method of multipliers", 2011,
section 5).  Every step is one solve with A + rho I, all labels at once, and a clip:

    (A + rho) B = T + rho (V - W),    V = clip(a B + (1 - a) V + W),    W = W + a B + (1 - a) V_old - V.

A problem may provide solves with a nearby operator H instead.  T then includes a correction, updated every
round (:class:`Corrections`), and the result is still that of A.

Primal points are the B: their scores are smooth, while clipping perturbs those of V along the few very large
eigenvalues of A.  On Animals with Attributes (6,000 images, RBF) the gap between the primal value at B and
the dual one at V is 1e-3 after 20 steps; with both at V it takes 140.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import as_type, copied, inner_product, is_double, length
from labelweave.solvers import box_dual
from labelweave.solvers.box_dual import BestPoints, Settled, ShiftedSolves, SplitDual
from labelweave.solvers.box_ends import interior_steps, interior_work, newton_steps
from labelweave.solvers.frame import Certificate, Round, Solver, State, Status, TraceRecord, relative_gap

_RELAXATION = 1.6
_INEXACT_STEPS = 3  # between updates of the correction
_BALANCE = 0.6  # target ratio of the relative primal and dual residuals
_CHEAP_BAND, _DEAR_BAND = 2.0, 5.0  # deviation of the balance at which the penalty is changed
_LARGEST_CHANGE = 10.0
_FIRST_BALANCE, _BALANCE_GROWTH = 5, 1.5  # the first round of a change; the factor to the next one
_DEAR_ROUNDS = (6, 15, 40, 100, 250, 600)  # in which a change that costs a factorization is considered
_TINY = 1e-30
_NEWTON = 1e-3  # the gap at which Newton steps are tried
_FAILED_CHECKS = 3  # consecutive checks without progress in single precision: rounding
_CLEARLY = 1.5  # times the tolerance: a gap above it needs more than one or two rounds
_ROUNDING = 0.05  # ... and at a gap below this
_UNFOUNDED = 0.3  # share of the gap allowed as error of solves; above it rounding dominates
_FALL = 5.0  # of the gap, observed in well-conditioned problems when rounds double
_FORESEEABLE = 1e3  # largest decrease to extrapolate: small problems converge faster eventually
_LAST_RESORT = 10.0  # ratio to the work so far, for a fit that would end at the limit of rounds
_PROGRESS = 0.95  # a gap has decreased if it is below this share of the previous one
_PAUSE = 20  # after a failed check, the next is after a twentieth of the rounds so far
_NEAR = 0.03  # a gap above which multipliers of another problem slow convergence
_FIRST_CHECK = 5  # and at least at every doubling of the rounds
_MARGIN = 1.1  # factor on the Rayleigh quotient, for the new weight of the rest


class _Point(NamedTuple):
    """A dual point V with the products that corrections need: M V and (A - N) V."""

    variables: Array
    rest_part: Array
    omitted: Array

    def beyond(self, other: _Point, share: float) -> _Point:
        """Return ``self + share (self - other)``."""
        if share == 0:
            return self
        return _Point(*(mine + share * (mine - theirs) for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Corrections:
    """Corrections for solves with a nearby operator: proximal gradient steps with momentum.

    The operator A of the dual is replaced by ``H = N + r M``, for which solves are cheap; N is near A, and M
    bounds the remainder.  The dual at V is then maximized as if it were

        <T + (H - A) Y, V> - 1/2 <V, H V>

    around a point Y, which is a proximal gradient step in the metric H.  It raises the
    dual whenever ``H >= A`` along the step, so r is raised to the largest Rayleigh quotient of ``A - N`` by M
    over the steps so far: no eigenvalue needs to be known.  Y is V with the momentum of Beck and Teboulle
    (2009), restarted when the dual decreases (O'Donoghue and Candes 2015).  A Y follows from the stored A V,
    so a round costs one product with A.

    rest: r.
    """

    last: _Point
    around: _Point
    rest: float
    dual: float = -np.inf
    momentum: float = 1.0

    @classmethod
    def at_zero(cls, shape: Array, rest: float) -> Corrections:
        """Start at 0, or at a point that the first update immediately replaces."""
        zero = namespace(shape).zeros_like(shape)
        point = _Point(zero, zero, zero)
        return cls(point, point, rest)

    def renewed(
        self, solves: ShiftedSolves, variables: Array, scores: Array, dual: float
    ) -> tuple[Corrections, Array]:
        """Record a step to V with its scores and dual value, and return the correction for the next step."""
        omitted = scores - solves.near_product(variables)
        point = _Point(variables, solves.rest_product(variables), omitted)
        step = point.variables - self.around.variables
        size = inner_product(step, point.rest_part - self.around.rest_part)
        met = inner_product(step, point.omitted - self.around.omitted)
        rest = _MARGIN * met / size if met > self.rest * size and size > 0 else self.rest
        fallen = dual < self.dual
        before = 1.0 if fallen else self.momentum
        momentum = float((1 + np.sqrt(1 + 4 * before * before)) / 2)
        around = point.beyond(self.last, 0.0 if fallen else float((before - 1) / momentum))
        correction: Array = rest * around.rest_part - around.omitted
        return Corrections(point, around, rest, dual, momentum), correction


@dataclass(frozen=True, kw_only=True)
class SplitState(State):
    """The state of a run.

    free: B, not confined to the box.
    boxed: V, within the box.
    shift: W, the scaled multipliers.
    penalty: rho.
    target: T with the correction.
    scores: A B, from the last solve.
    residuals: the relative primal and dual residuals.
    begun: the round in which the run started in this precision.
    next_check, not_before, next_balance, polish_from: rounds, counted from ``begun``.
    missed: the excess of the last measured gap over the estimate, and the residual then.
    """

    free: Array
    boxed: Array
    shift: Array
    penalty: float
    target: Array
    scores: Array
    best: BestPoints
    corrections: Corrections
    residuals: tuple[float, float] = (1.0, 1.0)
    missed: tuple[float, float] = (np.inf, 1.0)
    begun: int = 0
    failed: int = 0
    next_check: int = _FIRST_CHECK
    next_balance: int = _FIRST_BALANCE
    not_before: int = 0
    polish_from: int = 0

    @property
    def passed(self) -> int:
        return self.rounds - self.begun


State.plain_with(BestPoints, Corrections, _Point)


class AlternatingDirections(Solver[SplitDual, SplitState]):
    """Maximize a box-constrained quadratic dual to a relative duality gap.

    hands_over: whether a run in single precision ends early, as stalled, when one in double precision is
        faster.
    """

    def __init__(self, tol: float, max_iter: int, *, hands_over: bool = False) -> None:
        self.tol, self.max_iter, self.hands_over = tol, max_iter, hands_over

    def start(self, problem: SplitDual, point: SplitState | None = None) -> SplitState:
        """Start at 0, or at the best points, W and rho of another run, with its rounds and trace."""
        xp, dtype = namespace(problem.targets), problem.targets.dtype
        zero = xp.zeros_like(problem.targets)
        state = SplitState(
            free=zero,
            boxed=zero,
            shift=copied(zero),
            penalty=problem.first_penalty(),
            target=problem.targets,
            scores=copied(zero),
            best=BestPoints.at_zero(problem),
            corrections=Corrections.at_zero(zero, problem.solves.first_rest),
        )
        if point is None:
            return state
        state = replace(
            state,
            free=as_type(point.best.free, dtype),
            boxed=xp.clip(as_type(point.best.boxed, dtype), problem.lower, problem.upper),
            shift=as_type(copied(point.shift), dtype),
            penalty=max(point.penalty, problem.solves.smallest_penalty),
            rounds=point.rounds,
            begun=point.rounds,
            trace=point.trace,
        )
        best, _ = _measured(problem, state)
        return _corrected(problem, replace(state, best=best))

    def start_at(self, problem: SplitDual, dual: Array, trace: tuple[TraceRecord, ...] = ()) -> SplitState:
        """Start at dual variables, clipped to their bounds; far from the optimum without multipliers.

        trace: of the solver that computed them, if it solved this problem.
        """
        state, xp = self.start(problem), namespace(problem.targets)
        dual = xp.clip(as_type(dual, problem.targets.dtype), problem.lower, problem.upper)
        best, rounds = replace(state.best, free=dual, boxed=dual), trace[-1].iteration if trace else 0
        state = self.start(problem, replace(state, best=best, rounds=rounds, trace=trace))
        if state.best.gap > _NEAR and not trace:
            return state
        (scores,) = problem.scores(dual)
        return replace(state, shift=(problem.targets - scores) / state.penalty)

    def round(self, problem: SplitDual, state: SplitState) -> Round[SplitState]:
        for _ in range(1 if problem.solves.is_exact else _INEXACT_STEPS):
            state = _step(problem, state)
        state, hoped = _after_steps(problem, replace(state, rounds=state.rounds + 1))
        foreseen = _foreseen(state, hoped)
        near = foreseen <= self.tol and state.passed >= state.not_before
        if not (near or state.passed >= state.next_check):
            return Round(state, TraceRecord(gap=foreseen, active_share=1.0))
        state, record, settled = self._check(problem, state, hoped)
        status = None
        if self._is_reached(record.gap):
            status = Status.CONVERGED
        elif record.gap < -box_dual.WRONG:
            status = Status.INDEFINITE
        elif record.gap < 0 or state.failed >= _FAILED_CHECKS:
            status = Status.STALLED
        return Round(state, record, status, settled)

    def certify(self, problem: SplitDual, state: SplitState, status: Status) -> Certificate:
        best, _ = _measured(problem, state)
        record, settled = self._settled(problem, best)
        return Certificate(record, Status.CONVERGED if self._is_reached(record.gap) else status, settled)

    def _is_reached(self, gap: float) -> bool:
        return abs(gap) <= self.tol  # a negative gap is rounding

    def _settled(self, problem: SplitDual, best: BestPoints) -> tuple[TraceRecord, Settled]:
        """Measure the objectives of the result in double precision, on the true operator."""
        settled = problem.settled(best.free, best.boxed, self.tol, best.weights)
        return TraceRecord.of(*settled.values(), active_share=1.0), settled

    def _check(
        self, problem: SplitDual, state: SplitState, hoped: float
    ) -> tuple[SplitState, TraceRecord, Settled | None]:
        """Measure the objectives, in double precision if their gap is within the tolerance."""
        before, settled = state.best.gap, None
        best, free_scores = _measured(problem, state)
        if best.gap > max(self.tol, hoped) and best.gap > _PROGRESS * before:
            # remove rounding errors from B: its scores differ from those of the solve
            refined = state.free + _solve(problem, state, state.scores - free_scores)
            best = best.with_primal(problem, refined, *problem.scores(refined))
        state = replace(state, best=best)
        record = TraceRecord.of(best.primal, best.dual, active_share=1.0)
        if record.gap <= self.tol:
            record, settled = self._settled(problem, best)
        is_coarse = not is_double(problem.targets)
        if record.gap > self.tol and not is_coarse and state.passed >= state.polish_from:
            state, record, settled = self._polished(problem, state, record)
        unfounded = 0.0
        if record.gap > self.tol and is_coarse:
            values = [
                box_dual.primal_value(problem, state.free, scores) for scores in (free_scores, state.scores)
            ]
            unfounded = relative_gap(*values)
        return self._planned(problem, state, record.gap, hoped, before, unfounded), record, settled

    def _planned(
        self, problem: SplitDual, state: SplitState, gap: float, hoped: float, before: float, unfounded: float
    ) -> SplitState:
        """Schedule the next check, and decide whether single precision has reached its limit.

        before: the gap of the previous check.
        unfounded: the share of the primal at B that is missing with the scores from the solve.
        """
        passed, is_coarse = state.passed, not is_double(problem.targets)
        in_vain = gap > max(self.tol, _PROGRESS * before)
        failed = state.failed + 1 if in_vain and is_coarse and gap < _ROUNDING else 0
        if is_coarse and self.hands_over and gap > self.tol:
            held = self._is_held_by_rounding(problem, state, hoped, gap, unfounded)
            failed = _FAILED_CHECKS if held or self._interior_points_pay(problem, state, gap) else failed
        left = self.max_iter - state.begun
        return replace(
            state,
            failed=failed,
            not_before=passed + passed // _PAUSE if in_vain else 0,
            missed=(max(gap - hoped, 0.0), max(state.residuals[0], _TINY)),
            next_check=min(2 * passed, max(left, passed + 1)),
        )

    def _is_held_by_rounding(
        self, problem: SplitDual, state: SplitState, hoped: float, gap: float, unfounded: float
    ) -> bool:
        """Return whether errors of solves dominate the gap, or it does not follow the residual.

        Inexact solves also leave a part of the gap that does not follow the residual.
        """
        if not problem.solves.is_exact or gap <= _CLEARLY * self.tol:
            return False
        if unfounded > max(_UNFOUNDED * gap, self.tol):
            return True
        foreseen = _foreseen(state, hoped)
        return max(foreseen, hoped) <= self.tol and gap - hoped > 3 * (foreseen - hoped)

    def _polished(
        self, problem: SplitDual, state: SplitState, record: TraceRecord
    ) -> tuple[SplitState, TraceRecord, Settled | None]:
        """Try a local method for as much work as further rounds; continue from its result if it is better."""
        factor, again = problem.low_rank_factor(), 0
        if factor is not None:
            foreseen = self._work_foreseen(problem, state, record.gap)
            end = interior_steps(problem, factor, self.tol, foreseen)
            again = 0 if end is None else self.max_iter + 1  # repeating the steps has the same result
        elif record.gap <= _NEWTON:
            spent = state.passed * problem.round_work()
            end = newton_steps(problem, state.best.boxed, state.penalty, self.tol, spent)
            again = 2 * state.passed
        else:
            return state, record, None
        state = replace(state, polish_from=again)
        if end is None or end.gap >= record.gap:
            return state, record, None
        best = replace(state.best, free=end.free, boxed=end.boxed, weights=end.weights)
        record, settled = self._settled(problem, best)
        best = replace(best, primal=record.primal, dual=record.dual)
        shift = end.gradient / state.penalty
        return replace(state, free=end.free, boxed=end.boxed, shift=shift, best=best), record, settled

    def _interior_points_pay(self, problem: SplitDual, state: SplitState, gap: float) -> bool:
        factor, foreseen = problem.low_rank_factor(), self._work_foreseen(problem, state, gap)
        return factor is not None and interior_work(problem, factor) <= foreseen

    def _work_foreseen(self, problem: SplitDual, state: SplitState, gap: float) -> float:
        """Estimate the operations to convergence, from the rounds so far and the remaining gap."""
        fall = float(np.clip(gap / self.tol, 1.0, _FORESEEABLE))
        rounds = state.passed * 2.0 ** (np.log(fall) / np.log(_FALL))
        if rounds > self.max_iter - state.begun and 2 * state.rounds >= self.max_iter:
            rounds = max(rounds, _LAST_RESORT * state.rounds)
        return float(rounds * problem.round_work())


def _solve(problem: SplitDual, state: SplitState, right: Array) -> Array:
    return problem.solves.solve(right, state.penalty, state.corrections.rest)


def _step(problem: SplitDual, state: SplitState) -> SplitState:
    penalty = state.penalty
    right = state.boxed - state.shift
    right *= penalty
    right += state.target
    free = _solve(problem, state, right)
    # A B, according to the solve and the correction: right - penalty B - (T' - T)
    scores = right - penalty * free
    if state.target is not problem.targets:
        scores -= state.target - problem.targets
    moved = _RELAXATION * free + (1 - _RELAXATION) * state.boxed
    moved += state.shift
    boxed = namespace(moved).clip(moved, problem.lower, problem.upper)
    residuals = (
        length(free - boxed) / max(length(boxed), _TINY),
        penalty * length(boxed - state.boxed) / max(length(scores), _TINY),
    )
    moved -= boxed
    return replace(state, free=free, boxed=boxed, shift=moved, scores=scores, residuals=residuals)


def _after_steps(problem: SplitDual, state: SplitState) -> tuple[SplitState, float]:
    """Update correction and penalty, and return an estimate of the gap, at most the true one."""
    primal = box_dual.primal_value(problem, state.free, state.scores)
    if problem.solves.is_exact:
        dual = box_dual.dual_value_above(problem, state.free, state.scores, state.boxed)
    else:
        state = _corrected(problem, state)
        dual = state.corrections.dual
    hoped = relative_gap(min(primal, state.best.primal), max(dual, state.best.dual))
    return _balanced(problem, state), hoped


def _corrected(problem: SplitDual, state: SplitState) -> SplitState:
    """Update the correction at V, if solves are with a nearby operator."""
    if problem.solves.is_exact:
        return state
    (scores,) = problem.scores(state.boxed)
    best, dual = state.best.with_dual(problem, state.boxed, scores)
    corrections, correction = state.corrections.renewed(problem.solves, state.boxed, scores, dual)
    return replace(state, best=best, corrections=corrections, target=problem.targets + correction)


def _balanced(problem: SplitDual, state: SplitState) -> SplitState:
    """Balance the primal and the dual residual by the penalty."""
    cheap, passed = problem.solves.penalty_changes_are_cheap, state.passed
    due = passed >= state.next_balance if cheap else passed in _DEAR_ROUNDS
    if not due or not any(state.residuals):
        return state
    off = max(state.residuals[0], _TINY) / max(state.residuals[1], _TINY) / _BALANCE
    band = _CHEAP_BAND if cheap else _DEAR_BAND
    if 1 / band < off < band:
        return state
    factor = float(np.clip(np.sqrt(off), 1 / _LARGEST_CHANGE, _LARGEST_CHANGE))
    factor = max(factor, problem.solves.smallest_penalty / state.penalty)
    state.shift[...] /= factor
    # the method converges at any fixed penalty, but not necessarily while it changes
    later = max(passed + _FIRST_BALANCE, int(_BALANCE_GROWTH * passed))
    return replace(state, penalty=state.penalty * factor, next_balance=later)


def _measured(problem: SplitDual, state: SplitState) -> tuple[BestPoints, Array]:
    free_scores, boxed_scores = problem.scores(state.free, state.boxed)
    best = state.best.with_primal(problem, state.free, free_scores)
    return best.with_dual(problem, state.boxed, boxed_scores)[0], free_scores


def _foreseen(state: SplitState, hoped: float) -> float:
    """Estimate the gap of a check: that of the last check, decreasing as the residual squared."""
    missed, residual = state.missed
    return hoped + missed * min(1.0, (state.residuals[0] / residual) ** 2)
