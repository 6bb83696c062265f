"""How scores become probabilities: logistic curves or isotonic maps, by their log loss on held-out parts."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy.special import xlogy

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.inference.calibration.isotonic import fit_isotonic
from labelweave.inference.calibration.label_calibration import LabelCalibration
from labelweave.inference.calibration.sigmoid import fit_sigmoid
from labelweave.inference.calibration.softmax import fit_softmax, known_classes
from labelweave.inference.labeled_scores import LabeledScores, read_labeled_scores

_MOST_ENTRIES = 2**18  # looked at to choose the kind of maps
_PARTS = 3
_FEWEST_ROWS = 10


@checked
def calibrate_labels(
    labels: Any,
    scores: Any,
    method: Literal["auto", "sigmoid", "isotonic"] = "sigmoid",
    *,
    pooling: bool = True,
    min_positives: Any = 500,
    sample_weight: Any = None,
) -> LabelCalibration:
    """Find maps from scores to probabilities, one a label.

    For labels, scores, weights and errors see :func:`choose_thresholds`.

    Parameters
    ----------
    method : {"auto", "sigmoid", "isotonic"}, default="sigmoid"
        Logistic curves (Platt 1999), or rising maps that are linear between knots; "auto" takes those with
        the lower log loss in a cross-validation on these rows.
    pooling : bool, default=True
        Whether rare labels lean on the others: by a normal prior of the logistic curves, learned from all
        labels, in the place of Platt's smoothed targets; by one isotonic map that they share.
    min_positives : int, default=500
        Positive rows of a label below which it shares the isotonic map, which is of log-odds.

    Returns
    -------
    LabelCalibration
        The maps; ``probabilities(scores)`` applies them.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.inference import calibrate_labels
    >>> scores = np.random.default_rng(0).normal(size=(1000, 2))
    >>> labels = scores + np.random.default_rng(1).logistic(size=(1000, 2)) > [0, 3]
    >>> calibrate_labels(labels, scores).probabilities(np.zeros((1, 2))).round(1).tolist()
    [[0.5, 0.1]]
    """
    fewest = _fewest(method, pooling, min_positives)
    table = read_labeled_scores(labels, scores, sample_weight)

    def fit(rows: LabeledScores) -> tuple[LabelCalibration, LabelCalibration]:
        steps = fit_isotonic(rows, fewest)
        return steps.curves if pooling else fit_sigmoid(rows, pooled=False), steps

    if method == "auto":
        method = _better_method(table.drawn_labels(_MOST_ENTRIES), fit, _log_loss)
    return fit_sigmoid(table, pooled=pooling) if method == "sigmoid" else fit_isotonic(table, fewest)


@checked
def calibrate_classes(
    labels: Any,
    scores: Any,
    method: Literal["auto", "sigmoid", "isotonic"] = "sigmoid",
    *,
    pooling: bool = True,
    min_positives: Any = 500,
    sample_weight: Any = None,
) -> LabelCalibration:
    """Find maps from scores to the probabilities of classes, of which a row has one.

    For labels, of which a row has one or none that is known, or probabilities whose sum is 1, other
    parameters and errors see :func:`calibrate_labels`.

    Parameters
    ----------
    method : {"auto", "sigmoid", "isotonic"}, default="sigmoid"
        A softmax of the scores times one slope and an intercept a class (temperature scaling), the several
        classes' form of a logistic curve; or a rising map a class against the rest.  "auto" takes what has
        the lower log loss in a cross-validation on these rows.
    pooling : bool, default=True
        Whether intercepts of the softmax have a prior around 0, and rare classes share a rising map.

    Returns
    -------
    LabelCalibration
        The maps, whose probabilities :func:`class_probabilities` brings to the sum 1.
    """
    fewest = _fewest(method, pooling, min_positives)
    table = read_labeled_scores(labels, scores, sample_weight)

    def fit(rows: LabeledScores) -> tuple[LabelCalibration, LabelCalibration]:
        return fit_softmax(rows, pooled=pooling), fit_isotonic(rows, fewest)

    if method == "auto":
        method = _better_method(table, fit, _class_log_loss)
    return fit_softmax(table, pooled=pooling) if method == "sigmoid" else fit_isotonic(table, fewest)


@checked
def class_probabilities(calibration: LabelCalibration, scores: Array) -> Array:
    """Compute the probabilities of classes, of which a row has one.

    Parameters
    ----------
    calibration : LabelCalibration
        What :func:`calibrate_classes` found.
    scores : ndarray of shape (n, C)
        Scores.

    Returns
    -------
    ndarray of float64, shape (n, C)
        The probabilities, every row with the sum 1; equal ones where no class has any.

    Raises
    ------
    ValueError
        If the scores are not finite numbers, one column a class.
    """
    table = calibration.probabilities(scores)
    sums = table.sum(axis=1, keepdims=True)
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), 1.0 / table.shape[1]))


def _fewest(method: Any, pooling: bool, min_positives: Any) -> int:
    if method not in ("auto", "sigmoid", "isotonic"):
        raise ValueError(f"method is {method!r}; it must be 'auto', 'sigmoid' or 'isotonic'.")
    if not isinstance(min_positives, Integral) or min_positives < 1:
        raise ValueError(f"min_positives is {min_positives!r}; give a whole number of at least 1.")
    return int(min_positives) if pooling else 1


def _better_method(
    table: LabeledScores,
    fit: Callable[[LabeledScores], tuple[LabelCalibration, LabelCalibration]],
    loss: Callable[[LabeledScores, LabelCalibration], float],
) -> Literal["sigmoid", "isotonic"]:
    """Choose the maps of the lower log loss in three-fold cross-validation; curves for under ten rows."""
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
