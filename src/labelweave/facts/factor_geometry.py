"""Lengths and cosines of labels in models whose weights are a product of two factors, Z = W H^T.

They are those of the columns of Z, so they do not depend on which pair of factors makes the product: of rows
of H where W has orthonormal columns.  They need the small matrices W^T W and H^T H only, summed in blocks; Z
is never formed.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.arrays import panels
from labelweave.features import FeatureMatrix

_ROWS_AT_ONCE = 8192
_KERNEL_ROWS_AT_ONCE = 512
_DECIMALS = 9  # rounding must not choose among equal labels
_MOST_SUPPORT_ROWS = 5000  # whose kernel is computed to say what is in a model


class FactorGeometry:
    """The columns of Z of a fitted classifier with ``feature_factors_`` and ``label_factors_``."""

    def __init__(self, model: Any) -> None:
        self.model, self.factors = model, model.label_factors_

    @property
    def names(self) -> list[str]:
        """The rows of H: of two classes it has the second one's."""
        names = [str(name) for name in self.model.label_names_]
        return names[len(names) - len(self.factors) :]

    @cached_property
    def _gram(self) -> Array | None:
        """``W^T W``, in the kernel's space for a kernel; None where that takes too many kernel values."""
        factors = self.model.feature_factors_
        total = np.zeros((factors.shape[1], factors.shape[1]))
        if not hasattr(self.model, "support_"):
            return _moments(factors, np.eye(len(total)))
        if not hasattr(self.model, "support_vectors_") or len(factors) > _MOST_SUPPORT_ROWS:
            return None
        support = FeatureMatrix(self.model.support_vectors_)
        for rows in panels(len(factors), _KERNEL_ROWS_AT_ONCE):
            total += factors[rows].T @ (self.model.kernel_.block(support.rows(rows), support) @ factors)
        return total

    @cached_property
    def _root(self) -> Array:
        """What turns rows of H into those of an orthonormal W; nothing where ``W^T W`` is not known."""
        if self._gram is None:
            return np.eye(self.factors.shape[1])
        values, vectors = np.linalg.eigh(self._gram)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def lengths(self) -> Array:
        """The lengths of the columns of Z."""
        lengths = np.empty(len(self.factors))
        for rows in panels(len(self.factors), _ROWS_AT_ONCE):
            lengths[rows] = np.linalg.norm(self.factors[rows] @ self._root, axis=1)
        return lengths

    @property
    def singular_values(self) -> list[float] | None:
        """The singular values of Z, falling; None where they need too many values of a kernel."""
        if self._gram is None:
            return None
        squares = np.linalg.eigvalsh(_moments(self.factors, self._root))[::-1]
        return [math.sqrt(max(value, 0.0)) for value in squares]

    def longest(self, count: int) -> list[tuple[str, float]]:
        """Name the labels with the longest weights."""
        order = np.argsort(-self.lengths, kind="stable")[:count]
        return [(self.names[k], float(self.lengths[k])) for k in order]

    def similar(self, row: int, count: int) -> list[tuple[str, float]]:
        """Name labels whose weights, not 0, point most nearly the same way as one's, with cosines."""
        if not self.lengths[row]:
            return []
        along = self._root @ (self.factors[row].astype(np.float64) @ self._root)
        cosines = np.full(len(self.factors), -np.inf)
        for rows in panels(len(self.factors), _ROWS_AT_ONCE):
            has_length = self.lengths[rows] > 0
            safe = np.where(has_length, self.lengths[rows] * self.lengths[row], np.inf)
            cosines[rows] = np.where(has_length, self.factors[rows] @ along / safe, -np.inf)
        cosines = np.round(cosines, _DECIMALS)
        cosines[row] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:count]
        names = self.names
        return [(names[k], float(cosines[k])) for k in best if np.isfinite(cosines[k])]

    def feature_weights(self, row: int) -> Array | None:
        """Multiply the factors for one label: the weights of features; None for kernels of training rows."""
        if hasattr(self.model, "support_"):
            return None
        return np.asarray(self.model.feature_factors_ @ self.factors[row])


def _moments(table: Array, turn: Array) -> Array:
    """Sum the products of columns of a table that is turned by a matrix."""
    total = np.zeros_like(turn)
    for rows in panels(len(table), _ROWS_AT_ONCE):
        block = table[rows] @ turn
        total += block.T @ block
    return total
