"""How scores become probabilities: logistic curves or isotonic maps, by their log loss on held-out parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Literal, Protocol

import numpy as np
from scipy.special import xlogy

from labelweave.array_types import Array
from labelweave.inference.calibration.isotonic import fit_isotonic
from labelweave.inference.calibration.sigmoid import fit_sigmoid
from labelweave.inference.labeled_scores import LabeledScores, read_labeled_scores

__all__ = ["LabelCalibration", "calibrate_labels"]


_MOST_ENTRIES = 2**18  # looked at to choose the kind of maps
_PARTS = 3
_FEWEST_ROWS = 10


class LabelCalibration(Protocol):
    """A map from scores to probabilities, label by label, that a model file can keep."""

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
        ...

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""
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


def _both_kinds(table: LabeledScores, *, pooled: bool, min_positives: int) -> list[LabelCalibration]:
    steps = fit_isotonic(table, min_positives)
    return [steps.curves if pooled else fit_sigmoid(table, pooled=False), steps]


def best_kind(table: LabeledScores, fit_kinds: Callable[[LabeledScores], Sequence[LabelCalibration]]) -> int:
    """Number the kind of maps of the least log loss in three-fold cross-validation; 0 for under ten rows."""
    n_rows = len(table.weights)
    if n_rows < _FEWEST_ROWS:
        return 0
    part = np.random.default_rng(0).permutation(n_rows) % _PARTS
    losses = []
    for number in range(_PARTS):
        rest, held = table.rows(np.flatnonzero(part != number)), table.rows(np.flatnonzero(part == number))
        losses.append([_log_loss(held, kind.probabilities(held.scores)) for kind in fit_kinds(rest)])
    return int(np.sum(losses, axis=0).argmin())


def _log_loss(table: LabeledScores, probabilities: Array) -> float:
    signs = table.labels.to_signs()
    losses = xlogy(signs > 0, probabilities) + xlogy(signs < 0, 1.0 - probabilities)
    return -float(table.weights @ losses.sum(axis=1))
