"""One class a row, as users hold it: names or numbers, None or NaN where it was not observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array

__all__ = ["NOT_A_CLASS", "UNOBSERVED", "as_text", "class_codes", "read_predicted", "read_values"]


UNOBSERVED = -1
NOT_A_CLASS = -2


def read_values(values: Any, given: str) -> Array:
    """Read one value a row as an array of objects, None where it was not observed."""
    # a list with text and NaN would become text in which NaN is "nan"
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.ndim != 1:
        raise ValueError(f"{given} has shape {array.shape}; give one class a row, as a vector.")
    read = np.empty(len(array), object)
    read[:] = [None if _is_missing(value) else value for value in array.tolist()]
    for row in np.flatnonzero([value.__hash__ is None for value in read]):
        raise ValueError(f"{given} at row {row} is {read[row]!r}; give one class, a name or a number.")
    return read


def read_predicted(values: Any, n_rows: int) -> Array:
    """Read one predicted class a row; none may be missing."""
    read = read_values(values, "y_pred")
    if len(read) != n_rows:
        raise ValueError(f"y_pred has {len(read)} rows but y_true has {n_rows}; give one prediction a row.")
    missing = np.flatnonzero(read == None)  # noqa: E711
    if len(missing):
        raise ValueError(
            f"y_pred at row {missing[0]} is missing; every row needs a prediction, only y_true may have "
            "missing entries, so leave out rows that were rejected."
        )
    return read


def class_codes(values: Array, classes: Sequence[Any] | Array) -> npt.NDArray[np.intp]:
    """Number values by their place among the classes, -1 where missing and -2 where they are no class.

    Numbers and texts are compared as texts, so that the nodes of a taxonomy match numeric classes.
    """
    names = [name.item() if isinstance(name, np.generic) else name for name in classes]
    if _are_texts(names) != _are_texts(values):
        names, values = [as_text(name) for name in names], np.asarray([as_text(v) for v in values], object)
    number = {name: k for k, name in enumerate(names)}
    number[None] = UNOBSERVED
    return np.asarray([number.get(value, NOT_A_CLASS) for value in values], np.intp)


def as_text(value: Any) -> str | None:
    """Write a class as text, whole numbers without a point; None stays None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else str(value)


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values if value is not None)


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return True
    return type(value).__name__ == "NAType"  # pandas.NA, without importing pandas
