"""The dot products of explicit features that are held densely."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram.stored import Gram


class FeatureGram(Gram):
    """The dot products of explicit features, never written out.

    constant: added to every dot product.
    dtype: the precision of products in less than float64.
    Shapes: features (n, d).
    """

    def __init__(
        self, features: FeatureMatrix, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> None:
        self.features, self.workers = features, workers
        self.dtype, self.n_rows = np.dtype(dtype), len(features)
        self.root = np.sqrt(constant)
        self.exact_table = self._with_constant(np.float64)
        self.table = self.exact_table if self.dtype == np.float64 else self.exact_table.astype(self.dtype)

    def _with_constant(self, dtype: npt.DTypeLike) -> Array:
        n, d = self.features.shape
        table = np.empty((n, d + 1), dtype)
        data = self.features.data
        table[:, :-1] = data.toarray() if self.features.is_sparse else data
        table[:, -1] = self.root
        return table if self.root else np.ascontiguousarray(table[:, :-1])

    def diagonal(self) -> npt.NDArray[np.float64]:
        return np.asarray(np.einsum("ij,ij->i", self.exact_table, self.exact_table))

    def columns(self, which: Array) -> Array:
        return self.workers.matmul(self.table, np.ascontiguousarray(self.table[which].T))

    def product(self, vectors: Array) -> Array:
        table = self.exact_table if vectors.dtype == np.float64 else self.table
        return self.workers.matmul(table, self.workers.inner(table, vectors))
