"""Inputs of the graph that are not the features: a kernel's explicit features, or scores.

A pivoted Cholesky factor F of the kernel matrix, ``K ~ F F^T`` with the features of row x
``K(x, pivots) T^-T`` (the Nyström approximation; exact with as many pivots as the matrix has rank), turns a
linear model into one of the kernel.  Scores are those of kernel ridge regressions of the labels on F, each
training row's from a fit without it, in closed form (``problems/hyperparameters/out_of_fold.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
from sklearn.base import clone

from labelweave.estimators.scorers import KERNEL, ROWS, takes_support
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import incomplete_cholesky
from labelweave.features.gram.sources import GramSource, KernelSource
from labelweave.features.kernels.distances import GammaKernel
from labelweave.foundation.array_types import Array, Floats, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.labels import LabelMatrix
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Numbers, places
from labelweave.problems.hyperparameters.out_of_fold import OutOfFoldFactorRidge

_MOST_PIVOTS = 4000
_RIDGES = np.logspace(-6, 2, 33)  # shares of the factor's mean squared row
_WIDTHS = 2.0 ** np.arange(-4, 5)  # times the value of "scale"
_ROWS_FOR_WIDTH = 1500
_NUMBERS_AT_ONCE = 8_000_000  # kernel values held in memory, 64 MB


@storable(
    "KernelInputs",
    {
        "kernel": KERNEL,
        "pivots": places("m"),
        "pivot_rows": ROWS,
        "table": Numbers("m p"),
        "constant": Numbers("p"),
    },
)
@dataclass(frozen=True)
class KernelInputs(StoredParameters):
    """Computes the graph's inputs of new rows: ``K(x, pivots) table + constant``.

    kernel: None for a precomputed matrix; the features of the pivots are then not stored.
    pivots (r,): numbers of training rows.
    pivot_rows (r, d): their features.
    Shapes: table (r, p), constant (p,).
    """

    kernel: Kernel | None
    pivots: Array
    pivot_rows: Any
    table: Floats
    constant: PerLabel

    def takes(self, n_features: int) -> bool:
        return takes_support(self.kernel, self.pivots, self.pivot_rows, n_features)

    def of(self, features: FeatureMatrix) -> FeatureMatrix:
        inputs = np.empty((len(features), len(self.constant)))
        known = None if self.pivot_rows is None else FeatureMatrix(self.pivot_rows)
        for rows in panels(len(features), max(1, _NUMBERS_AT_ONCE // max(1, len(self.pivots)))):
            part = features.rows(rows)
            inputs[rows] = self._values(part, known) @ self.table + self.constant
        return FeatureMatrix(inputs)

    def _values(self, rows: FeatureMatrix, known: FeatureMatrix | None) -> Array:
        if self.kernel is None or known is None:
            table = rows.data[:, self.pivots]
            return np.asarray(table.toarray() if rows.is_sparse else table, np.float64)
        return np.asarray(self.kernel.block(rows, known), np.float64)


class LabelRidge(NamedTuple):
    """Ridge regressions of labels, -1 and 1, with an unpenalized intercept.

    scores (n, L): of every row, from the other rows.
    ridge: the penalty of the squared weights, for row weights of mean 1.
    loss: the mean squared error of the scores at observed labels.
    Shapes: coefficients (r, L), intercepts (L,).
    """

    scores: RowsByLabels
    coefficients: Floats
    intercepts: PerLabel
    ridge: float
    loss: float


def out_of_fold_ridge(factor: Floats, labels: LabelMatrix, weights: PerRow) -> LabelRidge:
    """Fit ridge regressions, with the penalty of least leave-one-out loss.

    An unobserved label counts as the mean of those observed, and is excluded from the loss.
    """
    weights = weights / weights.mean()
    signs = labels.to_signs().astype(np.float64)
    seen = weights[:, None] * (signs != 0)
    means = (seen * signs).sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-300)
    targets = np.where(signs == 0, means, signs)
    ridge = OutOfFoldFactorRidge(factor, weights)
    penalties = (ridge.eigenvalues.sum() / len(factor) or 1.0) * _RIDGES
    losses = [
        float((seen * (targets - ridge.scores(targets, penalty)) ** 2).sum() / seen.sum())
        for penalty in penalties
    ]
    best = int(np.argmin(losses))
    penalty = float(penalties[best])
    return LabelRidge(
        ridge.scores(targets, penalty), *ridge.coefficients(targets, penalty), penalty, losses[best]
    )


def learned_width(
    kernel: GammaKernel,
    features: FeatureMatrix,
    targets: tuple[LabelMatrix, PerRow],
    seed: int,
    workers: Workers,
) -> Kernel:
    """Choose a multiple of a kernel's gamma by the leave-one-out loss, on at most 1,500 rows."""
    some = np.arange(len(features))
    if len(some) > _ROWS_FOR_WIDTH:
        some = np.sort(np.random.RandomState(seed).permutation(len(some))[:_ROWS_FOR_WIDTH])
    rows, labels, weights = features.rows(some), targets[0][some], targets[1][some]

    def loss(one: Kernel) -> float:
        return out_of_fold_ridge(
            _factor(KernelSource(one, rows), None, seed, workers).factor, labels, weights
        ).loss

    base: Any = kernel
    kernels: list[Kernel] = [clone(base).set_params(gamma=width * base.gamma) for width in _WIDTHS]
    return kernels[int(np.argmin([loss(one) for one in kernels]))]


def _factor(source: GramSource, rank: int | None, seed: int, workers: Workers) -> Any:
    return incomplete_cholesky(source, _MOST_PIVOTS if rank is None else rank, workers, seed)


def kernel_inputs(
    source: GramSource,
    rank: int | None,
    targets: tuple[LabelMatrix, PerRow] | None,
    seed: int,
    workers: Workers,
) -> tuple[Floats, Array, Floats, PerLabel, float]:
    """Compute the inputs (n, p) of the training rows, and the map for new rows.

    targets: labels and weights, to use their scores as inputs; None for the features themselves.
    Also returns pivots, table and constant of ``KernelInputs``, and the ridge, NaN for features.
    """
    found = _factor(source, rank, seed, workers)
    pivots, triangle = found.active_rows, found.factor[found.active_rows]
    if targets is None:
        table = sl.solve_triangular(triangle, np.eye(len(pivots)), lower=True, trans="T")
        return found.factor, pivots, np.ascontiguousarray(table), np.zeros(len(pivots)), float("nan")
    fitted = out_of_fold_ridge(found.factor, *targets)
    table = sl.solve_triangular(triangle, fitted.coefficients, lower=True, trans="T")
    return fitted.scores, pivots, np.ascontiguousarray(table), fitted.intercepts, fitted.ridge
