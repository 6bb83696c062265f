"""The rows of an ARFF file, dense or sparse, as a table of numbers, and its columns as features and labels.

A nominal cell becomes the position of its value in the declared list, ``?`` becomes NaN.  Lines of plain
numbers take a fast path; any other line is parsed cell by cell, for exact error messages.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets import csr_parts, data_file
from labelweave.datasets.arff_header import QUOTED, Attribute, read_header, row_cells, unquoted
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.array_types import Floats
from labelweave.labels import LabelMatrix, read_class_columns

_NOT_PLAIN = re.compile(r"[^0-9eE+\-., \t{}]")
_PAIR = re.compile(rf"[ \t]*+(\d++)[ \t]++({QUOTED}|[^,\s'\"]++)[ \t]*+(,|\Z)", re.ASCII)
_BEFORE_COMMENT = re.compile(rf"(?:{QUOTED}|[^%'\"]|(?<=[^\s,}}])%)*+")
_AS_TABLE = "use `format='table'` for strings and dates"
_LONGEST_INDEX = 18
_FEWEST_ROWS = 10  # with distinct values in all of them, for a column of identifiers
_WIDENING = 10  # ratio of columns to attributes above which nominal features are sparse

Columns = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ArffRows:
    """The cells of an ARFF file, (n, columns): numbers, codes, NaN for ``?``; and the lines of the rows.

    weights (n,): of the rows; None if all are 1.
    """

    path: PathLike
    attributes: Sequence[Attribute]
    table: Any
    lines: list[int]
    weights: Floats | None = None

    def labels(self, columns: Columns) -> LabelMatrix:
        """Return the labels: 0, 1 and, where unobserved, ``?``; several with other values are classes."""
        attributes = [self.attributes[column] for column in columns]
        is_nominal = [attribute.kind == "nominal" and attribute.numbers is None for attribute in attributes]
        if len(attributes) > 1 and any(is_nominal):
            return self._class_columns(columns)
        for attribute in attributes:
            if not _is_number(attribute):
                found = f"values of label {attribute.name!r} other than 0 and 1"
                raise DataFileError(self.path, attribute.line, found, "{0,1}, {no,yes} or numeric")
        table = sp.coo_array(self._numbers(columns))
        bad = np.flatnonzero((table.data != 0) & (table.data != 1) & ~np.isnan(table.data))
        if bad.size:
            found = f"{table.data[bad[0]]:g} for label {attributes[table.col[bad[0]]].name!r}"
            raise DataFileError(self.path, self.lines[table.row[bad[0]]], found, "0, 1 or ?")
        places = table.data == 1
        ones = (np.ones(places.sum(), np.int8), (table.row[places], table.col[places]))
        names = [attribute.name for attribute in attributes]
        return csr_parts.with_missing_entries(sp.csr_array(ones, shape=table.shape), _missing(table), names)

    def _class_columns(self, columns: Columns) -> LabelMatrix:
        """Return the nominal values of columns, as text."""
        attributes = [self.attributes[column] for column in columns]
        other = next((one for one in attributes if one.kind != "nominal"), None)
        if other is not None:
            found = f"the label {other.name!r} of type {other.kind} beside nominal ones"
            raise DataFileError(self.path, other.line, found, "a nominal list of its classes {a,b,...}")
        values = [np.array([*one.values, None], object) for one in attributes]
        codes = [np.nan_to_num(self._codes(column), nan=-1).astype(np.intp) for column in columns]
        cells = np.column_stack([own[code] for own, code in zip(values, codes, strict=True)])
        return read_class_columns(cells, [attribute.name for attribute in attributes])

    def features(
        self, columns: Columns, known: Collection[str] | None = None
    ) -> tuple[Any, npt.NDArray[Any]]:
        """Return the features and their names, nominal ones as one 0/1 column per value.

        A missing number (``?``) is NaN; all columns of a missing nominal value are 0.

        Nominal features with a distinct value in every row are dropped with a warning.
        known: the names of the features to return, in this order; others are dropped.  The values yes and no
            get one column each where the names contain them.

        Raises DataFileError if a known feature is absent, except for unlisted values of a nominal one.
        """
        if known is None:
            columns = self._without_identifiers(self._without_texts(columns))
        names, wide, kept = list[str](), set[int](), list[int]()
        wanted = None if known is None else set(map(str, known))
        for column in columns:
            attribute = self.attributes[column]
            values = [f"{attribute.name}={value}" for value in attribute.values]
            is_number, is_wide = _is_number(attribute), wanted is not None and not wanted.isdisjoint(values)
            if wanted is not None and not is_wide and not (is_number and attribute.name in wanted):
                continue
            if is_number and not is_wide:
                names.append(attribute.name)
            else:
                names.extend(values)
                wide.add(column)
            kept.append(column)
        X = self._numbers(kept, wide, len(names))
        ordered = names if known is None else list(map(str, known))
        return self._in_order(X, names, ordered, wide), np.array(ordered, dtype=np.str_)

    def _in_order(self, X: Any, names: list[str], ordered: list[str], wide: set[int]) -> Any:
        """Reorder columns; values that the nominal attributes do not list get zeros."""
        if names == ordered:
            return X
        places = {name: place for place, name in enumerate(names)}
        absent = [name for name in ordered if name not in places]
        nominal = tuple(f"{self.attributes[column].name}=" for column in wide)
        missing = next((name for name in absent if not name.startswith(nominal)), None)
        if missing is not None:
            found, expected = f"no feature {missing!r}", f"all {len(ordered)} training features, by name"
            raise DataFileError(self.path, None, found, expected)
        if absent:
            empty = sp.csr_array((X.shape[0], len(absent)))
            X = sp.hstack([X, empty], "csr") if sp.issparse(X) else np.hstack([X, empty.toarray()])
            places |= {name: len(names) + place for place, name in enumerate(absent)}
        chosen = X[:, [places[name] for name in ordered]]
        return csr_parts.with_narrow_indices(chosen) if sp.issparse(chosen) else chosen

    def _without_texts(self, columns: Columns) -> Columns:
        is_text = np.array([self.attributes[one].kind == "text" for one in columns], np.bool_)
        if len(columns) and is_text.all():
            found = f"only features that are strings or dates, such as {self.attributes[columns[0]].name!r}"
            raise DataFileError(
                self.path, None, found, ParameterMessage(f"numbers or nominal values; {_AS_TABLE}")
            )
        if is_text.any():
            names = ", ".join(repr(self.attributes[column].name) for column in columns[is_text][:5])
            said = f"{is_text.sum()} attributes are strings or dates, such as {names}, and are ignored"
            said = ParameterMessage(f"{self.path}: {said}; {_AS_TABLE}")
            warnings.warn(UserWarning(said), stacklevel=2)
        kept: Columns = columns[~is_text]
        return kept

    def _without_identifiers(self, columns: Columns) -> Columns:
        """Drop nominal columns with a distinct value in every row."""
        n_rows, is_identifier = len(self.lines), np.zeros(len(columns), bool)
        for place, column in enumerate(columns):
            attribute = self.attributes[column]
            if n_rows >= _FEWEST_ROWS and attribute.numbers is None and len(attribute.values) >= n_rows:
                is_identifier[place] = len(np.unique(self._codes(column))) == n_rows
        if is_identifier.any():
            found = self.attributes[columns[is_identifier][0]].name
            others = f" and {is_identifier.sum() - 1} more" if is_identifier.sum() > 1 else ""
            said = f"the attribute {found!r}{others} has a different value in every row, and is ignored"
            warnings.warn(f"{self.path}: {said}", UserWarning, stacklevel=2)
        return columns[~is_identifier]

    @cached_property
    def _by_column(self) -> Any:
        return sp.csc_array(self.table) if sp.issparse(self.table) else self.table

    def _codes(self, column: int) -> npt.NDArray[Any]:
        cells = self._by_column[:, [column]]
        return np.asarray(cells.toarray() if sp.issparse(cells) else cells).ravel()

    def _numbers(self, columns: Sequence[int] | Columns, wide: Collection[int] = (), width: int = 0) -> Any:
        """Return columns as numbers: decoded values, and one column per value for wide ones.

        width: the number of columns returned.
        """
        if not len(columns):
            return self.table[:, :0]
        makes_sparse = sp.issparse(self.table) or width > _WIDENING * len(self.attributes)
        written = [c for c in columns if not self.attributes[c].is_direct]
        if makes_sparse and len(written) * len(self.lines) > csr_parts.MOST_ENTRIES:
            found = f"{len(written)} nominal attributes in {len(self.lines)} rows"
            raise DataFileError(self.path, None, found, f"at most {csr_parts.MOST_ENTRIES:,} of their cells")
        blocks = list[Any]()
        for is_direct, run in groupby(columns, key=lambda c: self.attributes[c].is_direct and c not in wide):
            if is_direct:
                blocks.append(self.table[:, list(run)])
            else:
                blocks.extend(self._decoded(column, column in wide, makes_sparse) for column in run)
        if len(blocks) == 1:
            return blocks[0]
        return csr_parts.with_narrow_indices(sp.hstack(blocks)) if makes_sparse else np.hstack(blocks)

    def _decoded(self, column: int, is_wide: bool, makes_sparse: bool) -> Any:
        """Decode a column, as CSR or as an ndarray.

        A missing value is 0 in all columns of a wide attribute, and NaN otherwise.
        """
        attribute, codes = self.attributes[column], self._codes(column)
        n_values, is_known = len(attribute.values), ~np.isnan(codes)
        if is_wide:
            places = codes[is_known].astype(np.int64)
            found = csr_parts.csr_from_counts(np.ones(len(places)), places, is_known, n_values)
            return found if makes_sparse else found.toarray()
        numbers = np.append(attribute.numbers or (), np.nan)
        cells = numbers[np.where(is_known, codes, n_values).astype(np.intp)][:, None]
        return sp.csr_array(cells) if makes_sparse else cells


def _is_number(attribute: Attribute) -> bool:
    return attribute.kind == "numeric" or attribute.numbers is not None


def _missing(table: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows and columns of NaN, in row order."""
    if not sp.issparse(table):
        rows, columns = np.nonzero(np.isnan(table))
        return rows, columns
    stored = sp.coo_array(table)
    places = np.isnan(stored.data)
    return stored.row[places], stored.col[places]


