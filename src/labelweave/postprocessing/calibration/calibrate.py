"""Calibration of scores: logistic curves or isotonic maps, chosen by their held-out log loss.

Class probabilities come from a softmax of scaled scores.  Guo, Pleiss, Sun and
Weinberger, "On calibration of modern neural networks" (ICML 2017), divide all scores by one temperature;
Alexandari, Kundaje and Shrikumar, "Maximum likelihood with bias-corrected calibration is hard-to-beat at
label shift adaptation" (ICML 2020), add one intercept per class.  Both minimize the log loss.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax, xlogy

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.model_files import storable
from labelweave.model_files.schema import Number, Numbers
from labelweave.postprocessing.calibration.maps import LabelCalibration, fit_isotonic, fit_sigmoid
from labelweave.postprocessing.labeled_scores import LabeledScores, read_labeled_scores

_MOST_ENTRIES = 2**18  # used to choose the kind of maps
_PARTS = 3
_FEWEST_ROWS = 10


@checked
def calibrate_labels(
    labels: Any,
    scores: Any,
    method: Literal["auto", "sigmoid", "isotonic"] = "sigmoid",
    *,
    shrinkage: Literal["auto"] | float = "auto",
    min_positives: Any = 500,
    sample_weight: Any = None,
) -> LabelCalibration:
    """Fit maps from scores to probabilities, one per label.

    For labels, scores, weights and errors see :func:`choose_thresholds`.

    Parameters
    ----------
    method : {"auto", "sigmoid", "isotonic"}, default="sigmoid"
        Logistic curves (Platt 1999), or monotone maps that are linear between knots; "auto" takes those with
        the lower cross-validated log loss on these rows.
    shrinkage : {"auto", 0}, default="auto"
        How far maps of rare labels shrink to that of all labels: "auto" learns a normal prior of the logistic
        curves from all labels, instead of Platt's smoothed targets, and one isotonic map for rare labels.
        With 0 every label has its own map.
    min_positives : int, default=500
        Labels with fewer positive rows use the shared isotonic map, which is a map of log-odds.

    Returns
    -------
    LabelCalibration
        The maps; ``probabilities(scores)`` applies them.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.postprocessing import calibrate_labels
    >>> scores = np.random.default_rng(0).normal(size=(1000, 2))
    >>> labels = scores + np.random.default_rng(1).logistic(size=(1000, 2)) > [0, 3]
    >>> calibrate_labels(labels, scores).probabilities(np.zeros((1, 2))).round(1).tolist()
    [[0.5, 0.1]]
    """
    pooled, fewest = _sharing(method, shrinkage, min_positives)
    table = read_labeled_scores(labels, scores, sample_weight)

    def fit(rows: LabeledScores) -> tuple[LabelCalibration, LabelCalibration]:
        steps = fit_isotonic(rows, fewest)
        return steps.curves if pooled else fit_sigmoid(rows, pooled=False), steps

    if method == "auto":
        method = _better_method(table.drawn_labels(_MOST_ENTRIES), fit, _log_loss)
    return fit_sigmoid(table, pooled=pooled) if method == "sigmoid" else fit_isotonic(table, fewest)


@checked
def calibrate_classes(
    labels: Any,
    scores: Any,
    method: Literal["auto", "sigmoid", "isotonic"] = "sigmoid",
    *,
    shrinkage: Literal["auto"] | float = "auto",
    min_positives: Any = 500,
    sample_weight: Any = None,
) -> LabelCalibration:
    """Fit maps from scores to class probabilities, for one class per row.

    Each row of labels has at most one known class, or class probabilities that sum to 1; for other
    parameters and errors see :func:`calibrate_labels`.

    Parameters
    ----------
    method : {"auto", "sigmoid", "isotonic"}, default="sigmoid"
        A softmax of the scores times one slope plus one intercept per class (temperature scaling), the
        multiclass logistic curve; or one-vs-rest monotone maps.  "auto" takes the method with the lower
        cross-validated log loss on these rows.
    shrinkage : {"auto", 0}, default="auto"
        With "auto" intercepts of the softmax have a prior around 0, and rare classes share a monotone map.

    Returns
    -------
    LabelCalibration
        The maps, whose probabilities :func:`class_probabilities` normalizes to sum to 1.
    """
    pooled, fewest = _sharing(method, shrinkage, min_positives)
    table = read_labeled_scores(labels, scores, sample_weight)

    def fit(rows: LabeledScores) -> tuple[LabelCalibration, LabelCalibration]:
        return fit_softmax(rows, pooled=pooled), fit_isotonic(rows, fewest)

    if method == "auto":
        method = _better_method(table, fit, _class_log_loss)
    return fit_softmax(table, pooled=pooled) if method == "sigmoid" else fit_isotonic(table, fewest)


@checked
def class_probabilities(calibration: LabelCalibration, scores: Array) -> Array:
    """Compute class probabilities that sum to 1 per row.

    Parameters
    ----------
    calibration : LabelCalibration
        The result of :func:`calibrate_classes`.
    scores : ndarray of shape (n, C)
        Scores.

    Returns
    -------
    ndarray of float64, shape (n, C)
        The probabilities, with rows that sum to 1; equal ones where all are 0.

    Raises
    ------
    ValueError
        If the scores are not finite numbers, one column per class.
    """
    table = calibration.probabilities(scores)
    sums = table.sum(axis=1, keepdims=True)
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), 1.0 / table.shape[1]))


def _sharing(method: Any, shrinkage: Any, min_positives: Any) -> tuple[bool, int]:
    """Return whether labels share information, and the positive rows from which they have an own map."""
    if method not in ("auto", "sigmoid", "isotonic"):
        raise ValueError(f"method is {method!r}; pass 'auto', 'sigmoid' or 'isotonic'.")
    if not isinstance(min_positives, Integral) or min_positives < 1:
        raise ValueError(f"min_positives is {min_positives!r}; pass an integer of at least 1.")
    if shrinkage not in ("auto", 0):
        raise ValueError(f"shrinkage is {shrinkage!r}; pass 'auto' or 0.")
    return shrinkage == "auto", int(min_positives) if shrinkage == "auto" else 1


def _better_method(
    table: LabeledScores,
    fit: Callable[[LabeledScores], tuple[LabelCalibration, LabelCalibration]],
    loss: Callable[[LabeledScores, LabelCalibration], float],
) -> Literal["sigmoid", "isotonic"]:
    """Choose the maps with the lower log loss in three-fold cross-validation; curves below ten rows."""
    n_rows = len(table.weights)
    if n_rows < _FEWEST_ROWS:
        return "sigmoid"
    part = np.random.default_rng(0).permutation(n_rows) % _PARTS
    losses = np.zeros(2)
    for number in range(_PARTS):
        rest, held = table.rows(np.flatnonzero(part != number)), table.rows(np.flatnonzero(part == number))
        losses += [loss(held, maps) for maps in fit(rest)]
    return "isotonic" if losses[1] < losses[0] else "sigmoid"


def _class_log_loss(table: LabeledScores, maps: LabelCalibration) -> float:
    rows, shares = known_classes(table)
    losses = xlogy(shares, class_probabilities(maps, table.scores[rows])).sum(axis=1)
    return -float(table.weights[rows] @ losses)


def _log_loss(table: LabeledScores, maps: LabelCalibration) -> float:
    signs, probabilities = table.labels.to_signs(), maps.probabilities(table.scores)
    losses = xlogy(signs > 0, probabilities) + xlogy(signs < 0, 1.0 - probabilities)
    return -float(table.weights @ losses.sum(axis=1))


_VARIANCE = 1.0  # of intercepts: classes with few rows stay near 0
_WIDE = 1e6  # without shrinkage, as adding a constant to all intercepts changes nothing
_LARGEST = 1e300  # scores times slope: infinite values have no differences


@storable("SoftmaxCalibration", {"slope": Number(0), "intercepts": Numbers("L")})
class SoftmaxCalibration(LabelCalibration):
    """Probabilities ``softmax(slope s + intercepts)`` of the scores s of a row's classes.

    Parameters
    ----------
    slope : float
        The inverse of the temperature.
    intercepts : ndarray of float64, shape (L,)
        One per class.
    """

    def __init__(self, slope: float, intercepts: Array) -> None:
        self.slope, self.intercepts, self.n_labels = slope, intercepts, len(intercepts)

    def _probabilities(self, scores: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled = np.clip(self.slope * scores, -_LARGEST, _LARGEST)
        return np.asarray(softmax(scaled + self.intercepts, axis=1))


def fit_softmax(table: LabeledScores, *, pooled: bool) -> SoftmaxCalibration:
    """Fit slope and intercepts, pooled ones with prior N(0, 1), to rows with a class or probabilities."""
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
    """Scale the scores, relative to their row's maximum, to make the search independent of their unit."""
    largest = np.abs(scores).max(initial=0.0) or np.float64(1.0)
    scores = scores / largest
    scores -= scores.max(axis=1, keepdims=True)
    size = np.sqrt(np.square(scores).mean()) if scores.any() else np.float64(1.0)
    return scores / size, size * largest


def known_classes(table: LabeledScores) -> tuple[Array, RowsByLabels]:
    """Return the rows of positive weight with a known class, and its one-hot code or class probabilities."""
    shares = np.clip(table.labels.expected_positives.toarray(), 0.0, 1.0)  # corrected targets may be outside
    is_known = shares.any(axis=1) if table.labels.flip_probabilities is not None else shares.sum(axis=1) == 1
    rows = np.flatnonzero(is_known & (table.weights > 0))
    return rows, shares[rows].astype(np.float64)
