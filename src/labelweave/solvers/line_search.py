"""A line search along a direction whose scores are known, for many groups at once.

``Phi(a + t d)`` for ``u + t K d`` takes no product with K (Seeger 2008, section 5.1.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.solvers.newton_system import NewtonSystem, inner_products

__all__ = ["search_along"]

Array = npt.NDArray[Any]

_SUFFICIENT = 1e-4  # of the decrease that the slope promises (Armijo)
_SHORTEST, _LEAST_CUT, _MOST_CUT = 1e-10, 0.5, 0.1
_ROUNDING = 1e-13  # of the objective; changes below it are not told from none


def search_along(
    system: NewtonSystem,
    point: tuple[Array, Array],
    direction: tuple[Array, Array],
    residual: Array,
    values: Array,
) -> Array:
    """Find step lengths that lower the objective of every group enough, 1 where it does.

    Parameters
    ----------
    system : NewtonSystem
        The groups.
    point : tuple of ndarray
        Dual variables a and scores K a, of shape (n, groups, columns).
    direction : tuple of ndarray
        d and K d.
    residual : ndarray of shape (n, groups, columns)
        Minus the gradient in the function space.
    values : ndarray of float64, shape (groups,)
        The objective at the point.

    Returns
    -------
    ndarray of float64, shape (groups,)
        The step lengths; 0 where none was found.
    """
    (dual, scores), (step, along) = point, direction
    slope, still, cross, square = inner_products(
        system.inner, (residual, along), (dual, scores), (step, scores), (step, along)
    )
    lengths, open_groups = np.ones(len(values)), slope > 0
    lengths[~open_groups] = 0.0
    while open_groups.any():
        losses = _losses(system, scores, along, lengths)
        reached = losses + (still + 2 * lengths * cross + lengths**2 * square) / 2
        allowed = values - _SUFFICIENT * lengths * slope + _ROUNDING * np.maximum(1.0, np.abs(values))
        failed = open_groups & ~(reached <= allowed)
        lengths[failed] *= _cut(reached[failed] - values[failed], lengths[failed] * slope[failed])
        lengths[failed & (lengths < _SHORTEST)] = 0.0
        open_groups = failed & (lengths > 0)
    return lengths


def _losses(system: NewtonSystem, scores: Array, along: Array, lengths: Array) -> Array:
    def one(rows: slice) -> Array:
        return system.problem.values(scores[rows] + lengths[:, None] * along[rows], system.groups, rows)

    return system.inner.panels.total(one)


def _cut(rise: Array, promised: Array) -> Array:
    """Interpolate by the parabola through both values and the slope, within bounds."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        best = promised / (2 * (rise + promised))
    return np.clip(np.where(np.isfinite(best), best, _MOST_CUT), _MOST_CUT, _LEAST_CUT)
