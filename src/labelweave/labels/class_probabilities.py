"""Classes, and probabilities of classes, one row an example, as decisions and metrics take them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, RowsByClasses
from labelweave.arrays import numbers_of, panels
from labelweave.sklearn_compat import is_pandas_na

_BLOCK_ENTRIES = 2**20  # entries worked on at a time: the temporaries of a block stay under about 30 MB
_SUM_TOLERANCE = 1e-3  # half precision and printed tables are off by this much


def is_missing(entry: Any) -> bool:
    """Say whether a class was not observed: None, NaN or pandas.NA."""
    return entry is None or is_pandas_na(entry) or (isinstance(entry, Real) and math.isnan(entry))


def read_class_probabilities(probabilities: Any) -> RowsByClasses:
    """Check that every row of a table (n, C) is a distribution, its sum 1 within 0.001."""
    table = _as_table(probabilities)
    for rows, block in probability_blocks(table):
        sums = block.sum(axis=1, dtype=np.float64)
        # NaN fails both comparisons
        fine = (block >= 0).all(axis=1) & (np.abs(sums - 1.0) <= _SUM_TOLERANCE)
        if not fine.all():
            row = int(np.flatnonzero(~fine)[0])
            _refuse_row(rows.start + row, block[row], float(sums[row]))
    return table


def probability_blocks(table: RowsByClasses, n_columns: int = 0) -> Iterator[tuple[slice, Array]]:
    """Cut a table into blocks of about a million entries, or of what wider table is made of them."""
    step = max(1, _BLOCK_ENTRIES // max(1, table.shape[1], n_columns))
    return ((part, table[part]) for part in panels(len(table), step))


def _as_table(probabilities: Any) -> Array:
    if sp.issparse(probabilities):
        raise ValueError("The probabilities are a sparse matrix; give them dense, one column a class.")
    table = numbers_of(probabilities, "The table of probabilities")
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(
            f"The probabilities have shape {table.shape}; they must be a table of (rows, classes) with at "
            "least one class."
        )
    if table.dtype.kind == "f":
        return table
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The probabilities have entries that are not numbers ({error}); give numbers from 0 to 1."
        ) from None


def _refuse_row(row: int, values: Array, total: float) -> None:
    bad = np.flatnonzero(~(values >= 0))
    if len(bad):
        raise ValueError(
            f"The probability at row {row}, class {int(bad[0])} is {values[bad[0]]}; probabilities must be "
            "numbers from 0 to 1."
        )
    raise ValueError(
        f"The probabilities of row {row} sum to {total:.6g}; the probabilities of a row must sum to 1, so "
        "give one column for each class."
    )