def number_or_mark(value: float) -> str:
    """Write a number, NaN as ``?``."""
    return "?" if math.isnan(value) else repr(value)


def weight_mark(data: LabeledData, row: int) -> str:
    """Format the weight that follows a row; an empty string if all weights are 1."""
    return "" if data.weights is None else f",{{{float(data.weights[row])!r}}}"


def data_lines(path: PathLike, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, float]]:
    """Yield the lines that hold rows, stripped and without comments, and the weights after them.

    Raises DataFileError if there are none.
    """
    is_empty = True
    for number, line in lines:
        row = line.strip(" \t")
        if not row or row.startswith("%"):
            continue
        if "%" in row and (end := _BEFORE_COMMENT.match(row).end()) < len(row) and row[end] == "%":  # type: ignore[union-attr]
            row = row[:end].rstrip(" \t")
        is_empty = False
        yield number, *_without_weight(path, number, row)
    if is_empty:
        raise DataFileError(path, None, "no rows after @data", "at least one row")


def _without_weight(path: PathLike, number: int, row: str) -> tuple[str, float]:
    """Split a row from its weight in braces, 1 by default."""
    before, _, text = row.removesuffix("}").rpartition("{")
    before = before.rstrip(" \t").removesuffix(",").rstrip(" \t")
    if row[-1] != "}" or not before or (row[0] == "{" and before[-1] != "}"):
        return row, 1.0
    with suppress(ValueError):
        if (weight := data_file.finite_number(text.strip(" \t"))) >= 0:
            return before, weight
    raise DataFileError(path, number, f"the weight {{{text}}}", "a number >= 0 in braces after a row")


