"""Where the entries of a kernel matrix come from: a kernel between rows, or a matrix that was given."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels import Kernel

__all__ = ["GramSource", "KernelSource", "PrecomputedSource", "RowsOfSource"]


class GramSource(Protocol):
    """Where the entries of a kernel matrix come from."""

    n_rows: int

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        """Compute the entries of some rows and columns, slices or ndarrays of int.

        Returns (rows, columns): the entries, a fresh array.
        """

    def diagonal(self) -> npt.NDArray[np.float64]:
        """Compute the diagonal, shape (n,)."""


class KernelSource:
    """A kernel between the rows of a feature matrix.

    kernel: the kernel, its parameters numbers.
    """

    def __init__(self, kernel: Kernel, features: FeatureMatrix) -> None:
        self.kernel, self.n_rows = kernel, len(features)
        self._by_type = {features.data.dtype: features}

    def _features(self, dtype: npt.DTypeLike) -> FeatureMatrix:
        kind = np.dtype(dtype)
        if kind not in self._by_type:
            self._by_type[kind] = next(iter(self._by_type.values())).astype(kind)
        return self._by_type[kind]

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        features = self._features(dtype)
        left = features.rows(rows)
        return self.kernel.block(left, left if _same(rows, columns) else features.rows(columns))

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self.kernel.diagonal(next(iter(self._by_type.values())))


def _same(rows: Any, columns: Any) -> bool:
    return rows is columns or (isinstance(rows, slice) and isinstance(columns, slice) and rows == columns)


class PrecomputedSource:
    """A kernel matrix that was given.

    matrix (n, n): the kernel of all rows with all rows.
    """

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.n_rows = matrix, len(matrix)

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        return np.array(self.matrix[rows][:, columns], dtype=dtype)  # the caller may change it

    def diagonal(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.matrix.diagonal(), dtype=np.float64)


class RowsOfSource:
    """Some rows, and the same columns, of a kernel matrix.

    Shapes: kept (n,).
    """

    def __init__(self, source: GramSource, kept: Array) -> None:
        self.source, self.kept, self.n_rows = source, kept, len(kept)

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        left = self.kept[rows]
        return self.source.block(left, left if _same(rows, columns) else self.kept[columns], dtype)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self.source.diagonal()[self.kept]
