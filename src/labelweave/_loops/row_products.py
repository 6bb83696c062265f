"""Products of a sparse matrix with a table of any number of columns.

Both loops take a run of sparse rows: ``indptr`` may be a part of a longer one, and row i has
the entries indptr[i] to indptr[i + 1].  The table may have more columns than are
used, so that each of its rows can start at a cache line.  ``far`` says that it is too large for the
caches, and its rows are asked for ahead.
"""

from __future__ import annotations

from numba import njit

from labelweave._loops.table_rows import WIDTH, entry_dots, sum_columns

__all__ = ["multiply_table", "sample_dots"]

_TILE = (
    4 * WIDTH
)  # float64 sums fill the 16 registers of processors without AVX-512, float32 sums half of them


@njit(nogil=True, cache=True)
def multiply_table(indptr, indices, values, table, products, first, far):  # type: ignore[no-untyped-def]
    """Compute ``products[i, first + c] = sum over p of values[p] * table[indices[p], c]``.

    i are the sparse rows; the columns c are those of the table, as far as the products have room.
    """
    width = min(table.shape[1], products.shape[1] - first)
    wide = width // (2 * _TILE) * (2 * _TILE) if table.itemsize == 4 else 0
    whole = width // _TILE * _TILE
    for row in range(len(products)):
        start, stop, sums = indptr[row], indptr[row + 1], products[row, first : first + width]
        for column in range(0, wide, 2 * _TILE):
            sum_columns(table, indices, values, start, stop, sums, column, 0, 8, far)
        for column in range(wide, whole, _TILE):
            sum_columns(table, indices, values, start, stop, sums, column, 0, 4, far)
        rest = width - whole
        if rest > 3 * WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - 3 * WIDTH, 4, far)
        elif rest > 2 * WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - 2 * WIDTH, 3, far)
        elif rest > WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - WIDTH, 2, far)
        elif rest > 0:
            sum_columns(table, indices, values, start, stop, sums, whole, rest, 1, far)


@njit(nogil=True, cache=True)
def sample_dots(indptr, indices, left, right, dots, far):  # type: ignore[no-untyped-def]
    """Compute ``dots[p] = left[i] @ right[indices[p]]`` for every entry p of every sparse row i.

    Only as many columns of ``right`` count as ``left`` has.
    """
    for row in range(len(left)):
        entry_dots(left[row], right, indices, indptr[row], indptr[row + 1], dots, far)
