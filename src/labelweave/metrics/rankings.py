"""Metrics of whole rankings, equal to scikit-learn's if all entries are observed.

A line is one ranking: the labels of one example or, with the targets transposed, the examples of one label.
All statistics follow from the counts of positives and negatives in each group of tied scores, which dense
and sparse scores share.  Ties count against the model: a negative with the score of a positive ranks before
it; only in the area under the curve a tie counts one half.

The area under precision-recall curves, of all entries together or per label, is the average precision:
the sum over thresholds of the precision times the increase in recall, as is usual in hierarchical
classification (Vens et al. 2008; Giunchiglia and Lukasiewicz 2020).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats, PerLabel
from labelweave.foundation.arrays import ratios
from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import (
    Scores,
    mean_of_defined,
    read_scores,
    read_targets,
    read_weights,
    row_blocks,
    row_observed_counts,
    signs_at,
    stored_rows,
)

Counts = npt.NDArray[np.int64]
_MOSTLY_LISTED = 1e-3  # relative to all weights; a smaller difference has lost digits


@checked
def ranking_loss(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    """Compute the mean fraction of (positive, negative) pairs of observed labels that are in the wrong order.

    A tie counts as wrong.  An example whose observed labels are all positive or all negative counts 0, as in
    scikit-learn; one with no observed label is ignored.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L)
        Higher is better.  A score of -inf, and in a sparse matrix an entry that is not stored, ranks below
        all others; those entries are tied.
    sample_weight : array-like of shape (n,) or None, default=None
        One weight per row, by default ones.

    Returns
    -------
    float
        The loss, from 0 (best) to 1.

    Raises
    ------
    ValueError
        If the shapes differ, scores contain NaN or nothing is observed.
    """
    return _row_mean(Y_true, scores, sample_weight, pairs_out_of_order)


@checked
def coverage_error(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    """Compute the mean number of top-ranked labels needed to include every positive.

    A rank is the number of observed labels with the same or a higher score.  An example with no observed
    positive counts 0, as in scikit-learn; one with no observed label is ignored.  The best value is the mean
    number of positives.  For parameters and errors see :func:`ranking_loss`.
    """
    return _row_mean(Y_true, scores, sample_weight, coverage)


@checked
def label_ranking_average_precision(Y_true: Any, scores: Any, *, sample_weight: Any = None) -> float:
    """Compute the mean, over an example's positives, of the precision at each positive's rank; 1 is best.

    A rank is the number of observed labels with the same or a higher score.  An example with no observed
    positive counts 1, as in scikit-learn; one with no observed label is ignored.  For parameters and errors
    see :func:`ranking_loss`.
    """
    return _row_mean(Y_true, scores, sample_weight, average_precision)


def _row_mean(Y_true: Any, scores: Any, sample_weight: Any, statistic: Statistic) -> float:
    targets = read_targets(Y_true)
    weights = read_weights(sample_weight, targets)
    return mean_of_defined(per_line(targets, read_scores(scores, targets), statistic)[0], weights)


@checked
def average_auc(
    Y_true: Any, scores: Any, average: Literal["label", "example"] = "label", *, sample_weight: Any = None
) -> float:
    """Average the area under the ROC curve over labels or over examples.

    Labels (or examples) without an observed positive or without an observed negative have no area and are
    ignored.  For Y_true, scores and errors see :func:`ranking_loss`.

    Parameters
    ----------
    average : {"label", "example"}, default="label"
        Rank the examples for each label, or the labels for each example.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the rows; a pair of examples has their product.

    Returns
    -------
    float
        The mean area, from 0 to 1 (best); NaN if no label (example) has one.
    """
    if average not in ("label", "example"):
        raise ValueError(f"average is {average!r}; pass 'label' or 'example'.")
    targets = read_targets(Y_true)
    values = read_scores(scores, targets)
    weights = None if sample_weight is None else read_weights(sample_weight, targets)
    if average == "example":
        return mean_of_defined(per_line(targets, values, area_under_curve)[0], weights)
    return mean_of_defined(per_line(*transposed(targets, values), area_under_curve, weights=weights)[0])


@dataclass(frozen=True)
class ScoreGroups:
    """Groups of tied scores, line by line, with ascending scores within a line.

    Every line has at least one group; unobserved entries are not counted.
    """

    line_starts: Counts
    positives: Counts
    negatives: Counts

    def line_sums(self, values: Array) -> Array:
        return np.add.reduceat(values, self.line_starts)

    def below(self, values: Array) -> Array:
        """Sum over the groups of the same line with a lower score."""
        ends = np.append(self.line_starts[1:], len(values))
        if values.dtype.kind == "f":  # separate sums per line, free of earlier lines' rounding
            before = np.zeros(len(values))
            for start, end in zip(self.line_starts.tolist(), ends.tolist(), strict=True):
                np.cumsum(values[start : end - 1], out=before[start + 1 : end])
            return before
        before = np.cumsum(values) - values
        return before - np.repeat(before[self.line_starts], ends - self.line_starts)

    def at_or_above(self, values: Array) -> Array:
        """Sum over the groups of the same line with this or a higher score."""
        sizes = np.diff(self.line_starts, append=len(values))
        return np.repeat(self.line_sums(values), sizes) - self.below(values)

    def pairs(self) -> Counts:
        return self.line_sums(self.positives) * self.line_sums(self.negatives)

    def where_observed(self, values: Floats) -> Floats:
        """Return the values with NaN in lines without an observed entry."""
        return np.where(self.line_sums(self.positives + self.negatives) > 0, values, np.nan)


Statistic = Callable[[ScoreGroups], Floats]


def pairs_out_of_order(groups: ScoreGroups) -> Floats:
    lost = groups.line_sums(groups.positives * groups.at_or_above(groups.negatives))
    return groups.where_observed(ratios(lost, groups.pairs()))


def coverage(groups: ScoreGroups) -> Floats:
    """Compute the worst rank of a positive per line, 0 without a positive."""
    ranks = groups.at_or_above(groups.positives + groups.negatives)
    worst = np.maximum.reduceat(np.where(groups.positives > 0, ranks, 0), groups.line_starts)
    return groups.where_observed(worst.astype(np.float64))


def average_precision(groups: ScoreGroups) -> Floats:
    """Compute the mean precision at the positives per line, 1 without a positive."""
    ranks = groups.at_or_above(groups.positives + groups.negatives)
    precision = groups.at_or_above(groups.positives) / np.maximum(ranks, 1)
    sums = groups.line_sums(groups.positives * precision)
    return groups.where_observed(ratios(sums, groups.line_sums(groups.positives), 1.0))


def area_under_curve(groups: ScoreGroups) -> Floats:
    """Compute the area per line, NaN where there is no pair."""
    won = groups.line_sums(groups.positives * (2 * groups.below(groups.negatives) + groups.negatives))
    return ratios(won, 2 * groups.pairs(), np.nan)


def per_line(
    targets: LabelMatrix, scores: Scores, *statistics: Statistic, weights: Floats | None = None
) -> list[Floats]:
    """Compute statistics per row, in blocks, from one sort; entries have their column's weight, or 1."""
    build = _sparse_groups if sp.issparse(scores) else _dense_groups
    blocks = (build(targets[rows], scores[rows], weights) for rows in row_blocks(scores))
    columns = zip(*([statistic(groups) for statistic in statistics] for groups in blocks), strict=True)
    return [np.concatenate(column) for column in columns]


