"""The rows of an ARFF file, dense or sparse, as a table of numbers, and its columns as features and labels.

A nominal cell becomes the position of its value in the declared list, ``?`` becomes NaN.  Lines of plain
numbers take a short way, any other line is read cell by cell, which gives exact messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.arff_header import QUOTED, Attribute, split_cells
from labelweave.datasets.csr_parts import csr_from_counts, with_missing_entries, with_narrow_indices
from labelweave.datasets.data_file import DataFileError, PathLike, refuse_open_end
from labelweave.labels import LabelMatrix

_NOT_PLAIN = re.compile(r"[^0-9eE+\-., \t{}]")
_PAIR = re.compile(rf"[ \t]*(\d+)[ \t]+({QUOTED}|[^,\s'\"]+)[ \t]*(,|$)", re.ASCII)

Columns = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ArffRows:
    """The cells of an ARFF file, (n, columns): numbers, codes of values, NaN for ``?``; and rows' lines."""

    path: PathLike
    attributes: Sequence[Attribute]
    table: Any
    lines: list[int]

    def labels(self, columns: Columns) -> LabelMatrix:
        """Take the label columns out of the cells: 0, 1 and, for what is unobserved, ``?``."""
        attributes = [self.attributes[column] for column in columns]
        for attribute in attributes:
            if attribute.kind != "numeric" and not set(attribute.values) <= {"0", "1"}:
                found = (
                    f"the label {attribute.name!r} declared {attribute.kind} with other values than 0 and 1"
                )
                raise DataFileError(self.path, attribute.line, found, "{0,1} or numeric")
        table = sp.coo_array(self._numbers(columns))
        bad = np.flatnonzero((table.data != 0) & (table.data != 1) & ~np.isnan(table.data))
        if bad.size:
            found = f"{table.data[bad[0]]:g} for label {attributes[table.col[bad[0]]].name!r}"
            raise DataFileError(self.path, self.lines[table.row[bad[0]]], found, "0, 1 or ?")
        places = table.data == 1
        ones = (np.ones(places.sum(), np.int8), (table.row[places], table.col[places]))
        names = [attribute.name for attribute in attributes]
        return with_missing_entries(sp.csr_array(ones, shape=table.shape), _missing(table), names)

    def features(self, columns: Columns) -> tuple[Any, npt.NDArray[Any]]:
        """Take features and their names out, nominal ones as one 0/1 column a value; none may be missing."""
        rows, places = _missing(self.table[:, columns])
        if rows.size:
            found = f"a missing value (?) in the feature {self.attributes[columns[places[0]]].name!r}"
            expected = "a number; only labels may be missing, so fill it in"
            raise DataFileError(self.path, self.lines[rows[0]], found, expected)
        names = list[str]()
        for column in columns:
            attribute = self.attributes[column]
            if _is_number(attribute):
                names.append(attribute.name)
            else:
                names.extend(f"{attribute.name}={value}" for value in attribute.values)
        return self._numbers(columns), np.array(names, dtype=np.str_)

    def _numbers(self, columns: Columns) -> Any:
        """Give columns as numbers: codes of {1,0}, {1} and {0} undone, other codes as a column a value."""
        blocks = list[Any]()
        for is_direct, run in groupby(columns, key=lambda column: self.attributes[column].is_direct):
            if is_direct:
                blocks.append(self.table[:, list(run)])
            else:
                blocks.extend(self._decoded(column) for column in run)
        if len(blocks) == 1:
            return blocks[0]
        return with_narrow_indices(sp.hstack(blocks)) if sp.issparse(blocks[0]) else np.hstack(blocks)

    def _decoded(self, column: int) -> Any:
        """Look up what the codes of a column stand for."""
        values, cells = self.attributes[column].values, self.table[:, [column]]
        numbers = (
            np.array([[float(value)] for value in values]) if _is_number(self.attributes[column]) else None
        )
        meaning = np.eye(len(values)) if numbers is None else np.vstack([numbers, [[np.nan]]])
        codes = cells.toarray().ravel() if sp.issparse(cells) else cells.ravel()
        places = np.where(np.isnan(codes), len(values), codes).astype(np.intp)
        return sp.csr_array(meaning)[places] if sp.issparse(cells) else meaning[places]


def _is_number(attribute: Attribute) -> bool:
    return attribute.kind == "numeric" or set(attribute.values) <= {"0", "1"}


