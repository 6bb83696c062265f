"""Operations on tables: updates, inner products and ratios in one memory pass, and Cholesky factors.

NumPy converts float32 a few entries at a time (``einsum`` in float64: 3 to 6 GB/s measured); these loops
run at the rate of the memory (25 to 30 GB/s).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.foundation.array_types import Array, Floats, PerRow
from labelweave.foundation.arrays import linear_algebra
from labelweave.foundation.arrays.linear_algebra import Workers

_AT_ONCE = 2**18  # entries: enough work for a thread, small enough to occupy every thread
_LINE = 64  # bytes
_TILE, _DEVICE_TILE = 256, 2048  # columns of a Cholesky factor; each call on a device takes a while to start


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


class CholeskyFactor:
    """The lower triangular C of ``matrix = C C^T`` (n, n), which overwrites its lower triangle.

    Diagonal tiles are inverted, so that solves are matrix products.
    Raises numpy.linalg.LinAlgError if the matrix is not positive definite.
    """

    def __init__(self, matrix: Array, workers: Workers) -> None:
        self.table, self.workers = matrix, workers
        self.is_cut = linear_algebra.is_numpy(matrix)
        self.tiles = linear_algebra.panels(matrix.shape[0], _TILE if self.is_cut else _DEVICE_TILE)
        self.inverses: list[Array] = []
        for tile in self.tiles:
            self._eliminate(tile)

    def _eliminate(self, tile: slice) -> None:
        """Factorize one block of columns and subtract its part from the columns to its right."""
        table = self.table
        inverse = _inverse_root(table[tile, tile])
        self.inverses.append(inverse)
        below = self._cut(tile.stop, table.shape[0], 2 * _TILE)

        def column(part: slice) -> None:
            table[part, tile] = table[part, tile] @ inverse.T

        def trailing(part: slice) -> None:
            to_the_left = slice(tile.stop, part.stop)
            table[part, to_the_left] -= table[part, tile] @ table[to_the_left, tile].T

        self.workers.each(column, below)
        self.workers.each(trailing, below[::-1])  # the longest first

    def solve(self, right: Array) -> Array:
        """Solve ``matrix @ X = right`` for (n, p) right-hand sides, which are not changed."""
        solution = linear_algebra.copied(right)
        for tile, inverse in zip(self.tiles, self.inverses, strict=True):
            solution[tile, ...] = inverse @ solution[tile, ...]
            self._take_off(solution, tile, (tile.stop, solution.shape[0]), transposed=False)
        for tile, inverse in zip(self.tiles[::-1], self.inverses[::-1], strict=True):
            solution[tile, ...] = inverse.T @ solution[tile, ...]
            self._take_off(solution, tile, (0, tile.start), transposed=True)
        return solution

    def _take_off(self, solution: Array, tile: slice, others: tuple[int, int], *, transposed: bool) -> None:
        known, table = solution[tile, ...], self.table

        def one(part: slice) -> None:
            solution[part, ...] -= (table[tile, part].T if transposed else table[part, tile]) @ known

        self.workers.each(one, self._cut(*others, 4 * _TILE))

    def _cut(self, start: int, stop: int, size: int) -> list[slice]:
        size = size if self.is_cut else 4 * _DEVICE_TILE  # whose product is small compared with the table
        return [
            slice(part.start + start, part.stop + start) for part in linear_algebra.panels(stop - start, size)
        ]


def _inverse_root(corner: Array) -> Array:
    """Return the inverse of the lower triangular Cholesky factor of a tile."""
    if linear_algebra.is_numpy(corner):
        root = sl.cholesky(corner, lower=True, check_finite=False)
        return np.asarray(sl.solve_triangular(root, np.eye(len(root), dtype=root.dtype), lower=True))
    xp = linear_algebra.namespace(corner)
    try:
        inverse: Array = xp.linalg.inv(xp.linalg.cholesky(corner))
    except RuntimeError as error:  # PyTorch's
        raise np.linalg.LinAlgError(str(error)) from error
    if not xp.all(xp.isfinite(inverse)):  # CuPy's
        raise np.linalg.LinAlgError("a tile is not positive definite")
    return inverse