def row_weights(path: PathLike, weights: list[float]) -> Floats | None:
    """Return the weights of rows, with a warning; None if all are 1."""
    n_weighted = len(weights) - weights.count(1.0)
    if n_weighted:
        said = "rows have weights (`weights`), which 'labelweave fit', 'evaluate' and 'report' use"
        warnings.warn(f"{path}: {n_weighted} {said}", UserWarning, stacklevel=2)
    return np.array(weights) if n_weighted else None


def read_rows(path: PathLike, attributes: Sequence[Attribute], lines: Iterator[tuple[int, str]]) -> ArffRows:
    parser, is_sparse, number, weights = None, False, 0, list[float]()
    for number, row, weight in data_lines(path, lines):
        if parser is None:
            is_sparse = row.startswith("{")
            parser = RowParser(path, attributes, is_sparse)
        parser.add(number, row)
        weights.append(weight)
    assert parser is not None, "there is a row"
    if not is_sparse and _may_be_cut(attributes[-1]):
        data_file.warn_open_end(path, number)
    return replace(parser.rows(), weights=row_weights(path, weights))


def written_columns(path: PathLike) -> tuple[dict[str, list[str | None]], list[int]]:
    """Read the raw cells of dense rows, None for ``?``, by attribute; and the lines of the rows."""
    lines = data_file.numbered_lines(path)
    attributes, rows, numbers = read_header(path, lines).attributes, list[list[str]](), list[int]()
    for number, row, weight in data_lines(path, lines):
        if row.startswith("{") or weight != 1:
            found = "a sparse row" if row.startswith("{") else "a weight of a row"
            raise DataFileError(path, number, found, "dense rows without weights in a table")
        rows.append(row_cells(path, number, row, len(attributes)))
        numbers.append(number)
    columns = zip(*([None if cell == "?" else unquoted(cell) for cell in row] for row in rows), strict=True)
    names = (attribute.name for attribute in attributes)
    return {name: [*column] for name, column in zip(names, columns, strict=True)}, numbers


