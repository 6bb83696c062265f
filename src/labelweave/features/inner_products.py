"""Inner products of two tables by row or by column, summed in double precision.

NumPy converts float32 a few entries at a time (``einsum`` in float64: 3 to 6 GB/s measured); these loops
run at the rate of the memory (25 to 30 GB/s).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave._loops.inner_sums import add_column_products, row_product_sums
from labelweave.array_types import Array
from labelweave.arrays import Workers, panels

__all__ = ["column_inner", "row_inner"]


_RUN = 2**18  # entries: many enough for a thread, few enough that every thread gets some


def column_inner(left: Array, right: Array, workers: Workers) -> npt.NDArray[np.float64]:
    """Multiply tables entry by entry and add up each column.

    left, right (n, k): the tables, float32 or float64.
    workers: the threads; runs of rows are added in order, so that the sums do not depend on them.
    Shapes: result (k,).
    """
    runs = _runs(left, right)
    sums = np.zeros((len(runs), left.shape[1]))

    def one(number: int) -> None:
        add_column_products(*_pair(left, right, runs[number]), sums[number])

    workers.each(one, list(range(len(runs))))
    return np.asarray(sums.sum(axis=0))


def row_inner(left: Array, right: Array, workers: Workers) -> npt.NDArray[np.float64]:
    """Multiply tables entry by entry and add up each row.

    left, right (n, k): the tables, float32 or float64.
    Shapes: result (n,).
    """
    runs = _runs(left, right)
    sums = np.empty(len(left))

    def one(rows: slice) -> None:
        row_product_sums(*_pair(left, right, rows), sums[rows])

    workers.each(one, runs)
    return sums


def _runs(left: Array, right: Array) -> list[slice]:
    if left.ndim != 2 or left.shape != right.shape:
        raise ValueError(f"two tables of one shape are needed, not of {left.shape} and {right.shape}.")
    return panels(len(left), max(1, _RUN // max(1, left.shape[1])))


def _pair(left: Array, right: Array, rows: slice) -> tuple[Array, Array]:
    """Give a run of rows of both, contiguous and of one type, which keeps the compiled loops few."""
    wide = left.dtype if left.dtype == right.dtype == np.float32 else np.dtype(np.float64)
    return np.ascontiguousarray(left[rows], wide), np.ascontiguousarray(right[rows], wide)
