"""A matrix over labels from a frame, whose rows may come in another order than its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.labels.label_names import frame_names

__all__ = ["matrix_and_names"]


def matrix_and_names(matrix: Any) -> tuple[Array, list[str] | None]:
    """Read a square matrix and the names of its columns.

    table (L, L): its entries, rows in the order of the columns.
    names: the names of a frame's columns.
    Shapes: matrix (L, L).
    Raises ValueError if the rows of a frame have other names than its columns.
    """
    table, columns = np.asarray(matrix, dtype=np.float64), frame_names(matrix)
    rows = row_names(matrix)
    if columns is None or rows is None or rows == columns or table.shape[0] != table.shape[1]:
        return table, columns
    if sorted(rows) != sorted(columns):
        stranger = next(name for name in rows if name not in columns)
        raise ValueError(
            f"The label covariance has a row named {stranger!r} but no such column; rows and columns must "
            "name the same labels, or the rows be numbered from 0."
        )
    place = {name: number for number, name in enumerate(rows)}
    return table[[place[name] for name in columns]], columns


def row_names(table: Any) -> list[str] | None:
    """Read names off the index of a frame or series.

    table: A frame, a series, or anything else.
    Returns the names; None if there is no index or it only counts rows from 0.
    """
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    names = [str(name) for name in index]
    return None if names == [str(number) for number in range(len(names))] else names
