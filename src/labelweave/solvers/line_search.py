"""A line search along a direction whose scores are known, for many groups at once.

``Phi(a + t d)`` and its derivative for ``u + t K d`` take no product with K (Seeger 2008, section
5.1.2), so lengths are sought until the derivative is small: Newton's model is poor where scores are
sure, and whole steps are often too long there, or too short.
"""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array, GroupedColumns
from labelweave.solvers.newton_system import NewtonPoint, NewtonSystem, inner_products

__all__ = ["search_along"]


_SUFFICIENT = 1e-4  # of the decrease that the slope promises (Armijo)
_FLAT = 0.25  # of the slope at the start: flat enough (Wolfe)
_SHORTEST, _LONGEST = 1e-10, 64.0
_EDGE = 0.1  # of a bracket, which the next length keeps away from both ends
_LEAST_GROWTH, _MOST_GROWTH = 1.5, 4.0
_ROUNDING = 1e-13  # of the objective; changes below it are not told from none
_MOST_TRIALS = 40


def search_along(
    system: NewtonSystem, point: NewtonPoint, direction: GroupedColumns, along: GroupedColumns
) -> Array:
    """Find step lengths that lower the objective of every group about as far as the direction does.

    Returns (groups,): the step lengths; 0 where no length lowers the objective.
    """
    search = _Search(system, point, direction, along)
    for _ in range(_MOST_TRIALS):
        if not search.open.any():
            break
        search.try_lengths()
    return search.best


class _Search:
    """Brackets of the best lengths; the derivative is negative at the low ends and not at the high ones."""

    def __init__(self, system: NewtonSystem, point: NewtonPoint, direction: Array, along: Array) -> None:
        self.system, self.point, self.along = system, point, along
        self.slope, self.cross, self.square = inner_products(
            system.inner, (point.residual, along), (direction, point.scores), (direction, along)
        )
        self.still = inner_products(system.inner, (point.dual, point.scores))[0]
        self.open = self.slope > 0
        self.lengths = np.where(self.open, 1.0, 0.0)
        self.low, self.low_slope = np.zeros(len(self.slope)), -self.slope
        self.high, self.high_slope = np.full(len(self.slope), np.inf), np.zeros(len(self.slope))
        self.best, self.least = np.zeros(len(self.slope)), np.full(len(self.slope), np.inf)

    def try_lengths(self) -> None:
        """Evaluate the present lengths, keep those that are good, and choose others for the rest."""
        lengths, start = self.lengths, self.point.values
        values, slopes = self._evaluate()
        rounding = _ROUNDING * np.maximum(1.0, np.abs(start))
        lower = values <= start - _SUFFICIENT * lengths * self.slope + rounding
        better = self.open & lower & (values < self.least)
        self.best[better], self.least[better] = lengths[better], values[better]
        flat = np.abs(slopes) <= np.maximum(_FLAT * self.slope, rounding / np.maximum(lengths, _SHORTEST))
        self.open &= ~(lower & flat)
        self._narrow(~(slopes < 0) | ~lower, slopes)
        self._choose()
        self.open &= (self.high > _SHORTEST) & (self.lengths <= _LONGEST)

    def _evaluate(self) -> tuple[Array, Array]:
        """Compute objectives and derivatives at the present lengths."""
        lengths, along, scores = self.lengths[:, None], self.along, self.point.scores

        def one(rows: slice) -> Array:
            there = scores[rows] + lengths * along[rows]
            return np.stack(self.system.problem.along(there, along[rows], self.system.groups, rows))

        losses, slopes = self.system.inner.panels.total(one)
        penalty = self.still + 2 * self.lengths * self.cross + self.lengths**2 * self.square
        return losses + penalty / 2, slopes + self.cross + self.lengths * self.square

    def _narrow(self, is_high: Array, slopes: Array) -> None:
        """Put the present lengths in the place of one end of the bracket."""
        high, low = self.open & is_high, self.open & ~is_high
        self.high[high], self.high_slope[high] = self.lengths[high], slopes[high]
        self.low[low], self.low_slope[low] = self.lengths[low], slopes[low]

    def _choose(self) -> None:
        """Choose the next lengths where a line through both derivatives is 0, or go further out."""
        fall, bounded = -self.low_slope, np.isfinite(self.high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = fall / (self.high_slope + fall)
            growth = self.slope / (self.slope - fall)
            inside = self.low + (self.high - self.low) * _within(share, _EDGE, 1 - _EDGE)
        outside = self.low * _within(growth, _LEAST_GROWTH, _MOST_GROWTH)
        self.lengths = np.where(self.open, np.where(bounded, inside, outside), self.lengths)


def _within(values: Array, least: float, most: float) -> Array:
    """Clip, and take the least for what is no number."""
    return np.asarray(np.where(np.isfinite(values), np.clip(values, least, most), least))
