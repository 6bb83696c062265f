"""Sources of the entries of a kernel matrix: a kernel between rows, or a precomputed matrix.

Matrices of users are checked to be kernels: square, symmetric, positive semi-definite.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels import Kernel
from labelweave.foundation.array_types import Array, RowsByRows
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.arrays.linear_algebra import (
    as_type,
    copied,
    is_numpy,
    numpy_type,
    placed,
    rows_of,
    to_numpy,
)

_SAMPLE = 1000  # rows; their eigenvalues take a tenth of a second
_TOLERANCE = 1e-6  # relative to the largest entry or eigenvalue: float32 kernels pass


class GramSource(Protocol):
    """A source of the entries of a kernel matrix."""

    n_rows: int

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        """Compute a new array of the entries of some rows and columns, slices or ndarrays of int."""

    def diagonal(self) -> npt.NDArray[np.float64]:
        """Compute the diagonal, shape (n,)."""


class KernelSource:
    """A kernel with numeric parameters, between the rows of a feature matrix.

    Panels of rows cache what a kernel computes of them, such as leaves of trees, since factorizations use the
    same panels repeatedly.
    """

    def __init__(self, kernel: Kernel, features: FeatureMatrix) -> None:
        features = features.placed()
        self.kernel, self.n_rows = kernel, len(features)
        self._by_type = {numpy_type(features.data): features}
        self._panels = dict[tuple[Any, ...], FeatureMatrix]()

    def _features(self, dtype: npt.DTypeLike) -> FeatureMatrix:
        kind = np.dtype(dtype)
        if kind not in self._by_type:
            self._by_type[kind] = next(iter(self._by_type.values())).astype(kind)
        return self._by_type[kind]

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        left = self._rows(rows, dtype)
        return self.kernel.block(left, left if _same(rows, columns) else self._rows(columns, dtype))

    def _rows(self, which: Any, dtype: npt.DTypeLike) -> FeatureMatrix:
        features = self._features(dtype)
        if not isinstance(which, slice):
            return features.rows(which)
        place = np.dtype(dtype), *which.indices(self.n_rows)
        if place not in self._panels:
            self._panels[place] = features.rows(which).kept_rows()
        return self._panels[place]

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self.kernel.diagonal(next(iter(self._by_type.values())))


def kernel_source(kernel: Kernel, features: FeatureMatrix) -> GramSource:
    """Return the entries of the kernel matrix of rows, in memory or on a cluster."""
    if features.is_distributed:
        return features.matrix_apart(kernel)
    return KernelSource(kernel, features)


def _same(rows: Any, columns: Any) -> bool:
    return rows is columns or (isinstance(rows, slice) and isinstance(columns, slice) and rows == columns)


class PrecomputedSource:
    """A precomputed kernel matrix of all rows with all rows."""

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.n_rows, self._diagonal = placed(matrix), len(matrix), matrix.diagonal()

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        if is_numpy(self.matrix):
            return np.array(self.matrix[rows][:, columns], dtype=dtype)  # the caller may change it
        return copied(as_type(rows_of(rows_of(self.matrix, rows).T, columns).T, dtype))

    def diagonal(self) -> npt.NDArray[np.float64]:
        return np.asarray(self._diagonal, dtype=np.float64)


class RowsOfSource:
    """Some rows, and the same columns, of a kernel matrix."""

    def __init__(self, source: GramSource, kept: Array) -> None:
        self.source, self.kept, self.n_rows = source, kept, len(kept)

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        left = self.kept[rows]
        return self.source.block(left, left if _same(rows, columns) else self.kept[columns], dtype)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self.source.diagonal()[self.kept]


def checked_kernel_matrix(matrix: RowsByRows) -> RowsByRows:
    """Return a kernel matrix; raise ValueError if it is not square or not symmetric, with an entry."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"X has shape {matrix.shape} but kernel='precomputed' needs the square kernel matrix of the "
            "training rows; precomputed kernel matrices should be square."
        )
    for rows in panels(len(matrix)):
        part = matrix[rows]
        difference = np.abs(part - matrix[:, rows].T)
        allowed = _TOLERANCE * max(float(np.abs(part).max(initial=0.0)), np.finfo(float).tiny)
        if difference.max(initial=0.0) > allowed:
            i, j = np.unravel_index(int(difference.argmax()), difference.shape)
            i += rows.start
            raise ValueError(
                f"The precomputed kernel is not symmetric: entry ({i}, {j}) is {matrix[i, j]:g} and "
                f"({j}, {i}) is {matrix[j, i]:g}; pass (K + K.T) / 2 if that is rounding."
            )
    return matrix


def check_positive_semidefinite(source: GramSource, seed: int) -> None:
    """Check a kernel on a sample of rows; raise ValueError if it is negative in some direction."""
    chosen = np.random.default_rng(seed).permutation(source.n_rows)[:_SAMPLE]
    corner = to_numpy(source.block(chosen, chosen, np.float64))
    size = max(float(np.abs(corner).max(initial=0.0)), np.finfo(float).tiny)
    asymmetry = float(np.abs(corner - corner.T).max(initial=0.0))
    if asymmetry > _TOLERANCE * size:
        raise ValueError(
            f"The kernel is not symmetric: swapping two rows changes its value by {asymmetry:.3g}; use a "
            "kernel k with k(a, b) = k(b, a)."
        )
    with Workers().running():
        values = np.linalg.eigvalsh((corner + corner.T) / 2)
    if values.min(initial=0.0) < -_TOLERANCE * max(size, float(values.max(initial=0.0))):
        raise ValueError(
            f"The kernel is not positive semi-definite: among {len(corner)} rows its smallest eigenvalue is "
            f"{values.min():.3g}; add at least that much to its diagonal, clip its negative eigenvalues, or "
            "use another kernel."
        )
