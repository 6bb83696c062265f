"""What the scores of other labels say of a label: logistic ridge regression on left-out probabilities.

With z the combined left-out log-odds of a row, p their probabilities, m the mean of p and t the targets,
log-odds z + (p - m) B minimise

    sum_il w_i (log loss of t_il) + penalty / 2 sum_l h_l |B_l|^2 sum_i w_i,    h_l the mean of p_l (1 - p_l),

by one Newton step from B = 0 with the mean curvature h_l of a label, which is a ridge regression of the
residuals (t - p) / h_l for all labels by one eigendecomposition.  The penalty has the least log loss in folds
of the rows; B is 0 where no penalty gains.  What is missing is taken to be what it is scored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.special import expit

from labelweave.decisions.automatic.table import TrainingTable
from labelweave.foundation.array_types import Array, RowsByLabels

_PENALTIES = np.logspace(-4, 1, 11)  # a row
_MOST_LABELS = 500  # of a matrix of labels by labels
_LEAST_CURVATURE = 1e-4
_LEAST_GAIN = 1e-3  # of the log loss


class Coupling(NamedTuple):
    """What is added to log-odds: ``expit(odds) @ matrix + shift``.

    Shapes: matrix (L, L), shift (L,), odds (n, L), of left-out rows with the matrix of other folds.
    """

    matrix: Array
    shift: Array
    odds: RowsByLabels


def couple_labels(table: TrainingTable, odds: RowsByLabels) -> Coupling | None:
    """Learn how labels say something of each other; None where left-out rows do not gain by it."""
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
        """Score the rows of each fold by the other folds."""
        found = odds.copy()
        for step, mean, held in steps:
            found[held] += (shares[held] - mean) @ step.solution(penalty)
        return found

    losses = [table.log_loss(coupled(penalty)) for penalty in _PENALTIES]  # one table at a time
    best = int(np.argmin(losses))
    if not losses[best] < (1.0 - _LEAST_GAIN) * table.log_loss(odds):
        return None
    mean = np.average(shares, axis=0, weights=weights)
    matrix = _Steps(shares, mean, residuals, weights).solution(_PENALTIES[best])
    return Coupling(matrix, -mean @ matrix, coupled(_PENALTIES[best]))


class _Steps:
    """One step of a Newton method for many labels, for every penalty."""

    def __init__(self, shares: Array, mean: Array, residuals: Array, weights: Array) -> None:
        rows = shares - mean
        weighted = rows.T * weights
        self.total = float(weights.sum())
        self.eigenvalues, self.vectors = sl.eigh(weighted @ rows)
        curvature = np.average(shares * (1.0 - shares), axis=0, weights=weights)
        curvature = np.maximum(curvature, _LEAST_CURVATURE)
        self.moments = self.vectors.T @ (weighted @ residuals) / curvature

    def solution(self, penalty: float) -> Array:
        """Solve with a penalty a row of weight 1."""
        sizes = np.maximum(self.eigenvalues, 0.0) + penalty * self.total
        return np.asarray(self.vectors @ (self.moments / sizes[:, None]))