def transposed(targets: LabelMatrix, scores: Scores) -> tuple[LabelMatrix, Scores]:
    observed = None if targets.observed is None else targets.observed.T.tocsr()
    turned = scores.T.tocsr() if sp.issparse(scores) else scores.T
    return LabelMatrix(targets.positives.T.tocsr(), observed), turned


def _dense_groups(targets: LabelMatrix, scores: Array, weights: Floats | None) -> ScoreGroups:
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    # unobserved entries have sign 0 and add to no count, wherever they are sorted to
    signs = np.take_along_axis(targets.to_signs(), order, axis=1).ravel()
    opens = np.ones(ordered.shape, bool)
    opens[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    kinds = (
        (signs > 0, signs < 0)
        if weights is None
        else [kind * weights[order].ravel() for kind in (signs > 0, signs < 0)]
    )
    return _grouped(opens.ravel(), np.cumsum(opens.sum(axis=1)), *kinds)


def _sparse_groups(targets: LabelMatrix, scores: sp.csr_array, weights: Floats | None) -> ScoreGroups:
    """Group the stored scores; the entries that are not stored are one group at the bottom of their line."""
    n_lines = len(targets)
    lines = stored_rows(scores)
    signs = signs_at(targets, lines, scores.indices)
    kinds = (signs > 0, signs < 0)
    if weights is None:
        positive = np.diff(targets.positives.indptr)
        totals = (positive, row_observed_counts(targets) - positive)
        each = zip(kinds, totals, strict=True)
        not_stored = [total - np.bincount(lines[kind], minlength=n_lines) for kind, total in each]
        stored = np.ones(len(lines), np.int64)
    else:
        not_stored, stored = weights_not_stored(targets, scores, weights), weights[scores.indices]
    counts = [np.concatenate([rest, kind * stored]) for rest, kind in zip(not_stored, kinds, strict=True)]
    lines = np.concatenate([np.arange(n_lines), lines])
    values = np.concatenate([np.full(n_lines, -np.inf), scores.data])
    order = np.lexsort((values, lines))
    lines, values = lines[order], values[order]
    opens = np.ones(len(lines), bool)
    opens[1:] = (lines[1:] != lines[:-1]) | (values[1:] != values[:-1])
    line_ends = np.cumsum(np.bincount(lines[opens], minlength=n_lines))
    return _grouped(opens, line_ends, *(count[order] for count in counts))


def weights_not_stored(targets: LabelMatrix, scores: sp.csr_array, weights: Floats) -> list[Floats]:
    """Sum the weights of the positive and of the negative entries per line that have no stored score."""
    stored = sp.csr_array((np.ones(scores.nnz, np.int8), scores.indices, scores.indptr), shape=scores.shape)

    def beyond(entries: sp.csr_array) -> Floats:
        rest = entries - entries.multiply(stored)
        rest.eliminate_zeros()
        return np.asarray(rest @ weights)

    if targets.observed is not None:
        return [beyond(targets.positives), beyond((targets.observed < 0).astype(np.int8))]
    return [beyond(targets.positives), _sums_outside(targets.positives + stored, weights)]


def _sums_outside(listed: sp.csr_array, weights: Floats) -> Floats:
    """Sum, per line, the weights of the columns that it does not store."""
    total = weights.sum()
    sums = np.asarray(total - (listed != 0) @ weights)
    for line in np.flatnonzero(sums <= _MOSTLY_LISTED * total):
        is_outside = np.ones(len(weights), bool)
        is_outside[listed.indices[listed.indptr[line] : listed.indptr[line + 1]]] = False
        sums[line] = weights[is_outside].sum()
    return sums


def _grouped(opens: Array, line_ends: Counts, positives: Array, negatives: Array) -> ScoreGroups:
    starts = np.flatnonzero(opens)
    line_starts = np.concatenate([[0], line_ends[:-1]]).astype(np.int64)
    dtype = np.float64 if positives.dtype.kind == "f" else np.int64
    counts = (np.add.reduceat(kind, starts, dtype=dtype) for kind in (positives, negatives))
    return ScoreGroups(line_starts, *counts)


@checked
def average_precision_score(
    Y_true: Any,
    scores: Any,
    average: Literal["micro", "macro", "weighted"] | None = "micro",
    *,
    sample_weight: Any = None,
) -> float | PerLabel:
    """Compute the area under the precision-recall curve of observed entries.

    For the other parameters and errors see :func:`ranking_loss`.

    Parameters
    ----------
    average : {"micro", "macro", "weighted"} or None, default="micro"
        The curve of all entries; the mean over labels, or the mean weighted by their positive entries; or
        None for one value per label.  Labels without an observed positive entry are excluded from means.

    Returns
    -------
    float or ndarray of shape (L,)
        The areas, at most 1 (best); NaN without an observed positive entry.

    Notes
    -----
    In hierarchical multi-label classification these are AU(PRC) and the mean of one curve per label.  Exclude
    labels that should not count, such as roots, with ``LabelMatrix.select_labels``.

    Examples
    --------
    >>> from labelweave.metrics import average_precision_score
    >>> average_precision_score([[1, 0], [1, 1]], [[0.9, 0.4], [0.3, 0.8]])
    0.9166666666666666
    """
    if average not in ("micro", "macro", "weighted", None):
        raise ValueError(f"average={average!r}; pass 'micro', 'macro', 'weighted' or None.")
    targets = read_targets(Y_true)
    table = read_scores(scores, targets)
    weights = read_weights(sample_weight, targets)
    areas = _areas_of_stored if sp.issparse(table) else _areas_of_all
    found, counts = areas(targets, table, weights, is_micro=average == "micro")
    if average == "micro":
        return float(found[0])
    if average is None:
        return found
    known = counts > 0
    if not known.any():
        return float("nan")
    return float(np.average(found[known], weights=counts[known] if average == "weighted" else None))


def _areas_of_all(
    targets: LabelMatrix, table: Floats, weights: Floats, *, is_micro: bool
) -> tuple[Floats, Floats]:
    """Compute the area over all entries or per label, and the weights of the positive entries."""
    signs = targets.to_signs()
    if is_micro:
        rows, _ = np.nonzero(signs)
        seen = signs != 0
        area, count = _area(weights[rows] * (signs[seen] > 0), table[seen], weights[rows])
        return np.array([area]), np.array([count])
    parts = []
    for label in range(targets.n_labels):
        seen = signs[:, label] != 0
        parts.append(_area(weights[seen] * (signs[seen, label] > 0), table[seen, label], weights[seen]))
    found, counts = np.array(parts).reshape(-1, 2).T
    return found, counts


def _areas_of_stored(
    targets: LabelMatrix, scores: sp.csr_array, weights: Floats, *, is_micro: bool
) -> tuple[Floats, Floats]:
    """Compute the same from stored scores only; the other entries form one tie at the end of a label."""
    labels, turned = transposed(targets, scores)
    rest = np.array(weights_not_stored(labels, turned, weights))
    signs = signs_at(labels, stored_rows(turned), turned.indices)
    each, ends = weights[turned.indices], turned.indptr
    if is_micro:
        rest, ends = rest.sum(axis=1, keepdims=True), np.array([0, turned.nnz])
    parts = []
    for label, (start, end) in enumerate(itertools.pairwise(ends.tolist())):
        seen = start + np.flatnonzero(signs[start:end])
        hits = np.append(each[seen] * (signs[seen] > 0), rest[0, label])
        values = np.append(turned.data[seen].astype(np.float64), -np.inf)
        parts.append(_area(hits, values, np.append(each[seen], rest[:, label].sum())))
    found, counts = np.array(parts).reshape(-1, 2).T
    return found, counts


def _area(hits: Floats, scores: Floats, weights: Floats) -> tuple[float, float]:
    """Sum the precisions at distinct scores, each times the increase in recall.

    hits: the weights of positive entries, 0 for others.
    Returns the area, NaN without a positive entry, and the sum of hits.
    """
    order = np.argsort(-scores, kind="stable")
    scores, weights, hits = scores[order], weights[order], hits[order]
    total = float(hits.sum())
    if total <= 0:
        return float("nan"), total
    ends = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
    found, predicted = np.cumsum(hits)[ends], np.cumsum(weights)[ends]
    precision = np.divide(found, predicted, out=np.zeros_like(found), where=predicted > 0)
    return float(np.sum(np.diff(found, prepend=0.0) * precision) / total), total
