"""Updates of tables in place, one factor for a row, a column or all."""

from __future__ import annotations

from labelweave._loops.compiling import njit

__all__ = ["add_multiples", "multiply_and_add_rows"]


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_multiples(target, factors, vector):  # type: ignore[no-untyped-def]
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
def multiply_and_add_rows(target, factors, vector):  # type: ignore[no-untyped-def]
    for i in range(target.shape[0]):
        if factors.shape[1] == 1:
            factor = factors[min(i, factors.shape[0] - 1), 0]
            for j in range(target.shape[1]):
                target[i, j] = factor * target[i, j] + vector[i, j]
        else:
            for j in range(target.shape[1]):
                target[i, j] = factors[0, j] * target[i, j] + vector[i, j]
