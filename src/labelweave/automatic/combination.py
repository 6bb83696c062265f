"""Weights of members, and what decides on label sets, by scores of rows that no member saw.

Weights minimise the squared error of the weighted sum of left-out scores, none of them negative (Breiman,
"Stacked regressions", 1996).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
from scipy.optimize import nnls

from labelweave.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.automatic.known_sets import KnownSets, choose_known_sets
from labelweave.automatic.set_values import value_of_sets
from labelweave.automatic.table import TrainingTable
from labelweave.estimators.held_out import THRESHOLD_RULES, HeldOutScores, best_thresholds

_NEGLIGIBLE = 1e-3
_JITTER = 1e-10
_HALF = 0.5
_RANGE = np.finfo(np.float64).tiny, 1.0  # thresholds of all rows, and of none


def member_weights(table: TrainingTable, scores: list[RowsByLabels]) -> Floats:
    """Weigh members by their left-out scores: at least one weight is above 0, all add up to about 1."""
    known = ~np.isnan(table.targets)
    seen = np.where(known, table.weights[:, None], 0.0)
    weighted = [seen * one for one in scores]
    squares = np.array([[np.vdot(one, other) for other in scores] for one in weighted])
    moments = np.array([np.vdot(one, np.where(known, table.targets, 0.0)) for one in weighted])
    squares[np.diag_indices_from(squares)] *= 1.0 + _JITTER
    squares[np.diag_indices_from(squares)] += 1e-300
    root = sl.cholesky(squares)
    found, _ = nnls(root, sl.solve_triangular(root, moments, trans="T"))
    found[found < _NEGLIGIBLE] = 0.0
    if not found.any():  # no label is ever positive, or no score says anything
        found[int(np.argmin([table.loss(one) for one in scores]))] = 1.0
    return np.asarray(found)


def choose_decision(held: HeldOutScores, metric: str, folds: PerRow) -> tuple[KnownSets | Floats, Array]:
    """Choose what decides on probabilities: known label sets, or a threshold a label.

    Returns it, and the label sets that left-out rows get where it is chosen on the other folds, (n, L).
    """
    if metric == "subset_accuracy":
        return choose_known_sets(held, folds)
    if metric == "jaccard":
        both = [choose_decision(held, other, folds) for other in ("example_f1", "subset_accuracy")]
        return max(both, key=lambda pair: value_of_sets(held.labels, pair[1], metric, held.weights)[0])
    rule = THRESHOLD_RULES[metric]
    thresholds = np.clip(best_thresholds(held, rule, _HALF).thresholds, *_RANGE)
    positive = np.empty(held.scores.shape, np.int8)
    for fold in np.unique(folds):
        inside, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        weights = None if held.weights is None else held.weights[others]
        rest = HeldOutScores(held.labels[others], held.scores[others], weights)
        positive[inside] = held.scores[inside] > best_thresholds(rest, rule, _HALF).thresholds
    return thresholds, positive
