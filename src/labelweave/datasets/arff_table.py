"""The rows of an ARFF file, dense or sparse, as a table of numbers, and its columns as features and labels.

A nominal cell becomes the position of its value in the declared list, which is also what the sparse form
means by leaving a cell out; ``?`` becomes NaN.  Lines of plain numbers take a short way, any other line is
read cell by cell, which gives exact messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.arff_header import QUOTED, Attribute, split_cells
from labelweave.datasets.csr_parts import csr_from_counts, with_missing_entries, with_narrow_indices
from labelweave.datasets.data_file import DataFileError, PathLike, refuse_open_end
from labelweave.labels import LabelMatrix

__all__ = ["ArffRows", "DenseRowParser", "data_lines", "feature_columns", "label_columns", "read_rows"]


_NOT_PLAIN = re.compile(r"[^0-9eE+\-., \t{}]")
_PAIR = re.compile(rf"[ \t]*(\d+)[ \t]+({QUOTED}|[^,\s'\"]+)[ \t]*(,|$)", re.ASCII)


@dataclass(frozen=True)
class ArffRows:
    """The cells of an ARFF file, (n, columns): numbers, codes of values, NaN for ``?``; and rows' lines."""

    table: Any
    lines: list[int]


def data_lines(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Give the lines that hold rows, neither blank nor comments, without blanks around them."""
    for number, line in lines:
        row = line.strip(" \t")
        if row and not row.startswith("%"):
            yield number, row


def read_rows(path: PathLike, attributes: Sequence[Attribute], lines: Iterator[tuple[int, str]]) -> ArffRows:
    """Read all rows after ``@data``."""
    parser: DenseRowParser | SparseRowParser | None = None
    for number, row in data_lines(lines):
        if parser is None:
            parser = (SparseRowParser if row.startswith("{") else DenseRowParser)(path, attributes)
        parser.add(number, row)
    if parser is None:
        raise DataFileError(path, None, "no rows after @data", "at least one row")
    return parser.rows()


class DenseRowParser:
    """Collect rows of comma-separated cells."""

    def __init__(self, path: PathLike, attributes: Sequence[Attribute]) -> None:
        self._path = path
        self._attributes = attributes
        self._all_direct = all(attribute.is_direct for attribute in attributes)
        self._values: list[float] = []
        self._lines: list[int] = []

    def add(self, number: int, line: str) -> None:
        """Take one row."""
        self.add_cells(number, split_cells(self._path, number, line))

    def add_cells(self, number: int, cells: list[str]) -> None:
        """Take one row already split into cells."""
        if len(cells) != len(self._attributes):
            found, expected = f"a row of {len(cells)} cells", f"{len(self._attributes)}, one a column"
            raise DataFileError(self._path, number, found, expected)
        self._values.extend(self._numbers(number, cells))
        self._lines.append(number)

    def rows(self) -> ArffRows:
        """Give the cells, as a dense table."""
        if not _cannot_be_cut(self._attributes[-1]):
            refuse_open_end(self._path, self._lines[-1])
        table = np.array(self._values).reshape(len(self._lines), len(self._attributes))
        bad = np.argwhere(_out_of_place(table, _binary(self._attributes)))
        if bad.size:
            row, column = bad[0]
            _refuse(self._path, self._lines[row], self._attributes[column], float(table[row, column]))
        return ArffRows(table, self._lines)

    def _numbers(self, number: int, cells: list[str]) -> list[float]:
        if self._all_direct and not _NOT_PLAIN.search(",".join(cells)):
            try:
                return list(map(float, cells))
            except ValueError:
                pass
        pairs = zip(self._attributes, cells, strict=True)
        return [_parsed(self._path, number, attribute, cell) for attribute, cell in pairs]


class SparseRowParser:
    """Collect rows of the form ``{column value, column value, ...}``, columns counted from zero."""

    def __init__(self, path: PathLike, attributes: Sequence[Attribute]) -> None:
        self._path = path
        self._attributes = attributes
        self._all_direct = all(attribute.is_direct for attribute in attributes)
        self._columns: list[int] = []
        self._values: list[float] = []
        self._ends: list[int] = [0]
        self._lines: list[int] = []

    def add(self, number: int, line: str) -> None:
        """Take one row."""
        if line[0] != "{" or line[-1] != "}":
            raise DataFileError(self._path, number, "a row that is not in braces", "{column value, ...}")
        if body := line[1:-1].strip(" \t"):
            columns, values = self._pairs(number, body)
            if len(set(columns)) < len(columns):
                self._refuse_repeated(number, columns)
            self._columns.extend(columns)
            self._values.extend(values)
        self._ends.append(len(self._columns))
        self._lines.append(number)

    def rows(self) -> ArffRows:
        """Give the cells, as a CSR table without stored zeros."""
        data, columns = np.array(self._values, float), np.array(self._columns, np.int64)
        bad = np.flatnonzero(_out_of_place(data, _binary(self._attributes)[columns]))
        if bad.size:
            line = self._lines[int(np.searchsorted(self._ends, bad[0], side="right")) - 1]
            _refuse(self._path, line, self._attributes[columns[bad[0]]], float(data[bad[0]]))
        table = with_narrow_indices(
            csr_from_counts(data, columns, np.diff(self._ends), len(self._attributes))
        )
        table.eliminate_zeros()
        return ArffRows(table, self._lines)

    def _pairs(self, number: int, body: str) -> tuple[list[int], list[float]]:
        columns, values = [], []
        if self._all_direct and not _NOT_PLAIN.search(body):
            try:
                for pair in body.split(","):
                    column, value = pair.split()
                    columns.append(int(column))
                    values.append(float(value))
            except ValueError:
                return self._careful_pairs(number, body)
            if min(columns) >= 0 and max(columns) < len(self._attributes):
                return columns, values
        return self._careful_pairs(number, body)

    def _careful_pairs(self, number: int, body: str) -> tuple[list[int], list[float]]:
        columns, values, position, more = [], [], 0, ","
        while more:
            match = _PAIR.match(body, position)
            if match is None:
                found = f"{body[position : position + 30]!r}"
                raise DataFileError(
                    self._path, number, found, "'column value' pairs with commas between them"
                )
            attribute = self._attribute(number, int(match[1]))
            columns.append(int(match[1]))
            values.append(_parsed(self._path, number, attribute, match[2]))
            position, more = match.end(), match[3]
        return columns, values

    def _attribute(self, number: int, column: int) -> Attribute:
        if column >= len(self._attributes):
            found = f"column {column}"
            raise DataFileError(self._path, number, found, f"a column from 0 to {len(self._attributes) - 1}")
        return self._attributes[column]

    def _refuse_repeated(self, number: int, columns: list[int]) -> None:
        repeated = next(column for column in columns if columns.count(column) > 1)
        raise DataFileError(self._path, number, f"column {repeated} more than once", "each column once a row")


def _parsed(path: PathLike, number: int, attribute: Attribute, cell: str) -> float:
    try:
        return attribute.parse(cell)
    except ValueError as error:
        found = f"{cell[:40]!r} in attribute {attribute.name!r}"
        raise DataFileError(path, number, found, str(error)) from None


def _binary(attributes: Sequence[Attribute]) -> npt.NDArray[np.bool_]:
    return np.array([attribute.values == ("0", "1") for attribute in attributes])


def _out_of_place(data: npt.NDArray[Any], binary: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Find what the short way lets through: overflow, and numbers a {0,1} attribute does not list."""
    bad: npt.NDArray[np.bool_] = np.isinf(data) | (binary & (data != 0) & (data != 1) & ~np.isnan(data))
    return bad


def _refuse(path: PathLike, line: int, attribute: Attribute, value: float) -> None:
    expected = "0 or 1" if attribute.kind == "nominal" else "a finite number"
    raise DataFileError(path, line, f"{value:g} in attribute {attribute.name!r}", expected)


def _cannot_be_cut(attribute: Attribute) -> bool:
    """Say whether no value of the last column is the beginning of another one."""
    values = attribute.values
    return attribute.kind == "nominal" and not any(
        other != value and other.startswith(value) for value in values for other in values
    )


def label_columns(
    path: PathLike, attributes: Sequence[Attribute], rows: ArffRows, columns: npt.NDArray[np.intp]
) -> LabelMatrix:
    """Take the label columns out of the cells: 0, 1 and, for what is unobserved, ``?``."""
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
    """Take features and their names out, nominal ones as one 0/1 column a value; none may be missing."""
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
