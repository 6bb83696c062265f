"""What label sets are worth, and how far that would move were the rows drawn anew.

Every measure is a ratio of sums over rows, F = sum_i w_i a_i / sum_i w_i b_i, or a mean of such ratios over
labels.  Its standard error is that of its linearisation, the square root of the sum over rows of the squares
of w_i (a_i - F b_i) / sum_j w_j b_j (the infinitesimal jackknife of Efron, "Nonparametric estimates of
standard error", 1981).  Rows are what is drawn, so entries of the same row may depend on each other.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.labels import LabelMatrix

_ENTRIES_AT_ONCE = 4_000_000


def value_of_sets(
    labels: LabelMatrix, sets: RowsByLabels, metric: str, weights: PerRow | None = None
) -> tuple[float, float]:
    """Measure label sets, and give the standard error over rows; it is NaN for less than two rows.

    sets (n, L): above 0 where a label is predicted; what is not observed counts for nothing.
    metric: one of label sets, or "accuracy" of one class a row, expected where classes are probabilities.
    """
    n = len(sets)
    weights = np.ones(n) if weights is None else weights
    above, below = np.zeros(n), np.zeros(n)
    of_labels = np.zeros((2, labels.n_labels))
    for rows in panels(n, max(1, _ENTRIES_AT_ONCE // max(1, labels.n_labels))):
        entries = _entries(labels, sets, rows)
        if metric == "macro_f1":
            of_labels += [weights[rows] @ part for part in _f1_parts(*entries[:2])]
        else:
            above[rows], below[rows] = _row_parts(metric, *entries)
    if metric == "macro_f1":
        return _macro(labels, sets, weights, of_labels)
    total = weights @ below
    value = float(weights @ above / total) if total > 0 else 0.0
    return value, _error((above - value * below) / total if total > 0 else above, weights)


def most_probable(probabilities: RowsByLabels) -> Array:
    """Give sets of the most probable class, (n, L); of one label, which stands for two classes, if it is."""
    if probabilities.shape[1] == 1:
        return probabilities > 0.5
    sets = np.zeros(probabilities.shape, bool)
    np.put_along_axis(sets, probabilities.argmax(axis=1)[:, np.newaxis], True, axis=1)
    return sets


def _entries(labels: LabelMatrix, sets: RowsByLabels, rows: slice) -> tuple[Array, Array, Array]:
    """Say of some rows how much entries are positive, which are predicted, and which are observed."""
    signs = labels[rows].to_graded_signs()
    seen = signs != 0
    positive = signs > 0 if signs.dtype.kind == "i" else np.where(seen, 0.5 * (1.0 + signs), 0.0)
    return positive, (sets[rows] > 0) & seen, seen


def _f1_parts(positive: Array, predicted: Array) -> tuple[Array, Array]:
    return 2.0 * (positive * predicted), positive.astype(np.float64) + predicted


def _row_parts(metric: str, positive: Array, predicted: Array, seen: Array) -> tuple[Array, Array]:
    """Give a and b of rows."""
    hits = (positive * predicted).sum(axis=1)
    wrong = (positive.astype(np.float64) + predicted).sum(axis=1) - 2.0 * hits
    sizes, observed = positive.sum(axis=1) + predicted.sum(axis=1), seen.sum(axis=1)
    known = (observed > 0).astype(np.float64)
    if metric == "micro_f1":
        return 2.0 * hits, sizes
    if metric == "hamming_loss":
        return wrong, observed
    if metric == "accuracy":  # a class missed is another one predicted, in a column of its own if there is
        return known - wrong / min(2, positive.shape[1]), known
    if metric == "subset_accuracy":
        return known * ((positive > 0.5) == predicted).all(axis=1), known
    if metric == "example_f1":
        return 2.0 * hits / np.maximum(sizes, 1), known
    either = hits + wrong  # of the Jaccard index, 1 where there are none
    return known * np.where(either > 0, hits / np.maximum(either, 1), 1.0), known


def _macro(labels: LabelMatrix, sets: RowsByLabels, weights: PerRow, sums: Array) -> tuple[float, float]:
    """Average the ratios of labels that are observed."""
    is_seen = labels.observed_counts() > 0
    scale = np.where(sums[1] > 0, is_seen / np.maximum(sums[1], 1e-300), 0.0) / max(1, is_seen.sum())
    ratios = np.where(sums[1] > 0, sums[0] / np.maximum(sums[1], 1e-300), 0.0)
    moves = np.zeros(len(sets))
    for rows in panels(len(sets), max(1, _ENTRIES_AT_ONCE // max(1, labels.n_labels))):
        above, below = _f1_parts(*_entries(labels, sets, rows)[:2])
        moves[rows] = above @ scale - below @ (scale * ratios)
    return float(ratios[is_seen].mean()) if is_seen.any() else 0.0, _error(moves, weights)


def _error(moves: PerRow, weights: PerRow) -> float:
    n = int(np.count_nonzero(weights))
    return float(np.sqrt(n / (n - 1) * np.square(weights * moves).sum())) if n > 1 else float("nan")
