"""The places of a sparse matrix's entries, read by rows and by columns."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from labelweave._loops.row_products import cut_rows
from labelweave.array_types import Array

__all__ = ["PatternSide", "SparsePattern"]


_RUNS = 32  # of about equal work at most: enough that one slow run does not keep the other threads waiting
_KEPT_CUTS = 2
_SMALLEST_RUN = 4096  # entries, which take longer than handing them to a thread


class PatternSide:
    """Where the entries of each row are.

    shape: rows and columns, m and p.
    indptr (m + 1,): row i has the entries indptr[i] to indptr[i + 1].
    indices (nnz,): the column of each entry.
    runs: runs of rows with about as many entries each.
    """

    def __init__(self, shape: tuple[int, int], indptr: Array, indices: Array) -> None:
        narrow = shape[1] <= np.iinfo(np.int32).max
        self.shape = shape
        self.indptr = np.ascontiguousarray(indptr, np.int64)
        self.indices = np.ascontiguousarray(indices, np.int32 if narrow else np.int64)
        self.runs = _equal_runs(self.indptr)
        self._cuts: dict[int, Array | None] = {}

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @cached_property
    def counts(self) -> Array:
        """Entries of each column, the largest number first."""
        return np.sort(np.bincount(self.indices, minlength=self.shape[1]))[::-1]

    def cuts(self, size: int) -> Array | None:
        """Cut the columns into blocks and say where the entries of each begin; kept once found.

        Returns (blocks + 1, m): block b has the entries cuts[b, i] to cuts[b + 1, i] of row i.  None where
            the entries of a row are not in the order of the columns.
        """
        if size not in self._cuts:
            if len(self._cuts) == _KEPT_CUTS:
                self._cuts.clear()
            found = np.empty((-(-self.shape[1] // size) + 1, self.shape[0]), np.int64)
            self._cuts[size] = found if cut_rows(self.indptr, self.indices, size, found) else None
        return self._cuts[size]

    def csr(self, values: Array) -> sp.csr_array:
        """Give the entries values.

        Shapes: values (nnz,), result (m, p).
        """
        return sp.csr_array((values, self.indices, self.indptr), shape=self.shape)


class SparsePattern:
    """Where the entries of a sparse matrix are, read from both sides.

    by_rows: the entries in the order of the rows.
    """

    def __init__(self, by_rows: PatternSide) -> None:
        self.by_rows = by_rows
        self._by_columns: PatternSide | None = None

    def side(self, turned: bool) -> PatternSide:
        """Read the pattern from one side.

        Returns the pattern, or its transpose.
        """
        if not turned:
            return self.by_rows
        if self._by_columns is None:
            self._by_columns = self._turn(np.zeros(self.by_rows.nnz, np.int8))[0]
        return self._by_columns

    def turn_values(self, values: Array, *, back: bool) -> Array:
        """Bring the values of entries from the order of one side to that of the other.

        back: from the order of the columns to that of the rows.
        Shapes: values (nnz,), result (nnz,).
        """
        if back:
            turned = np.empty_like(values)
            turned[self._order] = values
            return turned
        if self._by_columns is None:  # values and pattern in one go: many matrices never need the order
            self._by_columns, turned = self._turn(values)
            return turned
        return values[self._order]

    @cached_property
    def _order(self) -> Array:
        self._by_columns, order = self._turn(np.arange(self.by_rows.nnz, dtype=np.intp))
        return order

    def _turn(self, values: Array) -> tuple[PatternSide, Array]:
        csc = self.by_rows.csr(values).tocsc()
        m, p = self.by_rows.shape
        return PatternSide((p, m), csc.indptr, csc.indices), csc.data


def _equal_runs(indptr: Array) -> list[slice]:
    work = indptr + np.arange(len(indptr))  # an empty row takes time too
    n_runs = int(np.clip(work[-1] // _SMALLEST_RUN, 1, _RUNS))
    cuts = np.searchsorted(work, np.linspace(0, work[-1], n_runs + 1)).tolist()
    return [slice(start, stop) for start, stop in pairwise(cuts) if start < stop]
