"""Tables in one pass over their memory: updates in place, inner products, memory at a cache line.

NumPy converts float32 a few entries at a time (``einsum`` in float64: 3 to 6 GB/s measured); these loops
run at the rate of the memory (25 to 30 GB/s).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave._loops.tables import (
    add_column_products,
    add_multiples,
    multiply_and_add_rows,
    row_product_sums,
)
from labelweave.array_types import Array, PerRow
from labelweave.arrays.workers import Workers, panels

__all__ = ["add_multiple", "aligned_empty", "column_inner", "multiply_and_add", "row_inner", "weighted_rows"]

_AT_ONCE = 2**18  # entries: many enough for a thread, few enough that every thread gets some
_LINE = 64  # bytes


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Make an array in C order that starts at a cache line, its entries not set.

    NumPy's large arrays start 16 bytes behind one, so that a vector register is filled from two lines:
    loops that gather rows of a few lines then take twice as long.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def weighted_rows(table: Array, weights: PerRow) -> Array:
    """Multiply every row of a table by its weight; the table itself where all weights are 1."""
    return table if (weights == 1).all() else table * weights[:, None]


def add_multiple(target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    """Compute ``target += rate * vector``; the rate is one number, or one a row or column."""
    factors = _factors(rate, target.dtype)

    def one(rows: slice) -> None:
        add_multiples(target[rows], _of_rows(factors, rows), vector[rows])

    workers.each(one, _runs(target))


def multiply_and_add(target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    """Compute ``target = rate * target + vector``."""
    factors = _factors(rate, target.dtype)

    def one(rows: slice) -> None:
        multiply_and_add_rows(target[rows], _of_rows(factors, rows), vector[rows])

    workers.each(one, _runs(target))


def column_inner(left: Array, right: Array, workers: Workers) -> npt.NDArray[np.float64]:
    """Multiply tables (n, k) entry by entry and add up each column.

    Runs of rows are added in order, so that the sums do not depend on the threads.
    """
    _require_one_shape(left, right)
    runs = _runs(left)
    sums = np.zeros((len(runs), left.shape[1]))

    def one(number: int) -> None:
        add_column_products(*_pair(left, right, runs[number]), sums[number])

    workers.each(one, list(range(len(runs))))
    return np.asarray(sums.sum(axis=0))


def row_inner(left: Array, right: Array, workers: Workers) -> npt.NDArray[np.float64]:
    """Multiply tables (n, k) entry by entry and add up each row."""
    _require_one_shape(left, right)
    sums = np.empty(len(left))

    def one(rows: slice) -> None:
        row_product_sums(*_pair(left, right, rows), sums[rows])

    workers.each(one, _runs(left))
    return sums


def _factors(rate: float | Array, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(np.atleast_2d(np.asarray(rate, dtype)))


def _of_rows(factors: Array, rows: slice) -> Array:
    """Give the numbers of some rows, or all where they are not one a row."""
    return factors[rows] if len(factors) > 1 else factors


def _runs(table: Array) -> list[slice]:
    return panels(len(table), max(1, _AT_ONCE // max(1, table.shape[1])))


def _require_one_shape(left: Array, right: Array) -> None:
    if left.ndim != 2 or left.shape != right.shape:
        raise ValueError(f"two tables of one shape are needed, not of {left.shape} and {right.shape}.")


def _pair(left: Array, right: Array, rows: slice) -> tuple[Array, Array]:
    """Give a run of rows of both, contiguous and of one type, which keeps the compiled loops few."""
    wide = left.dtype if left.dtype == right.dtype == np.float32 else np.dtype(np.float64)
    return np.ascontiguousarray(left[rows], wide), np.ascontiguousarray(right[rows], wide)
