"""Tables in one pass over their memory: updates in place, and inner products in double precision."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_multiples(target, factors, vector):
    """Compute ``target += factors * vector``; factors have the shape (1, k), or (m, 1)."""
    for i in range(target.shape[0]):
        if factors.shape[1] == 1:
            factor = factors[min(i, factors.shape[0] - 1), 0]
            for j in range(target.shape[1]):
                target[i, j] += factor * vector[i, j]
        else:
            for j in range(target.shape[1]):
                target[i, j] += factors[0, j] * vector[i, j]


@njit(nogil=True, cache=True, fastmath={"contract"})
def multiply_and_add_rows(target, factors, vector):
    """Compute ``target = factors * target + vector``; factors as in :func:`add_multiples`."""
    for i in range(target.shape[0]):
        if factors.shape[1] == 1:
            factor = factors[min(i, factors.shape[0] - 1), 0]
            for j in range(target.shape[1]):
                target[i, j] = factor * target[i, j] + vector[i, j]
        else:
            for j in range(target.shape[1]):
                target[i, j] = factors[0, j] * target[i, j] + vector[i, j]


@njit(nogil=True, cache=True)
def add_column_products(left, right, sums):
    """Compute ``sums[j] += sum over i of left[i, j] * right[i, j]``."""
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            sums[j] += np.float64(left[i, j]) * np.float64(right[i, j])


# sums may be split into lanes; NaN and infinity keep their meaning
@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def row_product_sums(left, right, sums):
    """Compute ``sums[i] = sum over j of left[i, j] * right[i, j]``."""
    for i in range(left.shape[0]):
        total = 0.0
        for j in range(left.shape[1]):
            total += np.float64(left[i, j]) * np.float64(right[i, j])
        sums[i] = total
