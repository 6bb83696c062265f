"""Operations on tables in one memory pass: updates, inner products, ratios, cache-aligned memory.

NumPy converts float32 a few entries at a time (``einsum`` in float64: 3 to 6 GB/s measured); these loops
run at the rate of the memory (25 to 30 GB/s).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Array, Floats, PerRow
from labelweave.foundation.arrays import linear_algebra
from labelweave.foundation.arrays.linear_algebra import Workers

_AT_ONCE = 2**18  # entries: enough work for a thread, small enough to occupy every thread
_LINE = 64  # bytes


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialized array in C order that starts at a cache line.

    NumPy's large arrays start 16 bytes after one, so that a vector register is filled from two lines:
    loops that gather rows of a few lines then take twice as long.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def weighted_rows(table: Array, weights: PerRow) -> Array:
    """Multiply every row of a table by its weight; return the table itself if all weights are 1."""
    return table if (weights == 1).all() else table * linear_algebra.like(weights[:, None], table)


def ratios(above: Any, below: Any, otherwise: float = 0.0) -> Floats:
    """Divide where the divisor is positive; use another number elsewhere."""
    divisor = np.asarray(below)
    result = np.full(divisor.shape, otherwise, np.float64)
    np.divide(above, divisor, out=result, where=divisor > 0)
    return result


def largest_columns(table: Array, k: int) -> npt.NDArray[np.int64]:
    """Return the columns of the k largest entries per row in descending order, ties by ascending column."""
    n_columns = table.shape[1]
    # a partition breaks ties arbitrarily, so use only its k-th value
    least = np.partition(table, n_columns - k, axis=1)[:, [n_columns - k]]
    chosen, tied = table > least, table == least
    room = k - chosen.sum(axis=1, keepdims=True)
    chosen |= tied & (np.cumsum(tied, axis=1, dtype=np.int32) <= room)
    columns = np.nonzero(chosen)[1].reshape(len(table), k)
    order = np.argsort(-np.take_along_axis(table, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def add_multiple(target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    """Compute ``target += rate * vector``; the rate is one number, or one per row or column."""
    from labelweave.foundation.loops import tables as loops

    if linear_algebra.is_numpy(target):
        _update(loops.add_multiples, target, rate, vector, workers)
    else:
        target += linear_algebra.like(np.asarray(rate), target) * vector


def multiply_and_add(target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    from labelweave.foundation.loops import tables as loops

    if linear_algebra.is_numpy(target):
        _update(loops.multiply_and_add_rows, target, rate, vector, workers)
    else:
        target *= linear_algebra.like(np.asarray(rate), target)
        target += vector


def _update(loop: Any, target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    factors = np.ascontiguousarray(np.atleast_2d(np.asarray(rate, target.dtype)))

    def one(rows: slice) -> None:
        loop(target[rows], factors[rows] if len(factors) > 1 else factors, vector[rows])

    workers.each(one, _runs(target))


def divided_by_outer(table: Array, column: Array, row: Array, added: float, workers: Workers) -> Array:
    """Divide a table (m, k) by ``column row^T + added``, column (m, 1) or (1, 1).

    The result is 0 where that is not positive.  The divisor is computed in blocks of rows.
    """
    column = np.broadcast_to(column, (table.shape[0], 1))
    added = row.dtype.type(added)

    def inverse(rows: slice) -> Array:
        divisor: Array = column[rows] * row
        divisor += added
        if added > 0:
            np.divide(1.0, divisor, out=divisor)
            return divisor
        return np.asarray(np.divide(1.0, divisor, out=np.zeros_like(divisor), where=divisor > 0))

    if not linear_algebra.is_numpy(table):
        return table * linear_algebra.like(inverse(slice(None)), table)
    quotients = np.empty_like(table)

    def one(rows: slice) -> None:
        np.multiply(inverse(rows), table[rows], out=quotients[rows])

    workers.each(one, _runs(table))
    return quotients


def column_inner(left: Array, right: Array, workers: Workers) -> Floats:
    """Multiply tables (n, k) entry by entry and sum each column.

    Blocks of rows are summed in order, so that the sums do not depend on the threads.
    """
    from labelweave.foundation.loops import tables as loops

    _require_one_shape(left, right)
    if not linear_algebra.is_numpy(left):
        return linear_algebra.column_products(left, right)

    def one(rows: slice) -> Floats:
        sums = np.zeros(left.shape[1])
        loops.add_column_products(*_pair(left, right, rows), sums)
        return sums

    parts = workers.map(one, _runs(left))
    return np.asarray(np.reshape(parts, (len(parts), left.shape[1])).sum(axis=0))


class WeighedColumns:
    """The part of a loss of entries for a fixed factor N, shape (columns, k), with column weights C."""

    column_weights: Array
    least: float = -np.inf
    takes_single: bool = False

    def gram(self, fixed: Array, workers: Workers) -> Floats:
        """Compute ``N^T C N``, shape (k, k)."""
        return linear_algebra.to_numpy(
            workers.inner(fixed, weighted_rows(fixed, self.column_weights), np.float64)
        )

    def spread(self, fixed: Array, workers: Workers) -> Floats:
        """Compute the diagonal of ``N^T C N``, shape (k,)."""
        return column_inner(fixed, weighted_rows(fixed, self.column_weights), workers)


def row_inner(left: Array, right: Array, workers: Workers) -> Floats:
    """Multiply tables (n, k) entry by entry and sum each row."""
    from labelweave.foundation.loops import tables as loops

    _require_one_shape(left, right)
    if not linear_algebra.is_numpy(left):
        return linear_algebra.to_numpy(linear_algebra.namespace(left).sum(left * right, axis=1))
    sums = np.empty(len(left))

    def one(rows: slice) -> None:
        loops.row_product_sums(*_pair(left, right, rows), sums[rows])

    workers.each(one, _runs(left))
    return sums


def _runs(table: Array) -> list[slice]:
    return linear_algebra.panels(len(table), max(1, _AT_ONCE // max(1, table.shape[1])))


def _require_one_shape(left: Array, right: Array) -> None:
    if left.ndim != 2 or left.shape != right.shape:
        raise ValueError(f"two tables have the shapes {left.shape} and {right.shape}; pass the same shape.")


def _pair(left: Array, right: Array, rows: slice) -> tuple[Array, Array]:
    """Return a block of rows of both, contiguous and of one type, to limit the number of compiled loops."""
    wide = left.dtype if left.dtype == right.dtype == np.float32 else np.dtype(np.float64)
    return np.ascontiguousarray(left[rows], wide), np.ascontiguousarray(right[rows], wide)
