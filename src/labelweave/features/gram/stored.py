"""A kernel matrix that is kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.features.gram.base import Gram
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.streamed import StreamedGram

__all__ = ["StoredGram"]

_BUILD_PANEL = 1024


class StoredGram(Gram):
    """A kernel matrix that is kept.

    origin: the matrix in double precision, for products in double precision if the table has less.
    Shapes: table (n, n).
    """

    def __init__(self, table: Array, workers: Workers, origin: Gram | None = None) -> None:
        self.table, self.workers, self.origin = table, workers, origin
        self.n_rows, self.dtype = len(table), table.dtype

    @classmethod
    def from_source(
        cls, source: GramSource, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> StoredGram:
        """Compute the matrix once, each pair of rows once.

        source: where the entries come from; asked for float64 and rounded once.
        """
        table = np.empty((source.n_rows, source.n_rows), dtype)
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
        return np.asarray(self.table.diagonal(), dtype=np.float64)

    def columns(self, which: Array) -> Array:
        return np.ascontiguousarray(self.table[which].T)

    def product(self, vectors: Array) -> Array:
        if self.origin is not None and vectors.dtype == np.float64 != self.dtype:
            return self.origin.product(vectors)
        return self.workers.matmul(self.table, vectors)

    def block(self, rows: Array) -> Array:
        """Give the entries between some rows.

        Returns (k, k): A copy of the entries.
        Shapes: rows (k,).
        """
        return np.asarray(self.table[np.ix_(rows, rows)], dtype=np.float64)
