"""Products of a sparse matrix with dense tables of any number of columns, and dot products at its entries.

These are the loops of low-rank models: ``X W``, its adjoint ``Xᵀ G``, and the scores
``(X W)ᵢ · hⱼ`` of the observed entries (i, j) with their adjoints.

A product ``A V`` reads one row of V for each entry of A.  Measured on one core:

- a V that fits the caches is read in place, from a copy if its rows straddle cache lines;
- a larger one whose rows are read about equally often, as in an adjoint, is processed in blocks of rows
  that fit a cache, and the products of the blocks are added (float32, 12,920 x 500 entries as in text
  and 200 columns: 3.9 against 6.5 ms; 88,181 x 366,932 and 250 columns: 0.72 s, in panels of columns
  0.89 s, row by row 1.3 s);
- otherwise rows are prefetched some entries ahead (24 against 16 GB/s).  If few words make up most of the
  entries, the caches keep their rows, and blocks were no faster.
"""

from __future__ import annotations

import weakref
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, aligned_empty, panels

_LINE = 64  # bytes of a cache line
_NEAR = 12 * 2**20  # bytes of a table in the caches, part of which other data use
_BLOCKS = (3 * 2**18, _NEAR)  # bytes of blocks of rows, for the second and for the third level cache
_FEWEST = (24, 3)  # mean entries per row of a block, from which blocks of that size pay
_LARGER = (4, 1)  # ratio of table and block size, from which blocks pay
_MOST_KEPT = 0.5  # fraction of entries in the most read rows that would fill a block
_COPY_FROM = 16  # mean reads per row, from which copying pays
_COPY_PANEL = 256  # rows
_RUNS = 32  # of about equal work at most: enough that threads do not wait for one slow run
_KEPT_CUTS = 2
_SMALLEST_RUN = 4096  # entries, which take longer than the overhead of a thread


def multiply_rows(rows: tuple[Array, Array, Array], table: Array) -> Array:
    """Multiply sparse rows by a table (p, k); each row reads only the rows of its own entries.

    Every row of the product is one sum, with the same bits for any other rows.

    rows: the start of each row's entries, their columns, all below p, and values of the table's type.
    table: contiguous; a memory-mapped one is read in place.
    """
    from labelweave.foundation.loops.sparse_products import multiply_table

    indptr, indices, values = rows
    product = np.empty((len(indptr) - 1, table.shape[1]), table.dtype)
    parts = read_only(indptr[:-1], indptr[1:], indices, values, table)
    multiply_table(*parts, product, table.nbytes > _NEAR, False)
    return product