def _missing(table: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Find the rows and columns of NaN, the first row first."""
    if not sp.issparse(table):
        rows, columns = np.nonzero(np.isnan(table))
        return rows, columns
    stored = sp.coo_array(table)
    places = np.isnan(stored.data)
    return stored.row[places], stored.col[places]


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


class _RowParser:
    """The numbers read so far, and the lines of their rows."""

    def __init__(self, path: PathLike, attributes: Sequence[Attribute]) -> None:
        self._path = path
        self._attributes = attributes
        self._all_direct = all(attribute.is_direct for attribute in attributes)
        self._values: list[float] = []
        self._lines: list[int] = []

    def _parsed(self, number: int, column: int, cell: str) -> float:
        attribute = self._attributes[column]
        try:
            return attribute.parse(cell)
        except ValueError as error:
            found = f"{cell[:40]!r} in attribute {attribute.name!r}"
            raise DataFileError(self._path, number, found, str(error)) from None

    def _is_plain(self, text: str) -> bool:
        return self._all_direct and not _NOT_PLAIN.search(text)

    def _out_of_place(self, data: npt.NDArray[Any], columns: Any) -> npt.NDArray[np.intp]:
        """Find what the short way lets through: overflow, and numbers a {0,1} attribute does not list."""
        binary = np.array([attribute.is_binary for attribute in self._attributes])[columns]
        return np.argwhere(np.isinf(data) | (binary & (data != 0) & (data != 1) & ~np.isnan(data)))

    def _refuse(self, row: int, column: int, value: float) -> None:
        attribute = self._attributes[column]
        expected = "0 or 1" if attribute.kind == "nominal" else "a finite number"
        found = f"{value:g} in attribute {attribute.name!r}"
        raise DataFileError(self._path, self._lines[row], found, expected)


class DenseRowParser(_RowParser):
    """Collect rows of comma-separated cells."""

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
        last = self._attributes[-1].values
        if not last or any(other != value and other.startswith(value) for value in last for other in last):
            refuse_open_end(self._path, self._lines[-1])  # its value may be the beginning of another one
        table = np.array(self._values).reshape(len(self._lines), len(self._attributes))
        for row, column in self._out_of_place(table, slice(None))[:1]:
            self._refuse(row, column, table[row, column])
        return ArffRows(self._path, self._attributes, table, self._lines)

    def _numbers(self, number: int, cells: list[str]) -> list[float]:
        if self._is_plain(",".join(cells)):
            try:
                return list(map(float, cells))
            except ValueError:
                pass
        return [self._parsed(number, column, cell) for column, cell in enumerate(cells)]


class SparseRowParser(_RowParser):
    """Collect rows of the form ``{column value, column value, ...}``, columns counted from zero."""

    def __init__(self, path: PathLike, attributes: Sequence[Attribute]) -> None:
        super().__init__(path, attributes)
        self._columns: list[int] = []
        self._counts: list[int] = []

    def add(self, number: int, line: str) -> None:
        """Take one row."""
        if line[0] != "{" or line[-1] != "}":
            raise DataFileError(self._path, number, "a row that is not in braces", "{column value, ...}")
        body = line[1:-1].strip(" \t")
        columns, values = self._pairs(number, body) if body else ([], [])
        if len(set(columns)) < len(columns):
            repeated = next(column for column in columns if columns.count(column) > 1)
            raise DataFileError(
                self._path, number, f"column {repeated} more than once", "each column once a row"
            )
        self._columns.extend(columns)
        self._values.extend(values)
        self._counts.append(len(columns))
        self._lines.append(number)

    def rows(self) -> ArffRows:
        """Give the cells, as a CSR table without stored zeros."""
        data, columns = np.array(self._values, float), np.array(self._columns, np.int64)
        for (place,) in self._out_of_place(data, columns)[:1]:
            row = int(np.searchsorted(np.cumsum(self._counts), place, side="right"))
            self._refuse(row, columns[place], data[place])
        table = with_narrow_indices(csr_from_counts(data, columns, self._counts, len(self._attributes)))
        table.eliminate_zeros()
        return ArffRows(self._path, self._attributes, table, self._lines)

    def _pairs(self, number: int, body: str) -> tuple[list[int], list[float]]:
        if self._is_plain(body):
            try:
                pairs = [pair.split() for pair in body.split(",")]
                columns, values = [int(column) for column, _ in pairs], [float(value) for _, value in pairs]
            except ValueError:
                return self._careful_pairs(number, body)
            if min(columns) >= 0 and max(columns) < len(self._attributes):
                return columns, values
        return self._careful_pairs(number, body)

    def _careful_pairs(self, number: int, body: str) -> tuple[list[int], list[float]]:
        columns, values, position, more = list[int](), list[float](), 0, ","
        while more:
            match = _PAIR.match(body, position)
            if match is None:
                found, expected = (
                    f"{body[position : position + 30]!r}",
                    "'column value' pairs with commas between them",
                )
                raise DataFileError(self._path, number, found, expected)
            column = int(match[1])
            if column >= len(self._attributes):
                expected = f"a column from 0 to {len(self._attributes) - 1}"
                raise DataFileError(self._path, number, f"column {column}", expected)
            columns.append(column)
            values.append(self._parsed(number, column, match[2]))
            position, more = match.end(), match[3]
        return columns, values
