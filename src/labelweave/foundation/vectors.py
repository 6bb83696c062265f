"""Columns with vectors as cells, such as embeddings, of pandas, polars, pyarrow, NumPy or plain lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array

Refusal = Callable[[int, str, str], Exception]
"""Builds the error for a row, its content and the expected content."""

_NUMBER_LISTS = re.compile(  # the names of pyarrow, pandas and polars
    r"(fixed_size_|large_)?list(_view)?<\w+: (u?int\d+|halffloat|float|double)( not null)?>"
    r"(\[\d+\])*(\[pyarrow\])?"
    r"|(List|Array)\((U?Int|Float)\d+.*\)"
)
_OBJECTS = re.compile(r"object|str|String|(large_)?string(\[\w+\])?")  # or texts
_SIGNS = re.compile(r"np\.float\d+\(|[][(),]")  # around numbers of vectors that are written as text
_GLANCE = 100  # cells; texts of lists of other lengths, as of ids, are not vectors


def are_number_lists(column: Any) -> bool:
    """Return whether a column has a pyarrow or polars type of lists of numbers."""
    return _NUMBER_LISTS.fullmatch(_type_of(column)) is not None


def first_list(column: Any) -> Any:
    """Return the first cell that is not missing, if it is a list or an array, or a text of one."""
    if not (_OBJECTS.fullmatch(_type_of(column)) or are_number_lists(column)):
        return None
    cells = [*islice((cell for cell in vector_cells(column) if not _is_missing(cell)), _GLANCE)]
    near = [_read(cell) for cell in (cells if any(isinstance(one, str) for one in cells[:1]) else cells[:1])]
    are_lists = all(isinstance(cell, (list, tuple, np.ndarray)) for cell in near)
    return near[0] if are_lists and len({*map(np.size, near)}) == 1 else None


def are_vectors(column: Any) -> bool:
    """Return whether the first cell that is not missing is a list of at least two numbers."""
    first = first_list(column)
    numbers = None if first is None else _numbers([first])
    is_vector = numbers is not None and numbers.ndim == 2 and len(first) > 1
    return is_vector and np.asarray(first).dtype.kind != "b"


def have_one_length(column: Any) -> bool:
    """Return whether all lists of a column are equally long, as vectors are, but not lists of ids."""
    return len({len(cell) for cell in vector_cells(column) if not _is_missing(cell)}) == 1


def vector_cells(column: Any) -> Sequence[Any]:
    """List the cells of a column; those of list types as arrays."""
    return column if isinstance(column, (list, tuple)) else list(np.atleast_1d(np.asarray(column)))


def stacked(column: Any, refusal: Refusal, length: int | None = None, *, finite: bool = True) -> Array:
    """Stack vectors, shape (n, k), float32 if they have at most that precision, otherwise float64.

    refusal: see ``Refusal``; length: k, if known; finite: whether infinite numbers are refused.
    Missing or empty vectors become rows of NaN, without columns if no length is known.
    """
    cells = [_read(cell) for cell in vector_cells(column)]
    present = [row for row, cell in enumerate(cells) if not _is_missing(cell)]
    if not present:
        return np.full((len(cells), length or 0), np.nan, np.float32)
    matrix = _numbers([cells[row] for row in present])
    is_good = matrix is not None and matrix.ndim == 2 and length in (None, matrix.shape[1])
    if matrix is None or not is_good or (finite and np.isinf(matrix).any()):
        raise refusal(*_fault(cells, present, length))
    if len(present) == len(cells):
        return matrix
    whole = np.full((len(cells), matrix.shape[1]), np.nan, matrix.dtype)
    whole[present] = matrix
    return whole


def _type_of(column: Any) -> str:
    return str(getattr(column, "type", getattr(column, "dtype", "object")))


def _is_missing(cell: Any) -> bool:
    with suppress(TypeError):  # sparse rows have no length
        return len(cell) == 0
    is_nan = isinstance(cell, (float, np.floating)) and np.isnan(cell)
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def _read(cell: Any) -> Any:
    """Read a vector that is written as text, such as "[1, 2.5]" or "[1. 2.5]", or a Series or tensor."""
    if isinstance(cell, str) and cell.count("[") == 1 and (text := cell.strip())[:1] + text[-1:] == "[]":
        with suppress(ValueError):
            return [float(number) for number in _SIGNS.sub(" ", text).split()]
    return np.asarray(cell) if getattr(cell, "ndim", 0) and hasattr(cell, "__array__") else cell


def _numbers(vectors: list[Any]) -> Array | None:
    """Read vectors of equal length; None for different lengths, or other values."""
    try:
        table = np.array(vectors)
        if table.dtype.kind == "O":  # None for NaN
            table[np.equal(table, np.array(None))] = np.nan
            table = np.array(table.tolist())
    except (TypeError, ValueError):
        return None
    if table.dtype.kind not in "biuf":
        return None
    is_short = table.dtype.kind == "f" and table.dtype.itemsize <= np.dtype(np.float32).itemsize
    return table.astype(np.float32 if is_short else np.float64, copy=False)


def _fault(cells: Sequence[Any], present: list[int], length: int | None) -> tuple[int, str, str]:
    """Return the first row that is not a vector, of another length, or not finite, and the expectation."""
    like = "in the training rows"
    for row in present:
        numbers = _numbers([cells[row]])
        if numbers is None or numbers.ndim != 2:
            return row, repr(str(cells[row])[:40]), "a vector, a list of numbers"
        if length is None:
            length, like = numbers.shape[1], "in the rows before"
        if numbers.shape[1] != length:
            return row, f"a vector of length {numbers.shape[1]}", f"one of length {length}, as {like}"
        if np.isinf(numbers).any():
            place = int(np.argmax(np.isinf(numbers)))
            return row, f"a vector with {numbers[0, place]} at place {place}", "one of finite numbers"
    return present[0], "a vector", "one of finite numbers"
