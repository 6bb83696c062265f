"""The rows of a table file, CSV, TSV, JSON lines or Parquet, in chunks of raw cells."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelweave.datasets.columns import (
    Columns,
    as_list,
    has_any,
    is_plain,
    is_text,
    is_text_lists,
    joined,
    text_column,
)
from labelweave.datasets.csv_header import delimiter_of, named_columns, refuse_header_again, with_row_index
from labelweave.datasets.csv_tokens import tokenized
from labelweave.datasets.data_file import (
    DataFileError,
    PathLike,
    finite_number,
    lines_of_blocks,
    numbered_lines,
    read_blocks,
    require_file,
    warn_open_end,
)
from labelweave.datasets.decimal_marks import DecimalMarks
from labelweave.foundation.array_types import Array

_KINDS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json",
          ".parquet": "parquet", ".pq": "parquet"}  # fmt: skip
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_CELL = min(sys.maxsize, 2**31 - 1)
_ROWS_AT_ONCE = 10_000
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FEW_CELLS = 10**7
_MOST_EMPTY = 100  # times as many cells of a table as those that its rows have
_MOST_REPEATED = 1000  # times as many cells of a Parquet file as it has bytes


@dataclass(frozen=True)
class RawTable:
    """Some rows of a table, cells as the file holds them.

    lines: the line of every row; None where the file has no lines.
    first_row: the number of the first row, from zero.
    """

    path: PathLike
    columns: Columns
    lines: Array | None
    first_row: int

    def __len__(self) -> int:
        return self.columns.n_rows

    def error(self, row: int, column: str, found: str, expected: str) -> DataFileError:
        """Make the error for a cell, in a row of this chunk."""
        place = f"{found} in column {column!r} of row {self.first_row + row}"
        return DataFileError(self.path, None if self.lines is None else int(self.lines[row]), place, expected)


def table_kind(path: PathLike) -> str | None:
    """Say by its name, ``.gz`` passed over, what kind of table a file is; None if the name says nothing."""
    name = Path(path).name.lower()
    kind = _KINDS.get(Path(name.removesuffix(".gz")).suffix)
    return None if kind == "parquet" and name.endswith(".gz") else kind


def parquet_parts(path: PathLike, megabytes: float) -> list[tuple[int, ...]]:
    """Divide the row groups of a Parquet file into stretches of so many megabytes, at least a group each."""
    from pyarrow import ArrowException, parquet

    require_file(path)
    try:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            sizes = [1e-6 * group.total_byte_size for group in groups if group.num_rows]
            kept = [number for number, group in enumerate(groups) if group.num_rows]
    except (ArrowException, OSError) as error:
        raise _damaged(path, error) from None
    parts: list[list[int]] = []
    size = 0.0
    for number, own in zip(kept, sizes, strict=True):
        size += own
        if not parts or size > megabytes:
            parts.append([])
            size = own
        parts[-1].append(number)
    return list(map(tuple, parts))


def parquet_part(path: PathLike, groups: Sequence[int]) -> RawTable:
    """Read row groups of a Parquet file, neighbours, as one table."""
    return next(_parquet_tables(path, None, groups))


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
        tables = _json_tables(path, chunk_rows) if kind == "json" else _csv_tables(path, kind, chunk_rows)
    first = next(tables, None)
    if first is None:
        raise DataFileError(path, None, "no rows", "at least one row")
    yield first
    yield from tables


def _json_tables(path: PathLike, chunk_rows: int | None) -> Iterator[RawTable]:
    rows, first_row = _json_rows(path), 0
    while chunk := list(islice(rows, chunk_rows)):
        found = [row for _, row in chunk]
        names = dict.fromkeys(chain.from_iterable(found))
        if len(names) * len(found) > _MOST_EMPTY * (sum(map(len, found)) + _FEW_CELLS):
            sparse = (
                f"{len(names)} names, of which a row has {sum(map(len, found)) / len(found):.1f} on average"
            )
            raise DataFileError(path, chunk[-1][0], sparse, "rows with the same names")
        has_all = len(names) * len(found) == sum(map(len, found))
        cells = {
            name: [*map(itemgetter(name), found)] if has_all else [row.get(name) for row in found]
            for name in names
        }
        yield RawTable(path, Columns(cells), np.array([line for line, _ in chunk]), first_row)
        first_row += len(chunk)


def _json_rows(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    quick, careful = json.JSONDecoder().raw_decode, json.JSONDecoder(object_pairs_hook=distinct_names).decode
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row, end = quick(line) if line[0] == "{" else ({}, 0)
            # each name has a colon, so where there are as many none came twice
            if end != len(line) or line.count(":") != len(row):
                row = careful(line)
            if "\\u" in line and _SURROGATE.search(line):
                json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise DataFileError(path, number, json_fault(error), "one JSON object a line") from None
        if not isinstance(row, dict):
            raise DataFileError(path, number, f"a JSON {type(row).__name__}", "one JSON object a line")
        yield number, row


def distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object, refusing a name that occurs twice, of which JSON would keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {twice[:40]!r} twice in one object")
    return found


def json_fault(error: ValueError | RecursionError) -> str:
    """Say what is wrong with JSON that Python cannot read."""
    if isinstance(error, RecursionError):
        return "JSON nested too deep"
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON ({error.msg} at position {error.colno})"
    if isinstance(error, UnicodeEncodeError):
        return "half of a pair of surrogates, which is no character"
    if "digits" in str(error):
        return f"a whole number of more than {sys.get_int_max_str_digits()} digits"
    return str(error)


class _Records(NamedTuple):
    """Records of a CSV file that are not blank: their first lines, the columns, what parts them."""

    lines: Array
    columns: list[Any]
    delimiter: str

    def part(self, start: int, end: int | None = None) -> _Records:
        columns = [column[start:end] for column in self.columns]
        return self._replace(lines=self.lines[start:end], columns=columns)


def _csv_tables(path: PathLike, kind: str, chunk_rows: int | None) -> Iterator[RawTable]:
    batches = _csv_batches(path, kind)
    first = next(batches, _Records(np.ones(1, np.int64), [], ","))
    written = [as_list(column[:1])[0] for column in first.columns]
    header = with_row_index([*map(_unescaped, written)])
    line = int(first.lines[0])
    _check_header(path, line, [*filter(None, header)])
    # as spreadsheets write where commas are no delimiters
    marks = DecimalMarks(path) if first.delimiter == ";" else None
    first_row, rest = 0, _with_warning(path, chain([first.part(1)], batches))
    for records in _chunks_of_records(rest, chunk_rows):
        refuse_header_again(path, written, records.columns, records.lines)
        cells = named_columns(path, line, header, [*map(_without_escapes, records.columns)])
        yield RawTable(path, Columns(cells, marks), records.lines, first_row)
        first_row += len(records.lines)


def _with_warning(path: PathLike, batches: Iterator[_Records]) -> Iterator[_Records]:
    """Warn after the last record where nothing closes it."""
    last = 0
    for batch in batches:
        last = int(batch.lines[-1]) if len(batch.lines) else last
        yield batch
    if last:
        warn_open_end(path, last)


def _chunks_of_records(batches: Iterator[_Records], chunk_rows: int | None) -> Iterator[_Records]:
    """Give so many records at a time, the last time those that are left; all at once if None."""
    held, n_held = list[_Records](), 0
    for batch in batches:
        held.append(batch)
        n_held += len(batch.lines)
        if chunk_rows is not None and n_held >= chunk_rows:
            records = _joined(held)
            n_held %= chunk_rows
            whole = len(records.lines) - n_held
            for start in range(0, whole, chunk_rows):
                yield records.part(start, start + chunk_rows)
            held = [records.part(whole)]
    if n_held:
        yield _joined(held)


def _joined(batches: list[_Records]) -> _Records:
    columns = [joined(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    return batches[0]._replace(lines=np.concatenate([batch.lines for batch in batches]), columns=columns)


def _check_header(path: PathLike, line: int | None, header: list[str]) -> None:
    counts = Counter(header)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if not header or "" in counts or repeated is not None:
        what = "no header" if not header else "a column without a name"
        found = what if repeated in (None, "") else f"two columns named {repeated!r}"
        raise DataFileError(path, line, found, "a first line of distinct column names")


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


def _without_escapes(column: Any) -> Any:
    """Take the apostrophes of :func:`escaped` off a column."""
    if is_text(column) and not has_any(column, "'", at_start=True):
        return column
    return text_column([*map(_unescaped, as_list(column))])


def _csv_batches(path: PathLike, kind: str) -> Iterator[_Records]:
    """Give the records of a file, many at a time; the delimiter of a CSV file is what its header has most.

    pyarrow takes them apart; from what is unusual on Python's slower reader does, which names lines.
    """
    blocks, delimiter, width, line, rest = read_blocks(path), "\t", None, 1, b""
    for first_line, block in blocks:
        start = 0
        if first_line == 1 and kind == "csv":
            delimiter, start = delimiter_of(block)
            line += start > 0
        text = rest + block[start:]
        if not text:
            continue
        found = tokenized(text, delimiter, width)
        if found is None:
            yield from _careful_batches(path, chain([(line, text)], blocks), delimiter, width)
            return
        if found.columns:
            width = len(found.columns)
            yield _Records(line + found.lines, found.columns, delimiter)
        line, rest = line + found.n_lines, found.rest
    if rest:
        yield from _careful_batches(path, iter([(line, rest)]), delimiter, width)


def _careful_batches(
    path: PathLike, blocks: Iterator[tuple[int, bytes]], delimiter: str, width: int | None
) -> Iterator[_Records]:
    """Give records from a block on, one of which may go on in the next block.

    width: how many cells a record has; None where the first one is the header.
    """
    numbered = lines_of_blocks(path, blocks)
    before, text = next(numbered)
    lines = chain([text + "\n"], (line + "\n" for _, line in numbered))
    reader, is_more = csv.reader(lines, delimiter=delimiter, strict=True), True
    while is_more:
        found, line, usual_limit = list[tuple[int, list[str]]](), 0, csv.field_size_limit(_LONGEST_CELL)
        try:
            for _ in range(_ROWS_AT_ONCE if width else 1):  # the header is checked before rows are
                line = before + reader.line_num
                record = next(reader, None)
                is_more = record is not None
                if record is None:
                    break
                if record:
                    found.append((line, record))
        except csv.Error as error:
            raise DataFileError(path, line, *_fault_of_record(error)) from None
        finally:
            csv.field_size_limit(usual_limit)
        if found:
            width = len(found[0][1]) if width is None else width
            _refuse_other_widths(path, found, width)
            columns = [*map(text_column, zip(*(row for _, row in found), strict=True))]
            yield _Records(np.array([line for line, _ in found]), columns, delimiter)


def _fault_of_record(error: csv.Error) -> tuple[str, str]:
    """Say what is wrong with a record that Python cannot read, and what is expected."""
    if "new-line character" in str(error):
        return "a line end CR alone", "line ends LF or CRLF; save the file with these"
    return f"a broken record ({error})", "closed quotation marks"


def _refuse_other_widths(path: PathLike, records: list[tuple[int, list[str]]], width: int) -> None:
    for line, record in records:
        if len(record) != width:
            raise DataFileError(path, line, f"a row of {len(record)} cells", f"{width}, as the header has")


def _parquet_tables(
    path: PathLike, chunk_rows: int | None, groups: Sequence[int] | None = None
) -> Iterator[RawTable]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: install labelweave[app].") from None
    require_file(path)
    size = Path(path).stat().st_size
    if not size:
        raise DataFileError(path, None, "an empty file", "a Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            first_row, n_rows, names = 0, file.metadata.num_rows, file.schema_arrow.names
            if n_rows * len(names) > max(_MOST_REPEATED * size, _FEW_CELLS):
                raise DataFileError(
                    path, None, f"{n_rows} rows in {size} bytes", "rows that the file can hold"
                )
            _check_header(path, None, names)
            if groups is not None:
                rows_before = [file.metadata.row_group(number).num_rows for number in range(groups[0])]
                first_row = sum(rows_before)
            for batch in file.iter_batches(batch_size=chunk_rows or max(1, n_rows), row_groups=groups):
                columns = dict(zip(names, map(_parquet_column, batch.columns), strict=True))
                yield RawTable(path, Columns(columns), None, first_row)
                first_row += batch.num_rows
    except (ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise _damaged(path, error) from None


def _damaged(path: PathLike, error: Exception) -> DataFileError:
    reason = str(error).partition("\n")[0]
    return DataFileError(path, None, f"a damaged Parquet file ({reason})", "a whole one")


def _parquet_column(column: Any) -> Any:
    """Give a column as an array of its values where it is plain, else as a list; damage raises here."""
    from pyarrow import ArrowInvalid, chunked_array, large_string, types

    column.validate(full=True)
    values = column.dictionary_decode() if types.is_dictionary(column.type) else column
    if types.is_binary(values.type) or types.is_large_binary(values.type):
        with suppress(ArrowInvalid):  # text, as some programs write it; others are bytes, to be left out
            values = values.cast(large_string())
    return chunked_array([values]) if is_plain(values) or is_text_lists(values) else values.to_pylist()
