"""Weights of members, and what the combination is worth, on rows that no member saw.

Weights minimise the squared error of the weighted sum of left-out scores, none of them negative (Breiman,
"Stacked regressions", 1996).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
from scipy.optimize import nnls

from labelweave.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.automatic.known_sets import KnownSets, choose_known_sets
from labelweave.automatic.members import TrainingTable
from labelweave.estimators.held_out import THRESHOLD_RULES, HeldOutScores, best_thresholds
from labelweave.inference.labeled_scores import read_labeled_scores
from labelweave.inference.thresholds.objective import count_sets
from labelweave.labels import LabelMatrix
from labelweave.metrics import subset_accuracy

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
        return max(both, key=lambda pair: left_out_value(held, pair[1], metric, folds)[0])
    rule = THRESHOLD_RULES[metric]
    thresholds = np.clip(best_thresholds(held, rule, _HALF).thresholds, *_RANGE)
    positive = np.empty(held.scores.shape, np.int8)
    for fold in np.unique(folds):
        inside, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        weights = None if held.weights is None else held.weights[others]
        rest = HeldOutScores(held.labels[others], held.scores[others], weights)
        positive[inside] = held.scores[inside] > best_thresholds(rest, rule, _HALF).thresholds
    return thresholds, positive


def left_out_value(held: HeldOutScores, sets: Array, metric: str, folds: PerRow) -> tuple[float, float]:
    """Measure label sets of left-out rows, and give the standard error over folds."""

    def measure(rows: Array) -> float:
        weights = None if held.weights is None else held.weights[rows]
        if metric == "subset_accuracy":
            return float(subset_accuracy(held.labels[rows], sets[rows], sample_weight=weights))
        if metric == "jaccard":
            return jaccard(held.labels[rows], sets[rows], weights)
        table = read_labeled_scores(held.labels[rows], sets[rows].astype(np.float64), weights)
        objective = THRESHOLD_RULES[metric].objective
        return float(count_sets(table, lambda block: block > _HALF).measure(objective))

    parts = np.array([measure(np.flatnonzero(folds == fold)) for fold in np.unique(folds)])
    error = parts.std(ddof=1) / np.sqrt(len(parts)) if len(parts) > 1 else np.nan
    return measure(np.arange(len(sets))), float(error)


def jaccard(labels: LabelMatrix, sets: Array, weights: PerRow | None) -> float:
    """Average the share of right labels among those that a row has or gets, 1 where these are none."""
    signs = labels.to_signs()
    right = ((signs > 0) & (sets > 0)).sum(axis=1)
    either = ((signs > 0) | ((sets > 0) & (signs != 0))).sum(axis=1)
    shares = np.where(either > 0, right / np.maximum(either, 1), 1.0)
    return float(np.average(shares, weights=weights))
