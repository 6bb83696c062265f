"""Choose how scores become probabilities."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, Literal, Protocol

from labelweave.inference.calibration.curves import fit_sigmoid
from labelweave.inference.calibration.method_choice import ProbabilityMap, best_kind
from labelweave.inference.calibration.steps import fit_isotonic
from labelweave.inference.labeled_scores import LabeledScores, read_labeled_scores

__all__ = ["LabelCalibration", "calibrate_labels"]


_MOST_ENTRIES = 2**18  # looked at to choose the kind of maps


class LabelCalibration(ProbabilityMap, Protocol):
    """A map from scores to probabilities, label by label, that a model file can keep."""

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            The map.
        """
        ...


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

    Parameters
    ----------
    labels : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed; such entries count for nothing.
    scores : array-like of shape (n, L)
        Finite scores of rows that the model was not fitted to.
    method : {"auto", "sigmoid", "isotonic"}, default="sigmoid"
        Logistic curves (Platt 1999), or rising maps that are linear between knots; "auto" takes those with
        the lower log loss in a cross-validation on these rows.
    pooling : bool, default=True
        Whether rare labels lean on the others.  The parameters of the logistic curves then have a normal
        prior that is learned from all labels; else Platt's smoothed targets keep them finite.  Labels with
        fewer than ``min_positives`` positive rows share one isotonic map of the log-odds of their curves.
    min_positives : int, default=500
        For isotonic maps with pooling.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of the rows.

    Returns
    -------
    LabelCalibration
        The maps; ``probabilities(scores)`` applies them.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or the method is not known.

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
        kinds = partial(_both_kinds, pooled=pooling, min_positives=fewest)
        method = ("sigmoid", "isotonic")[best_kind(table.drawn_labels(_MOST_ENTRIES), kinds)]
    return fit_sigmoid(table, pooled=pooling) if method == "sigmoid" else fit_isotonic(table, fewest)


def _both_kinds(table: LabeledScores, *, pooled: bool, min_positives: int) -> list[ProbabilityMap]:
    steps = fit_isotonic(table, min_positives)
    return [steps.curves if pooled else fit_sigmoid(table, pooled=False), steps]
