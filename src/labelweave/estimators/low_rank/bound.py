"""The constrained form of low-rank learning: the least loss of a product with bounded trace norm.

    minimize over Z   sum over entries of w_ij loss(y_ij, phi(x_i)^T z_j)   where ||Z||_tr <= bound

(Yu et al. 2014, section 4.)  At its multiplier lambda it has the solutions of the penalized form, whose trace
norm decreases as lambda increases, to 0 at the spectral norm of the gradient at Z = 0.  So lambda is the root
of a monotone function, found by warm-started fits.

A fit at another lambda, scaled to the bound, is as good up to second order, so the root need not be exact.

**Certificate.**  ``dual(1) - bound ||Phi^T D U||_2`` bounds the loss of every Z within the bound from below
(:mod:`labelweave.problems.low_rank_factors`), for the D of any lambda: the largest bound of all fits is used.
The search ends as soon as the least loss is within the tolerance of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from labelweave.estimators.low_rank.fit import FittedFactors, LowRankSettings, ReadyRows, fit_factors
from labelweave.estimators.low_rank.starts import Start
from labelweave.foundation.config import note_interrupt
from labelweave.solvers import Status
from labelweave.solvers.frame import relative_gap

_DECADES = 12  # below the largest lambda; there the bound does not bind
_COARSE = 0.05  # of log lambda, while fits have the requested tolerance
_TIGHTER = 0.3  # factor of the tolerance from each later fit to the next
_FURTHER = 12


def fit_within_bound(
    ready: ReadyRows, settings: LowRankSettings, start: Start | None = None
) -> tuple[FittedFactors, float]:
    """Fit rows within the bound ``settings.most``; also return the multiplier."""
    search = _Search(ready, settings, start)
    largest = ready.largest_alpha()
    lowest = float(np.log(largest)) if 0 < largest < np.inf else 0.0
    search.known[lowest] = -settings.most  # all weights are 0
    for _ in range(_DECADES):
        highest, lowest = lowest, lowest - np.log(10.0)
        if search.excess(lowest) >= 0:
            break
    if search.excess(lowest) > 0:
        _refine(search, brentq(search.excess, lowest, highest, xtol=_COARSE, disp=False))
    fitted, penalty = search.best
    return replace(fitted, lower_bound=search.lower_bound), penalty


def _refine(search: _Search, power: float) -> None:
    """Refine a coarse root by the secant method, with increasingly exact fits."""
    slope, before = -search.settings.most, (np.nan, np.nan)  # as if trace norms decreased like 1 / lambda
    for step in range(_FURTHER):
        if search.is_done:
            return
        search.settings = replace(search.settings, tol=_TIGHTER * search.settings.tol)
        excess = search.fit(float(np.exp(power)))
        if step and power != before[0]:
            slope = min((excess - before[1]) / (power - before[0]), 0.1 * slope)
        before, power = (power, excess), power - float(np.clip(excess / slope, -_COARSE, _COARSE))


class _Search:
    """Fits at several lambdas, each warm-started; best has the least loss, with its lambda."""

    best: tuple[FittedFactors, float]

    def __init__(self, ready: ReadyRows, settings: LowRankSettings, start: Start | None) -> None:
        self.ready, self.settings, self.start = ready, settings, start
        self.tol = settings.tol
        self.known: dict[float, float] = {}
        self.fits, self.is_done, self.lower_bound = 0, False, -np.inf

    def excess(self, power: float) -> float:
        """Return the trace norm at ``exp(power)`` minus the bound; 0 where the search may end."""
        if power not in self.known:
            self.known[power] = self.fit(float(np.exp(power)))
        return self.known[power]

    def fit(self, penalty: float) -> float:
        settings = replace(self.settings, alpha=penalty)
        try:
            fitted = fit_factors(self.ready, settings, self.start, f"bound {self.fits}")
        except KeyboardInterrupt as interrupt:  # while a fit is certified
            if self.fits == 0:
                raise
            note_interrupt(interrupt)
            return self._interrupted()
        self.start, self.fits = fitted.end, self.fits + 1
        self.lower_bound = max(self.lower_bound, fitted.lower_bound)
        if self.fits == 1 or fitted.objective <= self.best[0].objective:
            self.best = fitted, penalty
        if fitted.status is Status.INTERRUPTED:
            return self._interrupted()
        self.is_done = relative_gap(self.best[0].objective, self.lower_bound) <= self.tol
        return 0.0 if self.is_done else fitted.size - settings.most

    def _interrupted(self) -> float:
        self.is_done, (fitted, penalty) = True, self.best
        self.best = replace(fitted, status=Status.INTERRUPTED), penalty
        return 0.0
