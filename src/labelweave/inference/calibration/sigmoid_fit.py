"""Logistic curves from scores to probabilities, fitted label by label.

Platt, "Probabilistic outputs for support vector machines", 1999, minimises the log loss of ``p(s) = 1 / (1 +
exp(-(a s + b)))`` with targets slightly inside 0 and 1.  Here (a, b) may also have a normal prior.  All
labels of a block take damped Newton steps together (Lin, Lin and Weng, "A note on Platt's probabilistic
outputs", 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Array, PerRow
from labelweave.inference.labeled_scores import ScoreLines

__all__ = ["CurvePrior", "fit_curves", "smoothed_targets"]


_MOST_STEPS = 60
_MOST_HALVINGS = 25
_TINY_CURVATURE = 1e-10
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class CurvePrior:
    """A normal distribution of (slope, intercept).

    precision (2, 2): the inverse of its covariance; zeros for no prior.
    Shapes: mean (2,).
    """

    mean: Array
    precision: Array

    @classmethod
    def flat(cls) -> CurvePrior:
        """Make a prior that says nothing."""
        return cls(np.zeros(2), np.zeros((2, 2)))


@dataclass(frozen=True)
class _Fit:
    """The penalised loss of the curves of a block of labels."""

    lines: ScoreLines
    weights: Array
    targets: Array
    prior: CurvePrior

    def part(self, which: Array) -> _Fit:
        lines = ScoreLines(self.lines.which, self.lines.scores[which], self.lines.signs[which])
        return _Fit(lines, self.weights, self.targets[which], self.prior)

    def derivatives(self, curves: Array) -> tuple[Array, Array, Array]:
        """Compute losses (b,), gradients (b, 2) and Hessians (b, 2, 2)."""
        from labelweave._loops.sigmoid_sums import sigmoid_sums

        sums = np.empty((len(curves), 6))
        sigmoid_sums(self.lines.scores, self.lines.signs, self.weights, curves, self.targets, sums)
        away = curves - self.prior.mean
        pull = away @ self.prior.precision
        hessians = sums[:, [3, 4, 4, 5]].reshape(-1, 2, 2) + self.prior.precision
        return sums[:, 0] + 0.5 * (pull * away).sum(axis=1), sums[:, 1:3] + pull, hessians


def smoothed_targets(positives: Array, negatives: Array) -> Array:
    """Ask for Platt's 1 / (N- + 2) and (N+ + 1) / (N+ + 2).

    positives (b,): positive rows of every label.
    Returns (b, 2): the probabilities to ask for in negative and in positive rows.
    Shapes: negatives (b,).
    """
    return np.column_stack([1.0 / (negatives + 2.0), (positives + 1.0) / (positives + 2.0)])


def fit_curves(
    lines: ScoreLines, weights: PerRow, targets: Array, prior: CurvePrior, start: Array
) -> tuple[Array, Array]:
    """Minimise the penalised log loss of every label.

    lines (b, n): labels with their scores, which should be of the size of 1.
    targets (b, 2): the probabilities to ask for in negative and in positive rows.
    prior: the prior of all labels.
    start (b, 2): slopes and intercepts to start from.
    hessians (b, 2, 2): second derivatives of the penalised loss there.
    Shapes: curves (b, 2).
    """
    whole = _Fit(lines, weights, targets, prior)
    curves = start.astype(np.float64)
    hessians = np.empty((len(curves), 2, 2))
    active = np.arange(len(curves))
    fit, (losses, gradients, seconds) = whole, whole.derivatives(curves)
    for _ in range(_MOST_STEPS):
        hessians[active] = seconds
        directions = _newton_directions(gradients, seconds)
        slopes = (directions * gradients).sum(axis=1)
        going = -slopes > _TOLERANCE * (1.0 + np.abs(losses))
        if not going.any():
            break
        active, fit = active[going], fit.part(going)
        curves[active] = _line_search(fit, curves[active], losses[going], directions[going], slopes[going])
        losses, gradients, seconds = fit.derivatives(curves[active])
    return curves, hessians


def _newton_directions(gradients: Array, hessians: Array) -> Array:
    size = np.trace(hessians, axis1=1, axis2=2) + 1.0
    lifted = hessians + (_TINY_CURVATURE * size)[:, None, None] * np.eye(2)
    return -np.linalg.solve(lifted, gradients[..., None])[..., 0]


def _line_search(fit: _Fit, curves: Array, losses: Array, directions: Array, slopes: Array) -> Array:
    """Halve the steps of those labels whose loss they do not lower enough."""
    steps = np.ones(len(curves))
    waiting = np.arange(len(curves))
    for _ in range(_MOST_HALVINGS):
        trial = curves[waiting] + steps[waiting, None] * directions[waiting]
        found = fit.part(waiting).derivatives(trial)[0]
        bad = ~(found <= losses[waiting] + 1e-4 * steps[waiting] * slopes[waiting])
        waiting = waiting[bad]
        if not len(waiting):
            break
        steps[waiting] *= 0.5
    else:
        steps[waiting] = 0.0  # as low as rounding lets it be
    return np.asarray(curves + steps[:, None] * directions)
