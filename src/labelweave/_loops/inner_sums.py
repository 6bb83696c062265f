"""Inner products of rows or of columns, summed in double precision."""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import njit

__all__ = ["add_column_products", "row_product_sums"]


@njit(nogil=True, cache=True)
def add_column_products(left, right, sums):  # type: ignore[no-untyped-def]
    """Compute ``sums[j] += sum over i of left[i, j] * right[i, j]``."""
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            sums[j] += np.float64(left[i, j]) * np.float64(right[i, j])


# sums may be split into lanes; NaN and infinity keep their meaning
@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def row_product_sums(left, right, sums):  # type: ignore[no-untyped-def]
    """Compute ``sums[i] = sum over j of left[i, j] * right[i, j]``."""
    for i in range(left.shape[0]):
        total = 0.0
        for j in range(left.shape[1]):
            total += np.float64(left[i, j]) * np.float64(right[i, j])
        sums[i] = total
