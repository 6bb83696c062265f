"""Newton's method with conjugate gradients for penalized likelihoods of kernel models.

The problem (Seeger 2008, equation 1) is, separately for every group of columns,

    minimize  Phi(a) = sum_i loss_i(u_i) + 1/2 <a, K a>,   u = K a,

with K the prior covariance of the scores u and a the dual variables.  With
``r = -loss'(u) - a`` the gradient of Phi in the function space of K is ``-r``, so its length there
is a certificate:

    Phi(a) - Phi* <= 1/2 <r, K r>,

which is the duality gap between a and the dual point ``-loss'(u)``.  It requires a convex loss: for partially
observed rows (:mod:`labelweave.problems.losses.score_loss`), Phi* is the minimum at the present expectations
of their classes, the M step's, and other minima of Phi may be lower.  A Newton step solves ``(I + W K) d =
r`` with W the curvature of the loss (:mod:`labelweave.solvers.newton_system`).  The image K d is computed
with d, so a line search needs no products (the pair optimization of section 5.1.2): it continues until the
derivative is small, as Newton's model is poor for confident scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from labelweave.foundation.array_types import Array, GroupedColumns
from labelweave.foundation.arrays import linear_algebra, namespace
from labelweave.solvers.frame import Round, Solver, State, Status, TraceRecord
from labelweave.solvers.newton_system import (
    FunctionGradients,
    LinearSolver,
    NewtonPoint,
    NewtonProblem,
    NewtonSystem,
    inner_products,
)

# residual reductions of conjugate gradients; with looser ones steps are poor for confident scores
_LOOSEST, _TIGHTEST = 0.25, 0.1
_FOLLOWED = 2.0  # factor on the last reduction of the gap (Eisenstat and Walker, choice 2)
_SHORTEST_STEP = 1e-8
_SUFFICIENT = 1e-4  # of the decrease predicted by the derivative (Armijo)
_FLAT = 0.25  # of the derivative at the start: flat enough (Wolfe)
_SHORTEST, _LONGEST = 1e-10, 64.0
_EDGE = 0.1  # of a bracket: least distance of the next length from both ends
_LEAST_GROWTH, _MOST_GROWTH = 1.5, 4.0
_ROUNDING = 1e-13  # of the objective; smaller changes are rounding
_MOST_TRIALS = 40


@dataclass(frozen=True, kw_only=True)
class NewtonState(State):
    """The state of a fit, after a check of its gaps.

    values, gaps, last_gaps (groups,): the objective, its gap and the gap of the previous step.
    active: the groups that have not converged.
    is_fresh: whether the scores are K a up to rounding, not updated by steps.
    residual, image, curvature: of the active groups; None for a point not yet measured.
    """

    dual: GroupedColumns
    scores: GroupedColumns
    values: Array
    gaps: Array
    last_gaps: Array
    active: Array
    is_fresh: bool
    residual: Array | None = None
    image: Array | None = None
    curvature: Array | None = None

    _varies: ClassVar[tuple[str, ...]] = ("active",)

    @classmethod
    def at(cls, dual: GroupedColumns) -> Self:
        groups = dual.shape[1]
        unknown = np.full(groups, np.inf)
        return cls(
            dual=dual,
            scores=namespace(dual).zeros_like(dual),
            values=unknown,
            gaps=unknown,
            last_gaps=unknown,
            active=np.arange(groups),
            is_fresh=not namespace(dual).any(dual),
        )


class NewtonConjugateGradient(Solver[NewtonProblem, NewtonState]):
    """Newton's method; ``tol`` is the relative duality gap to reach, over all groups.

    max_inner: the maximum number of conjugate gradient iterations per step.
    directions: the solver of linear systems; by default :class:`FunctionGradients`.
    """

    def __init__(
        self, tol: float, max_iter: int, max_inner: int = 500, directions: LinearSolver | None = None
    ) -> None:
        self.tol, self.max_iter, self.max_inner = tol, max_iter, max_inner
        self.directions: LinearSolver = directions or FunctionGradients()

    def start(self, problem: NewtonProblem) -> NewtonState:
        return NewtonState.at(linear_algebra.placed(np.zeros(problem.shape)))

    def round(self, problem: NewtonProblem, state: NewtonState) -> Round[NewtonState]:
        if state.residual is not None and self._is_done(state):  # the final state of a run
            return Round(state, None, Status.CONVERGED)
        if state.residual is not None:
            was_fresh = state.is_fresh
            state, longest = self._stepped(problem, state)
            if longest < _SHORTEST_STEP:
                state = _unmeasured(state)
                if was_fresh:
                    return Round(state, None, Status.STALLED)
        state = _measured(problem, state)
        if state.rounds == 0:
            state = _no_worse_than_zero(problem, state)
        record = _record(state)
        if not self._is_done(state):
            return Round(state, record)
        if state.is_fresh:
            return Round(state, record, Status.CONVERGED)
        # of all groups: converged ones may need more as the targets decrease
        return Round(_unmeasured(state), record)

    def certify(
        self, problem: NewtonProblem, state: NewtonState, status: Status
    ) -> tuple[TraceRecord, Status]:
        if not state.is_fresh or state.residual is None:
            state = _measured(problem, _unmeasured(state))
        is_met = status is not Status.INTERRUPTED and self._is_done(state)
        return _record(state), Status.CONVERGED if is_met else status

    def recover(self, problem: NewtonProblem, state: NewtonState) -> NewtonState:
        return _measured(problem, _unmeasured(state))

    def _is_done(self, state: NewtonState) -> bool:
        return bool((state.gaps <= self._targets(state))[state.active].all())

    def _targets(self, state: NewtonState) -> Array:
        """Distribute the allowed gap over the groups, half by their values and half evenly."""
        sizes = np.abs(state.values)
        total = float(sizes.sum())
        # losses of corrected targets may be negative: the tolerance is relative to their sum
        left = abs(float(state.values.sum())) / total if total > 0 else 1.0
        return np.asarray(self.tol * left * (sizes + total / len(sizes)) / 2)

    def _stepped(self, problem: NewtonProblem, state: NewtonState) -> tuple[NewtonState, float]:
        """Take a Newton step in the groups that need one; return also the longest step length."""
        assert state.residual is not None, "a step starts from a point that was measured"
        parts: Any = state.residual, state.image, state.curvature
        active = state.active
        needed = (state.gaps > self._targets(state))[active]
        if not needed.all():
            active, parts = (
                active[needed],
                tuple(linear_algebra.contiguous(linear_algebra.columns_of(part, needed)) for part in parts),
            )
        residual, image, curvature = parts
        dual, scores = _of_groups(state.dual, active), _of_groups(state.scores, active)
        system = NewtonSystem(problem, curvature, active)
        point = NewtonPoint(dual, scores, residual, image, state.values[active])
        forcing = self._forcing(state, active)
        direction, along = self.directions.direction(system, point, forcing, self.max_inner)
        lengths = search_along(system, point, direction, along)
        step = linear_algebra.like(lengths[:, None], direction)
        moved = replace(
            state,
            rounds=state.rounds + 1,
            dual=_with_groups(state.dual, active, dual + step * direction),
            scores=_with_groups(state.scores, active, scores + step * along),
            active=active,
            is_fresh=False,
        )
        return moved, float(lengths.max(initial=0.0))  # empty if all gaps overflow

    def _forcing(self, state: NewtonState, active: Array) -> Array:
        """Return the reductions for the linear systems: smaller as the gaps fall, within the target."""
        gaps, last = state.gaps[active], state.last_gaps[active]
        tightening = np.where(np.isinf(last), _LOOSEST, _FOLLOWED * gaps / np.maximum(last, 1e-300))
        enough = 0.3 * np.sqrt(self._targets(state)[active] / np.maximum(gaps, 1e-300))
        return np.asarray(np.clip(np.maximum(tightening, enough), _TIGHTEST, _LOOSEST))


def _unmeasured(state: NewtonState) -> NewtonState:
    """Mark the scores of all groups for recomputation in the next measurement."""
    every = np.arange(state.dual.shape[1])
    return replace(state, active=every, is_fresh=False, residual=None, image=None, curvature=None)


def _measured(problem: NewtonProblem, state: NewtonState) -> NewtonState:
    """Evaluate the objective, its gradient and the gap of the active groups."""
    active = state.active
    if state.residual is None and not state.is_fresh:
        state = replace(state, scores=problem.product(state.dual, active), is_fresh=True)
    dual, scores = _of_groups(state.dual, active), _of_groups(state.scores, active)
    losses, residual, curvature = problem.evaluate(scores, active)
    residual -= dual
    image = problem.product(residual, active)
    panels = NewtonSystem(problem, curvature, active).panels
    squares, energies = inner_products(panels, (residual, image), (dual, scores))
    last_gaps, gaps, values = (part.copy() for part in (state.last_gaps, state.gaps, state.values))
    last_gaps[active] = gaps[active]
    gaps[active] = np.maximum(squares, 0.0) / 2
    values[active] = losses + energies / 2
    return replace(
        state,
        values=values,
        gaps=gaps,
        last_gaps=last_gaps,
        residual=residual,
        image=image,
        curvature=curvature,
    )


def _no_worse_than_zero(problem: NewtonProblem, state: NewtonState) -> NewtonState:
    """Restart groups at zero whose start, from another K, is worse: line searches end there in rounding."""
    nothing = namespace(state.dual).zeros_like(state.dual)
    worse = ~(state.values <= problem.evaluate(nothing, state.active)[0])
    if not worse.any():
        return state
    dual = linear_algebra.copied(state.dual)
    linear_algebra.put_columns(dual, np.flatnonzero(worse), linear_algebra.columns_of(nothing, worse))
    return _measured(problem, _unmeasured(replace(state, dual=dual)))


def _record(state: NewtonState) -> TraceRecord:
    primal, gap = float(state.values.sum()), float(state.gaps.sum())
    share = len(state.active) / len(state.gaps)
    return TraceRecord.of(primal, primal - gap, active_share=share)


def _of_groups(array: Array, groups: Array) -> Array:
    return array if len(groups) == array.shape[1] else linear_algebra.columns_of(array, groups)


def _with_groups(array: Array, groups: Array, part: Array) -> Array:
    if len(groups) == array.shape[1]:
        return part
    array = linear_algebra.copied(array)
    linear_algebra.put_columns(array, groups, part)
    return array


def search_along(
    system: NewtonSystem, point: NewtonPoint, direction: GroupedColumns, along: GroupedColumns
) -> Array:
    """Find step lengths (groups,) that nearly minimize the objectives along the direction; else 0."""
    search = _Search(system, point, direction, along)
    for _ in range(_MOST_TRIALS):
        if not search.open.any():
            break
        search.try_lengths()
    return search.best


class _Search:
    """Brackets of the best lengths; the derivative is negative at the low ends only.

    descent: minus the derivative at the start; cross and square: those of the penalty along the direction.
    """

    def __init__(self, system: NewtonSystem, point: NewtonPoint, direction: Array, along: Array) -> None:
        self.system, self.point, self.along = system, point, along
        self.descent, self.cross, self.square = inner_products(
            system.panels, (point.residual, along), (direction, point.scores), (direction, along)
        )
        self.still = inner_products(system.panels, (point.dual, point.scores))[0]
        self.open = self.descent > 0
        self.lengths = np.where(self.open, 1.0, 0.0)
        self.low, self.low_derivative = np.zeros(len(self.descent)), -self.descent
        self.high, self.high_derivative = np.full(len(self.descent), np.inf), np.zeros(len(self.descent))
        self.best, self.least = np.zeros(len(self.descent)), np.full(len(self.descent), np.inf)

    def try_lengths(self) -> None:
        """Evaluate the current lengths, keep the good ones, and choose others for the rest."""
        lengths, start = self.lengths, self.point.values
        values, derivatives = self._evaluate()
        rounding = _ROUNDING * np.maximum(1.0, np.abs(start))
        lower = values <= start - _SUFFICIENT * lengths * self.descent + rounding
        better = self.open & lower & (values < self.least)
        self.best[better], self.least[better] = lengths[better], values[better]
        flat = np.abs(derivatives) <= np.maximum(
            _FLAT * self.descent, rounding / np.maximum(lengths, _SHORTEST)
        )
        self.open &= ~(lower & flat)
        self._narrow(~(derivatives < 0) | ~lower, derivatives)
        self._choose()
        self.open &= (self.high > _SHORTEST) & (self.lengths <= _LONGEST)

    def _evaluate(self) -> tuple[Array, Array]:
        along, scores = self.along, self.point.scores
        lengths = linear_algebra.like(self.lengths[:, None], along)

        def one(rows: slice) -> Array:
            direction = along[rows, ...]
            there = scores[rows, ...] + lengths * direction
            return np.stack(self.system.problem.along(there, direction, self.system.groups, rows))

        losses, derivatives = self.system.panels.total(one)
        penalty = self.still + 2 * self.lengths * self.cross + self.lengths**2 * self.square
        return losses + penalty / 2, derivatives + self.cross + self.lengths * self.square

    def _narrow(self, is_high: Array, derivatives: Array) -> None:
        """Replace one end of each bracket by the current length."""
        high, low = self.open & is_high, self.open & ~is_high
        self.high[high], self.high_derivative[high] = self.lengths[high], derivatives[high]
        self.low[low], self.low_derivative[low] = self.lengths[low], derivatives[low]

    def _choose(self) -> None:
        """Choose the next lengths by linear interpolation of the derivatives, or extrapolate."""
        fall, bounded = -self.low_derivative, np.isfinite(self.high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = fall / (self.high_derivative + fall)
            growth = self.descent / (self.descent - fall)
            inside = self.low + (self.high - self.low) * _within(share, _EDGE, 1 - _EDGE)
        outside = self.low * _within(growth, _LEAST_GROWTH, _MOST_GROWTH)
        self.lengths = np.where(self.open, np.where(bounded, inside, outside), self.lengths)


def _within(values: Array, least: float, most: float) -> Array:
    """Clip values, and replace NaN by the least."""
    return np.asarray(np.where(np.isfinite(values), np.clip(values, least, most), least))
