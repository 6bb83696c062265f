"""Real-valued signatures: vectors of classes, such as those of a language model, instead of attributes.

Let ``s_c`` be the vector of class c minus the mean vector of the training rows, and ``g(x)`` the vector that
is predicted for a row.  Predictions of unseen classes are shrunk and noisy: ``g(x) = rho s_c + noise``, of
equal variance in all directions.  rho is estimated on held-out training classes.  Then

``log p(c | x) = log p(c) + t (s_c^T g(x) - rho / 2 |s_c|^2) + const``,

with ``t = rho / variance``, chosen by the likelihood of held-out classes.  ``rho = 1`` is the nearest vector,
which prefers classes near the mean wherever the regression shrinks; ``rho = 0`` ignores lengths.  Covariances
of the noise (full, diagonal, within classes) do not improve the likelihood of held-out classes.

The vector g comes from a regression on the vectors of training rows, or from the scores F(x) of a classifier
of the training classes: ``g = S^T F`` is the expected vector, and for the squared loss with a ridge penalty
the regression itself.  Coupled classes have the prior covariance ``S S^T``: ``F = S a`` with independent
weights a of the coordinates.  Then ``g = S^+ F`` is the mean given F, and ``s_c^T g`` scores any class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor

from labelweave.estimators.targets import node_name
from labelweave.estimators.zero_shot.training_rows import ClassFold, TrainingRows, covariance_parameter
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.labels import LabelCovariance, LabelMatrix

_NO_VARIANCE = 1e-9  # of the largest singular value of the centered vectors


def read_vectors(signatures: Any) -> Array | None:
    """Read signatures that are vectors, (C, v); None where they are attributes, 0/1 or -1/1 or NaN.

    Raises ValueError if an entry of a vector is not finite.
    """
    if signatures is None or isinstance(signatures, LabelMatrix) or hasattr(signatures, "tocsr"):
        return None
    try:
        table = np.asarray(signatures)
    except ValueError:  # rows of several lengths, such as lists of tags
        return None
    if table.ndim != 2 or table.dtype.kind not in "iuf":
        return None
    if np.isin(table[~np.isnan(table)], (-1, 0, 1)).all():
        return None
    strange = np.argwhere(~np.isfinite(table))
    if len(strange):
        raise ValueError(
            f"signatures has {table[tuple(strange[0])]} at row {strange[0, 0]}, column {strange[0, 1]}; it "
            "must be finite."
        )
    return np.asarray(table, np.float64)


@dataclass(frozen=True)
class ClassVectors:
    """The vectors (C, v) of classes (C,)."""

    table: Array
    classes: Array

    def of(self, classes: Array) -> Array:
        place = {node_name(name): row for row, name in enumerate(self.classes.tolist())}
        return self.table[[place[node_name(name)] for name in classes.tolist()]]

    def fit(self, estimator: Any, rows: TrainingRows, couple: bool) -> VectorMap:
        """Fit to the vectors of the rows if the estimator is a regressor, else to their classes."""
        assert rows.classes is not None, "vectors are of classes"
        classes, codes = np.unique(rows.classes, return_inverse=True)
        seen = self.of(classes)
        center = np.average(seen[codes], axis=0, weights=rows.weights)
        targets, seen = seen[codes], seen - center
        seen = seen[1:] - seen[:1] if len(seen) == 2 else seen  # two classes have one score
        if couple:
            spread = np.sqrt(np.mean(np.square(seen).sum(axis=1))) or 1.0
            covariance = LabelCovariance.low_rank(seen / spread)
            estimator.set_params(**{covariance_parameter(estimator): covariance})
        extra = {} if rows.weights is None else {"sample_weight": rows.weights}
        if is_regressor(estimator):
            estimator.fit(rows.X, targets, **extra)
            return VectorMap(center, None)
        estimator.fit(rows.X, rows.classes, **extra)
        return VectorMap(center, np.linalg.pinv(seen, rcond=_NO_VARIANCE).T if couple else seen)


@dataclass(frozen=True)
class VectorMap:
    """Maps centered scores to vectors, around a center (v,).

    matrix (columns, v): None where scores are vectors.
    """

    center: Array
    matrix: Array | None

    def directions(self, table: Array) -> Array:
        """Compute the map from scores to evidence of classes: (C, columns), by their vectors (C, v)."""
        moved = table - self.center
        return moved if self.matrix is None else moved @ self.matrix.T

    def squares(self, table: Array) -> PerLabel:
        return np.asarray(np.square(table - self.center).sum(axis=1))

    def evidence(self, scores: RowsByLabels, table: Array) -> Evidence:
        return Evidence(scores @ self.directions(table).T, self.squares(table))


class Evidence(NamedTuple):
    """Of rows and classes: products ``s_c^T g``, (rows, C), and squares ``|s_c|^2``, (C,)."""

    products: RowsByLabels
    squares: PerLabel

    def at(self, shrinkage: float) -> RowsByLabels:
        return self.products - shrinkage / 2 * self.squares


def best_shrinkage(evidence: list[Evidence], folds: list[ClassFold]) -> float:
    """Estimate rho by least squares over held-out rows: sums of ``s_c^T g`` by those of ``|s_c|^2``."""
    found, lengths = np.float64(0.0), np.float64(0.0)
    for (products, squares), fold in zip(evidence, folds, strict=True):
        found += np.dot(fold.weights, products[np.arange(len(products)), fold.truth])
        lengths += np.dot(fold.weights, squares[fold.truth])
    return max(0.0, float(found / lengths)) if lengths > 0 else 0.0
