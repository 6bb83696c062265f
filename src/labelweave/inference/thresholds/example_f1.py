"""Thresholds per label for the mean F1 score of the rows.

A row's F1 score depends on all its labels, so labels cannot be cut one by one.  With the others fixed the
best cut of a label is found exactly in one sweep over its sorted rows; labels take turns
until none moves.  No turn lowers the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from labelweave.array_types import Array, PerLabel, PerRow
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.inference.thresholds.label_cuts import threshold_between

__all__ = ["best_for_example_f1"]


_MOST_PASSES = 20
_LEAST_GAIN = 1e-6
_KEPT_ENTRIES = 2**24  # sorted once and kept, about 200 MB; of more, labels are sorted anew in every pass


class _RankedLabel(NamedTuple):
    """The observed rows of a label that has positive ones, from high scores to low ones.

    cuts: how many rows are above each cut that may be the best: none, or those down to a positive row.
    """

    label: int
    rows: Array
    scores: Array
    is_positive: Array
    cuts: Array


class _RowCounts(NamedTuple):
    """The rows' counts under the present thresholds: 2 hits, and predicted + positive labels."""

    hits: PerRow
    labels: PerRow
    weights: PerRow

    def total(self) -> float:
        """Add the weighted F1 scores of all rows."""
        return float(self.weights @ _ratio(self.hits, self.labels))


def best_for_example_f1(table: LabeledScores, starts: Iterable[PerLabel]) -> PerLabel:
    """Improve thresholds until no label's alone can be improved; give the best of several starts."""
    kept = list(_ranked_labels(table)) if table.scores.size <= _KEPT_ENTRIES else None
    return max((_ascend(table, start, kept) for start in starts), key=lambda ascent: ascent[1])[0]


def _ranked_labels(table: LabeledScores) -> Iterator[_RankedLabel]:
    for lines in table.label_blocks():
        order = np.argsort(lines.scores, axis=1)[:, ::-1].astype(np.int32)
        for line in np.flatnonzero((lines.signs > 0).any(axis=1)):
            rows = order[line, : np.count_nonzero(lines.signs[line])]  # unobserved ones are last
            scores, is_positive = lines.scores[line, rows], lines.signs[line, rows] > 0
            is_end = np.append(scores[:-1] > scores[1:], True)
            ends = np.flatnonzero(is_end)
            has_more = np.diff(np.cumsum(is_positive)[ends], prepend=0) > 0
            cuts = np.append(0, ends[has_more] + 1)
            yield _RankedLabel(lines.which.start + int(line), rows, scores, is_positive, cuts)


def _ascend(table: LabeledScores, start: PerLabel, kept: list[_RankedLabel] | None) -> tuple[PerLabel, float]:
    thresholds, counts = start.astype(np.float64), _count(table, start)
    total = counts.total()
    for _ in range(_MOST_PASSES):
        for ranked in kept or _ranked_labels(table):
            thresholds[ranked.label] = _moved(ranked, thresholds[ranked.label], counts)
        before, total = total, counts.total()
        if total - before <= _LEAST_GAIN * max(total, 1.0):
            break
    return thresholds, total


def _count(table: LabeledScores, thresholds: PerLabel) -> _RowCounts:
    hits, labels = np.zeros(len(table.weights)), table.row_positives().astype(np.float64)
    for lines in table.label_blocks():
        above = lines.scores > thresholds[lines.which][:, None]
        hits += 2.0 * (above & (lines.signs > 0)).sum(axis=0)
        labels += above.sum(axis=0)
    return _RowCounts(hits, labels, table.weights)


def _moved(ranked: _RankedLabel, threshold: float, counts: _RowCounts) -> float:
    """Move a label to its best cut; a cut as good as the present one is no reason to move."""
    n_above = int(np.searchsorted(-ranked.scores, -threshold))
    rows, twice = ranked.rows[: max(n_above, ranked.cuts[-1])], 2.0 * ranked.is_positive
    twice = twice[: len(rows)]
    hits, labels = counts.hits[rows], counts.labels[rows]
    hits[:n_above] -= twice[:n_above]
    labels[:n_above] -= 1.0
    change = counts.weights[rows] * (_ratio(hits + twice, labels + 1.0) - _ratio(hits, labels))
    gains = np.append(0.0, np.cumsum(change))
    best = int(ranked.cuts[np.argmax(gains[ranked.cuts])])
    if gains[best] <= gains[n_above]:
        return threshold
    changed, sign = slice(min(best, n_above), max(best, n_above)), 1.0 if best > n_above else -1.0
    counts.hits[rows[changed]] += sign * twice[changed]
    counts.labels[rows[changed]] += sign
    if not best:
        return float(ranked.scores[0])
    lower = ranked.scores[best] if best < len(ranked.scores) else -np.inf
    return float(threshold_between(np.float64(lower), np.float64(ranked.scores[best - 1])))


def _ratio(hits: Array, labels: Array) -> Array:
    return np.divide(hits, labels, out=np.zeros_like(hits), where=labels > 0)
