"""Kernel matrices that are stored, recomputed in every product, or given by features; the common operations.

For sparse features, ``K V = X (X^T V)`` is two sparse products without the matrix K
(Seeger 2008, appendix D.3).  X is stored by rows, both as it is and transposed, so that both products gather
rows of a dense matrix and never scatter: the order of additions is that of the entries, for any number of
threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram.sources import GramSource
from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, aligned_empty, linear_algebra, namespace, panels
from labelweave.foundation.arrays.tables import row_inner


class Gram(ABC):
    """The symmetric positive semi-definite matrix K of n rows."""

    n_rows: int
    dtype: Any
    """The precision of stored entries, or of computed ones unless a product needs more."""

    @abstractmethod
    def diagonal(self) -> npt.NDArray[np.float64]:
        """Compute the diagonal, shape (n,)."""

    @abstractmethod
    def columns(self, which: Array) -> Array:
        """Compute k columns, shape (n, k)."""

    def block(self, rows: Array) -> Array:
        """Return the entries between k rows, as a new array in double precision."""
        return np.asarray(self.columns(rows)[rows], np.float64)

    @abstractmethod
    def product(self, vectors: Array) -> Array:
        """Compute ``K @ vectors``, with shape (n, p) and the type of the vectors.

        In float64 the entries are computed, or at least summed, in float64.
        """


_SMALLEST_SIDE, _LARGEST_SIDE = 64, 2048  # of the blocks of a matrix
_LANES = 4


class StreamedGram(Gram):
    """A kernel matrix that is computed panel by panel on each use.

    panel_bytes: memory for the panels of all threads together.
    """

    def __init__(
        self,
        source: GramSource,
        constant: float,
        dtype: npt.DTypeLike,
        workers: Workers,
        panel_bytes: float = 64e6,
    ) -> None:
        self.source, self.constant, self.workers = source, constant, workers
        self.dtype, self.n_rows, self.panel_bytes = np.dtype(dtype), source.n_rows, panel_bytes

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self.source.diagonal() + self.constant

    def columns(self, which: Array) -> Array:
        found = linear_algebra.empty((self.n_rows, len(which)), self.dtype)
        bytes_a_row = 2 * self.dtype.itemsize * max(1, len(which)) * _LANES
        cuts = panels(self.n_rows, max(1, min(_LARGEST_SIDE, int(self.panel_bytes / bytes_a_row))))

        def one(lane: int) -> None:
            for panel in cuts[lane::_LANES]:
                found[panel, ...] = self.source.block(panel, which, self.dtype)

        self.workers.each(one, list(range(_LANES)))
        found += float(self.constant)
        return found

    def block(self, rows: Array) -> Array:
        return linear_algebra.to_numpy(self.source.block(rows, rows, np.float64)) + self.constant

    def product(self, vectors: Array) -> Array:
        """Compute the product; see :meth:`Gram.product`.

        Every pair of rows is computed once and used for both.  The pairs of panels are assigned
        to a fixed number of lanes, each with its own sum, so that results do not depend on the threads.
        """
        xp, kind = namespace(vectors), linear_algebra.numpy_type(vectors)
        cuts = panels(self.n_rows, self._block_side(kind))
        pairs = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[: i + 1]]

        def one(lane: int) -> Array:
            total: Array = xp.zeros_like(vectors)
            for rows, columns in pairs[lane::_LANES]:
                block = self.source.block(rows, columns, kind)
                total[rows, ...] += block @ vectors[columns, ...]
                if rows != columns:
                    total[columns, ...] += block.T @ vectors[rows, ...]
            return total

        sums = self.workers.map(one, list(range(_LANES)))
        return sum(sums[1:], self.constant * xp.sum(vectors, axis=0) + sums[0])

    def _block_side(self, dtype: npt.DTypeLike) -> int:
        # a block of values needs memory for a second one while it is computed; the memory of a lane does not
        # depend on the threads, since block sizes determine the last bits
        entries = self.panel_bytes / (2 * np.dtype(dtype).itemsize * _LANES)
        return int(min(_LARGEST_SIDE, max(_SMALLEST_SIDE, np.sqrt(entries))))


_BUILD_PANEL = 1024


class StoredGram(Gram):
    """A stored kernel matrix; ``origin`` is the matrix in double precision if the table has less."""

    def __init__(self, table: Array, workers: Workers, origin: Gram | None = None) -> None:
        self.table, self.workers, self.origin = table, workers, origin
        self.n_rows, self.dtype = table.shape[0], linear_algebra.numpy_type(table)

    @classmethod
    def from_source(
        cls, source: GramSource, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> StoredGram:
        """Compute the matrix, each pair of rows once, in float64 with one final rounding."""
        table = linear_algebra.empty((source.n_rows, source.n_rows), dtype)
        cuts = panels(source.n_rows, _BUILD_PANEL)
        pairs = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[: i + 1]]

        def one(pair: tuple[slice, slice]) -> None:
            rows, columns = pair
            block = source.block(rows, columns, np.float64)
            block += constant
            table[rows, columns] = block
            table[columns, rows] = block.T

        workers.each(one, pairs)
        return cls(table, workers, StreamedGram(source, constant, np.float64, workers))

    def diagonal(self) -> npt.NDArray[np.float64]:
        return linear_algebra.to_numpy(namespace(self.table).linalg.diagonal(self.table)).astype(np.float64)

    def columns(self, which: Array) -> Array:
        return linear_algebra.contiguous(linear_algebra.rows_of(self.table, which).T)

    def product(self, vectors: Array) -> Array:
        if self.origin is not None and linear_algebra.numpy_type(vectors) == np.float64 != self.dtype:
            return self.origin.product(vectors)
        return self.workers.matmul(self.table, vectors)

    def block(self, rows: Array) -> Array:
        return np.require(
            linear_algebra.to_numpy(linear_algebra.block_of(self.table, rows, rows)), np.float64, "W"
        )


class FeatureGram(Gram):
    """The dot products of dense explicit features, without the matrix.

    exact_table (n, d or d + 1): the features with a column for the constant, reflected: their dot products
        are the kernel.  With more columns than rows it is the square factor of an LQ factorization.
    """

    def __init__(
        self, features: FeatureMatrix, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> None:
        self.workers = workers
        self.dtype, self.n_rows = np.dtype(dtype), len(features)
        data = features.data.toarray() if features.is_sparse else features.data
        width = data.shape[1] + (constant > 0)
        self.exact_table = np.empty((len(data), width))
        self.exact_table[:, : data.shape[1]] = data
        self.exact_table[:, data.shape[1] :] = np.sqrt(constant)
        self._mirror, self._turn = _reflect(self.exact_table, workers), None
        if len(data) < width:
            self._turn, lower = sl.qr(
                self.exact_table.T, mode="economic", overwrite_a=True, check_finite=False
            )
            self.exact_table = np.ascontiguousarray(lower.T)
        self.exact_table = linear_algebra.placed(self.exact_table)
        self.table = linear_algebra.as_type(self.exact_table, self.dtype)

    def diagonal(self) -> npt.NDArray[np.float64]:
        table = self.exact_table
        if not linear_algebra.is_numpy(table):
            return row_inner(table, table, self.workers)
        return np.asarray(np.einsum("ij,ij->i", table, table))

    def columns(self, which: Array) -> Array:
        return self.workers.matmul(
            self.table, linear_algebra.contiguous(linear_algebra.rows_of(self.table, which).T)
        )

    def product(self, vectors: Array) -> Array:
        table = self.exact_table if linear_algebra.is_double(vectors) else self.table
        return self.workers.matmul(table, self.workers.inner(table, vectors))

    def weights(self, variables: Array) -> Array:
        """Return the weights of the table's columns for variables of the rows, in double precision."""
        return self.workers.inner(self.exact_table, variables)

    def scores(self, weights: Array) -> Array:
        return self.workers.matmul(self.exact_table, weights)

    def feature_weights(self, weights: Array) -> Array:
        """Convert weights of the table to those of the features and the constant, shape (d or d + 1, L)."""
        if not linear_algebra.is_numpy(weights):
            return linear_algebra.like(self.feature_weights(linear_algebra.to_numpy(weights)), weights)
        turned = weights if self._turn is None else self._turn @ weights
        return turned if self._mirror is None else turned - self._mirror[:, None] * (self._mirror @ turned)


