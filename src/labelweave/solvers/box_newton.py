"""Newton steps between guesses of the variables at their bounds: the local end of a global method.

Near the optimum of a box-constrained quadratic dual the variables fall into those at the lower
bound, those at the upper bound and the free ones F.  With the sets known, the free
variables solve one linear system,

    A_FF B_F = T_F - A_FG V_G,        G: the variables at bounds,

and the next sets are read off B + (T - A B) / rho.  This primal-dual active set method is a
semi-smooth Newton method (Hintermueller, Ito and Kunisch 2002): from near the optimum it ends after a
few steps, at a gap of rounding; from afar it may cycle, and its steps are then left out.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import add_to_diagonal, like, to_numpy
from labelweave.solvers.box_dual import FreeSystems, LocalEnd, dual_value, primal_value
from labelweave.solvers.frame import relative_gap

_MOST_STEPS = 12
_STEPS_IN_VAIN = 5  # in a row without a smaller gap than the best
_FARTHEST = 1e3  # of the largest bound, that a variable may be on its way
_RIDGE = 1e-13  # of the mean diagonal: systems of dependent rows stay solvable


def newton_steps(
    problem: FreeSystems, boxed: RowsByLabels, penalty: float, tol: float, allowance: float
) -> LocalEnd | None:
    """Take Newton steps from near the optimum.

    problem: the problem, in double precision.
    penalty: rho, which weighs a variable's gradient against its distance from a bound.
    tol: the relative duality gap to reach.
    allowance: the operations that the steps may take together.
    Returns the best points; None if no step was possible.
    """
    best: LocalEnd | None = None
    point, in_vain = boxed, 0
    (scores,) = problem.scores(point)
    # a singular system without a solution ends far away, where objectives are nothing but rounding
    xp = namespace(boxed)
    farthest = _FARTHEST * max(0.0, float(xp.max(problem.upper)), -float(xp.min(problem.lower)))
    for _ in range(_MOST_STEPS):
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
    """Guess which variables are free."""
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
