"""Choose thresholds on held-out scores.

Thresholds have a floor, below which a label would be predicted far more often than it occurs.  Lewis, Yang,
Rose and Li, "RCV1: A new benchmark collection for text categorization research", JMLR 5 (2004), and Fan and
Lin, "A study on threshold selection for multi-label classification" (2007), raise the threshold of labels
with a low F1 score to the highest score (FBR, SCutFBR), since the best thresholds of such a label predict it
for nearly every row.  Here it is raised only as far as a bound on predictions requires: if F is the best F1
score of a label, its best rule predicts it above the probability F / 2 (Lipton, Elkan and Narayanaswamy,
"Optimal thresholding of classifiers to maximize F1 measure", ECML 2014), so that a label that is hard to
predict is best predicted more often than it occurs.  ``benchmarks.thresholds --floor`` compares both.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, PerLabel
from labelweave.postprocessing.labeled_scores import LabeledScores, read_labeled_scores
from labelweave.postprocessing.thresholds import search
from labelweave.postprocessing.thresholds.objective import (
    Objective,
    ObjectiveName,
    SetCounts,
    count_sets,
    read_objective,
)
from labelweave.postprocessing.thresholds.top_k import best_top_k, scores_above_top_k

_USUAL = 50.0
_STRENGTHS = (200.0, _USUAL, 10.0, 0.0)  # the strongest first, so that it wins ties
_FOLDS = 5
_STANDARD_ERRORS = 2.0
_MOST_ENTRIES = 2**17
_FEWEST_ROWS = 10
_MOST_PREDICTED = 2.0  # times the positive rows of a label


class ThresholdChoice(NamedTuple):
    """Thresholds and the value that they reach.

    Parameters
    ----------
    thresholds : ndarray of float64, shape (L,)
        Scores above them are positive.
    value : float
        The measure on the rows used to choose them.
    shrinkage : float
        How strongly labels with few positive rows were shrunk to the best shared threshold; 0 for none.
    """

    thresholds: Array
    value: float
    shrinkage: float


class TopKChoice(NamedTuple):
    """A number of labels per row and the value that it reaches.

    Parameters
    ----------
    k : int
        The number of labels per row.
    value : float
        The measure on the rows used to choose it.
    """

    k: int
    value: float


@checked
def choose_thresholds(
    labels: Any,
    scores: Any,
    objective: ObjectiveName = "micro_f1",
    *,
    scope: Literal["label", "global"] = "label",
    target: float | None = None,
    shrinkage: float | Literal["auto"] = 0.0,
    sample_weight: Any = None,
) -> ThresholdChoice:
    """Choose the best thresholds for a measure of label sets.

    Parameters
    ----------
    labels : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed; unobserved entries are ignored.
    scores : array-like of shape (n, L)
        Finite held-out scores, of rows that the model was not fitted to.
    objective : {"micro_f1", "macro_f1", "example_f1", "hamming_loss", "precision", "recall"}
        The measure to optimize.  A target precision is reached with the most hits, a target recall with the
        fewest predictions, for every label or over all entries with one shared threshold.
    scope : {"label", "global"}, default="label"
        One threshold per label, or one for all.
    target : float or None, default=None
        The precision or recall to reach.
    shrinkage : float or "auto", default=0.0
        0 uses each label's best threshold on these rows.  Otherwise, with p positive rows, a label's own
        threshold has weight p / (p + shrinkage), and the best shared threshold the rest.  "auto" is 50, or
        200, 10 or 0 if that is clearly better in cross-validation on the rows.  With shrinkage (including
        "auto") and an F1 score, thresholds are raised until a label is predicted for at most twice its
        positive rows plus one, a floor similar to FBR (Lewis et al. 2004).  Not for a target.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of the rows.

    Returns
    -------
    ThresholdChoice
        Thresholds and the value of the measure.  Without shrinkage they lie halfway between two scores.  A
        label without positive rows starts with the best shared threshold, which may be raised; if no label
        has positive rows, or a label cannot reach the precision, nothing is predicted.

    Raises
    ------
    ValueError
        If shapes differ, a number is not finite, or the objective is invalid.

    Notes
    -----
    Without shrinkage all thresholds are exact optima, apart from labels without positive rows, except for
    "example_f1" with one threshold per label, where no single threshold can be improved.  On the rows used to
    choose them, one threshold per label is never worse than a shared one; on other rows it often is, unless
    labels with few positive rows are pooled.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.postprocessing import choose_thresholds
    >>> labels = np.array([[1, 0], [1, 1], [0, 0]])
    >>> scores = np.array([[0.9, 0.1], [0.3, 0.2], [0.1, 0.1]])
    >>> choice = choose_thresholds(labels, scores)
    >>> choice.thresholds.round(2).tolist(), choice.value
    ([0.2, 0.15], 1.0)
    """
    wanted = read_objective(objective, target)
    if scope not in ("label", "global"):
        raise ValueError(f"scope is {scope!r}; pass 'label' or 'global'.")
    strength = _read_shrinkage(shrinkage) if scope == "label" and not wanted.target else 0.0
    table = read_labeled_scores(labels, scores, sample_weight)
    if strength is None:
        strength = _choose_shrinkage(table, wanted)
    if scope == "global":
        thresholds = np.full(table.shape[1], search.shared_threshold(table, wanted))
    else:
        thresholds = search.find_label_thresholds(table, wanted).pooled(strength)
        if shrinkage != 0:
            thresholds = _with_floor(table, wanted, thresholds)
    return ThresholdChoice(thresholds, _counts_above(table, thresholds).measure(wanted.name), strength)


@checked
def choose_top_k(
    labels: Any,
    scores: Any,
    objective: ObjectiveName = "micro_f1",
    *,
    target: float | None = None,
    sample_weight: Any = None,
) -> TopKChoice:
    """Choose the number of labels per row; for parameters and errors see :func:`choose_thresholds`.

    A target is reached over all entries together.

    Returns
    -------
    TopKChoice
        k, from 1 to 200, and the value of the measure.
    """
    wanted = read_objective(objective, target)
    table = read_labeled_scores(labels, scores, sample_weight)
    k = best_top_k(table, wanted)
    counts = count_sets(table, lambda block: scores_above_top_k(block, k) > 0)
    return TopKChoice(k, counts.measure(wanted.name))


def _read_shrinkage(shrinkage: Any) -> float | None:
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None
    if not isinstance(shrinkage, (int, float, np.number)) or not 0 <= shrinkage < np.inf:
        raise ValueError(f"shrinkage is {shrinkage!r}; pass a finite number of at least 0, or 'auto'.")
    return float(shrinkage)


def _with_floor(table: LabeledScores, objective: Objective, thresholds: Array) -> Array:
    """Raise thresholds that optimize an F1 score; other measures count every wrong prediction alike."""
    return above_floor(table, thresholds, _MOST_PREDICTED) if objective.name.endswith("f1") else thresholds


def _choose_shrinkage(table: LabeledScores, objective: Objective) -> float:
    """Choose how strongly rare labels are shrunk to the shared threshold, from a sample of the labels.

    Thresholds are chosen in five-fold cross-validation for a few strengths.  Differences between strengths
    are small relative to their noise, so the usual strength stays unless another is better by twice the
    standard error of the difference; among several such strengths the best wins, and the strongest of ties.
    """
    part = table.drawn_labels(_MOST_ENTRIES)
    if table.shape[1] == 1 or len(table.weights) < _FEWEST_ROWS or not part.labels.positives.nnz:
        return _USUAL
    order = np.random.default_rng(0).permutation(len(table.weights))
    values = np.array([_held_out(part, objective, fold) for fold in np.array_split(order, _FOLDS)])
    gains = values - values[:, [_STRENGTHS.index(_USUAL)]]
    errors = gains.std(axis=0, ddof=1) / math.sqrt(_FOLDS)
    is_better = gains.mean(axis=0) > _STANDARD_ERRORS * errors
    if not is_better.any():
        return _USUAL
    return _STRENGTHS[int(np.argmax(np.where(is_better, gains.mean(axis=0), -np.inf)))]


def _held_out(table: LabeledScores, objective: Objective, fold: Array) -> Array:
    """Measure every strength on held-out rows; higher is better."""
    rest, held = table.rows(np.setdiff1d(np.arange(len(table.weights)), fold)), table.rows(np.sort(fold))
    found, values = search.find_label_thresholds(rest, objective), []
    for strength in _STRENGTHS:
        thresholds = _with_floor(rest, objective, found.pooled(strength))
        values.append(_counts_above(held, thresholds).measure(objective.name))
    return np.asarray(values) * (-1.0 if objective.name == "hamming_loss" else 1.0)


def _counts_above(table: LabeledScores, thresholds: Array) -> SetCounts:
    return count_sets(table, lambda block: block > thresholds)


def above_floor(table: LabeledScores, thresholds: PerLabel, most: float) -> PerLabel:
    """Raise thresholds until a label is predicted for at most ``most`` times its positive rows plus one."""
    raised, allowed = thresholds.copy(), most * table.positive_weights() + table.weights.mean()
    for lines in table.label_blocks():
        above = (lines.scores > thresholds[lines.which][:, None]) @ table.weights
        for number in np.flatnonzero(above > allowed[lines.which]):
            label = lines.which.start + number
            groups = search.ranked_groups(lines.line(int(number)), table.weights)
            ranked, _, predicted, is_end = (part[0] for part in groups)
            fits = np.flatnonzero(is_end & (predicted <= allowed[label]))
            floor = float(ranked[0])
            if len(fits) and fits[-1] + 1 == len(ranked):  # sums in another order differ by rounding
                continue
            if len(fits):
                floor = float(search.threshold_between(*ranked[[fits[-1] + 1, fits[-1]]].astype(np.float64)))
            raised[label] = max(raised[label], floor)
    return raised
