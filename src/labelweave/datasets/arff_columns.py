"""From the cells of an ARFF file to features and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.arff_header import Attribute
from labelweave.datasets.arff_rows import ArffRows
from labelweave.datasets.csr_parts import csr_from_counts, with_narrow_indices
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.missing_labels import with_missing_entries
from labelweave.labels import LabelMatrix

__all__ = ["feature_columns", "label_columns"]


def label_columns(
    path: PathLike, attributes: Sequence[Attribute], rows: ArffRows, columns: npt.NDArray[np.intp]
) -> LabelMatrix:
    """Take the label columns out of the cells.

    Returns the targets; ``?`` is unobserved.
    Shapes: columns (L,).
    Raises DataFileError if a label column holds anything but 0, 1 and ``?``.
    """
    for column in columns:
        _refuse_other_types(path, attributes[column])
    table = sp.csr_array(_decoded(attributes, rows.table, columns))
    bad = np.flatnonzero((table.data != 0) & (table.data != 1) & ~np.isnan(table.data))
    if bad.size:
        row = int(np.searchsorted(table.indptr, bad[0], side="right")) - 1
        found = f"{table.data[bad[0]]:g} for label {attributes[columns[table.indices[bad[0]]]].name!r}"
        raise DataFileError(path, rows.lines[row], found, "0, 1 or ?")
    names = [attributes[column].name for column in columns]
    return with_missing_entries(_where(table, table.data == 1), _where(table, np.isnan(table.data)), names)


def _refuse_other_types(path: PathLike, attribute: Attribute) -> None:
    if attribute.kind == "numeric" or set(attribute.values) <= {"0", "1"}:
        return
    found = f"the label {attribute.name!r} declared {attribute.kind} with other values than 0 and 1"
    raise DataFileError(path, attribute.line, found, "{0,1} or numeric")


def _where(table: sp.csr_array, keep: npt.NDArray[np.bool_]) -> sp.csr_array:
    mask = sp.csr_array((keep.astype(np.int8), table.indices, table.indptr), shape=table.shape, copy=True)
    mask.eliminate_zeros()
    return mask


def feature_columns(
    path: PathLike, attributes: Sequence[Attribute], rows: ArffRows, columns: npt.NDArray[np.intp]
) -> tuple[Any, npt.NDArray[Any]]:
    """Take the feature columns out of the cells, nominal ones as one 0/1 column a value.

    Shapes: X (n, d), names (d,).
    Raises DataFileError if a feature is missing.
    """
    _refuse_missing(path, attributes, rows, columns)
    blocks, names = [], list[str]()
    for run in _runs(attributes, columns):
        expand = not _is_number(attributes[run[0]])
        blocks.append(
            _one_hot(attributes[run[0]], rows.table, run[0])
            if expand
            else _decoded(attributes, rows.table, run)
        )
        names.extend(_feature_names(attributes, run, expand))
    X = blocks[0] if len(blocks) == 1 else _beside(blocks)
    return X, np.array(names, dtype=np.str_)


def _runs(attributes: Sequence[Attribute], columns: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    """Group the columns: neighbours that are numbers together, every other one alone."""
    expand = np.array([not _is_number(attributes[column]) for column in columns])
    cuts = np.flatnonzero(expand[1:] | expand[:-1]) + 1
    return np.split(columns, cuts)


def _is_number(attribute: Attribute) -> bool:
    return attribute.kind == "numeric" or set(attribute.values) <= {"0", "1"}


def _decoded(attributes: Sequence[Attribute], table: Any, columns: npt.NDArray[np.intp]) -> Any:
    """Copy columns that are numbers, undoing the codes of values declared as {1,0}, {1} or {0}."""
    chosen = table[:, columns]
    for position, column in enumerate(columns):
        attribute = attributes[column]
        if not attribute.is_direct:
            values = np.array([float(value) for value in attribute.values] + [np.nan])
            chosen = _replaced(chosen, position, values[_codes(table, column, len(attribute.values))])
    return chosen


def _codes(table: Any, column: int, missing: int) -> npt.NDArray[np.intp]:
    cells = table[:, [column]]
    dense = cells.toarray().ravel() if sp.issparse(cells) else cells.ravel()
    return np.where(np.isnan(dense), missing, dense).astype(np.intp)


def _replaced(table: Any, position: int, values: npt.NDArray[np.float64]) -> Any:
    if not sp.issparse(table):
        table[:, position] = values
        return table
    parts = [table[:, :position], sp.csr_array(values[:, None]), table[:, position + 1 :]]
    return sp.csr_array(sp.hstack([part for part in parts if part.shape[1]]))


def _one_hot(attribute: Attribute, table: Any, column: int) -> Any:
    codes = _codes(table, column, 0)
    n_rows, n_values = table.shape[0], len(attribute.values)
    if not sp.issparse(table):
        return np.eye(n_values)[codes]
    return csr_from_counts(np.ones(n_rows), codes, np.ones(n_rows, np.int64), n_values)


def _feature_names(attributes: Sequence[Attribute], run: npt.NDArray[np.intp], expand: bool) -> list[str]:
    if expand:
        return [f"{attributes[run[0]].name}={value}" for value in attributes[run[0]].values]
    return [attributes[column].name for column in run]


def _beside(blocks: list[Any]) -> Any:
    return with_narrow_indices(sp.hstack(blocks)) if sp.issparse(blocks[0]) else np.hstack(blocks)


def _refuse_missing(
    path: PathLike, attributes: Sequence[Attribute], rows: ArffRows, columns: npt.NDArray[np.intp]
) -> None:
    chosen = rows.table[:, columns]
    if not np.isnan(chosen.data if sp.issparse(chosen) else chosen).any():
        return
    row, column = _first_missing(chosen)
    found = f"a missing value (?) in the feature {attributes[columns[column]].name!r}"
    raise DataFileError(path, rows.lines[row], found, "a number; only labels may be missing, so fill it in")


def _first_missing(table: Any) -> tuple[int, int]:
    if not sp.issparse(table):
        row, column = np.argwhere(np.isnan(table))[0]
        return int(row), int(column)
    position = int(np.flatnonzero(np.isnan(table.data))[0])
    return int(np.searchsorted(table.indptr, position, side="right")) - 1, int(table.indices[position])
