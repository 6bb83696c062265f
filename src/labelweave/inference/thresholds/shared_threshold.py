"""One threshold for all labels.

As with the cuts of one label, only thresholds right below the score of a positive entry can be best.
How an objective changes along them is added up over blocks: nothing of the size of all scores is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from labelweave.array_types import Array
from labelweave.inference.labeled_scores import LabeledScores, ScoreLines
from labelweave.inference.thresholds.label_cuts import ranked_groups, threshold_between
from labelweave.inference.thresholds.objective import Objective, f1_of_counts

__all__ = ["shared_threshold"]


def shared_threshold(table: LabeledScores, objective: Objective) -> float:
    """Find the best threshold for all labels.

    objective: what it shall be best for.  Precision and recall are those of all entries together.
    Returns scores above are positive; the highest one if nothing is to be predicted.
    Shapes: table (n, L).
    """
    candidates = _positive_scores(table)
    values = _values(table, objective, candidates) if len(candidates) else np.full(1, -np.inf)
    best = len(values) - 1 - int(np.argmax(values[::-1]))  # the highest among equals
    if values[best] <= objective.of_nothing:
        return float(table.scores.max())
    lower = max(_highest_below(lines.scores, candidates[best]) for lines in table.row_blocks())
    return float(threshold_between(np.asarray(lower), np.asarray(candidates[best])))


def _positive_scores(table: LabeledScores) -> Array:
    """List the distinct scores of positive entries, in ascending order."""
    positives = table.labels.positives
    rows = np.repeat(np.arange(len(table.weights)), table.row_positives())
    scores = table.scores[rows, positives.indices]
    return np.unique(scores[table.weights[rows] > 0].astype(np.float64))


def _values(table: LabeledScores, objective: Objective, candidates: Array) -> Array:
    if objective.name == "macro_f1":
        lines, weights, each = table.label_blocks(), table.weights, np.ones(table.shape[1])
        return _summed_f1(lines, weights, (table.positive_weights(), each), candidates)
    if objective.name == "example_f1":
        lines, weights = table.row_blocks(), np.ones(table.shape[1])
        return _summed_f1(lines, weights, (table.row_positives(), table.weights), candidates)
    hits, predicted = np.zeros((2, len(candidates)))
    for block in table.row_blocks():
        weights = np.broadcast_to(table.weights[block.which][:, None], block.signs.shape)
        for counts, kept in ((hits, block.signs > 0), (predicted, block.signs != 0)):
            _add_steps(counts, candidates, block.scores[kept], weights[kept])
    positives = float(table.positive_weights().sum())
    return objective.of_counts(_from_above(hits), _from_above(predicted), positives)


def _summed_f1(
    blocks: Iterable[ScoreLines], weights: Array, per_line: tuple[Array, Array], candidates: Array
) -> Array:
    """Add the F1 scores of all lines, labels or rows, at every candidate."""
    positives, line_weights = per_line
    steps = np.zeros(len(candidates))
    for lines in blocks:
        ranked, hits, predicted, is_end = ranked_groups(lines, weights)
        line, place = np.nonzero(is_end)
        number = line + lines.which.start
        f1 = f1_of_counts(hits[line, place], predicted[line, place], positives[number])
        is_first = np.diff(line, prepend=-1) != 0
        change = f1 - np.where(is_first, 0.0, np.roll(f1, 1))
        _add_steps(steps, candidates, ranked[line, place], change * line_weights[number])
    return _from_above(steps)


def _add_steps(steps: Array, candidates: Array, scores: Array, changes: Array) -> None:
    """Add each change at the greatest candidate that does not exceed its score."""
    place = np.searchsorted(candidates, scores, side="right") - 1
    inside = place >= 0
    steps += np.bincount(place[inside], changes[inside], minlength=len(steps))


def _from_above(steps: Array) -> Array:
    return np.asarray(np.cumsum(steps[::-1])[::-1])


def _highest_below(scores: Array, bound: float) -> float:
    return float(np.max(scores, where=scores < bound, initial=-np.inf))
