"""Products of a sparse matrix with a table of any number of columns.

The loops take a run of sparse rows: ``indptr`` may be a part of a longer one, and row i has
the entries indptr[i] to indptr[i + 1], or a part of them.  The table may have more columns than are
used, so that each of its rows can start at a cache line.  ``far`` says that it is too large for the
caches, and its rows are asked for ahead.
"""

from __future__ import annotations

from labelweave._loops.compiling import njit
from labelweave._loops.table_rows import WIDTH, entry_dots, sum_columns

__all__ = ["cut_rows", "multiply_table", "sample_dots"]

_TILE = (
    4 * WIDTH
)  # float64 sums fill the 16 registers of processors without AVX-512, float32 sums half of them


@njit(nogil=True, cache=True)
def multiply_table(starts, stops, indices, values, table, products, far, adds):  # type: ignore[no-untyped-def]
    """Compute ``products[i, c] = sum of values[p] * table[indices[p], c]`` over p in [starts[i], stops[i]).

    i are the sparse rows; the columns c are those of the products.  With ``adds`` the sums are added to
    what stands there.
    """
    width = products.shape[1]
    wide = width // (2 * _TILE) * (2 * _TILE) if table.itemsize == 4 else 0
    whole = width // _TILE * _TILE
    rest = width - whole
    for row in range(len(products)):
        start, stop, sums = starts[row], stops[row], products[row]
        if adds and start == stop:
            continue
        for column in range(0, wide, 2 * _TILE):
            sum_columns(table, indices, values, start, stop, sums, column, 0, 8, far, adds)
        for column in range(wide, whole, _TILE):
            sum_columns(table, indices, values, start, stop, sums, column, 0, 4, far, adds)
        if rest > 3 * WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - 3 * WIDTH, 4, far, adds)
        elif rest > 2 * WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - 2 * WIDTH, 3, far, adds)
        elif rest > WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - WIDTH, 2, far, adds)
        elif rest > 0:
            sum_columns(table, indices, values, start, stop, sums, whole, rest, 1, far, adds)


@njit(nogil=True, cache=True)
def cut_rows(indptr, indices, size, cuts):  # type: ignore[no-untyped-def]
    """Find where the indices of every row pass the multiples of a size.

    ``cuts[b, i]`` becomes the first entry of row i with an index of at least ``b * size``.  The answer is
    whether there is one: the indices of a row must not fall.
    """
    for row in range(cuts.shape[1]):
        block, last = 0, 0
        for entry in range(indptr[row], indptr[row + 1]):
            index = indices[entry]
            if index < last:
                return False
            last = index
            while block * size <= index:
                cuts[block, row] = entry
                block += 1
        cuts[block:, row] = indptr[row + 1]
    return True


@njit(nogil=True, cache=True)
def sample_dots(indptr, indices, left, right, dots, far):  # type: ignore[no-untyped-def]
    """Compute ``dots[p] = left[i] @ right[indices[p]]`` for every entry p of every sparse row i.

    Only as many columns of ``right`` count as ``left`` has.
    """
    for row in range(len(left)):
        entry_dots(left[row], right, indices, indptr[row], indptr[row + 1], dots, far)
