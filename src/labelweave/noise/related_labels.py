"""What the other labels of a row say of a label: ridge regressions in which no label explains itself.

With r the difference between labels as recorded and as expected by their own scores, and Q what is known of
the labels of a row, the matrix B minimises ``|r - (Q - mean) B|^2 + penalty |B|^2`` with zeros on its
diagonal.  With A the centred Q, C = (A^T A + penalty)^-1 and B0 = C A^T r it is

    B = B0 - C diag(diag(B0) / diag(C))

(the zero diagonal of Steck, "Embarrassingly shallow autoencoders for sparse data", 2019).  Rows are explained
by the matrix of the other folds; the penalty has the least squared error there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from labelweave.array_types import Array, PerRow, RowsByLabels

_PENALTIES = 3.0 * 10.0 ** (np.arange(9) / 2.0)


class RelatedLabels(NamedTuple):
    """What other labels add to the expectation of a label, by the matrix of other folds.

    known (n, L): the probabilities of labels by which others are explained.
    Shapes: evidence (n, L), means (folds, L), matrices (folds, L, L), folds (n,).
    """

    evidence: RowsByLabels
    known: RowsByLabels
    means: Array
    matrices: Array
    folds: PerRow

    def effects(self, row: int, label: int) -> Array:
        """Give what each label of a row adds to the expectation of one, (L,)."""
        fold = self.folds[row]
        effects: Array = (self.known[row] - self.means[fold]) * self.matrices[fold][:, label]
        return effects


def relate_labels(residuals: RowsByLabels, tables: list[RowsByLabels], folds: PerRow) -> RelatedLabels | None:
    """Learn by which of several tables labels are explained best; None where none explains anything.

    residuals (n, L): of labels as recorded from what is expected, NaN where unobserved.
    tables: what may be known of labels, (n, L) each.
    folds (n,): from 0 on.
    """
    seen = ~np.isnan(residuals)
    residuals = np.where(seen, residuals, 0.0)
    best, least = None, float(np.square(residuals).sum())
    for table in tables:
        parts = [_Part(table, residuals, folds, fold) for fold in range(int(folds.max()) + 1)]
        for penalty in _PENALTIES:
            error = sum(part.error(penalty, seen) for part in parts)
            if error < least:
                best, least = (table, parts, penalty), error
    if best is None:
        return None
    table, parts, penalty = best
    evidence = np.empty_like(residuals)
    for part in parts:
        evidence[part.held] = part.explained(penalty)
    matrices = np.stack([part.matrix(penalty) for part in parts])
    return RelatedLabels(evidence, table, np.stack([part.mean for part in parts]), matrices, folds)


class _Part:
    """The regression on the rows outside a fold."""

    def __init__(self, table: RowsByLabels, residuals: RowsByLabels, folds: PerRow, fold: int) -> None:
        train, self.held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        self.mean = table[train].mean(axis=0)
        rows = table[train] - self.mean
        self.values, self.vectors = sl.eigh(rows.T @ rows, check_finite=False)
        self.moments = rows.T @ residuals[train]
        self.rows, self.residuals = table[self.held] - self.mean, residuals[self.held]

    def matrix(self, penalty: float) -> Array:
        inverse = (self.vectors / (np.maximum(self.values, 0.0) + penalty)) @ self.vectors.T
        found = inverse @ self.moments
        found = found - inverse * (found.diagonal() / inverse.diagonal())
        np.fill_diagonal(found, 0.0)  # up to rounding it is
        return np.asarray(found)

    def explained(self, penalty: float) -> RowsByLabels:
        return np.asarray(self.rows @ self.matrix(penalty))

    def error(self, penalty: float, seen: Array) -> float:
        return float(
            np.square(np.where(seen[self.held], self.residuals - self.explained(penalty), 0.0)).sum()
        )
