"""Updates of large tables in place, in one pass over their memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave._loops.row_updates import add_multiples, multiply_and_add_rows
from labelweave.array_types import Array
from labelweave.arrays import Workers, panels

__all__ = ["add_multiple", "multiply_and_add"]


_AT_ONCE = 2**18  # entries: many enough for a thread, few enough that every thread gets some


def add_multiple(target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    """Add a multiple of a table to another: ``target += rate * vector``.

    rate (m, 1): one number, or one a row or column.
    Shapes: target (m, k), vector (m, k).
    """
    factors = _factors(rate, target.dtype)

    def one(rows: slice) -> None:
        add_multiples(target[rows], _of_rows(factors, rows), vector[rows])

    workers.each(one, _parts(target))


def multiply_and_add(target: Array, rate: float | Array, vector: Array, workers: Workers) -> None:
    factors = _factors(rate, target.dtype)

    def one(rows: slice) -> None:
        multiply_and_add_rows(target[rows], _of_rows(factors, rows), vector[rows])

    workers.each(one, _parts(target))


def _factors(rate: float | Array, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(np.atleast_2d(np.asarray(rate, dtype)))


def _parts(table: Array) -> list[slice]:
    return panels(len(table), max(1, _AT_ONCE // max(1, table.shape[1])))


def _of_rows(factors: Array, rows: slice) -> Array:
    """Give the numbers of some rows, or all where they are not one a row."""
    return factors[rows] if len(factors) > 1 else factors
