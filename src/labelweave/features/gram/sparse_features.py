"""The dot products of explicit features of which few are not zero (Seeger 2008, appendix D.3).

``K V = X (X^T V)`` is two sparse products and never the matrix K.  X is held row by row both as it is
and transposed, so that both products gather rows of a dense matrix and scatter none: the
order of the additions is that of the entries, whatever the threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram.stored import Gram
from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, aligned_empty, panels

TILE = 16  # columns, which stand in one or two cache lines
_FEW = 3  # vectors, with which a tile would be slower
_TILES_AT_ONCE = 8  # copied together; one after the other is multiplied, within the cache
_COPY_PANEL = 256  # rows, so that their pages stay known to the processor from tile to tile


class SparseFeatureGram(Gram):
    """The dot products of sparse explicit features, never written out.

    constant: added to every dot product.
    dtype: the precision of columns; a product is computed in the type of the vectors.
    Shapes: features (n, d).
    """

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
        """Estimate the memory for vectors within a product in double precision.

        n_rows, n_features: the size of the features.
        """
        return 8.0 * TILE * (_TILES_AT_ONCE * n_rows + n_features)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self._diagonal.copy()

    def columns(self, which: Array) -> Array:
        chosen = np.zeros((self.n_rows, len(which)), self.dtype)
        chosen[which, np.arange(len(which))] = 1
        return self.product(chosen)

    def product(self, vectors: Array) -> Array:
        """Compute the product; see :meth:`Gram.product`.

        It is fastest for multiples of 16 vectors whose rows are contiguous.
        """
        csr, table = self._table(vectors.dtype)
        if vectors.shape[1] <= _FEW:
            product = np.asarray(csr @ (csr.T @ vectors))
        else:
            product = self._product_in_tiles(table, vectors)
        if self.constant:
            product += vectors.dtype.type(self.constant) * vectors.sum(axis=0)
        return product

    def _table(self, dtype: np.dtype[Any]) -> tuple[sp.csr_array, SparseProducts]:
        """Give the features in the type of the vectors; made once."""
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
    """Number the features anew, the most frequent first and unused ones left out.

    Dot products stay as they are, and what is read most stands together: fewer cache misses.
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
    """Copy columns (n, p) into tiles (t, n, 16), and zeros into what is left of the last one."""

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
