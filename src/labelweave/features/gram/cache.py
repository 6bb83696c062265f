"""Rows of a kernel matrix, computed on demand and cached while memory allows.

One cache serves all labels, as in section 5.1.3 of the M3L paper (journal version); the
least recently used row is evicted.  If the whole matrix fits, it fills up completely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.features.gram.sources import GramSource
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, panels

_COLUMNS = 2048  # computed at a time, which bounds the kernel's temporary memory


@dataclass(frozen=True)
class CacheContent:
    """The row numbers in a cache, without their entries, to fill another cache with the same bits.

    row_of, used (slots,): the row of each slot, -1 for none, and the time of its last use.
    batch_of (slots,): the batch that computed it; a product's last bits depend on the batch.
    batches: the rows of each batch that is still partly cached, by number.
    """

    row_of: Array
    used: Array
    batch_of: Array
    batches: list[tuple[int, Array]]
    time: int


class CachedRows:
    """The most recently used rows of ``K + constant``, in one array of a fixed size.

    budget_bytes: memory for rows, including the block returned last.
    block_rows: the largest number of rows per request.
    Raises ValueError if the budget is too small for a block, with the smallest sufficient one.
    """

    def __init__(
        self,
        source: GramSource,
        constant: float,
        budget_bytes: float,
        dtype: npt.DTypeLike,
        block_rows: int = 2,
        workers: Workers | None = None,
    ) -> None:
        self.source, self.constant, self.workers = source, constant, workers or Workers()
        self.dtype, self.n_rows = np.dtype(dtype), source.n_rows
        n_slots = self._slots_within(budget_bytes, min(block_rows, self.n_rows))
        self._table = np.empty((n_slots, self.n_rows), self.dtype)
        self._slot_of = np.full(self.n_rows, -1)
        self._row_of = np.full(n_slots, -1)
        self._used = np.zeros(n_slots, np.int64)  # time of last use; 0 is never
        self._batch_of = np.full(n_slots, -1)
        self._batches: dict[int, Array] = {}
        self._time = 0
        self.hits = self.misses = 0

    def _slots_within(self, budget: float, block_rows: int) -> int:
        row_bytes = self.n_rows * self.dtype.itemsize
        n_slots = int(min(self.n_rows, budget // row_bytes - block_rows))
        if n_slots < block_rows:
            least = 2 * block_rows * row_bytes
            raise ParameterError(
                f"`memory_budget` is {budget / 1e6:g} MB, too small for {block_rows} rows of the kernel "
                f"matrix of {self.n_rows} rows and a copy; pass at least {np.ceil(least / 1e4) / 100:g} MB."
            )
        return n_slots

    @property
    def n_slots(self) -> int:
        return len(self._table)

    @property
    def is_held(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._slot_of >= 0)

    def content(self) -> CacheContent:
        self._drop_batches()
        slots = self._row_of.copy(), self._used.copy(), self._batch_of.copy()
        return CacheContent(*slots, list(self._batches.items()), self._time)

    def _drop_batches(self) -> None:
        held = set(self._batch_of[self._row_of >= 0].tolist())
        self._batches = {number: rows for number, rows in self._batches.items() if number in held}

    def refill(self, content: CacheContent) -> None:
        """Cache the rows that another cache of the same matrix had, unless they are cached already."""
        if content.time == self._time and np.array_equal(content.row_of, self._row_of):
            return
        self._row_of[:], self._slot_of[:] = -1, -1
        kept_rows = [content.row_of, *(rows for _, rows in content.batches)]
        if any(rows.max(initial=-1) >= self.n_rows or rows.min(initial=0) < -1 for rows in kept_rows):
            raise ValueError(f"the cached rows of the kernel matrix are not among its {self.n_rows} rows")
        for number, missing in content.batches:
            kept = np.flatnonzero((content.batch_of == number) & (content.row_of >= 0))
            places = np.searchsorted(missing, content.row_of[kept])
            self._table[kept] = self._computed(missing)[places]
        self._row_of[:], self._used[:] = content.row_of, content.used
        self._batch_of[:], self._time = content.batch_of, content.time
        self._batches = dict(content.batches)
        held = np.flatnonzero(self._row_of >= 0)
        self._slot_of[self._row_of[held]] = held

    def row(self, index: int) -> PerRow:
        """Return one row, valid until as many other rows are requested as there are slots."""
        slot = int(self._slot_of[index])
        if slot < 0:
            slot = int(self._fill(np.array([index]))[0])
        else:
            self.hits += 1
        self._time += 1
        self._used[slot] = self._time
        return np.asarray(self._table[slot])

    def rows(self, indices: Array) -> Array:
        """Copy at most ``block_rows`` different rows; missing ones are computed together."""
        self._time += 1
        slots = self._slot_of[indices]
        self._used[slots[slots >= 0]] = self._time  # protects them from eviction
        missing = np.unique(indices[slots < 0])
        self.hits += len(indices) - len(missing)
        if len(missing):
            self._used[self._fill(missing)] = self._time
        return np.asarray(self._table[self._slot_of[indices]])

    def _fill(self, missing: Array) -> Array:
        """Compute rows in place of the least recently used ones; return their slots."""
        slots = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
        given_up = self._row_of[slots]
        self._slot_of[given_up[given_up >= 0]] = -1
        self._row_of[slots] = -1  # until computed, so that an interrupt leaves no wrong row
        self._table[slots] = self._computed(missing)
        self._row_of[slots] = missing
        if len(self._batches) >= 2 * self.n_slots:  # rarely, as it checks all batches
            self._drop_batches()
        number = 1 + next(reversed(self._batches), -1)  # they are in ascending order
        self._batch_of[slots], self._batches[number] = number, missing
        self._slot_of[missing] = slots
        self.misses += len(missing)
        return slots

    def _computed(self, missing: Array) -> Array:
        rows = np.empty((len(missing), self.n_rows), self.dtype)

        def one(columns: slice) -> None:
            rows[:, columns] = self.source.block(missing, columns, self.dtype)
            rows[:, columns] += np.asarray(self.constant, self.dtype)

        self.workers.each(one, panels(self.n_rows, _COLUMNS))
        return rows
