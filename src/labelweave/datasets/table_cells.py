"""Cells of columns, read as text, numbers and categories, as classes, or as labels that one column lists."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.columns import Columns, has_any, is_missing, is_text, number_or_truth
from labelweave.datasets.csr_parts import ones_from_counts
from labelweave.datasets.table_columns import TableColumns
from labelweave.datasets.table_files import RawTable
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.frames import TRUTH
from labelweave.foundation.vectors import Refusal, are_vectors
from labelweave.labels import LabelMatrix, read_class_columns
from labelweave.labels import written_labels as written
from labelweave.labels.label_names import as_text, names_of

_WHOLE_NUMBER = re.compile(r"-?\d+(\.0)?", re.ASCII)
_NO_PLAIN_LIST = rf"^[{re.escape(''.join(written.OPENING))}]|\)$"  # cells that may be lists by themselves
_MOST_AT_ONCE = 2**30  # bytes, less than an array of pyarrow may hold
_TRUTH = TRUTH | dict.fromkeys("x✓✔☑", 1.0)  # marks in tables of answers
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
    if are_vectors([cell for cell in cells if not isinstance(cell, str)]):
        raise refusal_of(frame, name)(0, "a vector", "text; name the column in vectors")
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
        truth = _TRUTH.get(cell.strip().lower()) if isinstance(cell, str) else None
        value = number_or_truth(cell) if truth is None else truth
    except ValueError:
        return np.inf
    return value if 0 <= value <= 1 or value == -1 or np.isnan(value) else np.inf


class ReadLabels(NamedTuple):
    """The labels of all cells: distinct names, their indices row by row, and the counts per row."""

    names: list[str]
    codes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    is_unknown: npt.NDArray[np.bool_]


def read_labels(table: RawTable, columns: TableColumns) -> ReadLabels:
    """Split the cells of the column that lists labels."""
    column = table.columns.given(columns.labels)
    plain = columns.label_separator if written.is_plain(columns.label_separator) else None
    if is_text(column) and plain is not None:
        found = _split_at_once(column, plain, columns.empty_labels != "unknown")
        if found is not None:
            return found
    places, known, rows = dict[str, int](), dict[str, list[int] | None](), list[list[int] | None]()
    for row, cell in enumerate(table.columns[columns.labels]):
        is_one_text = isinstance(cell, str)  # split each distinct text once
        if is_one_text and cell in known:
            rows.append(known[cell])
            continue
        names = None
        if plain is not None and is_one_text and cell[:1] not in written.OPENING and cell[-1:] != ")":
            names = [name for part in cell.split(plain) if (name := part.strip())]
        if not names or names == ["?"]:
            names = labels_of(table, row, columns, cell)
        rows.append(None if names is None else [places.setdefault(name, len(places)) for name in names])
        if is_one_text:
            known[cell] = rows[-1]
    codes = np.fromiter(chain.from_iterable(filter(None, rows)), np.int64)
    counts = np.array([len(row or ()) for row in rows], np.int64)
    return ReadLabels([*places], codes, counts, np.array([row is None for row in rows], bool))


def _split_at_once(column: Any, separator: str, may_be_blank: bool) -> ReadLabels | None:
    """Split a text column by pyarrow; None if a cell is missing, or may be a list by itself."""
    from pyarrow import compute

    if column.null_count or column.nbytes > _MOST_AT_ONCE or has_any(column, _NO_PLAIN_LIST):
        return None
    lists = compute.split_pattern(column.combine_chunks(), separator)
    parts = compute.utf8_trim_whitespace(lists.flatten())
    is_name = compute.not_equal(parts, "")
    is_kept, starts = is_name.to_numpy(zero_copy_only=False), lists.offsets.to_numpy()[:-1]
    counts = np.add.reduceat(is_kept, starts, dtype=np.int64)
    found = compute.dictionary_encode(parts.filter(is_name))
    names = found.dictionary.to_pylist()
    if "?" in names or not (may_be_blank or counts.all()):
        return None
    codes = found.indices.to_numpy().astype(np.int64)
    return ReadLabels(names, codes, counts, np.zeros(len(counts), bool))


def labels_of(table: RawTable, row: int, columns: TableColumns, cell: Any) -> list[str] | None:
    text = cell.strip() if isinstance(cell, str) else None
    if text in ("", "?"):
        return None if text or columns.empty_labels == "unknown" else []
    try:
        if text is not None:
            names = written.names_in(text, columns.label_separator)
        elif isinstance(cell, dict) or (isinstance(cell, list) and dict in map(type, cell)):
            names = names_of(cell)
        elif isinstance(cell, list):
            names = [name.strip() if isinstance(name, str) else _as_name(name) for name in cell]
            names = written.names_inside(names, columns.label_separator)
        else:
            return None if is_missing(cell) else [as_text(cell)]
    except ValueError as error:
        shown = json.dumps(cell, ensure_ascii=False, default=str) if text is None else text
        raise table.error(row, columns.labels, repr(shown[:40]), str(error)) from None
    if "" in names:
        found = f"the label {cell[names.index('')] if isinstance(cell, list) else ''!r}"
        raise table.error(row, columns.labels, found, "label names that are not empty")
    return names


def _as_name(name: Any) -> str:
    """Convert a label in a list to text, empty if it is none."""
    if isinstance(name, float) and name % 1:
        raise ValueError("names or whole numbers")
    return "" if is_missing(name) or isinstance(name, (list, dict)) else str(name).strip()
