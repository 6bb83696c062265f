"""The rows of a table file, CSV, TSV, JSON lines or Parquet, in chunks of raw cells."""

from __future__ import annotations

import csv
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from labelweave.datasets.data_file import (
    DataFileError,
    PathLike,
    ends_with_line_end,
    finite_number,
    numbered_lines,
)

_KINDS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json",
          ".parquet": "parquet", ".pq": "parquet"}  # fmt: skip
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_CELL = min(sys.maxsize, 2**31 - 1)

_Row = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class RawTable:
    """Some rows of a table, cells as the file holds them.

    lines: the line of every row; None where the file has no lines.
    first_row: the number of the first row, from zero.
    """

    path: PathLike
    columns: dict[str, list[Any]]
    lines: list[int] | None
    first_row: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def error(self, row: int, column: str, found: str, expected: str) -> DataFileError:
        """Make the error for a cell, in a row of this chunk."""
        place = f"{found} in column {column!r} of row {self.first_row + row}"
        return DataFileError(self.path, None if self.lines is None else self.lines[row], place, expected)


def table_kind(path: PathLike) -> str | None:
    """Say by its name, ``.gz`` passed over, what kind of table a file is; None if the name says nothing."""
    name = Path(path).name.lower()
    kind = _KINDS.get(Path(name.removesuffix(".gz")).suffix)
    return None if kind == "parquet" and name.endswith(".gz") else kind


def raw_tables(path: PathLike, chunk_rows: int | None = None) -> Iterator[RawTable]:
    """Read a table in chunks of rows, or as one; the file's suffix says the kind."""
    kind = table_kind(path)
    if kind is None:
        expected = f"one of the suffixes {', '.join(_KINDS)}"
        raise DataFileError(path, None, "a name that says nothing of its kind", expected)
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows is {chunk_rows}; it is a positive number of rows.")
    if kind == "parquet":
        tables = _parquet_tables(path, chunk_rows)
    else:
        rows = _json_rows(path) if kind == "json" else _csv_rows(path, kind)
        tables = _grouped(path, rows, chunk_rows)
    first = next(tables, None)
    if first is None:
        raise DataFileError(path, None, "no rows", "at least one row")
    yield first
    yield from tables


def _grouped(path: PathLike, rows: Iterator[_Row], chunk_rows: int | None) -> Iterator[RawTable]:
    first_row = 0
    while chunk := list(islice(rows, chunk_rows)):
        names = dict.fromkeys(name for _, row in chunk for name in row)
        columns = {name: [row.get(name) for _, row in chunk] for name in names}
        yield RawTable(path, columns, [line for line, _ in chunk], first_row)
        first_row += len(chunk)


def _json_rows(path: PathLike) -> Iterator[_Row]:
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            found = f"broken JSON ({error.msg} at position {error.colno})"
            raise DataFileError(path, number, found, "one JSON object a line") from None
        if not isinstance(row, dict):
            raise DataFileError(path, number, f"a JSON {type(row).__name__}", "one JSON object a line")
        yield number, row


def _csv_rows(path: PathLike, kind: str) -> Iterator[_Row]:
    records = _csv_records(path, kind)
    line, header = next(records, (1, []))
    header = [*map(_unescaped, header)]
    repeated = next((name for name in header if header.count(name) > 1), None)
    if not header or "" in header or repeated is not None:
        what = "no header" if not header else "a column without a name"
        found = what if repeated in (None, "") else f"two columns named {repeated!r}"
        raise DataFileError(path, line, found, "a first line of distinct column names")
    for line, cells in records:
        if len(cells) != len(header):
            expected = f"{len(header)}, as the header has"
            raise DataFileError(path, line, f"a row of {len(cells)} cells", expected)
        yield line, dict(zip(header, map(_unescaped, cells), strict=True))
    if not ends_with_line_end(path):
        said = "the last row has no line end; if the file was cut short, its last cell is wrong"
        warnings.warn(f"{path}:{line}: {said}", UserWarning, stacklevel=2)


def escaped(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula; numbers stay as they are."""
    if not cell.lstrip("'").startswith(_FORMULA_SIGNS):
        return cell
    try:
        finite_number(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _unescaped(cell: str) -> str:
    is_escaped = cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA_SIGNS)
    return cell[1:] if is_escaped else cell


def _csv_records(path: PathLike, kind: str) -> Iterator[tuple[int, list[str]]]:
    """Give the records that are not blank, each with its first line.

    The delimiter of a CSV file is what its header has most of.
    """
    text = (line + "\n" for _, line in numbered_lines(path))
    header = next(text, "")
    delimiter = "\t" if kind == "tsv" else max(",;\t|", key=header.count)
    reader = csv.reader(chain([header], text), delimiter=delimiter, strict=True)
    while True:
        line, usual_limit = reader.line_num + 1, csv.field_size_limit(_LONGEST_CELL)
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise DataFileError(path, line, f"a broken record ({error})", "closed quotation marks") from None
        finally:
            csv.field_size_limit(usual_limit)
        if record is None:
            return
        if record:
            yield line, record


def _parquet_tables(path: PathLike, chunk_rows: int | None) -> Iterator[RawTable]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: install labelweave[table].") from None
    target = Path(path)
    if not target.is_file() or not target.stat().st_size:
        found = "an empty file" if target.is_file() else "a directory" if target.is_dir() else "no such file"
        raise DataFileError(path, None, found, "a Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            first_row, size = 0, chunk_rows or max(1, file.metadata.num_rows)
            for batch in file.iter_batches(batch_size=size):
                yield RawTable(path, batch.to_pydict(), None, first_row)
                first_row += batch.num_rows
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataFileError(path, None, f"a damaged Parquet file ({reason})", "a whole one") from None
