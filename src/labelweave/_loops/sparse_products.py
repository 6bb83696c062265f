"""The product of a sparse matrix with ``WIDTH`` columns that stand side by side."""

from __future__ import annotations

from labelweave._loops.compiling import njit
from labelweave._loops.wide_rows import add_rows

__all__ = ["multiply_rows"]


@njit(nogil=True, cache=True)
def multiply_rows(indptr, indices, values, table, products):  # type: ignore[no-untyped-def]
    """Compute ``products[i, :] = sum over p of values[p] * table[indices[p], :]`` for every sparse row i.

    ``indptr`` may be a part of a longer one: row i has the entries indptr[i] to indptr[i + 1].
    """
    for row in range(len(products)):
        products[row] = 0
        add_rows(table, indices, values, indptr[row], indptr[row + 1], products[row])
