"""Metrics of label sets with standard errors, and the most probable of the sets seen in training.

Every metric is a ratio of sums over rows, F = sum_i w_i a_i / sum_i w_i b_i, or a mean of such ratios over
labels.  Its standard error is that of its linearization, the square root of the sum over rows of the squares
of w_i (a_i - F b_i) / sum_j w_j b_j (the infinitesimal jackknife of Efron, "Nonparametric estimates of
standard error", 1981).  Rows are the sampling unit, so entries of the same row may depend on each other;
with groups, the sums of their rows take the place of rows.

With labels independent given the row, a set's log probability is the sum of the log-odds of its labels and a
constant that all sets share.  A multiple of the log of the set's count is added, as labels are not
independent; a set that no training row has is never predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from labelweave.estimators.held_out import HeldOutScores
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.labels import LabelMatrix
from labelweave.metrics import subset_accuracy
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Numbers

_ENTRIES_AT_ONCE = 4_000_000
_SHARES = (0.0, 0.25, 0.5, 1.0)
_LEAST, _HALF = 1e-12, 0.5
_AT_ONCE = 10_000_000


def value_of_sets(
    labels: LabelMatrix, sets: RowsByLabels, metric: str, weights: PerRow | None = None,
    groups: PerRow | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Compute a metric of label sets and its standard error over rows or groups; NaN for fewer than two.

    sets (n, L): above 0 where a label is predicted; unobserved entries are ignored.
    metric: one of label sets, or "accuracy" for one class per row, expected where classes are probabilities.
    groups (n,): numbers from 0 on, of rows that were sampled together.
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
        value, moves = _macro(labels, sets, of_labels)
        return value, _error(moves, weights, groups)
    total = weights @ below
    value = float(weights @ above / total) if total > 0 else 0.0
    return value, _error((above - value * below) / total if total > 0 else above, weights, groups)


def most_probable(probabilities: RowsByLabels) -> Array:
    """Return sets of the most probable class, (n, L); with one label for two classes, if above 1/2."""
    if probabilities.shape[1] == 1:
        return probabilities > 0.5
    sets = np.zeros(probabilities.shape, bool)
    np.put_along_axis(sets, probabilities.argmax(axis=1)[:, np.newaxis], True, axis=1)
    return sets


def _entries(labels: LabelMatrix, sets: RowsByLabels, rows: slice) -> tuple[Array, Array, Array]:
    """Return for some rows how positive entries are, which are predicted, and which are observed."""
    signs = labels[rows].to_soft_signs()
    seen = signs != 0
    positive = signs > 0 if signs.dtype.kind == "i" else np.where(seen, 0.5 * (1.0 + signs), 0.0)
    return positive, (sets[rows] > 0) & seen, seen


def _f1_parts(positive: Array, predicted: Array) -> tuple[Array, Array]:
    return 2.0 * (positive * predicted), positive.astype(np.float64) + predicted


def _row_parts(metric: str, positive: Array, predicted: Array, seen: Array) -> tuple[Array, Array]:
    hits = (positive * predicted).sum(axis=1)
    wrong = (positive.astype(np.float64) + predicted).sum(axis=1) - 2.0 * hits
    sizes, observed = positive.sum(axis=1) + predicted.sum(axis=1), seen.sum(axis=1)
    known = (observed > 0).astype(np.float64)
    if metric == "micro_f1":
        return 2.0 * hits, sizes
    if metric == "hamming_loss":
        return wrong, observed
    if metric == "accuracy":  # a missed class means another one is predicted, in its own column if any
        return known - wrong / min(2, positive.shape[1]), known
    if metric == "subset_accuracy":
        return known * ((positive > 0.5) == predicted).all(axis=1), known
    if metric == "example_f1":
        return 2.0 * hits / np.maximum(sizes, 1), known
    either = hits + wrong  # of the Jaccard index, which is 1 where there are none
    return known * np.where(either > 0, hits / np.maximum(either, 1), 1.0), known


def _macro(labels: LabelMatrix, sets: RowsByLabels, sums: Array) -> tuple[float, PerRow]:
    is_seen = labels.observed_counts() > 0
    scale = np.where(sums[1] > 0, is_seen / np.maximum(sums[1], 1e-300), 0.0) / max(1, is_seen.sum())
    ratios = np.where(sums[1] > 0, sums[0] / np.maximum(sums[1], 1e-300), 0.0)
    moves = np.zeros(len(sets))
    for rows in panels(len(sets), max(1, _ENTRIES_AT_ONCE // max(1, labels.n_labels))):
        above, below = _f1_parts(*_entries(labels, sets, rows)[:2])
        moves[rows] = above @ scale - below @ (scale * ratios)
    return float(ratios[is_seen].mean()) if is_seen.any() else 0.0, moves


def _error(moves: PerRow, weights: PerRow, groups: PerRow | None) -> float:
    moved, is_there = weights * moves, weights > 0
    if groups is not None:
        moved, is_there = np.bincount(groups, moved), np.bincount(groups, is_there) > 0
    n = int(np.count_nonzero(is_there))
    return float(np.sqrt(n / (n - 1) * np.square(moved).sum())) if n > 1 else float("nan")


@storable("KnownSets", {"sets": Numbers("s L", "f", 0, 1), "bonus": Numbers("s")})
@dataclass(frozen=True)
class KnownSets(StoredParameters):
    """Label sets (s, L) to choose from, and the terms (s,) that are added to their log probabilities."""

    sets: Array
    bonus: Array

    @property
    def n_labels(self) -> int:
        return int(self.sets.shape[1])

    def choose(self, log_odds: RowsByLabels) -> RowsByLabels:
        """Choose the set of each row: 0 and 1, shape (n, L)."""
        chosen = np.empty(len(log_odds), np.intp)
        step = max(1, _AT_ONCE // max(1, len(self.sets)))
        for start in range(0, len(log_odds), step):
            part = log_odds[start : start + step]
            chosen[start : start + step] = (part @ self.sets.T + self.bonus).argmax(axis=1)
        return np.asarray(self.sets[chosen])

    @classmethod
    def of_rows(cls, held: HeldOutScores, rows: Array, share: float) -> KnownSets:
        """Collect the label sets of fully observed rows; none where there are no such rows."""
        signs = held.labels[rows].to_signs()
        weights = np.ones(len(rows)) if held.weights is None else held.weights[rows]
        whole = (signs != 0).all(axis=1)
        sets, number = np.unique(signs[whole] > 0, axis=0, return_inverse=True)
        if not len(sets):
            return cls(np.zeros((1, signs.shape[1])), np.zeros(1))
        counts = np.bincount(number.ravel(), weights[whole])
        return cls(sets.astype(np.float64), share * np.log(np.maximum(counts, _LEAST)))


def choose_known_sets(held: HeldOutScores, folds: PerRow) -> tuple[KnownSets | Floats, Array]:
    """Choose the multiple of log counts by out-of-fold subset accuracy, with the sets of other folds.

    Return the sets of all rows, or thresholds of 1/2 where these are better, as with few fully observed
    rows; and the out-of-fold label sets, (n, L).
    """
    log_odds = logit(np.clip(held.scores, _LEAST, 1.0 - _LEAST))
    best = -np.inf, 0.0, np.zeros(held.scores.shape)
    for share in _SHARES:
        found = np.empty(held.scores.shape)
        for fold in np.unique(folds):
            inside, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            found[inside] = KnownSets.of_rows(held, others, share).choose(log_odds[inside])
        value = subset_accuracy(held.labels, found.astype(np.int8), sample_weight=held.weights)
        if value > best[0]:
            best = value, share, found
    plain = (held.scores > _HALF).astype(np.int8)
    if subset_accuracy(held.labels, plain, sample_weight=held.weights) > best[0]:
        return np.full(plain.shape[1], _HALF), plain
    return KnownSets.of_rows(held, np.arange(len(folds)), best[1]), best[2].astype(np.int8)