def _reflect(table: Array, workers: Workers) -> Array | None:
    """Reflect rows in place so that their mean lies along its nearest axis.

    Dot products do not change, but features far from 0 relative to their spread become one large column and
    small ones; otherwise every entry of a factor contains a squared mean, and rounding hides the rest.

    Returns the normal of the mirror, of length sqrt(2); None if nothing was reflected.
    """
    mirror = table.mean(axis=0) if len(table) else np.zeros(table.shape[1])
    largest = np.abs(mirror).max(initial=0.0)
    if not 0 < largest < np.inf:
        return None
    mirror /= largest
    axis = np.abs(mirror).argmax()
    mirror[axis] += np.copysign(np.linalg.norm(mirror), mirror[axis])
    mirror *= np.sqrt(2) / np.linalg.norm(mirror)
    along = workers.matmul(table, mirror[:, None])[:, 0]
    sl.blas.dger(-1.0, mirror, along, a=table.T, overwrite_a=True)
    return np.asarray(mirror)


class StoredRows:
    """All rows of a stored kernel matrix, with the methods of :class:`CachedRows`."""

    def __init__(self, gram: StoredGram) -> None:
        self.table, self.n_slots = gram.table, gram.n_rows
        self.is_held = np.ones(gram.n_rows, bool)

    def rows(self, indices: Array) -> Array:
        return self.table[indices]

    def content(self) -> None:
        """Return None: there is no cache content."""

    def refill(self, content: None) -> None:
        """Do nothing."""


