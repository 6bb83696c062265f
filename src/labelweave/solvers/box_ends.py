"""Two ends for box-constrained duals: Newton steps between guessed bounds, and interior points.

**Newton steps.**
Near the optimum of a box-constrained quadratic dual the variables fall into those at the lower
bound, those at the upper bound and the free ones F.  With the sets known, the free
variables solve one linear system,

    A_FF B_F = T_F - A_FG V_G,        G: the variables at bounds,

and the next sets are read off B + (T - A B) / rho.  This primal-dual active set method is a
semi-smooth Newton method (Hintermueller, Ito and Kunisch 2002): from near the optimum it ends after a
few steps, at a gap of rounding; from afar it may cycle, and its steps are then left out.

**Interior points**, for duals of low rank, one label at a time.
With ``A = G G^T``, G of few columns, and a box [0, u], the maximiser of ``<m, a> - 1/2 |G^T a|^2``
satisfies, with multipliers s and z of the two bounds,

    G w - m - s + z = 0,     w = G^T a,     a s = 0,     (u - a) z = 0.

Newton steps on the products made equal to a falling mu (Mehrotra's predictor and corrector, SIAM Journal on
Optimization 2, 1992) cost one factorisation of ``I + G^T D^-1 G`` each (Ferris and Munson 2002),
D being ``s / a + z / (u - a)``.  Further solves with it draw products that would end far from mu towards it,
which makes steps longer (Gondzio, Computational Optimization and Applications 6, 1996): 3 of them halve the
number of steps on unscaled pixels.  It hardly depends on how ill-conditioned the problem is, where
first-order steps crawl: unscaled features, or a large C.

Where features are large, w is a small difference of large terms of a.  Three things keep rounding from
undoing late steps: w is a variable of its own, so that ``w - G^T a`` is driven to zero like any residual, and
the result; products with G correct the solution of each system; and mu falls no lower than the gap asked for
needs.
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
_STEPS_IN_VAIN = 5  # in a row without a smaller gap than the best
_FARTHEST_STEP = 1e3  # of the largest bound, that a variable may be on its way
_RIDGE = 1e-13  # of the mean diagonal: systems of dependent rows stay solvable
_USUAL_STEPS, _MOST_STEPS = 40, 100
_OVERHEAD = 150  # a step's operations on an entry of the factor, beside
_SQUARE = 0.25  # ... those of an inner matrix, which take as long as so many of a round's, by its columns
_CALLS = 4e6  # operations that a step's calls are worth
_PACE = 2.0  # operations here that one of a round of first-order steps is as fast as
_TINY = 1e-100
_BACK_OFF = 0.995  # of the way to the boundary
_CORRECTORS, _LONGER = 3, 0.5  # and by which share of a step each is to make it longer
_WORTHWHILE = 0.01  # of a step: what a corrector must have made it longer by for another one
_NEAREST, _FARTHEST = 0.1, 10.0  # products that need no correction, in those aimed at
_REFINEMENTS = 3
_FINER = 0.1  # the least sum of the products, in gaps asked for
_IDLE = 8  # steps at the least mu that may pass without halving the gap


def newton_steps(
    problem: FreeSystems, boxed: RowsByLabels, penalty: float, tol: float, allowance: float
) -> LocalEnd | None:
    """Take Newton steps from near the optimum.

    problem: the problem, in double precision.
    penalty: rho, which weighs a variable's gradient against its distance from a bound.
    allowance: the operations that the steps may take together.
    Returns the best points; None if no step was possible.
    """
    best: LocalEnd | None = None
    point, in_vain = boxed, 0
    (scores,) = problem.scores(point)
    # a singular system without a solution ends far away, where objectives are nothing but rounding
    xp = namespace(boxed)
    farthest = _FARTHEST_STEP * max(0.0, float(xp.max(problem.upper)), -float(xp.min(problem.lower)))
    for _ in range(_MOST_NEWTON_STEPS):
        free = _free(problem, point, scores, penalty)
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


def _free(problem: FreeSystems, point: Array, scores: Array, penalty: float) -> Array:
    wanted = point + (problem.targets - scores) / penalty
    return (wanted > problem.lower) & (wanted < problem.upper)


def _step(problem: FreeSystems, point: Array, scores: Array, free: Array) -> Array:
    """Put the others at the bounds to which their gradient point and solve for the free ones."""
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
    moved: Array = xp.where(free, aim + like(change, aim), aim)
    return moved


def _solution(matrix: Array, right: Array) -> Array:
    add_to_diagonal(matrix, _RIDGE * matrix.trace() / len(matrix) + np.finfo(float).tiny)
    try:
        factor = sl.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)
    return np.asarray(sl.cho_solve(factor, right, check_finite=False))


def interior_point(factor: Array, margins: PerRow, bounds: PerRow, tol: float) -> tuple[PerRow, Array]:
    """Maximise the dual of one label.

    factor (n, r): G, each row times the sign of its label.
    Returns a, within its bounds, and w (r,): of the points met, those of the largest dual and of the smallest
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
    """Maximise the duals of all labels, which nothing couples.

    terms: the problem, in double precision; one bound of every variable is 0.
    factor (n, r): ``A = factor factor^T`` for every label.
    allowance: the operations that this may take.
    Returns the result; None if it would take more.
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
    """Estimate the operations of :func:`interior_steps`, as those of a round are counted.

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
    """``I + G^T D^-1 G``, factorised."""

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
        """Correct a solution: where D is small, da came of a cancellation that its own product uncovers."""
        again = self.inverse(self.factor.T @ point - weights - missing)
        return point - self.factor @ again / self.weight, weights + again

    def inverse(self, right: Array) -> Array:
        return np.asarray(sl.cho_solve((self.root, False), right, check_finite=False))


