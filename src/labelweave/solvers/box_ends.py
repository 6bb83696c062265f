"""Two final phases for box-constrained duals: active-set Newton steps, and interior points.

**Newton steps.**
Near the optimum of a box-constrained quadratic dual the variables are at the lower bound, at the upper bound
or free (F).  Given these sets, the free variables solve one linear system,

    A_FF B_F = T_F - A_FG V_G,        G: the variables at bounds,

and the next sets follow from B + (T - A B) / rho.  This primal-dual active set method is a
semi-smooth Newton method (Hintermueller, Ito and Kunisch 2002): near the optimum it converges in a few steps,
to a gap at rounding level; far from it, it may cycle, and its steps are then discarded.

**Interior points**, for duals of low rank, one label at a time.
With ``A = G G^T``, where G has few columns, and a box [0, u], the maximizer of ``<m, a> - 1/2 |G^T a|^2``
satisfies, with multipliers s and z of the two bounds,

    G w - m - s + z = 0,     w = G^T a,     a s = 0,     (u - a) z = 0.

Newton steps on the products made equal to a falling mu (Mehrotra's predictor and corrector, SIAM Journal on
Optimization 2, 1992) cost one factorization of ``I + G^T D^-1 G`` each (Ferris and Munson 2002), with D = ``s
/ a + z / (u - a)``.  Further solves with it move outlying products toward mu, which makes steps longer
(Gondzio, Computational Optimization and Applications 6, 1996): 3 of them halve the number of steps on
unscaled pixels.  The method is hardly affected by ill-conditioning, where first-order steps are slow:
unscaled features, or a large C.

For large features, w is a small difference of large terms of a.  Three measures protect late steps from
rounding: w is a separate variable and part of the result, so that ``w - G^T a`` is driven to zero like any
residual; products with G correct the solution of each system; and mu is no smaller than the requested gap
requires.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import add_to_diagonal, like, to_numpy
from labelweave.solvers.box_dual import BoxTerms, FreeSystems, LocalEnd, box_loss, dual_value, primal_value
from labelweave.solvers.frame import relative_gap

_MOST_NEWTON_STEPS = 12
_STEPS_IN_VAIN = 5  # consecutive steps without a smaller gap than the best
_FARTHEST_STEP = 1e3  # multiple of the largest bound that a variable may reach in between
_RIDGE = 1e-13  # of the mean diagonal: keeps systems of dependent rows solvable
_USUAL_STEPS, _MOST_STEPS = 40, 100
_OVERHEAD = 150  # operations of a step per entry of the factor, in addition to
_SQUARE = 0.25  # ... those of an inner matrix, in operations of a round, by its columns
_CALLS = 4e6  # the overhead of a step's calls in operations
_PACE = 2.0  # operations here in the time of one in a round of first-order steps
_TINY = 1e-100
_BACK_OFF = 0.995  # fraction of the way to the boundary
_CORRECTORS, _LONGER = 3, 0.5  # and the share of a step by which each should lengthen it
_WORTHWHILE = 0.01  # of a step: the gain of a corrector required for another one
_NEAREST, _FARTHEST = 0.1, 10.0  # range of products without correction, relative to the target
_REFINEMENTS = 3
_FINER = 0.1  # the least sum of the products, relative to the requested gap
_IDLE = 8  # steps at the least mu allowed without halving the gap


def newton_steps(
    problem: FreeSystems, boxed: RowsByLabels, penalty: float, tol: float, allowance: float
) -> LocalEnd | None:
    """Take Newton steps from near the optimum.

    problem: the problem, in double precision.
    penalty: rho, which scales a variable's gradient relative to its distance from a bound.
    allowance: the total operations allowed.
    Returns the best points; None if no step was possible.
    """
    best: LocalEnd | None = None
    point, in_vain = boxed, 0
    (scores,) = problem.scores(point)
    # a singular system without a solution has huge values, where objectives are only rounding
    xp = namespace(boxed)
    farthest = _FARTHEST_STEP * max(0.0, float(xp.max(problem.upper)), -float(xp.min(problem.lower)))
    for _ in range(_MOST_NEWTON_STEPS):
        wanted = point + (problem.targets - scores) / penalty
        free = (wanted > problem.lower) & (wanted < problem.upper)
        counts = to_numpy(free).sum(axis=0)
        allowance -= problem.newton_work([int(counts[group].sum()) for group in problem.coupled_labels()])
        if allowance < 0:
            break
        point = _step(problem, point, scores, free)
        if not xp.all(xp.abs(point) <= farthest):
            break
        inside = xp.clip(point, problem.lower, problem.upper)
        scores, inside_scores = problem.scores(point, inside)
        gap = relative_gap(primal_value(problem, point, scores), dual_value(problem, inside, inside_scores))
        in_vain = 0 if best is None or gap < best.gap else in_vain + 1
        if in_vain == 0:
            best = LocalEnd(point, inside, problem.targets - scores, gap)
        if gap <= tol or in_vain >= _STEPS_IN_VAIN:
            break
    return best


def _step(problem: FreeSystems, point: Array, scores: Array, free: Array) -> Array:
    """Set the others to the bounds indicated by their gradients, and solve for the free ones."""
    xp, is_free = namespace(point), to_numpy(free)
    aim = xp.where(free, point, xp.where(problem.targets > scores, problem.upper, problem.lower))
    (aim_scores,) = problem.scores(aim)
    gradient = to_numpy(problem.targets - aim_scores)
    change = np.zeros(aim.shape)
    for group in problem.coupled_labels():
        rows, places = np.nonzero(is_free[:, group])
        labels = group[places]
        if len(rows):
            change[rows, labels] = _solution(problem.system(rows, labels), gradient[rows, labels])
    return xp.where(free, aim + like(change, aim), aim)


def _solution(matrix: Array, right: Array) -> Array:
    add_to_diagonal(matrix, _RIDGE * matrix.trace() / len(matrix) + np.finfo(float).tiny)
    try:
        factor = sl.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)
    return np.asarray(sl.cho_solve(factor, right, check_finite=False))


def interior_point(factor: Array, margins: PerRow, bounds: PerRow, tol: float) -> tuple[PerRow, Array]:
    """Maximize the dual of one label.

    factor (n, r): G, each row times the sign of its label.
    Returns a, within its bounds, and w (r,): of all points, those of the largest dual and of the smallest
        primal objective.
    """
    state = _Interior(factor, margins, bounds, tol)
    gap, idle = np.inf, 0
    for _ in range(_MOST_STEPS):
        nearer = state.noted()
        idle = 0 if nearer < gap / 2 else idle + state.is_low
        gap = nearer
        if gap <= tol or idle >= _IDLE or not state.advance():
            break
    return state.best_point, state.best_weights


def interior_steps(terms: BoxTerms, factor: Array, tol: float, allowance: float) -> LocalEnd | None:
    """Maximize the duals of all labels, which must be uncoupled.

    terms: the problem, in double precision; one bound of every variable is 0.
    factor (n, r): ``A = factor factor^T`` for every label.
    allowance: the operations allowed.
    Returns the result; None if it would need more.
    """
    if interior_work(terms, factor) > allowance:
        return None
    boxed, weights = np.zeros_like(terms.targets), np.zeros((factor.shape[1], terms.targets.shape[1]))
    for label in range(boxed.shape[1]):
        bounds = terms.upper[:, label] - terms.lower[:, label]
        rows = np.flatnonzero(bounds > 0)
        if not len(rows):
            continue
        signs = np.where(terms.upper[rows, label] > 0, 1.0, -1.0)
        margins = signs * terms.targets[rows, label]
        signed = signs[:, None] * factor[rows]
        point, weights[:, label] = interior_point(signed, margins, bounds[rows], tol / 2)
        boxed[rows, label] = signs * point
    scores, made = factor @ weights, factor.T @ boxed
    primal = float(np.vdot(weights, weights)) / 2 + box_loss(terms, scores)
    dual = float(np.vdot(terms.targets, boxed) - np.vdot(made, made) / 2)
    return LocalEnd(boxed, boxed, terms.targets - scores, relative_gap(primal, dual), weights)


def interior_work(terms: BoxTerms, factor: Array) -> float:
    """Estimate the operations of :func:`interior_steps`, in the units of a round.

    The constants were fitted to the times of 300 to 5,000 rows with factors of 5 to 2,000 columns.
    """
    n, rank = factor.shape
    step = float(n) * rank * (_SQUARE * rank + _OVERHEAD) + _CALLS
    return float(_PACE * _USUAL_STEPS * terms.targets.shape[1] * step)


@dataclass(frozen=True)
class _Step:
    """Changes of a, w, s and z."""

    point: Array
    weights: Array
    below: Array
    above: Array


class _System:
    """``I + G^T D^-1 G``, factorized."""

    def __init__(self, factor: Array, weight: Array) -> None:
        self.factor, self.weight = factor, weight
        inner = factor.T @ (factor / weight[:, None])
        add_to_diagonal(inner, 1.0)
        try:
            self.root = sl.cholesky(inner, check_finite=False)
        except np.linalg.LinAlgError:
            self.root = _orthogonal_root(factor, weight)

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """Solve ``G dw + D da = right`` and ``dw - G^T da = -missing`` for da and dw."""
        weights = self.inverse(self.factor.T @ (right / self.weight) - missing)
        return (right - self.factor @ weights) / self.weight, weights

    def refine(self, point: Array, weights: Array, missing: Array) -> tuple[Array, Array]:
        """Refine a solution: where D is small, da suffers from cancellation, which its product reveals."""
        again = self.inverse(self.factor.T @ point - weights - missing)
        return point - self.factor @ again / self.weight, weights + again

    def inverse(self, right: Array) -> Array:
        return np.asarray(sl.cho_solve((self.root, False), right, check_finite=False))


def _orthogonal_root(factor: Array, weight: Array) -> Array:
    """Factorize without squaring, largest rows first, which preserves the small ones."""
    rows = np.vstack([factor / np.sqrt(weight)[:, None], np.eye(factor.shape[1])])
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    triangle = sl.qr(rows[order], mode="r", check_finite=False)[0]
    return np.asarray(triangle[: factor.shape[1]])


class _Interior:
    """The point a, its distance from the upper bound, w and the multipliers."""

    def __init__(self, factor: Array, margins: Array, bounds: Array, tol: float) -> None:
        self.factor, self.margins, self.bounds, self.tol = factor, margins, bounds, tol
        self.point, self.room = bounds / 2, bounds / 2
        self.weights = factor.T @ self.point
        gradient = self.gradient()
        # the same product for all, whatever their bounds
        spare = max(float((np.abs(gradient) * bounds).mean()), 1e-12) / bounds
        self.below = np.maximum(gradient, 0) + spare
        self.above = np.maximum(-gradient, 0) + spare
        self.is_low = False
        self.best_point, self.best_weights = np.zeros_like(bounds), np.zeros(factor.shape[1])
        self.best_primal, self.best_dual = self.primal(self.best_weights), 0.0

    def noted(self) -> float:
        """Update the best point and weights, and return the gap between them."""
        point = self.inside()
        made = self.factor.T @ point
        for weights in (made, self.weights):
            if (primal := self.primal(weights)) < self.best_primal:
                self.best_primal, self.best_weights = primal, weights
        if (dual := float(self.margins @ point) - float(made @ made) / 2) > self.best_dual:
            self.best_dual, self.best_point = dual, point
        return relative_gap(self.best_primal, self.best_dual)

    def gradient(self) -> Array:
        return np.asarray(self.factor @ self.weights - self.margins)

    def inside(self) -> Array:
        """Return a computed from its distance to the nearer bound, which is more exact."""
        near = np.where(self.point <= self.room, self.point, self.bounds - self.room)
        return np.asarray(np.clip(near, 0, self.bounds))

    def primal(self, weights: Array) -> float:
        loss = float(self.bounds @ np.maximum(0, self.margins - self.factor @ weights))
        return float(weights @ weights) / 2 + loss

    def advance(self) -> bool:
        """Take one step; return whether that was possible."""
        gradient, count = self.gradient(), 2 * len(self.point)
        residual = gradient - self.below + self.above
        missing = self.weights - self.factor.T @ self.point
        try:
            system = _System(self.factor, self.below / self.point + self.above / self.room)
        except ValueError:
            return False
        mu = float(self.point @ self.below + self.room @ self.above) / count
        least = self.least_products(gradient) / count
        self.is_low = mu <= least / _FINER
        first = self.direction(system, residual, missing, 0.0, 0.0, refinements=0)
        aim = max(min((self.remaining(first) / count / mu) ** 3, 1.0) * mu, least)
        # the predictor provides the second-order correction
        below, above = aim - first.point * first.below, aim + first.point * first.above
        step = self.direction(system, residual, missing, below, above)
        share = self.reach(step)
        for _ in range(_CORRECTORS):
            low, high = self.products(step, min(1.0, share + _LONGER))
            below, above = below + _towards(aim, low), above + _towards(aim, high)
            longer = self.direction(system, residual, missing, below, above)
            gained = self.reach(longer) - share
            if gained > 0:
                step, share = longer, share + gained
            if gained < _WORTHWHILE:
                break
        return self.move(step, _BACK_OFF * share)

    def least_products(self, gradient: Array) -> float:
        """Return the least sum of products that the requested gap requires."""
        primal = float(self.weights @ self.weights) / 2 + float(self.bounds @ np.maximum(0, -gradient))
        return _FINER * self.tol * max(primal, 1e-300)

    def direction(
        self,
        system: _System,
        residual: Array,
        missing: Array,
        low_products: Array | float,
        high_products: Array | float,
        refinements: int = _REFINEMENTS,
    ) -> _Step:
        """Solve for the first-order step to given products."""
        low = low_products / self.point - self.below
        high = high_products / self.room - self.above
        point, weights = system.solve(-residual + low - high, missing)
        for _ in range(refinements):
            point, weights = system.refine(point, weights, missing)
        below = low - self.below / self.point * point
        above = high + self.above / self.room * point
        return _Step(point, weights, below, above)

    def reach(self, step: _Step) -> float:
        """Return the largest share of a step, at most 1, that keeps all variables within their bounds."""
        rates = [-step.point / self.point, step.point / self.room]
        rates += [-step.below / self.below, -step.above / self.above]
        return float(1 / np.max(rates, initial=1.0))

    def remaining(self, step: _Step) -> float:
        """Return the sum of the products after the largest feasible part of a step."""
        return max(float(sum(part.sum() for part in self.products(step, self.reach(step)))), 0.0)

    def products(self, step: _Step, share: float) -> tuple[Array, Array]:
        change = share * step.point
        low = (self.point + change) * (self.below + share * step.below)
        return low, (self.room - change) * (self.above + share * step.above)

    def move(self, step: _Step, share: float) -> bool:
        if not (np.isfinite(share) and share > 1e-12):
            return False
        # rounding must not move a variable onto its bound
        self.point = np.maximum(self.point + share * step.point, _TINY * self.bounds)
        self.room = np.maximum(self.room - share * step.point, _TINY * self.bounds)
        self.weights = self.weights + share * step.weights
        self.below = np.maximum(self.below + share * step.below, _TINY)
        self.above = np.maximum(self.above + share * step.above, _TINY)
        return True


def _towards(aim: float, products: Array) -> Array:
    """Return the correction of outlying products toward the target, bounded below by the farthest."""
    change = np.clip(products, _NEAREST * aim, _FARTHEST * aim) - products
    return np.asarray(np.maximum(change, -_FARTHEST * aim))
