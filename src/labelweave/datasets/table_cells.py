"""Cells of a column of a frame, read as text, numbers and categories, and label columns as classes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.columns import Columns, is_missing, number_or_truth
from labelweave.datasets.csr_parts import ones_from_counts
from labelweave.datasets.table_columns import TableColumns
from labelweave.datasets.table_files import RawTable
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.frames import TRUTH
from labelweave.foundation.vectors import Refusal
from labelweave.labels import LabelMatrix, read_class_columns
from labelweave.labels.label_names import as_text

_WHOLE_NUMBER = re.compile(r"-?\d+(\.0)?", re.ASCII)
_FEWEST_STRANGE = 10  # rows without a known value, too many to be chance


def refuse_no_scale(names: Sequence[str], counts: Any, variances: Any) -> None:
    """Raise an error for numeric columns without numbers, or whose variance overflows."""
    for name, n_numbers, variance in zip(names, counts, variances, strict=True):
        if not n_numbers:
            raise ValueError(f"The numeric column {name!r} has no number in any row; leave it out.")
        if not np.isfinite(variance):
            raise ValueError(
                f"The numeric column {name!r} has numbers so large that their variance overflows; change its "
                "unit, or leave it out."
            )


def numbers_of_cells(frame: Any, name: str) -> npt.NDArray[np.float64]:
    column = frame[name]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(np.float64))
    cells = column.astype(object).where(column.notna(), None).tolist()
    return Columns({name: cells}).all_numbers(name, refusal_of(frame, name))


def refusal_of(frame: Any, name: str) -> Refusal:
    return lambda row, found, expected: ValueError(
        f"Row {frame.index[row]}, column {name!r} is {found}; it must be {expected}."
    )


def one_hot(cells: list[str], places: Mapping[str, int]) -> sp.csr_array:
    """One-hot encode the cells; unknown values have no entry."""
    columns = np.array([places[cell] for cell in cells if cell in places], np.int64)
    return ones_from_counts(columns, [cell in places for cell in cells], len(places))


def known_cells(frame: Any, name: str, known: Mapping[str, Any]) -> list[str]:
    """Return categories as spelled in the training rows; warn if none is known."""
    cells = cells_of(frame, name)
    strange = set(cells) - known.keys()
    others = {text: other for text in strange if (other := _other_spelling(text)) in known}
    if len(cells) >= _FEWEST_STRANGE and not known.keys() & cells and not others:
        said = f"none of {len(cells)} rows has a value of column {name!r} that occurs in training rows"
        shown = f"here {min(strange)[:40]!r}, in training {min(known)[:40]!r}"
        warnings.warn(f"{said}, so the column has no effect: {shown}", UserWarning, stacklevel=2)
    return [others.get(cell, cell) for cell in cells] if others else cells


def _other_spelling(text: str) -> str:
    """Return 1.0 for 1 and 1 for 1.0: pandas writes integers as floats if one cell is missing."""
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None:
        return text
    return text.removesuffix(".0") if found[1] else f"{text}.0"


def cells_of(frame: Any, name: str) -> list[str]:
    """Return the cells of a column as strings, empty where missing."""
    column = frame[name]
    cells: list[Any] = column.to_numpy(object).tolist()
    if set(map(type, cells)) == {str}:
        return cells
    return [*map(as_text, column.astype(object).mask(column.isna(), "").tolist())]


def class_labels(table: RawTable, columns: TableColumns) -> LabelMatrix:
    """Read columns that have one of several classes per row each."""
    if columns.empty_labels == "none":
        said = "`empty_labels='none'` is for labels, but blank cells of classes are unobserved; leave it out."
        raise ParameterError(said)
    cells = [[_class_in(cell) for cell in table.columns[name]] for name in columns.labels]
    names = [str(name) for name in columns.labels]
    return read_class_columns(np.array([*zip(*cells, strict=True), (None,) * len(names)], object)[:-1], names)


def _class_in(cell: Any) -> Any:
    text = cell.strip() if isinstance(cell, str) else cell
    return None if is_missing(cell) or text in ("", "?") else text


def label_value(cell: Any) -> float:
    """Return the label or probability in a cell; infinity if it is neither."""
    try:
        truth = TRUTH.get(cell.strip().lower()) if isinstance(cell, str) else None
        value = number_or_truth(cell) if truth is None else truth
    except ValueError:
        return np.inf
    return value if 0 <= value <= 1 or value == -1 or np.isnan(value) else np.inf
