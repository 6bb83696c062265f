"""A sparse matrix that multiplies dense ones, a tile of 16 columns at a time.

A product ``A V`` adds multiples of rows of V.  In a tile such a row is one or two cache
lines, and the sum stays in registers; the tile of V is small enough for the processor's
caches, which all of V seldom is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave._loops.sparse_products import multiply_rows
from labelweave.array_types import Array
from labelweave.arrays import Workers, panels

__all__ = ["TILE", "SparseTable", "from_tiles", "to_tiles"]


TILE = 16  # columns, as many as the compiled loop takes
_PARTS = 8  # of about equal work, for threads
_COPY_PANEL = 256  # rows, so that their pages stay known to the processor from tile to tile


class SparseTable:
    """A sparse matrix, read row by row.

    Shapes: csr (m, k).
    """

    def __init__(self, csr: sp.csr_array) -> None:
        self.shape: tuple[int, int] = csr.shape
        narrow = self.shape[1] <= np.iinfo(np.int32).max
        self.indptr = csr.indptr.astype(np.int64, copy=False)
        self.indices = csr.indices.astype(np.int32 if narrow else np.int64, copy=False)
        self._tables: dict[np.dtype[Any], sp.csr_array] = {csr.dtype: csr}
        self._parts = _equal_parts(self.indptr)

    def multiply(self, tile: Array, product: Array, workers: Workers) -> None:
        """Multiply by a tile of columns.

        tile (k, 16): the tile, float32 or float64.
        product (m, 16): where the product goes; of the same type.
        workers: the threads; every row of a product is one sum, whoever computes it.
        """
        values = self._table(tile.dtype).data

        def one(rows: slice) -> None:
            multiply_rows(self.indptr[rows.start : rows.stop + 1], self.indices, values, tile, product[rows])

        workers.each(one, self._parts)

    def multiply_few(self, columns: Array) -> Array:
        """Multiply by so few columns that a tile would be mostly empty.

        columns (k, p): the columns, float32 or float64.
        Returns (m, p): the product, computed on one thread.
        """
        return np.asarray(self._table(columns.dtype) @ columns)

    def _table(self, dtype: np.dtype[Any]) -> sp.csr_array:
        if dtype not in self._tables:
            first = next(iter(self._tables.values()))
            parts = first.data.astype(dtype), first.indices, first.indptr
            self._tables[dtype] = sp.csr_array(parts, shape=self.shape)
        return self._tables[dtype]


def _equal_parts(indptr: Array) -> list[slice]:
    work = indptr + np.arange(len(indptr))  # an empty row takes time too
    cuts = np.searchsorted(work, np.linspace(0, work[-1], _PARTS + 1)).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts) if start < stop]


def to_tiles(columns: Array, tiles: Array, workers: Workers) -> None:
    """Copy columns into tiles, and zeros into what is left of the last one.

    columns (n, p): the columns, p > 16 (t - 1) and p <= 16 t.
    Shapes: tiles (t, n, 16).
    """
    full, rest = divmod(columns.shape[1], TILE)

    def one(rows: slice) -> None:
        for tile in range(full):
            tiles[tile, rows] = columns[rows, tile * TILE : (tile + 1) * TILE]
        if rest:
            tiles[full, rows, :rest] = columns[rows, full * TILE :]
            tiles[full, rows, rest:] = 0

    workers.each(one, panels(len(columns), _COPY_PANEL))


def from_tiles(tiles: Array, columns: Array, workers: Workers) -> None:
    """Copy tiles into columns.

    columns (n, p): the columns, p > 16 (t - 1) and p <= 16 t.
    Shapes: tiles (t, n, 16).
    """
    full, rest = divmod(columns.shape[1], TILE)

    def one(rows: slice) -> None:
        for tile in range(full):
            columns[rows, tile * TILE : (tile + 1) * TILE] = tiles[tile, rows]
        if rest:
            columns[rows, full * TILE :] = tiles[full, rows, :rest]

    workers.each(one, panels(len(columns), _COPY_PANEL))