def _orthogonal_root(factor: Array, weight: Array) -> Array:
    """Factorise without squaring, largest rows first, which keeps the small ones from being lost."""
    rows = np.vstack([factor / np.sqrt(weight)[:, None], np.eye(factor.shape[1])])
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    triangle = sl.qr(rows[order], mode="r", check_finite=False)[0]
    return np.asarray(triangle[: factor.shape[1]])


class _Interior:
    """The point a, the room above it, w and the multipliers."""

    def __init__(self, factor: Array, margins: Array, bounds: Array, tol: float) -> None:
        self.factor, self.margins, self.bounds, self.tol = factor, margins, bounds, tol
        self.point, self.room = bounds / 2, bounds / 2
        self.weights = factor.T @ self.point
        gradient = self.gradient()
        # the same product for all, however different their bounds are
        spare = max(float((np.abs(gradient) * bounds).mean()), 1e-12) / bounds
        self.below = np.maximum(gradient, 0) + spare
        self.above = np.maximum(-gradient, 0) + spare
        self.is_low = False
        self.best_point, self.best_weights = np.zeros_like(bounds), np.zeros(factor.shape[1])
        self.best_primal, self.best_dual = self.primal(self.best_weights), 0.0

    def noted(self) -> float:
        """Take note of the point and the weights, and give the gap between the best of them so far."""
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
        """Return a as its distance from the nearer bound says, which is the more exact."""
        near = np.where(self.point <= self.room, self.point, self.bounds - self.room)
        return np.asarray(np.clip(near, 0, self.bounds))

    def primal(self, weights: Array) -> float:
        loss = float(self.bounds @ np.maximum(0, self.margins - self.factor @ weights))
        return float(weights @ weights) / 2 + loss

    def advance(self) -> bool:
        """Take one step; false if no step could be taken."""
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
        # the first step corrects the second for its curvature
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
        """Return the sum of the products below which the gap asked for has no use for."""
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
        """Solve for a step to products, in first order."""
        low = low_products / self.point - self.below
        high = high_products / self.room - self.above
        point, weights = system.solve(-residual + low - high, missing)
        for _ in range(refinements):
            point, weights = system.refine(point, weights, missing)
        below = low - self.below / self.point * point
        above = high + self.above / self.room * point
        return _Step(point, weights, below, above)

    def reach(self, step: _Step) -> float:
        """Return the largest share of a step, at most 1, that keeps all within their bounds."""
        rates = [-step.point / self.point, step.point / self.room]
        rates += [-step.below / self.below, -step.above / self.above]
        return float(1 / np.max(rates, initial=1.0))

    def remaining(self, step: _Step) -> float:
        """Sum the products after as much of a step as can be taken."""
        return max(float(sum(part.sum() for part in self.products(step, self.reach(step)))), 0.0)

    def products(self, step: _Step, share: float) -> tuple[Array, Array]:
        change = share * step.point
        low = (self.point + change) * (self.below + share * step.below)
        return low, (self.room - change) * (self.above + share * step.above)

    def move(self, step: _Step, share: float) -> bool:
        if not (np.isfinite(share) and share > 1e-12):
            return False
        # rounding must not carry anything onto its bound
        self.point = np.maximum(self.point + share * step.point, _TINY * self.bounds)
        self.room = np.maximum(self.room - share * step.point, _TINY * self.bounds)
        self.weights = self.weights + share * step.weights
        self.below = np.maximum(self.below + share * step.below, _TINY)
        self.above = np.maximum(self.above + share * step.above, _TINY)
        return True


def _towards(aim: float, products: Array) -> Array:
    """Return what brings products far from the aim nearer to it, down by no more than the farthest."""
    change = np.clip(products, _NEAREST * aim, _FARTHEST * aim) - products
    return np.asarray(np.maximum(change, -_FARTHEST * aim))
