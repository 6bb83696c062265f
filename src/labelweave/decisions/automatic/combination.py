"""Stacking: one score from several members, and the decision on label sets, by out-of-fold scores.

A member's out-of-fold scores become log-odds by one logistic curve per label.  The combination is a weighted
sum of log-odds, with non-negative weights that minimize the out-of-fold log loss (Breiman, "Stacked
regressions", 1996, with the loss of probabilities).

Then the scores of other labels inform each label, by logistic ridge regression.  With z the combined
out-of-fold log-odds of a row, p their probabilities, m the mean of p and t the targets, log-odds
z + (p - m) B minimize

    sum_il w_i (log loss of t_il) + penalty / 2 sum_l h_l |B_l|^2 sum_i w_i,    h_l the mean of p_l (1 - p_l),

by one Newton step from B = 0 with the mean curvature h_l of a label, which is a ridge regression of the
residuals (t - p) / h_l for all labels by one eigendecomposition.  The penalty has the least log loss in folds
of the rows; B is 0 where no penalty lowers it.  An unobserved target is taken to equal its probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
import scipy.linalg as sl
from scipy.optimize import minimize
from scipy.special import expit, softmax

from labelweave.decisions.automatic.label_sets import KnownSets, choose_known_sets, value_of_sets
from labelweave.decisions.automatic.table import TrainingTable
from labelweave.estimators.held_out import THRESHOLD_RULES, HeldOutScores, best_thresholds
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.postprocessing import SigmoidCalibration

_NEGLIGIBLE = 1e-3
_LEAST_SUM = 1e-200  # of class probabilities; below it their log-odds decide which is more likely
_STEPS = 50
_HALF = 0.5
_MOST_WEIGHT = (
    100.0  # of log-odds, whose weights are about 1 unless targets outside of 0 and 1 pull them away
)
_FEWEST = 20.0  # positive entries of rare labels, needed to weight members by
_CLEAR_GAIN = 0.1  # of the log loss of rare labels
_RANGE = np.finfo(np.float64).tiny, 1.0  # thresholds of all rows, and of none
_PENALTIES = np.logspace(-4, 1, 11)  # per row
_MOST_LABELS = 500  # for a label by label matrix
_LEAST_CURVATURE = 1e-4
_LEAST_GAIN = 1e-3  # of the log loss


class Combination(NamedTuple):
    """Turns members' scores into probabilities.

    curves: from each member's scores to log-odds.
    uncoupled: curves of the weighted log-odds, before the terms of other labels.
    Shapes: weights (m, L).
    """

    curves: tuple[SigmoidCalibration, ...]
    weights: Floats
    uncoupled: SigmoidCalibration
    coupling: Coupling | None
    calibration: SigmoidCalibration

    @classmethod
    def learned(cls, table: TrainingTable, scores: Sequence[RowsByLabels]) -> tuple[Self, RowsByLabels]:
        """Learn from out-of-fold scores, which become log-odds in place; also return the combined ones."""
        curves = tuple(_to_log_odds(one, table) for one in scores)
        weights = weights_by_label(table, scores)
        odds = weighted_sum(weights, scores)
        uncoupled = calibration = table.curves(odds)
        coupling = couple_labels(table, odds)
        if coupling is not None:
            odds = coupling.odds
            calibration = table.curves(odds)
        return cls(curves, weights, uncoupled, coupling, calibration), odds

    def probabilities(self, scores: Sequence[RowsByLabels]) -> RowsByLabels:
        each = [one.slopes * part + one.intercepts for one, part in zip(self.curves, scores, strict=True)]
        odds = weighted_sum(self.weights, each)
        if self.coupling is not None:
            odds += expit(odds) @ self.coupling.matrix + self.coupling.shift
        return self.calibration.probabilities(odds)


def cross_fitted(table: TrainingTable, scores: Sequence[RowsByLabels]) -> RowsByLabels:
    """Compute the probabilities of each fold's rows with what is learned from the other folds."""
    found = np.empty_like(table.targets)
    for train, held in table.splits():
        learned, _ = Combination.learned(table.rows(train), [one[train] for one in scores])
        found[held] = learned.probabilities([one[held] for one in scores])
    return found


def _to_log_odds(scores: RowsByLabels, table: TrainingTable) -> SigmoidCalibration:
    curves = table.curves(scores)
    scores *= curves.slopes
    scores += curves.intercepts
    return curves


def weights_by_label(table: TrainingTable, odds: Sequence[RowsByLabels]) -> Floats:
    """Weight members per label, (m, L); rare labels, whose losses count little, separately where it helps."""
    weights = np.repeat(member_weights(table, odds)[:, None], table.targets.shape[1], axis=1)
    rare = table.rare_labels()
    some = replace(table, targets=table.targets[:, rare])
    if len(odds) > 1 and not rare.all() and (some.weights @ (some.targets > _HALF)).sum() >= _FEWEST:
        scores = [one[:, rare] for one in odds]
        own = member_weights(some, scores)
        usual = some.log_loss(weighted_sum(weights[:, 0], scores))
        if some.log_loss(weighted_sum(own, scores)) < (1.0 - _CLEAR_GAIN) * usual:
            weights[:, rare] = own[:, None]
    return weights


