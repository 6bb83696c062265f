"""How scores become probabilities: logistic curves or isotonic maps, by their log loss on held-out parts."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy.special import xlogy

from labelweave.array_types import Array
from labelweave.inference.calibration.isotonic import fit_isotonic
from labelweave.inference.calibration.label_calibration import LabelCalibration
from labelweave.inference.calibration.sigmoid import fit_sigmoid
from labelweave.inference.labeled_scores import LabeledScores, read_labeled_scores

_MOST_ENTRIES = 2**18  # looked at to choose the kind of maps
_PARTS = 3
_FEWEST_ROWS = 10


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
    if method not in ("auto", "sigmoid", "isotonic"):
        raise ValueError(f"method is {method!r}; it must be 'auto', 'sigmoid' or 'isotonic'.")
    if not isinstance(min_positives, Integral) or min_positives < 1:
        raise ValueError(f"min_positives is {min_positives!r}; give a whole number of at least 1.")
    table = read_labeled_scores(labels, scores, sample_weight)
    fewest = int(min_positives) if pooling else 1
    if method == "auto":
        method = _better_method(table.drawn_labels(_MOST_ENTRIES), pooling, fewest)
    return fit_sigmoid(table, pooled=pooling) if method == "sigmoid" else fit_isotonic(table, fewest)


def _better_method(table: LabeledScores, pooled: bool, fewest: int) -> Literal["sigmoid", "isotonic"]:
    """Choose the maps of the lower log loss in three-fold cross-validation; curves for under ten rows."""
    n_rows = len(table.weights)
    if n_rows < _FEWEST_ROWS:
        return "sigmoid"
    part = np.random.default_rng(0).permutation(n_rows) % _PARTS
    losses = np.zeros(2)
    for number in range(_PARTS):
        rest, held = table.rows(np.flatnonzero(part != number)), table.rows(np.flatnonzero(part == number))
        steps = fit_isotonic(rest, fewest)
        curves = steps.curves if pooled else fit_sigmoid(rest, pooled=False)
        losses += [_log_loss(held, maps.probabilities(held.scores)) for maps in (curves, steps)]
    return "isotonic" if losses[1] < losses[0] else "sigmoid"


def _log_loss(table: LabeledScores, probabilities: Array) -> float:
    signs = table.labels.to_signs()
    losses = xlogy(signs > 0, probabilities) + xlogy(signs < 0, 1.0 - probabilities)
    return -float(table.weights @ losses.sum(axis=1))