def read_only(*arrays: Array) -> list[Array]:
    """Return read-only views, like memory-mapped arrays, so that loops have one type."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return views


class _Side:
    """The entries of each row of a matrix (m, p), and runs of rows with about equal work."""

    def __init__(self, shape: tuple[int, int], indptr: Array, indices: Array) -> None:
        narrow = shape[1] <= np.iinfo(np.int32).max
        self.shape = shape
        self.indptr = np.ascontiguousarray(indptr, np.int64)
        self.indices = np.ascontiguousarray(indices, np.int32 if narrow else np.int64)
        self.runs = _equal_runs(self.indptr)
        self._cuts: dict[int, Array | None] = {}

    @cached_property
    def counts(self) -> Array:
        return np.sort(np.bincount(self.indices, minlength=self.shape[1]))[::-1]

    def cuts(self, size: int) -> Array | None:
        """Split the columns into blocks and return where the entries of each begin; cached.

        Returns (blocks + 1, m): block b has the entries cuts[b, i] to cuts[b + 1, i] of row i.  None if
            the entries of a row are not sorted by column.
        """
        from labelweave.foundation.loops.sparse_products import cut_rows

        if size not in self._cuts:
            if len(self._cuts) == _KEPT_CUTS:
                self._cuts.clear()
            found = np.empty((-(-self.shape[1] // size) + 1, self.shape[0]), np.int64)
            self._cuts[size] = found if cut_rows(self.indptr, self.indices, size, found) else None
        return self._cuts[size]

    def csr(self, values: Array) -> sp.csr_array:
        return sp.csr_array((values, self.indices, self.indptr), shape=self.shape)


class _Pattern:
    """The sparsity pattern of a matrix, by rows and by columns."""

    def __init__(self, by_rows: _Side) -> None:
        self.by_rows = by_rows
        self._by_columns: _Side | None = None

    def side(self, turned: bool) -> _Side:
        if not turned:
            return self.by_rows
        if self._by_columns is None:
            self._by_columns = self._turn(np.zeros(len(self.by_rows.indices), np.int8))[0]
        return self._by_columns

    def turn_values(self, values: Array, *, back: bool) -> Array:
        """Reorder values (nnz,) from row order to column order, or back."""
        if back:
            turned = np.empty_like(values)
            turned[self._order] = values
            return turned
        if self._by_columns is None:  # values and pattern in one pass: many matrices never need the order
            self._by_columns, turned = self._turn(values)
            return turned
        return values[self._order]

    @cached_property
    def _order(self) -> Array:
        self._by_columns, order = self._turn(np.arange(len(self.by_rows.indices), dtype=np.intp))
        return order

    def _turn(self, values: Array) -> tuple[_Side, Array]:
        csc = self.by_rows.csr(values).tocsc()
        m, p = self.by_rows.shape
        return _Side((p, m), csc.indptr, csc.indices), csc.data


class SparseProducts:
    """A sparse matrix that multiplies dense tables from both sides.

    Every row of a product is one sum on one thread: results have the same bits for any number of
    threads.  Contiguous tables are read in place; small ones may be copied.

    matrix (m, p): its arrays are shared if their types fit.
    dtype: float32 or float64, the type of all values and tables.
    Raises TypeError for another type, ValueError for column indices out of range.
    """

    def __init__(self, matrix: sp.csr_array, dtype: npt.DTypeLike, workers: Workers) -> None:
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise TypeError(f"sparse products have no {np.dtype(dtype)} form; pass float32 or float64.")
        matrix.check_format(full_check=True)  # the compiled loops would read out of bounds
        self.workers = workers
        self.values: Array = np.ascontiguousarray(matrix.data, dtype)
        self._pattern = _Pattern(_Side(matrix.shape, matrix.indptr, matrix.indices))
        self._by_columns = False
        self._transposed: SparseProducts | None = None
        self._origin: weakref.ref[SparseProducts] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_transposed": None, "_origin": None}  # rebuilt on demand

    @property
    def shape(self) -> tuple[int, int]:
        return self._side.shape

    @property
    def nnz(self) -> int:
        return len(self.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def indptr(self) -> Array:
        return self._side.indptr

    @property
    def indices(self) -> Array:
        return self._side.indices

    def csr_of(self, values: Array) -> sp.csr_array:
        """Return a CSR array of the stored entries with other values (nnz,), of any type."""
        return self._side.csr(values)

    @property
    def transposed(self) -> SparseProducts:
        """The transpose, built once; its own transpose is this matrix."""
        origin = self._origin() if self._origin is not None else None
        if origin is not None:
            return origin
        if self._transposed is None:
            values = self._pattern.turn_values(self.values, back=self._by_columns)
            self._transposed = self._with(values, not self._by_columns)
            # weak, so that the memory of both is freed with the last reference to this one
            self._transposed._origin = weakref.ref(self)
        return self._transposed

    def with_values(self, values: Array) -> SparseProducts:
        """Return the same pattern with other values (nnz,), shared if of the right type."""
        if values.shape != self.values.shape:
            raise ValueError(f"{self.nnz} values are needed, one per stored entry, not shape {values.shape}.")
        return self._with(np.ascontiguousarray(values, self.dtype), self._by_columns)

    def matmul(self, right: Array, out: Array | None = None) -> Array:
        """Multiply by a table (p, k).

        out (m, k): the output array; by default new memory, whose allocation takes up to a fifth of the
            time of a large product.
        """
        from labelweave.foundation.loops.sparse_products import multiply_table

        self._require_table(right, self.shape[1], "columns")
        side, product = self._side, self._memory(out, right.shape[1])
        cuts = self._cuts(right)
        near = cuts is not None or right.nbytes <= _NEAR
        table = self._lined_up(right) if cuts is None else np.ascontiguousarray(right)
        blocks = [(side.indptr[:-1], side.indptr[1:])] if cuts is None else list(pairwise(cuts))

        def one(rows: slice, block: tuple[Array, Array], adds: bool) -> None:
            parts = read_only(*(places[rows] for places in block), side.indices, self.values, table)
            multiply_table(*parts, product[rows], not near, adds)

        for number, block in enumerate(blocks):
            self.workers.each(partial(one, block=block, adds=number > 0), self._runs())
        return product

    def adjoint(self, left: Array, out: Array | None = None) -> Array:
        """Multiply the transpose by a table (m, k), through a cached transposed copy."""
        return self.transposed.matmul(left, out)

    def sampled(self, left: Array, right: Array) -> Array:
        """Compute ``left[i] @ right[j]`` for every stored entry (i, j), for tables (m, k) and (p, k)."""
        from labelweave.foundation.loops.sparse_products import sample_dots

        self._require_table(left, self.shape[0], "rows")
        self._require_table(right, self.shape[1], "columns")
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"both tables must have as many columns, not {left.shape[1]} and {right.shape[1]}."
            )
        side, table, first = self._side, self._lined_up(right), np.ascontiguousarray(left)
        far = table.nbytes > _NEAR
        dots = np.empty(self.nnz, self.dtype)

        def one(rows: slice) -> None:
            indptr = side.indptr[rows.start : rows.stop + 1]
            sample_dots(indptr, side.indices, first[rows], table, dots, far)

        self.workers.each(one, self._runs())
        return dots

    @property
    def _side(self) -> _Side:
        return self._pattern.side(self._by_columns)

    def _runs(self) -> list[slice]:
        return self._side.runs if self.workers.n_threads > 1 else [slice(0, self.shape[0])]

    def _memory(self, out: Array | None, width: int) -> Array:
        shape = self.shape[0], width
        if out is None:
            return aligned_empty(shape, self.dtype)
        if out.shape != shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise ValueError(
                f"a product of {self.dtype} and shape {shape} goes to a contiguous array of its kind, not to "
                f"{out.dtype} of shape {out.shape}."
            )
        return out

    def _cuts(self, table: Array) -> Array | None:
        side = self._side
        for n_bytes, fewest, larger in zip(_BLOCKS, _FEWEST, _LARGER, strict=True):
            size = max(1, n_bytes // max(1, table.shape[1] * table.itemsize))
            n_blocks = -(-len(table) // size)
            pays = table.nbytes > larger * n_bytes and self.nnz >= fewest * n_blocks * self.shape[0]
            if pays and side.counts[:size].sum() <= _MOST_KEPT * self.nnz:
                return side.cuts(size)
        return None

    def _lined_up(self, table: Array) -> Array:
        """Copy a small table whose rows straddle cache lines, which take a third more time to read."""
        (n_rows, width), unit = table.shape, _unit(table)
        straddles = (width * table.itemsize) % unit or table.ctypes.data % unit
        if not (straddles and table.nbytes <= _NEAR and self.nnz >= _COPY_FROM * n_rows):
            return np.ascontiguousarray(table)
        padded = -(-width * table.itemsize // unit) * unit // table.itemsize
        copy = aligned_empty((n_rows, padded), table.dtype)

        def one(rows: slice) -> None:
            copy[rows, :width] = table[rows]  # columns beyond the width are unused

        self.workers.each(one, panels(n_rows, _COPY_PANEL))
        return copy

    def _with(self, values: Array, by_columns: bool) -> SparseProducts:
        made = SparseProducts.__new__(SparseProducts)
        made.workers, made.values, made._pattern = self.workers, values, self._pattern
        made._by_columns, made._transposed, made._origin = by_columns, None, None
        return made

    def _require_table(self, table: Array, n_rows: int, of: str) -> None:
        if table.ndim != 2 or table.shape[0] != n_rows or table.dtype != self.dtype:
            raise ValueError(
                f"a {self.dtype} table with one row for each of the {n_rows} {of} is needed, not "
                f"{table.dtype} of shape {table.shape}."
            )


def _unit(table: Array) -> int:
    """Return the multiple of bytes that a row needs so as not to straddle cache lines."""
    n_bytes: int = table.shape[1] * table.itemsize
    return min(_LINE, 1 << max(0, n_bytes - 1).bit_length())


def _equal_runs(indptr: Array) -> list[slice]:
    work = indptr + np.arange(len(indptr))  # an empty row takes time too
    n_runs = int(np.clip(work[-1] // _SMALLEST_RUN, 1, _RUNS))
    cuts = np.searchsorted(work, np.linspace(0, work[-1], n_runs + 1)).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts) if start < stop]
