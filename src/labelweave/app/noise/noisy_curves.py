"""Models of true labels from out-of-fold scores and recorded labels.

A label is truly present with the probability t = 1 / (1 + exp(-(slope s + pull e + intercept))) of a score s
and the evidence e from other labels.  It is recorded with the flip rates of class-conditional noise
(Natarajan et al., "Learning with noisy labels", 2013),

    P(recorded as present) = false + (1 - missed - false) t,

so the curve of recorded labels runs from a floor, ``false``, to a ceiling, ``1 - missed``.  All five
parameters of all labels maximize the likelihood of the recorded labels; a normal prior shrinks those of a
label to the mean of all labels, rates by their log-odds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from labelweave.foundation.array_types import Array, Floats, RowsByLabels
from labelweave.labels.flip_rates import FlipRates

_VARIANCES = np.array([0.25, 0.25, 2.25, 0.02, 0.02])[:, None]  # of the labels' parameters around their means
_START, _PULL = 0.02, 0.1  # of rates, and of slopes by evidence
_LOWEST, _HIGHEST = logit(1e-4), logit(0.499)  # bounds of estimated rates
_MOST_STEPS = 200
_TOLERANCE = 1e-8  # of the loss
_MOST_AWAY = 30.0  # bound of standardized scores


class NoisyCurves(NamedTuple):
    """The curves of labels and their predictions for every entry.

    truth (n, L): the probability that a label is present, ignoring its recorded value.
    numbers (5, L): slopes, intercepts, weights of evidence and log-odds of rates.
    """

    rates: FlipRates
    truth: RowsByLabels
    numbers: Floats

    def expected(self) -> RowsByLabels:
        """Return the probability that a label is recorded as present."""
        return np.asarray(self.rates.false + (1.0 - self.rates.missed - self.rates.false) * self.truth)

    def log_loss(self, targets: RowsByLabels) -> float:
        """Return the mean log loss of the recorded labels; NaN targets are unobserved."""
        expected = self.expected()
        losses = -np.log(np.maximum(np.where(targets == 1, expected, 1.0 - expected), 1e-300))
        return float(losses[~np.isnan(targets)].mean())

    def posterior(self, targets: RowsByLabels) -> RowsByLabels:
        """Return the probability that a label is present, given its recorded value; NaN is unobserved."""
        missed, false, truth = self.rates.missed, self.rates.false, self.truth
        there = np.where(targets == 1, 1.0 - missed, missed) * truth
        absent = np.where(targets == 1, false, 1.0 - false) * (1.0 - truth)
        found = there / np.maximum(there + absent, 1e-300)
        return np.asarray(np.where(np.isnan(targets), truth, found))


def fit_noisy_curves(
    targets: RowsByLabels,
    scores: RowsByLabels,
    known: tuple[Array, Array],
    evidence: RowsByLabels | None = None,
    start: NoisyCurves | None = None,
) -> NoisyCurves:
    """Fit the curves of all labels together.

    targets (n, L): 1 and 0 as recorded, NaN where unobserved.
    known: given rates, (L,) each; NaN to estimate them.
    evidence (n, L): evidence from other labels; None without.
    start: the curves without evidence.
    """
    problem = _Problem(targets, _standardized(scores), _standardized(evidence), known)
    numbers = problem.solve(problem.start() if start is None else start.numbers + problem.pull())
    curves = problem.curves(numbers)
    heights = curves[0] * problem.scores.T + curves[1] * problem.evidence.T + curves[2]
    return NoisyCurves(FlipRates(curves[3], curves[4]), expit(heights), numbers)


def _standardized(table: RowsByLabels | None) -> Array:
    """Standardize all entries together to mean 0 and deviation 1, one line per label."""
    if table is None:
        return np.zeros((0, 0))
    spread = float(table.std())
    away = (table - table.mean()) / (spread if spread > 0 else 1.0)
    return np.ascontiguousarray(np.clip(away, -_MOST_AWAY, _MOST_AWAY).T)


class _Problem:
    """The penalized log loss of five parameters per label, (5, L): rates by their log-odds."""

    def __init__(
        self, targets: RowsByLabels, scores: Array, evidence: Array, known: tuple[Array, Array]
    ) -> None:
        self.scores, self.has_evidence = scores, evidence.size > 0
        self.evidence = evidence if self.has_evidence else np.zeros_like(scores)
        lines = targets.T
        self.signs = np.where(np.isnan(lines), 0, np.where(lines == 1, 1, -1)).astype(np.int8)
        self.known = np.stack(known)
        self.is_free = np.vstack([np.ones((3, len(scores)), bool), np.isnan(self.known)])
        self.is_free[1] = self.has_evidence
        self.size = max(1, int(np.count_nonzero(self.signs)))

    def start(self) -> Floats:
        present, seen = (self.signs > 0).sum(axis=1), np.count_nonzero(self.signs, axis=1)
        share = (present + 1.0) / (seen + 2.0)
        level = np.full_like(share, logit(_START))
        return np.stack([np.ones_like(share), np.zeros_like(share), logit(share), level, level]) + self.pull()

    def pull(self) -> Floats:
        """Return the change of a start that admits evidence."""
        change = np.zeros((5, len(self.scores)))
        change[1] = _PULL * self.is_free[1]
        return change

    def curves(self, numbers: Floats) -> Floats:
        rates = np.where(self.is_free[3:], expit(numbers[3:]), self.known)
        return np.vstack([numbers[:3], rates])

    def loss(self, flat: Floats) -> tuple[float, Floats]:
        from labelweave.foundation.loops.curve_sums import noisy_curve_sums

        numbers = flat.reshape(5, -1)
        curves = self.curves(numbers)
        sums = np.empty((len(self.scores), 6))
        noisy_curve_sums(self.scores, self.evidence, self.signs, np.ascontiguousarray(curves.T), sums)
        slopes = sums.T[1:].copy()
        slopes[3:] *= curves[3:] * (1.0 - curves[3:])
        away = numbers - numbers.mean(axis=1, keepdims=True)
        loss = sums[:, 0].sum() + 0.5 * float((np.square(away) / _VARIANCES).sum())
        slopes = np.where(self.is_free, slopes + away / _VARIANCES, 0.0)
        return float(loss) / self.size, slopes.ravel() / self.size

    def solve(self, start: Floats) -> Floats:
        bounds = [(None, None)] * (3 * start.shape[1]) + [(_LOWEST, _HIGHEST)] * (2 * start.shape[1])
        options = {"maxiter": _MOST_STEPS, "ftol": _TOLERANCE}
        found = minimize(
            self.loss, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return np.asarray(found.x.reshape(5, -1))
