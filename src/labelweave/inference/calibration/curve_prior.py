"""What the labels' curves have in common, learned from all of them.

The curves (a_l, b_l) of the labels are taken to be draws from one normal distribution.  Its mean and
covariance are found by expectation maximisation with a normal approximation of every label's posterior
(empirical Bayes).  A label with many positive rows then has its own curve, one with few
hardly leaves the common one, and how much "few" is follows from how much the labels differ.
"""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array
from labelweave.inference.calibration.sigmoid_fit import CurvePrior, fit_curves
from labelweave.inference.labeled_scores import LabeledScores, ScoreLines

__all__ = ["learn_prior", "standardised"]


_MOST_ENTRIES = 400_000
_FEWEST_LABELS, _MOST_LABELS = 30, 1000
_MOST_ROUNDS = 30
_CONVERGED = 1e-2
_LEAST_VARIANCE = 1e-4


def learn_prior(table: LabeledScores, scale: tuple[float, float], targets: Array) -> CurvePrior:
    """Learn the common distribution of the labels' curves.

    table (n, L): labels and scores; at most 1,000 labels, drawn evenly, are looked at.
    scale: center and size of the scores, which are taken out.
    targets (1, 2): the probabilities to ask for in negative and in positive rows.
    Returns the distribution, for standardised scores.
    """
    lines = _drawn_labels(table, scale)
    mean, covariance = _common_curve(lines, table.weights, targets), np.eye(2)
    curves, targets = (np.tile(one, (len(lines.scores), 1)) for one in (mean, targets))
    for _ in range(_MOST_ROUNDS):
        prior = CurvePrior(mean, np.linalg.inv(covariance))
        curves, hessians = fit_curves(lines, table.weights, targets, prior, curves)
        before, mean = mean, curves.mean(axis=0)
        away = curves - mean
        covariance = away.T @ away / len(curves) + np.linalg.inv(hessians).mean(axis=0)
        covariance += _LEAST_VARIANCE * np.eye(2)
        if np.abs(mean - before).max() < _CONVERGED * (1.0 + np.abs(mean).max()):
            break
    return CurvePrior(mean, np.linalg.inv(covariance))


def standardised(lines: ScoreLines, scale: tuple[float, float]) -> ScoreLines:
    """Take center and size out of scores; unobserved ones become 0."""
    center, size = scale
    scores = np.where(lines.signs == 0, 0.0, (lines.scores - center) / size)
    return ScoreLines(lines.which, scores, lines.signs)


def _drawn_labels(table: LabeledScores, scale: tuple[float, float]) -> ScoreLines:
    part = table.drawn_labels(min(_MOST_ENTRIES, _MOST_LABELS * table.shape[0]), _FEWEST_LABELS)
    blocks = list(part.label_blocks())
    scores, signs = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("scores", "signs"))
    return standardised(ScoreLines(slice(0, len(scores)), scores, signs), scale)


def _common_curve(lines: ScoreLines, weights: Array, targets: Array) -> Array:
    """Fit one curve to all labels together."""
    every = ScoreLines(slice(0, 1), lines.scores.reshape(1, -1), lines.signs.reshape(1, -1))
    weak = CurvePrior(np.zeros(2), 1e-3 * np.eye(2))
    weights = np.tile(weights, len(lines.scores))
    return np.asarray(fit_curves(every, weights, targets, weak, np.zeros((1, 2)))[0][0])