def member_weights(table: TrainingTable, odds: Sequence[RowsByLabels]) -> Floats:
    """Weight members by their out-of-fold log-odds: no weight is negative, at least one is positive."""
    targets, seen = table.observed
    seen /= max(float(seen.sum()), 1e-300)

    def loss(weights: Floats) -> tuple[float, Floats]:
        summed = weighted_sum(weights, odds)
        value = float((seen * (np.logaddexp(0.0, summed) - targets * summed)).sum())
        residuals = seen * (expit(summed) - targets)
        return value, np.array([(residuals * one).sum() for one in odds])

    start = np.full(len(odds), 1.0 / len(odds))
    seen /= max(abs(loss(start)[0]), 1e-300)  # a small loss would end the search at its start
    bounds = [(0.0, _MOST_WEIGHT)] * len(odds)
    best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": _STEPS})
    if best.fun < 0 and not table.is_bounded:  # as for the curves, weights that grow without bound
        return member_weights(table.bounded(), odds)
    found = best.x
    found[found < _NEGLIGIBLE] = 0.0
    if not found.any():  # no score is informative
        found[int(np.argmin([table.log_loss(one) for one in odds]))] = 1.0
    return np.asarray(found)


def weighted_sum(weights: Floats, scores: Sequence[RowsByLabels]) -> RowsByLabels:
    """Sum weighted scores, skipping those of weight 0."""
    summed = np.zeros_like(scores[0])
    for weight, one in zip(weights, scores, strict=True):
        if np.any(weight):
            summed += weight * one
    return summed


class OutOfFold(NamedTuple):
    """Out-of-fold rows: probabilities to choose a decision by, and others to evaluate the choice.

    honest: by curves and weights learned from other folds.
    groups: of rows that were sampled together; None for independent rows.
    """

    held: HeldOutScores
    honest: HeldOutScores
    folds: PerRow
    groups: PerRow | None = None

    def decide(self, metric: str) -> tuple[KnownSets | Floats, Array]:
        """Choose the decision for a metric, and return the label sets of rows by other folds, (n, L)."""
        if metric == "jaccard":
            held, both = self.held, [self.decide(other) for other in ("example_f1", "subset_accuracy")]
            return max(both, key=lambda pair: value_of_sets(held.labels, pair[1], metric, held.weights)[0])
        decision, sets = choose_decision(self.held, metric, self.folds)
        if self.honest is not self.held:
            sets = choose_decision(self.honest, metric, self.folds)[1]
        return decision, sets


def choose_decision(held: HeldOutScores, metric: str, folds: PerRow) -> tuple[KnownSets | Floats, Array]:
    """Choose the decision on probabilities: known label sets, or one threshold per label.

    Return it, and the out-of-fold label sets, where it is chosen on the other folds, (n, L).
    """
    if metric == "subset_accuracy":
        return choose_known_sets(held, folds)
    rule = THRESHOLD_RULES[metric]
    thresholds = np.clip(best_thresholds(held, rule, _HALF).thresholds, *_RANGE)
    positive = np.empty(held.scores.shape, np.int8)
    for fold in np.unique(folds):
        inside, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        weights = None if held.weights is None else held.weights[others]
        rest = HeldOutScores(held.labels[others], held.scores[others], weights)
        positive[inside] = held.scores[inside] > best_thresholds(rest, rule, _HALF).thresholds
    return thresholds, positive


class Coupling(NamedTuple):
    """The term that is added to log-odds: ``expit(odds) @ matrix + shift``.

    Shapes: matrix (L, L), shift (L,), odds (n, L), of out-of-fold rows with the matrix of other folds.
    """

    matrix: Array
    shift: Array
    odds: RowsByLabels


def couple_labels(table: TrainingTable, odds: RowsByLabels) -> Coupling | None:
    """Learn how labels inform each other; return None where this does not lower the out-of-fold loss."""
    n_labels = odds.shape[1]
    if not 1 < n_labels <= _MOST_LABELS or len(np.unique(table.folds)) < 2:
        return None
    shares = expit(odds)
    residuals = np.where(np.isnan(table.targets), 0.0, table.targets - shares)
    weights = table.weights
    steps = []
    for train, held in table.splits():
        mean = np.average(shares[train], axis=0, weights=weights[train])
        steps.append((_Steps(shares[train], mean, residuals[train], weights[train]), mean, held))

    def coupled(penalty: float) -> RowsByLabels:
        found = odds.copy()
        for step, mean, held in steps:
            found[held] += (shares[held] - mean) @ step.solution(penalty)
        return found

    losses = [table.log_loss(coupled(penalty)) for penalty in _PENALTIES]  # one table in memory at a time
    best = int(np.argmin(losses))
    if not losses[best] < (1.0 - _LEAST_GAIN) * table.log_loss(odds):
        return None
    mean = np.average(shares, axis=0, weights=weights)
    matrix = _Steps(shares, mean, residuals, weights).solution(_PENALTIES[best])
    return Coupling(matrix, -mean @ matrix, coupled(_PENALTIES[best]))


class _Steps:
    """One Newton step for many labels, for every penalty."""

    def __init__(self, shares: Array, mean: Array, residuals: Array, weights: Array) -> None:
        rows = shares - mean
        weighted = rows.T * weights
        self.total = float(weights.sum())
        self.eigenvalues, self.vectors = sl.eigh(weighted @ rows)
        curvature = np.average(shares * (1.0 - shares), axis=0, weights=weights)
        curvature = np.maximum(curvature, _LEAST_CURVATURE)
        self.moments = self.vectors.T @ (weighted @ residuals) / curvature

    def solution(self, penalty: float) -> Array:
        """Solve with a penalty per row of weight 1."""
        sizes = np.maximum(self.eigenvalues, 0.0) + penalty * self.total
        return np.asarray(self.vectors @ (self.moments / sizes[:, None]))


def distributions(table: Array, scores: Array) -> Floats:
    """Divide the probabilities of classes (n, C) by their sums."""
    sums = table.sum(axis=1, keepdims=True)
    # rows far from all others may have no class of positive probability in floating point
    return np.where(sums > _LEAST_SUM, table / np.maximum(sums, _LEAST_SUM), softmax(scores, axis=1))