TILE = 16  # columns, which fill one or two cache lines
_FEW = 3  # vectors, for which a tile would be slower
_TILES_AT_ONCE = 8  # copied together, and multiplied one by one within the cache
_COPY_PANEL = 256  # rows, so that their pages stay in the TLB from tile to tile


class SparseFeatureGram(Gram):
    """The dot products of sparse features (n, d), without the matrix; ``dtype`` is that of columns only."""

    def __init__(
        self, features: FeatureMatrix, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> None:
        self.constant, self.workers = constant, workers
        self.dtype, self.n_rows = np.dtype(dtype), len(features)
        self._diagonal = features.squared_norms() + constant
        self.ordered = _by_frequency(sp.csr_array(features.data, dtype=np.float64))
        self._tables: dict[np.dtype[Any], tuple[sp.csr_array, SparseProducts]] = {}

    @staticmethod
    def scratch_bytes(n_rows: int, n_features: int) -> float:
        """Estimate the memory for vectors within a double-precision product."""
        return 8.0 * TILE * (_TILES_AT_ONCE * n_rows + n_features)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self._diagonal.copy()

    def columns(self, which: Array) -> Array:
        chosen = np.zeros((self.n_rows, len(which)), self.dtype)
        chosen[which, np.arange(len(which))] = 1
        return self.product(chosen)

    def product(self, vectors: Array) -> Array:
        """Compute the product, fastest for multiples of 16 vectors whose rows are contiguous."""
        csr, table = self._table(vectors.dtype)
        if vectors.shape[1] <= _FEW:
            product = np.asarray(csr @ (csr.T @ vectors))
        else:
            product = self._product_in_tiles(table, vectors)
        if self.constant:
            product += vectors.dtype.type(self.constant) * vectors.sum(axis=0)
        return product

    def _table(self, dtype: np.dtype[Any]) -> tuple[sp.csr_array, SparseProducts]:
        """Return the features in the type of the vectors; cached."""
        if dtype not in self._tables:
            csr = self.ordered.astype(dtype, copy=False)
            self._tables[dtype] = csr, SparseProducts(csr, dtype, self.workers)
        return self._tables[dtype]

    def _product_in_tiles(self, table: SparseProducts, vectors: Array) -> Array:
        product = np.empty(vectors.shape, vectors.dtype)
        n_tiles = min(_TILES_AT_ONCE, -(-vectors.shape[1] // TILE))
        tiles = aligned_empty((n_tiles, self.n_rows, TILE), vectors.dtype)
        inner = aligned_empty((table.shape[1], TILE), vectors.dtype)
        for some in panels(vectors.shape[1], _TILES_AT_ONCE * TILE):
            used = tiles[: -(-(some.stop - some.start) // TILE)]
            to_tiles(vectors[:, some], used, self.workers)
            for tile in used:
                table.matmul(table.adjoint(tile, inner), tile)
            from_tiles(used, product[:, some], self.workers)
        return product


def _by_frequency(csr: sp.csr_array) -> sp.csr_array:
    """Renumber the features, the most frequent first and without unused ones.

    Dot products do not change, and the most used entries are contiguous: fewer cache misses.
    """
    kept = csr.copy()
    kept.eliminate_zeros()
    used, numbers, counts = np.unique(kept.indices, return_inverse=True, return_counts=True)
    places = np.empty_like(used)
    places[np.argsort(-counts, kind="stable")] = np.arange(len(used))
    ordered = sp.csr_array((kept.data, places[numbers], kept.indptr), shape=(kept.shape[0], len(used)))
    ordered.sort_indices()
    return ordered


def to_tiles(columns: Array, tiles: Array, workers: Workers) -> None:
    """Copy columns (n, p) into tiles (t, n, 16), padded with zeros."""

    def one(rows: slice) -> None:
        for tile, some in zip(tiles, panels(columns.shape[1], TILE), strict=True):
            width = some.stop - some.start
            tile[rows, :width] = columns[rows, some]
            tile[rows, width:] = 0

    workers.each(one, panels(len(columns), _COPY_PANEL))


def from_tiles(tiles: Array, columns: Array, workers: Workers) -> None:
    """Copy tiles (t, n, 16) into columns (n, p)."""

    def one(rows: slice) -> None:
        for tile, some in zip(tiles, panels(columns.shape[1], TILE), strict=True):
            columns[rows, some] = tile[rows, : some.stop - some.start]

    workers.each(one, panels(len(columns), _COPY_PANEL))
