"""What the scores of other labels say of a label: a ridge regression on left-out scores.

With s the combined left-out scores of a row, m their mean and t its targets,

    minimise over B   sum_i w_i |t_i - s_i - (s_i - m) B|^2  +  penalty |B|^2,

by folds of the rows, for a grid of penalties up to one without end, which is B = 0 (Breiman and Friedman,
"Predicting multivariate responses in multiple linear regression", 1997, shrink such a B another way).  What
is missing is taken to be what it is scored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from labelweave.array_types import Array, RowsByLabels
from labelweave.automatic.table import TrainingTable

_PENALTIES = np.logspace(-4, 1, 11)  # a row
_MOST_LABELS = 500  # of a matrix of labels by labels


class Coupling(NamedTuple):
    """A matrix that is added to the identity: ``scores + scores @ matrix + shift``.

    Shapes: matrix (L, L), shift (L,), scores (n, L), of left-out rows with the matrix of other folds.
    """

    matrix: Array
    shift: Array
    scores: RowsByLabels


def couple_labels(table: TrainingTable, scores: RowsByLabels) -> Coupling | None:
    """Learn how labels say something of each other; None where left-out rows do not gain by it."""
    n, n_labels = scores.shape
    if not 1 < n_labels <= _MOST_LABELS or len(np.unique(table.folds)) < 2:
        return None
    residuals = np.where(np.isnan(table.targets), 0.0, table.targets - scores)
    weights, found = table.weights, np.empty((len(_PENALTIES), n, n_labels))
    for train, held in table.splits():
        mean = np.average(scores[train], axis=0, weights=weights[train])
        spectrum = _Spectrum(scores[train] - mean, residuals[train], weights[train])
        for number, penalty in enumerate(_PENALTIES):
            found[number, held] = scores[held] + (scores[held] - mean) @ spectrum.solution(penalty)
    losses = [table.loss(one) for one in found]
    best = int(np.argmin(losses))
    if not losses[best] < table.loss(scores):
        return None
    mean = np.average(scores, axis=0, weights=weights)
    matrix = _Spectrum(scores - mean, residuals, weights).solution(_PENALTIES[best])
    return Coupling(matrix, -mean @ matrix, found[best].copy())


class _Spectrum:
    """Ridge regressions of many targets, for every penalty."""

    def __init__(self, rows: Array, targets: Array, weights: Array) -> None:
        weighted = rows.T * weights
        self.total = float(weights.sum())
        self.eigenvalues, self.vectors = sl.eigh(weighted @ rows)
        self.moments = self.vectors.T @ (weighted @ targets)

    def solution(self, penalty: float) -> Array:
        """Solve with a penalty a row of weight 1."""
        sizes = np.maximum(self.eigenvalues, 0.0) + penalty * self.total
        return np.asarray(self.vectors @ (self.moments / sizes[:, None]))
