"""Metrics of the whole ranking of an example's labels, equal to scikit-learn's where all is observed.

Ties are counted against the model: a negative with the score of a positive
ranks before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.array_types import Floats
from labelweave.metrics._inputs import mean_of_defined, read_scores, read_targets, read_weights
from labelweave.metrics._score_groups import ScoreGroups, Statistic, per_line

__all__ = ["coverage_error", "label_ranking_average_precision", "ranking_loss"]


def ranking_loss(Y_true: Any, scores: Any, *, sample_weight: Any | None = None) -> float:
    """Compute the mean share of (positive, negative) label pairs that are not in order.

    A tie counts as not in order.  Only pairs of observed labels are counted;
    an example whose observed labels are all positive or all negative counts 0,
    as in scikit-learn; one with no observed label is left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L)
        The higher the better.  A score of -inf, and in a sparse matrix an entry
        that is not stored, ranks below all others; those entries are tied.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float
        The loss, from 0 (best) to 1.

    Raises
    ------
    ValueError
        If the shapes disagree, scores hold NaN or nothing was observed.
    """
    return _row_mean(Y_true, scores, sample_weight, pairs_out_of_order)


def coverage_error(Y_true: Any, scores: Any, *, sample_weight: Any | None = None) -> float:
    """Compute how far down the ranking one must go, on average, to meet every positive.

    A rank is the number of observed labels with the same or a higher score.  An
    example with no observed positive counts 0, as in scikit-learn; one with no
    observed label is left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L)
        The higher the better.  A score of -inf, and in a sparse matrix an entry
        that is not stored, ranks below all others; those entries are tied.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float
        The number of labels; the mean number of positives is the best.

    Raises
    ------
    ValueError
        If the shapes disagree, scores hold NaN or nothing was observed.
    """
    return _row_mean(Y_true, scores, sample_weight, coverage)


def label_ranking_average_precision(Y_true: Any, scores: Any, *, sample_weight: Any | None = None) -> float:
    """Compute the mean, over an example's positives, of the precision down to that positive's rank.

    A rank is the number of observed labels with the same or a higher score.  An
    example with no observed positive counts 1, as in scikit-learn; one with no
    observed label is left out of the mean.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L)
        The higher the better.  A score of -inf, and in a sparse matrix an entry
        that is not stored, ranks below all others; those entries are tied.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight a row, by default ones.

    Returns
    -------
    float
        The precision, above 0 and at most 1 (best).

    Raises
    ------
    ValueError
        If the shapes disagree, scores hold NaN or nothing was observed.
    """
    return _row_mean(Y_true, scores, sample_weight, average_precision)


def pairs_out_of_order(groups: ScoreGroups) -> Floats:
    """Compute the ranking loss of every line, NaN where nothing was observed.

    groups: the observed entries grouped by equal score.
    Shapes: result (lines,).
    """
    pairs = groups.line_sums(groups.positives) * groups.line_sums(groups.negatives)
    lost = groups.line_sums(groups.positives * groups.at_or_above(groups.negatives))
    loss = np.divide(lost, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    return _where_observed(groups, loss)


def coverage(groups: ScoreGroups) -> Floats:
    """Compute the worst rank of a positive of every line, NaN where nothing was observed.

    groups: the observed entries grouped by equal score.
    Returns (lines,): the ranks; 0 where there is no positive.
    """
    ranks = groups.at_or_above(groups.positives + groups.negatives)
    worst = np.maximum.reduceat(np.where(groups.positives > 0, ranks, 0), groups.line_starts)
    return _where_observed(groups, worst.astype(np.float64))


def average_precision(groups: ScoreGroups) -> Floats:
    """Compute the mean precision at the positives of every line, NaN where nothing was observed.

    groups: the observed entries grouped by equal score.
    Returns (lines,): the precisions; 1 where there is no positive.
    """
    ranks = groups.at_or_above(groups.positives + groups.negatives)
    precision = groups.at_or_above(groups.positives) / np.maximum(ranks, 1)
    totals = groups.line_sums(groups.positives)
    sums = groups.line_sums(groups.positives * precision)
    mean = np.divide(sums, totals, out=np.ones(len(totals)), where=totals > 0)
    return _where_observed(groups, mean)


def _where_observed(groups: ScoreGroups, values: Floats) -> Floats:
    return np.where(groups.line_sums(groups.positives + groups.negatives) > 0, values, np.nan)


def _row_mean(Y_true: Any, scores: Any, sample_weight: Any | None, statistic: Statistic) -> float:
    targets = read_targets(Y_true)
    weights = read_weights(sample_weight, targets)
    return mean_of_defined(per_line(targets, read_scores(scores, targets), statistic)[0], weights)
