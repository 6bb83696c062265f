"""Probabilities by a rising step function a label, and one for all labels that are rare."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.inference.calibration.label_calibration import LabelCalibration
from labelweave.inference.calibration.sigmoid import SigmoidCalibration, fit_sigmoid
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.model_files import storable
from labelweave.model_files.schema import Made, Numbers, places

_LOG_ODDS_BINS = np.linspace(-20.0, 20.0, 4001)


def _is_divided(state: dict[str, Any]) -> bool:
    """Say whether every label has knots, of its own or shared ones, in the order of scores."""
    starts, scores = state["starts"], state["scores"]
    if len(starts) != state["curves"].n_labels + 2 or starts[0] != 0 or starts[-1] != len(scores):
        return False
    counts = np.diff(starts.astype(np.int64))
    within = np.ones(max(0, len(scores) - 1), bool)
    within[starts[(starts > 0) & (starts < len(scores))].astype(np.int64) - 1] = False
    return bool(
        (counts >= 0).all() and (counts[:-1].all() or counts[-1]) and (np.diff(scores)[within] >= 0).all()
    )


@storable(
    "IsotonicCalibration",
    {
        "starts": places("s"),
        "scores": Numbers("k"),
        "values": Numbers("k", least=0, most=1),
        "curves": Made(SigmoidCalibration),
    },
    {"every label has knots with rising scores": _is_divided},
)
class IsotonicCalibration(LabelCalibration):
    """Rising maps from scores to probabilities, linear between knots and constant outside them.

    Parameters
    ----------
    starts : ndarray of int64, shape (L + 2,)
        Where the knots of every label start; the last stretch is the map that rare labels share.
    scores : ndarray of float64, shape (k,)
        The knots; those of the shared map are log-odds.
    values : ndarray of float64, shape (k,)
        The probabilities there.
    curves : SigmoidCalibration
        From the scores of rare labels, which have no knots, to log-odds.
    """

    def __init__(self, starts: Array, scores: Array, values: Array, curves: SigmoidCalibration) -> None:
        self.starts, self.scores, self.values, self.curves = starts, scores, values, curves

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return self.curves.n_labels

    @property
    def is_shared(self) -> Array:
        """Which labels use the shared map, shape (L,)."""
        return np.asarray(np.diff(self.starts)[:-1] == 0)

    def _probabilities(self, scores: Array) -> Array:
        result = np.empty(scores.shape)
        shared = np.flatnonzero(self.is_shared)
        log_odds = self.curves.slopes[shared] * scores[:, shared] + self.curves.intercepts[shared]
        result[:, shared] = self._interpolated(len(self.starts) - 2, log_odds)
        for label in np.flatnonzero(~self.is_shared).tolist():
            result[:, label] = self._interpolated(label, scores[:, label])
        return result

    def _interpolated(self, number: int, scores: Array) -> Array:
        knots = slice(self.starts[number], self.starts[number + 1])
        return np.interp(scores, self.scores[knots], self.values[knots])


def fit_isotonic(table: LabeledScores, min_positives: int) -> IsotonicCalibration:
    """Fit a rising map to every label by least squares, and one to all labels with too few positive rows.

    min_positives: labels with fewer positive, or fewer negative, rows share a map of the log-odds of their
    logistic curves, which are comparable between labels as scores may not be.
    """
    curves = fit_sigmoid(table, pooled=True)
    knots = []
    counts = np.zeros((2, len(_LOG_ODDS_BINS) + 1))  # of rows and of positive rows
    for lines in table.label_blocks():
        for number, label in enumerate(range(lines.which.start, lines.which.stop)):
            seen = (lines.signs[number] != 0) & (table.weights > 0)
            hit, weights = lines.shares[number][seen].astype(np.float64), table.weights[seen]
            scores = lines.scores[number][seen].astype(np.float64)
            if min(hit.sum(), len(hit) - hit.sum()) >= min_positives:
                knots.append(_rising_map(scores, hit, weights))
            else:
                knots.append((np.empty(0), np.empty(0)))
                log_odds = curves.slopes[label] * scores + curves.intercepts[label]
                place = np.searchsorted(_LOG_ODDS_BINS, log_odds)
                counts[0] += np.bincount(place, weights, minlength=counts.shape[1])
                counts[1] += np.bincount(place, weights * hit, minlength=counts.shape[1])
    knots.append(_shared_map(counts))
    starts = np.concatenate([[0], np.cumsum([len(scores) for scores, _ in knots])])
    scores, values = (np.concatenate(column) for column in zip(*knots, strict=True))
    return IsotonicCalibration(starts, scores, values, curves)


def _shared_map(counts: Array) -> tuple[Array, Array]:
    filled = np.flatnonzero(counts[0])
    if not len(filled):
        return np.zeros(1), np.full(1, 0.5)
    width = _LOG_ODDS_BINS[1] - _LOG_ODDS_BINS[0]
    centers = np.append(_LOG_ODDS_BINS, _LOG_ODDS_BINS[-1] + width)[filled] - 0.5 * width
    return _rising_map(centers, counts[1, filled] / counts[0, filled], counts[0, filled])


def _rising_map(scores: Array, targets: Array, weights: Array) -> tuple[Array, Array]:
    """Fit a rising map; it keeps as far from 0 and 1 as Platt's targets do."""
    from sklearn.isotonic import IsotonicRegression

    rows = float(weights.sum())
    least = 1.0 / (rows + 2.0)
    found = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(scores, targets, weights)
    return found.X_thresholds_.astype(np.float64), found.y_thresholds_.astype(np.float64)
