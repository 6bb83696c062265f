"""A kernel matrix that is computed anew in every product."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.features.gram.base import Gram
from labelweave.features.gram.sources import GramSource

__all__ = ["StreamedGram"]

_SMALLEST_SIDE, _LARGEST_SIDE = 64, 2048  # of the blocks in which a matrix is computed
_LANES = 4


class StreamedGram(Gram):
    """A kernel matrix that is computed panel by panel whenever it is used.

    source: where the entries come from.
    dtype: the precision of the entries.
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
        found = np.empty((self.n_rows, len(which)), self.dtype)

        cuts = panels(self.n_rows, self._panel_rows(len(which)))

        def one(lane: int) -> None:
            for panel in cuts[lane::_LANES]:
                found[panel] = self.source.block(panel, which, self.dtype)

        self.workers.each(one, list(range(_LANES)))
        found += self.dtype.type(self.constant)
        return found

    def product(self, vectors: Array) -> Array:
        """Compute the product; see :meth:`Gram.product`.

        Every pair of rows is computed once and serves both of them.  The pairs of panels are dealt
        to a fixed number of lanes, each with a sum of its own, so that the threads do not matter.
        """
        cuts = panels(self.n_rows, self._block_side(vectors.dtype))
        pairs = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[: i + 1]]
        sums: list[Any] = [None] * _LANES

        def one(lane: int) -> None:
            sums[lane] = np.zeros_like(vectors)
            for rows, columns in pairs[lane::_LANES]:
                self._add_products(sums[lane], vectors, rows, columns)

        self.workers.each(one, list(range(_LANES)))
        product: Array = self.constant * vectors.sum(axis=0) + sums[0]
        for part in sums[1:]:
            product += part
        return product

    def _add_products(self, product: Array, vectors: Array, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns, vectors.dtype)
        product[rows] += block @ vectors[columns]
        if rows != columns:
            product[columns] += block.T @ vectors[rows]

    def _block_side(self, dtype: npt.DTypeLike) -> int:
        # a block of values needs room for a second one while it is computed; what a lane may use does
        # not depend on the threads, since the sizes of blocks decide the last bits
        entries = self.panel_bytes / (2 * np.dtype(dtype).itemsize * _LANES)
        return int(min(_LARGEST_SIDE, max(_SMALLEST_SIDE, np.sqrt(entries))))

    def _panel_rows(self, width: int) -> int:
        bytes_a_row = 2 * self.dtype.itemsize * max(1, width) * _LANES
        return max(1, min(_LARGEST_SIDE, int(self.panel_bytes / bytes_a_row)))
