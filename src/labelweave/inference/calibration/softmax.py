"""Probabilities of classes, of which a row has one, by a softmax of scaled scores.

Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (ICML 2017), divide all scores by
one temperature; Alexandari, Kundaje and Shrikumar, "Maximum likelihood with bias-corrected calibration is
hard-to-beat at label shift adaptation" (ICML 2020), add an intercept a class.  Both by the log loss.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.inference.calibration.label_calibration import LabelCalibration
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.model_files import storable
from labelweave.model_files.schema import Number, Numbers

_VARIANCE = 1.0  # of intercepts: classes with few rows stay near 0
_WIDE = 1e6  # for intercepts on their own, of which one number can be taken off
_LARGEST = 1e300  # scores times slope: infinite ones have no differences


@storable("SoftmaxCalibration", {"slope": Number(0), "intercepts": Numbers("L")})
class SoftmaxCalibration(LabelCalibration):
    """Probabilities ``softmax(slope s + intercepts)`` of the scores s of a row's classes.

    Parameters
    ----------
    slope : float
        The inverse of the temperature.
    intercepts : ndarray of float64, shape (L,)
        One a class.
    """

    def __init__(self, slope: float, intercepts: Array) -> None:
        self.slope, self.intercepts = slope, intercepts

    @property
    def n_labels(self) -> int:
        """The number of classes."""
        return len(self.intercepts)

    def _probabilities(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled = np.clip(self.slope * scores, -_LARGEST, _LARGEST)
        return np.asarray(softmax(scaled + self.intercepts, axis=1))


def fit_softmax(table: LabeledScores, *, pooled: bool) -> SoftmaxCalibration:
    """Fit slope and intercepts to the rows whose class is known, or its probabilities.

    pooled: whether intercepts have a normal prior of variance 1 around 0.
    """
    rows, shares = known_classes(table)
    scores, size = _of_size_one(table.scores[rows].astype(np.float64))
    weights = table.weights[rows]
    known = shares.sum(axis=1, keepdims=True)
    variance = _VARIANCE if pooled else _WIDE

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, intercepts = parameters[0], parameters[1:]
        logs = log_softmax(slope * scores + intercepts, axis=1)
        errors = weights[:, None] * (known * np.exp(logs) - shares)
        expected = -float(weights @ (shares * logs).sum(axis=1))
        value = expected + 0.5 * float(intercepts @ intercepts) / variance
        return value, np.append(np.sum(errors * scores), errors.sum(axis=0) + intercepts / variance)

    start = np.append(1.0, np.zeros(scores.shape[1]))
    bounds = [(0.0, None)] + [(None, None)] * scores.shape[1]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000})
    with np.errstate(over="ignore", divide="ignore"):
        return SoftmaxCalibration(min(float(found.x[0] / size), _LARGEST), found.x[1:])


def _of_size_one(scores: Array) -> tuple[Array, np.float64]:
    """Scale what scores lie below their row's greatest, where the search does not see their unit."""
    largest = np.abs(scores).max(initial=0.0) or np.float64(1.0)
    scores = scores / largest
    scores -= scores.max(axis=1, keepdims=True)
    size = np.sqrt(np.square(scores).mean()) if scores.any() else np.float64(1.0)
    return scores / size, size * largest


def known_classes(table: LabeledScores) -> tuple[Array, RowsByLabels]:
    """Give the rows of positive weight whose class is known, and 1 there, or the probabilities of classes."""
    shares = np.clip(table.labels.expected_positives.toarray(), 0.0, 1.0)  # corrected ones may be outside
    is_known = shares.any(axis=1) if table.labels.doubts is not None else shares.sum(axis=1) == 1
    rows = np.flatnonzero(is_known & (table.weights > 0))
    return rows, shares[rows].astype(np.float64)
