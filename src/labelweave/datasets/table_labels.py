"""The labels of a table: one column that lists them, or one 0/1 column a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from labelweave.datasets.csr_parts import ones_from_rows
from labelweave.datasets.data_file import DataFileError
from labelweave.datasets.missing_labels import with_missing_rows
from labelweave.datasets.table_columns import TableColumns, is_missing, number
from labelweave.datasets.table_files import RawTable
from labelweave.labels import LabelMatrix

__all__ = ["UnknownLabels", "table_labels"]

UnknownLabels = Literal["error", "ignore"]


def table_labels(
    table: RawTable, columns: TableColumns, label_names: Sequence[str] | None, unknown_labels: UnknownLabels
) -> LabelMatrix:
    """Read the labels of some rows.

    columns: which columns are the labels.
    label_names: the labels there are; None to take those of the rows, sorted.
    unknown_labels: what to do with a label that is not among them.
    """
    if unknown_labels not in ("error", "ignore"):
        raise ValueError(f"unknown_labels is {unknown_labels!r}; it is 'error' or 'ignore'.")
    if columns.labels is None:
        return _unobserved(len(table), label_names)
    if isinstance(columns.labels, str):
        return _listed_labels(table, columns, label_names, unknown_labels)
    return _binary_labels(table, columns.labels, label_names, unknown_labels)


def _unobserved(n_rows: int, label_names: Sequence[str] | None) -> LabelMatrix:
    if label_names is None:
        return LabelMatrix(sp.csr_array((n_rows, 0), dtype=np.int8))
    nothing = sp.csr_array((n_rows, len(label_names)), dtype=np.int8)
    return LabelMatrix(nothing, nothing, label_names)


def _binary_labels(
    table: RawTable, names: Sequence[str], label_names: Sequence[str] | None, unknown_labels: UnknownLabels
) -> LabelMatrix:
    unknown = sorted(set(names) - _known(names, label_names))
    absent = sorted(_known(names, label_names) - set(names))
    if absent or (unknown and unknown_labels == "error"):
        what = f"no label column {absent[0]!r}" if absent else f"the label column {unknown[0]!r}"
        raise DataFileError(table.path, None, what, "the label columns the model was trained with")
    chosen = list(names if label_names is None else label_names)
    values = np.array([[_binary(table, row, name) for name in chosen] for row in range(len(table))])
    return LabelMatrix.from_any(values.reshape(len(table), len(chosen)), chosen)


def _known(names: Sequence[str], label_names: Sequence[str] | None) -> set[str]:
    return set(names if label_names is None else label_names)


def _binary(table: RawTable, row: int, name: str) -> float:
    cell = table.columns[name][row]
    spelled = {"true": 1.0, "false": 0.0}.get(str(cell).strip().lower())
    if spelled is not None:
        return spelled
    try:
        value = number(cell)
    except ValueError:
        value = np.inf
    if value not in (0.0, 1.0, -1.0) and not np.isnan(value):
        raise table.error(row, name, f"{str(cell)[:40]!r}", "0, 1, -1, true, false or nothing for a label")
    return value


def _listed_labels(
    table: RawTable, columns: TableColumns, label_names: Sequence[str] | None, unknown_labels: UnknownLabels
) -> LabelMatrix:
    cells = [_labels_of(table, row, columns) for row in range(len(table))]
    names = (
        sorted({name for cell in cells for name in cell or ()}) if label_names is None else list(label_names)
    )
    if not names:
        raise DataFileError(table.path, None, f"no label in column {columns.labels!r}", "at least one label")
    index = {name: position for position, name in enumerate(names)}
    if unknown_labels == "error":
        _refuse_unknown(table, columns.labels, cells, index)
    found = [sorted({index[name] for name in cell or () if name in index}) for cell in cells]
    positives = ones_from_rows(found, len(names))
    return with_missing_rows(positives, np.array([cell is None for cell in cells]), names)


def _refuse_unknown(
    table: RawTable, column: str, cells: Sequence[list[str] | None], index: dict[str, int]
) -> None:
    for row, cell in enumerate(cells):
        for name in cell or ():
            if name not in index:
                expected = "a label the model was trained with; unknown_labels='ignore' passes over others"
                raise table.error(row, column, f"the unknown label {name[:40]!r}", expected)


def _labels_of(table: RawTable, row: int, columns: TableColumns) -> list[str] | None:
    """Split a label cell; None means that the row was not observed."""
    cell = table.columns[columns.labels][row]
    if is_missing(cell) or (isinstance(cell, str) and cell.strip() == "?"):
        return None
    if isinstance(cell, str):
        names = cell.split(columns.label_separator) if columns.label_separator else [cell]
        return [name.strip() for name in names if name.strip()]
    if isinstance(cell, list):
        return [_listed_name(table, row, columns.labels, name) for name in cell]
    if isinstance(cell, dict):
        raise table.error(row, columns.labels, "a JSON object", "a list of labels or a string")
    return [str(cell)]


def _listed_name(table: RawTable, row: int, column: str, name: Any) -> str:
    text = "" if is_missing(name) or isinstance(name, (list, dict)) else str(name).strip()
    if not text:
        raise table.error(row, column, f"the label {name!r}", "names that are not empty")
    return text
