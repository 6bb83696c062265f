"""Probabilities by a logistic curve a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.array_types import Array
from labelweave.inference.calibration.curve_prior import learn_prior, standardised
from labelweave.inference.calibration.sigmoid_fit import (
    CurvePrior,
    fit_curves,
    smoothed_targets,
)
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.model_files import storable

__all__ = ["SigmoidCalibration", "fit_sigmoid"]


@storable("SigmoidCalibration")
class SigmoidCalibration:
    """A curve ``p = 1 / (1 + exp(-(slope s + intercept)))`` for the scores s of every label.

    Parameters
    ----------
    slopes : ndarray of float64, shape (L,)
        The slopes.
    intercepts : ndarray of float64, shape (L,)
        The intercepts.
    """

    def __init__(self, slopes: Array, intercepts: Array) -> None:
        self.slopes, self.intercepts = slopes, intercepts

    def log_odds(self, scores: Array) -> Array:
        """Compute log(p / (1 - p)).

        Parameters
        ----------
        scores : ndarray of shape (n, L)
            Scores.

        Returns
        -------
        ndarray of float64, shape (n, L)
            The log-odds.
        """
        return np.asarray(self.slopes * scores + self.intercepts)

    def probabilities(self, scores: Array) -> Array:
        """Compute the probability of every label.

        Parameters
        ----------
        scores : ndarray of shape (n, L)
            Scores.

        Returns
        -------
        ndarray of float64, shape (n, L)
            The probabilities.
        """
        return np.asarray(expit(self.log_odds(scores)))

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            Slopes and intercepts.
        """
        return {"slopes": self.slopes, "intercepts": self.intercepts}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SigmoidCalibration:
        """Make the curves again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        SigmoidCalibration
            The curves.
        """
        return cls(**state)


def fit_sigmoid(table: LabeledScores, *, pooled: bool) -> SigmoidCalibration:
    """Fit the curves of all labels, some labels at a time.

    pooled: whether labels share what they have in common: a prior, and Platt's targets of all labels together
        in the place of their own.
    Shapes: table (n, L).
    """
    center, size = scale = _center_and_size(table)
    common = _targets_of_all(table)
    prior = learn_prior(table, scale, common) if pooled else CurvePrior.flat()
    curves = np.empty((table.shape[1], 2))
    for lines in table.label_blocks():
        targets = np.tile(common, (len(lines.signs), 1))
        if not pooled:
            targets = smoothed_targets(*((lines.signs == sign) @ table.weights for sign in (1, -1)))
        start = np.tile(prior.mean, (len(targets), 1))
        scaled = standardised(lines, scale)
        curves[lines.which] = fit_curves(scaled, table.weights, targets, prior, start)[0]
    slopes = curves[:, 0] / size
    return SigmoidCalibration(slopes, curves[:, 1] - slopes * center)


def _center_and_size(table: LabeledScores) -> tuple[float, float]:
    """Compute the mean of the observed scores and their spread about it."""
    entries, total, _ = _moments(table, 0.0)
    if not entries:
        return 0.0, 1.0
    center = total / entries
    # about the mean: rounding leaves nothing of a small difference of large squares
    spread = float(np.sqrt(_moments(table, center)[2] / entries))
    return center, spread if spread > 1e-12 * abs(center) else 1.0


def _moments(table: LabeledScores, center: float) -> tuple[float, float, float]:
    """Count the observed entries and add their differences to a center and the squares of these, weighted."""
    sums = np.zeros(3)
    for lines in table.row_blocks():
        seen = lines.signs != 0
        away = np.where(seen, lines.scores, center).astype(np.float64) - center
        weights = table.weights[lines.which]
        sums += weights @ seen.sum(axis=1), weights @ away.sum(axis=1), weights @ np.square(away).sum(axis=1)
    entries, total, squares = sums.tolist()
    return entries, total, squares


def _targets_of_all(table: LabeledScores) -> Array:
    """Compute Platt's targets from the rows of all labels together: shape (1, 2)."""
    counts = np.zeros((2, 1))
    for lines in table.row_blocks():
        for number, sign in enumerate((1, -1)):
            counts[number] += (lines.signs == sign).sum(axis=1) @ table.weights[lines.which]
    return smoothed_targets(*counts)
