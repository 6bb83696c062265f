"""Choose thresholds on scores of rows that the model did not see.

Micro-averaged F1 with a threshold a label is a ratio of sums over labels, ``2 sum(hits) / sum(predicted +
positives)``.  For a given value F of it, ``sum(2 hits - F (predicted + positives))`` falls apart into labels,
each with an exact best cut, and the ratio is the greatest one when that best sum is 0 (Dinkelbach 1967).
Setting F to the ratio of the cuts just found, and cutting again, raises F until it is the greatest one.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.inference.labeled_scores import LabeledScores, read_labeled_scores
from labelweave.inference.thresholds.example_f1 import ascend_example_f1
from labelweave.inference.thresholds.label_cuts import NO_CUT, LabelCuts, find_label_cuts
from labelweave.inference.thresholds.objective import (
    Objective,
    ObjectiveName,
    count_sets,
    f1_of_counts,
    read_objective,
)
from labelweave.inference.thresholds.shared_threshold import shared_threshold
from labelweave.inference.thresholds.top_k import best_top_k, scores_above_top_k

__all__ = ["ThresholdChoice", "TopKChoice", "choose_thresholds", "choose_top_k"]

Array = npt.NDArray[Any]


class ThresholdChoice(NamedTuple):
    """Thresholds and what they reach.

    Parameters
    ----------
    thresholds : ndarray of float64, shape (L,)
        Scores above are positive.
    value : float
        The measure on the rows they were chosen on.
    """

    thresholds: Array
    value: float


class TopKChoice(NamedTuple):
    """A number of labels a row and what it reaches.

    Parameters
    ----------
    k : int
        Labels a row.
    value : float
        The measure on the rows it was chosen on.
    """

    k: int
    value: float


def choose_thresholds(
    labels: Any,
    scores: Any,
    objective: ObjectiveName = "micro_f1",
    *,
    scope: Literal["label", "global"] = "label",
    target: float | None = None,
    pooling: float = 0.0,
    sample_weight: Any = None,
) -> ThresholdChoice:
    """Choose the thresholds that are best for a measure of label sets.

    Parameters
    ----------
    labels : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed; such entries count for nothing.
    scores : array-like of shape (n, L)
        Finite scores of rows that the model was not fitted to.
    objective : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"}
        What is to be best.  With "precision" the target is to be reached with as many hits as can be, with
        "recall" with as few predictions; by every label for itself, or by all entries together
        with one threshold.  A label that cannot reach the precision is not predicted.
    scope : {"label", "global"}, default="label"
        A threshold a label, or one for all.
    target : float or None, default=None
        The precision or recall to be reached.
    pooling : float, default=0.0
        How strongly labels with few positive rows are drawn to the best threshold for all labels: with p
        positive rows a label's own threshold has the weight p / (p + pooling).  Not for a target.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of the rows.

    Returns
    -------
    ThresholdChoice
        Thresholds and the value of the measure.  Unpooled ones lie half way between two scores.  A label
        without positive rows gets the best threshold for all labels; if no label has one, nothing is
        predicted.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or the objective makes no sense.

    Notes
    -----
    Without pooling all are exact but for "example_f1" with a threshold a label, where no single threshold can
    be improved.  On the rows they were chosen on, a threshold a label is never worse than one for all; on
    other rows it often is, unless labels with few positive rows are pooled.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.inference import choose_thresholds
    >>> labels = np.array([[1, 0], [1, 1], [0, 0]])
    >>> scores = np.array([[0.9, 0.1], [0.3, 0.2], [0.1, 0.1]])
    >>> choice = choose_thresholds(labels, scores)
    >>> choice.thresholds.round(2).tolist(), choice.value
    ([0.2, 0.15], 1.0)
    """
    wanted = read_objective(objective, target)
    if scope not in ("label", "global"):
        raise ValueError(f"scope is {scope!r}; it must be 'label' or 'global'.")
    table = read_labeled_scores(labels, scores, sample_weight)
    thresholds = np.full(table.shape[1], shared_threshold(table, wanted))
    if scope == "label":
        thresholds = _by_label(table, wanted, thresholds, _read_pooling(pooling))
    counts = count_sets(table, lambda rows, block: block > thresholds)
    return ThresholdChoice(thresholds, counts.measure(wanted.name))


def choose_top_k(
    labels: Any,
    scores: Any,
    objective: ObjectiveName = "micro_f1",
    *,
    target: float | None = None,
    sample_weight: Any = None,
) -> TopKChoice:
    """Choose how many labels every row gets.

    Parameters
    ----------
    labels : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed; such entries count for nothing.
    scores : array-like of shape (n, L)
        Finite scores of rows that the model was not fitted to.
    objective : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"}
        What is to be best, as in :func:`choose_thresholds`.
    target : float or None, default=None
        The precision or recall to be reached by all entries together.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of the rows.

    Returns
    -------
    TopKChoice
        k, from 1 to 200, and the value of the measure.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or the objective makes no sense.
    """
    wanted = read_objective(objective, target)
    table = read_labeled_scores(labels, scores, sample_weight)
    k = best_top_k(table, wanted)
    counts = count_sets(table, lambda rows, block: scores_above_top_k(block, k) > 0)
    return TopKChoice(k, counts.measure(wanted.name))


def _read_pooling(pooling: Any) -> float:
    if not isinstance(pooling, (int, float, np.number)) or not 0 <= pooling < np.inf:
        raise ValueError(f"pooling is {pooling!r}; give a finite number of at least 0.")
    return float(pooling)


def _by_label(table: LabeledScores, objective: Objective, shared: Array, pooling: float) -> Array:
    cuts = find_label_cuts(table)
    has_positive = cuts.positives > 0
    own = np.where(has_positive, cuts.thresholds(_best_cuts(cuts, objective)), shared)
    if objective.name == "example_f1":
        ascents = [ascend_example_f1(table, thresholds) for thresholds in (own, shared)]
        own = max(ascents, key=lambda ascent: ascent[1])[0]
    if objective.target or not pooling:
        return own
    trust = cuts.positives / (cuts.positives + pooling)
    return np.asarray(trust * own + (1.0 - trust) * shared)


def _best_cuts(cuts: LabelCuts, objective: Objective) -> Array:
    """Find the best cut of every label; for the rows' F1 score, that of micro-averaged F1."""
    if objective.name in ("micro_f1", "example_f1"):
        return _micro_f1_cuts(cuts)
    values = objective.of_counts(cuts.hits, cuts.predicted, cuts.positives[cuts.label])
    return cuts.best(values, objective.of_nothing)


def _micro_f1_cuts(cuts: LabelCuts) -> Array:
    positives, reached = cuts.positives.sum(), -1.0
    chosen = np.full(len(cuts.positives), NO_CUT)
    while True:
        found = cuts.best(2.0 * cuts.hits - max(reached, 0.0) * cuts.predicted)
        hits, predicted = (counts.sum() for counts in cuts.counts(found))
        ratio = float(f1_of_counts(hits, predicted, positives))
        if ratio <= reached:
            return chosen
        chosen, reached = found, ratio
