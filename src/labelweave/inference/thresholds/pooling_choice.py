"""How strongly rare labels are drawn to the threshold of all labels: chosen on the rows themselves.

Thresholds are chosen on one half of the rows and measured on the other, and the other way round, for a few
strengths and two pairs of random halves.  Differences between strengths are small beside their noise, so the
usual strength stays unless another one is better by twice the standard error of the difference.
"""

from __future__ import annotations

import math

import numpy as np

from labelweave.array_types import Array
from labelweave.inference.labeled_scores import LabeledScores
from labelweave.inference.thresholds.label_thresholds import find_label_thresholds
from labelweave.inference.thresholds.objective import Objective, SetCounts, count_sets

__all__ = ["choose_pooling"]


_USUAL = 50.0
_STRENGTHS = (_USUAL, 0.0, 10.0, 200.0)
_REPEATS = 2
_STANDARD_ERRORS = 2.0
_MOST_ENTRIES = 2**17
_FEWEST_ROWS = 10


def choose_pooling(table: LabeledScores, objective: Objective) -> float:
    """Choose the strength of pooling.

    table (n, L): labels and scores; of very many, some labels that are drawn evenly are looked at.
    objective: what thresholds shall be best for.
    """
    part = table.drawn_labels(_MOST_ENTRIES)
    if table.shape[1] == 1 or len(table.weights) < _FEWEST_ROWS or not part.labels.positives.nnz:
        return _USUAL
    generator = np.random.default_rng(0)
    values = np.array([_cross_fitted(part, objective, generator) for _ in range(_REPEATS)])
    gains = values - values[:, :1]
    errors = gains.std(axis=0, ddof=1) / math.sqrt(_REPEATS)
    is_better = gains.mean(axis=0) > _STANDARD_ERRORS * errors
    return _STRENGTHS[int(np.argmax(np.where(is_better, gains.mean(axis=0), 0.0)))]


def _cross_fitted(table: LabeledScores, objective: Objective, generator: np.random.Generator) -> Array:
    """Measure every strength, the greater the better, on halves that its thresholds were not chosen on."""
    order = generator.permutation(len(table.weights))
    one, other = (table.rows(np.sort(half)) for half in np.array_split(order, 2))
    counts = [_half_counts(one, other, objective), _half_counts(other, one, objective)]
    values = [SetCounts.together(pair).measure(objective.name) for pair in zip(*counts, strict=True)]
    return np.asarray(values) * (-1.0 if objective.name == "hamming_loss" else 1.0)


def _half_counts(chosen_on: LabeledScores, other: LabeledScores, objective: Objective) -> list[SetCounts]:
    found = find_label_thresholds(chosen_on, objective)
    return [_counts_above(other, found.pooled(strength)) for strength in _STRENGTHS]


def _counts_above(table: LabeledScores, thresholds: Array) -> SetCounts:
    return count_sets(table, lambda rows, block: block > thresholds)
