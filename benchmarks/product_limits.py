"""The least time that the machine needs for products that read rows of a table.

Bytes move at the rates at which BLAS reads two vectors in each cache and in memory, multiplications and
additions at the rate of BLAS for a square product.  Rows of a table come from the second level cache where
they are among the most frequent ones that it can hold, from the third where that can hold
them, else from memory; the caches keep what a perfect choice would keep, and are this process's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import timed

LEVELS = ("second", "third", "memory")


@dataclass
class Limits:
    """What the machine can do on one core.

    cache_bytes: sizes of the second and third level caches.
    read_rates: bytes a second, of vectors, for each of ``LEVELS``.
    operation_rate: multiplications and additions a second in a square product.
    """

    cache_bytes: tuple[int, int]
    read_rates: dict[str, float]
    operation_rate: float

    def gather_seconds(
        self,
        counts: Any,
        row_bytes: int,
        other_bytes: float,
        operations: float,
        row_rates: dict[str, float] | None = None,
    ) -> float:
        """Give the least time of a product that reads a row of a table for each entry.

        counts: how often each row is read; every cache gets the rows that are read most.
        other_bytes: bytes that come from memory once.
        operations: multiplications and additions.
        row_rates: bytes a second of rows from each level; by default those of vectors; or None.
        """
        rates = self.read_rates if row_rates is None else row_rates
        counts = np.sort(counts)[::-1]
        cuts = [min(size // row_bytes, len(counts)) for size in self.cache_bytes]
        reads = [part.sum() for part in np.split(counts, cuts)]
        seconds = sum(
            float(number) * row_bytes / rates[level] for number, level in zip(reads, LEVELS, strict=True)
        )
        first = np.count_nonzero(counts[: cuts[1]]) * row_bytes
        seconds += (first + other_bytes) / self.read_rates["memory"]
        return max(seconds, operations / self.operation_rate)


def measure_limits(dtype: Any) -> Limits:
    """Measure what one core can do.

    dtype: type of the numbers.
    """
    square = np.ones((1_536, 1_536), dtype)
    seconds = min(timed(lambda: square @ square)[1] for _ in range(5))
    rates = {level: _read_rate(size, np.dtype(dtype)) for level, size in level_sizes().items()}
    return Limits((_cache_bytes(2), _cache_bytes(3)), rates, 2.0 * len(square) ** 3 / seconds)


def _read_rate(size: int, dtype: np.dtype[Any]) -> float:
    from labelweave.foundation.arrays import aligned_empty

    pair = aligned_empty((2, size // 2 // dtype.itemsize), dtype)
    pair[:] = 1
    times = max(1, 2**26 // size)

    def read() -> None:
        for _ in range(times):
            np.dot(pair[0], pair[1])

    return times * size / min(timed(read)[1] for _ in range(10))


def row_rate(size: int, width: int, dtype: np.dtype[Any]) -> float:
    """Measure our product with rows in uniformly random order from a table.

    size: bytes of the table.
    """
    from labelweave.features.sparse_products import SparseProducts
    from labelweave.foundation.arrays import Workers

    n_rows, a_row = size // width // dtype.itemsize, 100
    n_products = max(10, min(2_000, 2**29 // (a_row * width * dtype.itemsize)))
    indices = np.random.default_rng(2).integers(0, n_rows, n_products * a_row, np.int32)
    parts = np.ones(indices.size, dtype), indices, np.arange(0, indices.size + 1, a_row)
    ours = SparseProducts(sp.csr_array(parts, shape=(n_products, n_rows)), dtype, Workers())
    table, out = np.ones((n_rows, width), dtype), np.empty((n_products, width), dtype)
    ours.matmul(table, out)
    seconds = min(timed(ours.matmul, table, out)[1] for _ in range(5))
    return indices.size * width * dtype.itemsize / seconds


def level_sizes() -> dict[str, int]:
    """Choose bytes that lie well within each cache, and well beyond.

    Returns: bytes for each of ``LEVELS``.
    """
    second, third = _cache_bytes(2), _cache_bytes(3)
    return {"second": second // 2, "third": min(third // 4, 8 * second), "memory": 4 * third}


def _cache_bytes(level: int) -> int:
    listing = Path(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size")
    return (
        int(listing.read_text().strip().removesuffix("K")) * 1024
        if listing.exists()
        else 2 ** (10 + 5 * level)
    )