def _may_be_cut(attribute: Attribute) -> bool:
    """Return whether a value of an attribute may be the prefix of another value."""
    values = sorted(attribute.values)
    return not values or any(later.startswith(value) for value, later in pairwise(values))


class RowParser:
    """The rows parsed so far: comma-separated cells or, sparse, ``{column value, ...}`` counted from 0.

    Lines of plain numbers take a fast path; its results are validated at the end.
    """

    def __init__(self, path: PathLike, attributes: Sequence[Attribute], is_sparse: bool = False) -> None:
        self._path, self._attributes, self._is_sparse = path, attributes, is_sparse
        self._all_direct = all(attribute.is_direct for attribute in attributes)
        self._values, self._columns = list[float](), list[int]()
        self._counts, self._lines = list[int](), list[int]()

    def add(self, number: int, line: str) -> None:
        if not self._is_sparse:
            self.add_cells(number, row_cells(self._path, number, line, len(self._attributes)))
            return
        if line[0] != "{" or line[-1] != "}":
            raise DataFileError(self._path, number, "a row without braces", "{column value, ...}")
        body = line[1:-1].strip(" \t")
        columns, values = self._pairs(number, body) if body else ([], [])
        if len(set(columns)) < len(columns):
            repeated = next(column for column in columns if columns.count(column) > 1)
            found = f"column {repeated} more than once"
            raise DataFileError(self._path, number, found, "each column once per row")
        self._columns.extend(columns)
        self._keep(number, values)

    def add_cells(self, number: int, cells: list[str]) -> None:
        if self._is_plain(",".join(cells)):
            with suppress(ValueError):
                self._keep(number, list(map(float, cells)))
                return
        self._keep(number, [self._parsed(number, column, cell) for column, cell in enumerate(cells)])

    def _keep(self, number: int, values: list[float]) -> None:
        self._values.extend(values)
        self._counts.append(len(values))
        self._lines.append(number)

    def rows(self) -> ArffRows:
        """Return the cells as an ndarray, or as a CSR array without stored zeros."""
        n_rows, width, data = len(self._lines), len(self._attributes), np.array(self._values, float)
        columns = np.array(self._columns, np.int64) if self._is_sparse else np.tile(np.arange(width), n_rows)
        is_binary = np.array([attribute.is_binary for attribute in self._attributes])[columns]
        is_wrong = np.isinf(data) | (is_binary & (data != 0) & (data != 1) & ~np.isnan(data))
        for place in np.flatnonzero(is_wrong)[:1]:
            attribute = self._attributes[columns[place]]
            line = self._lines[int(np.searchsorted(np.cumsum(self._counts), place, side="right"))]
            expected = "0 or 1" if attribute.kind == "nominal" else "a finite number"
            found = f"{data[place]:g} in attribute {attribute.name!r}"
            raise DataFileError(self._path, line, found, expected)
        if not self._is_sparse:
            return ArffRows(self._path, self._attributes, data.reshape(n_rows, width), self._lines)
        table = csr_parts.with_narrow_indices(csr_parts.csr_from_counts(data, columns, self._counts, width))
        table.eliminate_zeros()
        return ArffRows(self._path, self._attributes, table, self._lines)

    def _parsed(self, number: int, column: int, cell: str) -> float:
        attribute = self._attributes[column]
        try:
            return attribute.parse(cell)
        except ValueError as error:
            found = f"{cell[:40]!r} in attribute {attribute.name!r}"
            raise DataFileError(self._path, number, found, str(error)) from None

    def _is_plain(self, text: str) -> bool:
        return self._all_direct and not _NOT_PLAIN.search(text)

    def _pairs(self, number: int, body: str) -> tuple[list[int], list[float]]:
        if self._is_plain(body):
            with suppress(ValueError):
                pairs = [pair.split() for pair in body.split(",")]
                columns, values = [int(column) for column, _ in pairs], [float(value) for _, value in pairs]
                if min(columns) >= 0 and max(columns) < len(self._attributes):
                    return columns, values
        columns, values, position, more = list[int](), list[float](), 0, ","
        while more:
            match = _PAIR.match(body, position)
            if match is None:
                found, expected = (
                    f"{body[position : position + 30]!r}",
                    "'column value' pairs separated by commas",
                )
                raise DataFileError(self._path, number, found, expected)
            column = int(match[1]) if len(match[1]) <= _LONGEST_INDEX else len(self._attributes)
            if column >= len(self._attributes):
                expected = f"a column from 0 to {len(self._attributes) - 1}"
                raise DataFileError(self._path, number, f"column {match[1]}", expected)
            columns.append(column)
            values.append(self._parsed(number, column, match[2]))
            position, more = match.end(), match[3]
        return columns, values
