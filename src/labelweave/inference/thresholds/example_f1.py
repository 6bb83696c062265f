"""Thresholds per label for the mean F1 score of the rows.

A row's F1 score depends on all its labels, so labels cannot be cut one by one.  With the others fixed the
best cut of a label is found exactly in one sweep over its sorted rows; labels take turns
until none moves.  No turn lowers the mean.
"""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array, PerLabel
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.inference.thresholds.label_cuts import threshold_between
from labelweave.inference.thresholds.objective import f1_of_counts

__all__ = ["ascend_example_f1"]


_MOST_PASSES = 20
_LEAST_GAIN = 1e-6


class _RowCounts:
    """The rows' counts under the present thresholds."""

    def __init__(self, table: LabeledScores, thresholds: Array) -> None:
        self.hits, self.predicted = np.zeros((2, len(table.weights)))
        self.positives = table.row_positives().astype(np.float64)
        self.weights = table.weights
        for lines in table.label_blocks():
            above = lines.scores > thresholds[lines.which][:, None]
            self.hits += (above & (lines.signs > 0)).sum(axis=0)
            self.predicted += above.sum(axis=0)

    def add(self, rows: Array, is_positive: Array, sign: float) -> None:
        """Predict a label in some rows, or no longer."""
        self.predicted[rows] += sign
        self.hits[rows] += sign * is_positive

    def gains(self, rows: Array, is_positive: Array) -> Array:
        """Say how much the weighted F1 score of each row rises if the label is predicted there too."""
        hits, predicted, positives = self.hits[rows], self.predicted[rows], self.positives[rows]
        with_it = f1_of_counts(hits + is_positive, predicted + 1.0, positives)
        return np.asarray(self.weights[rows] * (with_it - f1_of_counts(hits, predicted, positives)))

    def total(self) -> float:
        """Add the weighted F1 scores of all rows."""
        return float(self.weights @ f1_of_counts(self.hits, self.predicted, self.positives))


def ascend_example_f1(table: LabeledScores, start: PerLabel) -> tuple[Array, float]:
    """Improve thresholds label by label.

    thresholds (L,): thresholds at which no label alone can be improved.
    total: the weighted sum of the rows' F1 scores.
    Shapes: table (n, L).
    """
    thresholds, counts = start.astype(np.float64), _RowCounts(table, start)
    total = counts.total()
    for _ in range(_MOST_PASSES):
        for lines in table.label_blocks():
            for number, label in enumerate(range(lines.which.start, lines.which.stop)):
                thresholds[label] = _moved(
                    lines.scores[number], lines.signs[number], thresholds[label], counts
                )
        before, total = total, counts.total()
        if total - before <= _LEAST_GAIN * max(total, 1.0):
            break
    return thresholds, total


def _moved(scores: Array, signs: Array, threshold: float, counts: _RowCounts) -> float:
    """Move a label to its best cut; a cut as good as the present one is no reason to move."""
    if not (signs > 0).any():
        return threshold
    rows = np.flatnonzero(signs)
    rows = rows[np.argsort(scores[rows])[::-1]]
    ranked, is_positive = scores[rows].astype(np.float64), (signs[rows] > 0).astype(float)
    n_above = int(np.count_nonzero(ranked > threshold))
    counts.add(rows[:n_above], is_positive[:n_above], -1.0)
    gains = np.append(0.0, np.cumsum(counts.gains(rows, is_positive)))
    is_cut = np.concatenate([[True], ranked[:-1] > ranked[1:], [True]])
    best = int(np.argmax(np.where(is_cut, gains, -np.inf)))
    if gains[best] > gains[n_above]:
        lower = ranked[best] if best < len(ranked) else -np.inf
        threshold = float(threshold_between(np.asarray(lower), ranked[best - 1])) if best else ranked[0]
        n_above = best
    counts.add(rows[:n_above], is_positive[:n_above], 1.0)
    return threshold
