"""The rows of a table file, CSV, TSV, JSON lines or Parquet, in chunks of raw cells."""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from labelweave.datasets import csv_files, data_file
from labelweave.datasets.arff_table import written_columns
from labelweave.datasets.columns import (
    DecimalMarks,
    as_list,
    is_plain,
    is_text_lists,
    joined,
    text_column,
)
from labelweave.datasets.csv_files import CsvForm, CsvRecord
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.raw_table import Columns, RawTable
from labelweave.datasets.vector_files import TableWithVectors, is_vector_file
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.vectors import are_number_lists

_KINDS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "json", ".ndjson": "json",
          ".parquet": "parquet", ".pq": "parquet"}  # fmt: skip
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_BEGUN_JSON = re.compile(r"\s*[\[{]\s*(?:[\"\[{\]}]|\Z)")
_FASTTEXT = "__label__"
_FASTTEXT_LABEL = re.compile(rf"(?<!\S){_FASTTEXT}(\S+)")
_FEW_LINES = 5  # enough to detect a format
_ROWS_AT_ONCE = 10_000
_HEADER_BYTES = 1 << 16  # decoded to inspect a header
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FEW_CELLS = 10**7
_MOST_EMPTY = 100  # largest ratio of table cells to cells stored in its rows
_MOST_REPEATED = 1000  # largest ratio of cells to bytes of a Parquet file


Reader = Callable[[PathLike], Iterator[tuple[int, dict[str, Any]]]]


def named_kind(path: PathLike) -> str | None:
    """Return the kind of a table file by its name, ignoring ``.gz``; None if the name does not show it."""
    name = Path(path).name.lower()
    kind = _KINDS.get(Path(name.removesuffix(".gz")).suffix)
    return None if kind == "parquet" and name.endswith(".gz") else kind


def table_kind(path: PathLike) -> str | None:
    """Return the kind of a table file by its content, or else by its name."""
    suffix, named = Path(Path(path).name.lower().removesuffix(".gz")).suffix, named_kind(path)
    if suffix == ".arff" or is_vector_file(path):  # only on request
        return "arff" if suffix == ".arff" else "vectors"
    if named == "parquet" or not Path(path).is_file():  # a pipe can be read only once
        return named
    is_usual = named in ("csv", "tsv") and _first_byte(path) not in (b"", b"{", b"[", b"_")
    return named if is_usual else _written_kind(path, named)


def _first_byte(path: PathLike) -> bytes:
    """Return the first byte that is no blank, nothing if there is none; reading a block would take longer."""
    with suppress(OSError, EOFError, zlib.error), data_file.opened(path) as file:
        return bytes(file.read(64).lstrip(b"\xef\xbb\xbf\r\n ")[:1])
    return b""


def _written_kind(path: PathLike, named: str | None) -> str | None:
    """Detect the kind from the first lines: JSON, fastText labels, or a consistent delimiter."""
    few = islice(data_file.numbered_lines(path, _HEADER_BYTES), _FEW_LINES)
    lines = [line for _, line in few if line.strip()] or [""]
    if _BEGUN_JSON.match(lines[0]) or (named in (None, "json") and lines[0].lstrip()[:1] in ("{", "[")):
        return "json"
    if any(line.startswith(_FASTTEXT) for line in lines) or all(map(_FASTTEXT_LABEL.search, lines)):
        return "fasttext"
    if named in ("csv", "tsv"):
        return named
    delimiter, skipped = ("\t", 0) if "\t" in lines[0] else csv_files.delimiter_of(lines[0])
    with suppress(DataFileError):
        form = CsvForm(delimiter, 0, delimiter != "\t")
        widths = [
            len(record)
            for _, record in csv_files.csv_records(path, iter([*enumerate(lines[skipped:])]), form)
        ]
        if len(widths) < 2 or not 1 < widths[0] == widths[1]:
            return named
    return "tsv" if delimiter == "\t" else "csv"


def written_as(path: PathLike) -> str:
    """Describe the kind of a table file and its delimiter in words."""
    kind = str(table_kind(path))
    mark = _csv_form(path, kind, False).delimiter if kind in ("csv", "tsv") else ""
    return f"table ({kind}, cells parted by {mark!r})" if mark else f"table ({kind})"


def parquet_parts(path: PathLike, megabytes: float) -> list[tuple[int, ...]]:
    """Split the row groups of a Parquet file into ranges of about this size, at least one group each."""
    with _parquet(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        sizes = [1e-6 * group.total_byte_size for group in groups if group.num_rows]
        kept = [number for number, group in enumerate(groups) if group.num_rows]
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
    """Read consecutive row groups of a Parquet file as one table."""
    return next(_parquet_tables(path, None, groups))


def raw_tables(path: PathLike, chunk_rows: int | None = None, no_header: bool = False) -> Iterator[RawTable]:
    """Yield a table in chunks of rows, or as one.

    no_header: whether the first line of a CSV or TSV file is a row, and columns are named 1, 2 and so on.
    """
    kind = table_kind(path) or "csv"
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows is {chunk_rows}; it must be at least 1.")
    if isinstance(path, TableWithVectors) and path.is_alone:
        tables = path.alone(chunk_rows)
    elif kind == "parquet":
        tables = _parquet_tables(path, chunk_rows)
    elif kind == "arff":
        columns, numbers = written_columns(path)
        tables = iter([RawTable(path, Columns(columns), numbers.__getitem__)])
    elif kind in ("json", "fasttext"):
        tables = _object_tables(path, _json_rows if kind == "json" else _fasttext_rows, chunk_rows)
    else:
        tables = _csv_tables(path, kind, chunk_rows, no_header)
    tables = path.joined(tables) if isinstance(path, TableWithVectors) and not path.is_alone else tables
    first = next(tables, None)
    if first is None:
        has_header = kind in ("csv", "tsv") and not no_header
        hint = "; if the first line is one, pass `no_header=True`" if has_header else ""
        raise DataFileError(path, None, "no rows", ParameterMessage(f"at least one row{hint}"))
    yield first
    yield from tables


def _object_tables(path: PathLike, read: Reader, chunk_rows: int | None) -> Iterator[RawTable]:
    rows, first_row = read(path), 0
    while chunk := list(islice(rows, chunk_rows)):
        found = [row for _, row in chunk]
        names = dict.fromkeys(chain.from_iterable(found))
        n_cells = sum(map(len, found))
        if len(names) * len(found) > _MOST_EMPTY * (n_cells + _FEW_CELLS):
            sparse = f"{len(names)} names, of which a row has {n_cells / len(found):.1f} on average"
            raise DataFileError(path, chunk[-1][0], sparse, "rows with the same names")
        has_all = len(names) * len(found) == n_cells
        cells = {
            name: [*map(itemgetter(name), found)] if has_all else [row.get(name) for row in found]
            for name in names
        }
        yield RawTable(path, Columns(cells), partial(_line_of, partial(read, path), 0), first_row)
        first_row += len(chunk)


def _line_of(read: Callable[[], Iterator[tuple[int, Any]]], n_before: int, row: int) -> int:
    return next(islice(read(), n_before + row, None))[0]


def _json_rows(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file: one per line, in an array, or over several lines each.

    The only object of a file may hold them, as ``{"data": [...]}``, or columns, as pandas writes them.
    """
    first = next(
        (line.strip() for _, line in data_file.numbered_lines(path, _HEADER_BYTES) if line.strip()), ""
    )
    rows = _json_objects(path) if first[:1] == "[" or first == "{" else _json_lines(path)
    begun = [*islice(rows, 2)]
    if len(begun) == 1:
        ((number, row),) = begun
        holds_rows = any(isinstance(cell, list) and dict in map(type, cell) for cell in row.values())
        if named_kind(path) == "json" and not holds_rows:  # in .jsonl a line is a row
            return iter(begun)
        begun = [(number, one) for one in data_file.rows_inside(row)]
    return chain(begun, rows)


def _json_objects(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON array, or consecutive objects, with their first lines."""
    text = "".join(data_file.decoded(path, line, block) for line, block in data_file.read_blocks(path))
    read, between, at = json.JSONDecoder(object_pairs_hook=distinct_names).raw_decode, r"\s*\[\s*", 0
    line, is_array = 1, re.match(r'\s*\[(?!\s*")', text) is not None  # one with a text is a pair
    while True:
        found = re.compile(between if is_array else r"\s*").match(text, at)
        begin, between = at if found is None else found.end(), r"\s*,\s*"
        if re.compile(r"\s*\]\s*\Z" if is_array else r"\s*\Z").match(text, begin):
            return
        line += text.count("\n", at, begin)
        try:
            value, at = read(text, begin)
            if _SURROGATE.search(text, begin, at):
                json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", line)
            raise DataFileError(path, line, json_fault(error), "JSON objects") from None
        if isinstance(value, list) and list(map(type, value)) == [str, dict]:  # spaCy's text with its labels
            value = {"text": value[0], **value[1]}
        if not isinstance(value, dict):
            found_type = f"a JSON list with a {type(value).__name__}"
            raise DataFileError(path, line, found_type, "one object per line, or an array of objects")
        yield line, value
        line += text.count("\n", begin, at)


def _json_lines(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    quick, careful = json.JSONDecoder().raw_decode, json.JSONDecoder(object_pairs_hook=distinct_names).decode
    for number, line in data_file.numbered_lines(path):
        if not line.strip():
            continue
        try:
            row, end = quick(line) if line[0] == "{" else ({}, 0)
            # each name has a colon, so with equal counts no name is duplicate
            if end != len(line) or line.count(":") != len(row):
                row = careful(line)
            if "\\u" in line and _SURROGATE.search(line):
                json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise DataFileError(path, number, json_fault(error), "one JSON object per line") from None
        if not isinstance(row, dict):
            raise DataFileError(path, number, f"a JSON {type(row).__name__}", "one JSON object per line")
        yield number, row


def distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object; raise an error for duplicate names, of which JSON would keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {twice[:40]!r} twice in an object")
    return found


def json_fault(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "JSON nested too deep"
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON ({error.msg} at position {error.colno})"
    if isinstance(error, UnicodeEncodeError):
        return "half of a surrogate pair, which is not a character"
    if "digits" in str(error):
        return f"an integer of more than {sys.get_int_max_str_digits()} digits"
    return str(error)


def _fasttext_rows(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield lines of labels and a text: ``__label__sport __label__news a text``."""
    for number, line in data_file.numbered_lines(path):
        found = [one for words in _FASTTEXT_LABEL.findall(line) for one in words.split(f",{_FASTTEXT}")]
        labels, text = [one.rstrip(",") for one in found], _FASTTEXT_LABEL.sub(" ", line).strip(" \t,")
        if line.strip():
            yield number, {"labels": labels or "", "text": text}


def _csv_tables(path: PathLike, kind: str, chunk_rows: int | None, no_header: bool) -> Iterator[RawTable]:
    form = _csv_form(path, kind, no_header)
    line, written = next(_csv_file(path, form), (1, []))
    if len(written) == 1:  # blank lines are cells, except those before the header
        form = form._replace(skipped=line - 1)
    names = [str(n + 1) for n in range(len(written))] if no_header else [*map(_unescaped, written)]
    header = csv_files.with_row_index(names)
    _check_header(path, line, [*filter(None, header)])
    # as spreadsheets write where the comma is the decimal mark
    marks = DecimalMarks(path, "," if form.delimiter == ";" else ".")
    first_row, line_of = 0, partial(_line_of, partial(_csv_file, path, form), int(form.header))
    batches = _csv_batches(path, form, len(written))
    for columns in _chunks(batches, chunk_rows):
        for row in _rows_like(written, columns) if form.header else ():
            found = "the column names again"  # as in concatenated files
            raise DataFileError(path, line_of(first_row + row), found, "rows; delete such lines")
        cells = csv_files.named_columns(path, line, header, [*map(_without_escapes, columns)])
        yield RawTable(path, Columns(cells, marks), line_of, first_row)
        first_row += len(columns[0])


def _csv_form(path: PathLike, kind: str, no_header: bool) -> CsvForm:
    """Detect the delimiter of a file, the lines that only state it, and whether quotes enclose cells."""
    first = next(data_file.numbered_lines(path, _HEADER_BYTES))[1]
    is_tsv = kind == "tsv" and ("\t" in first or not any(one in first for one in csv_files.DELIMITERS))
    delimiter, skipped = ("\t", 0) if is_tsv else csv_files.delimiter_of(first)
    return CsvForm(delimiter, skipped, delimiter != "\t" or csv_files.quotes_enclose(path), not no_header)


def _csv_file(path: PathLike, form: CsvForm) -> Iterator[CsvRecord]:
    """Yield the records of a file, the header first."""
    lines = data_file.numbered_lines(path, _HEADER_BYTES)
    return csv_files.csv_records(path, islice(lines, form.skipped, None), form, keeps_blank=True)


def _csv_batches(path: PathLike, form: CsvForm, width: int) -> Iterator[list[Any]]:
    """Yield the columns of a file in large batches of rows.

    pyarrow parses it; unusual files, and everything from an error on, are parsed by Python's slower reader,
    which names lines.
    """
    usual = csv_files.is_usual(path, form) and (width > 1 or not _has_blank_lines(path))
    n_given = (yield from csv_files.usual_batches(path, form, width)) if usual else 0
    if n_given is not None:
        rows = islice(_of_width(path, _csv_file(path, form), width), n_given + form.header, None)
        while batch := [*islice(rows, _ROWS_AT_ONCE)]:
            yield [*map(text_column, zip(*batch, strict=True))]
    if not data_file.ends_with_line_end(path):
        data_file.warn_open_end(path, 1 + sum(block.count(b"\n") for _, block in data_file.read_blocks(path)))


def _has_blank_lines(path: PathLike) -> bool:
    """Return whether a file may have blank lines; two line ends may also be in quotes, or around blocks."""
    return any(re.search(rb"^\r?\n", block, re.MULTILINE) for _, block in data_file.read_blocks(path))


def _of_width(path: PathLike, records: Iterator[CsvRecord], width: int) -> Iterator[list[str]]:
    for line, record in records:
        if len(record) != width:
            found, expected = f"a row of {len(record)} cells", f"{width}, as the header has"
            raise DataFileError(path, line, found, expected)
        yield record


def _chunks(batches: Iterator[list[Any]], n_rows: int | None) -> Iterator[list[Any]]:
    """Yield the columns of so many rows at a time, fewer in the last chunk; all at once if None."""
    held, n_held = list[list[Any]](), 0
    for batch in batches:
        while n_rows is not None and n_held + len(batch[0]) >= n_rows:
            held.append([column[: n_rows - n_held] for column in batch])
            batch = [column[n_rows - n_held :] for column in batch]  # noqa: PLW2901
            yield [*map(joined, zip(*held, strict=True))]
            held, n_held = [], 0
        held += [batch] if len(batch[0]) else []
        n_held += len(batch[0])
    if held:
        yield [*map(joined, zip(*held, strict=True))]


def _rows_like(written: list[str], columns: list[Any]) -> Iterator[int]:
    """Yield the rows that equal the header, unless it has only one cell."""
    first = columns[0]
    if isinstance(first, list):
        rows = [row for row, cell in enumerate(first) if cell == written[0]]
    else:
        from pyarrow import compute

        rows = compute.indices_nonzero(compute.equal(first, written[0])).to_pylist()
    same = (row for row in rows if [str(column[row]) for column in columns] == written)
    return same if len(written) > 1 else iter(())


def _without_escapes(column: Any) -> Any:
    """Remove the apostrophes of :func:`escaped` from a column."""
    if not isinstance(column, list):
        from pyarrow import compute

        if not compute.any(compute.starts_with(column, "'")).as_py():
            return column
    return text_column([*map(_unescaped, as_list(column))])


def _check_header(path: PathLike, line: int | None, header: list[str]) -> None:
    counts = Counter(header)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if not header or "" in counts or repeated is not None:
        what = "no header" if not header else "a column without a name"
        found = what if repeated in (None, "") else f"two columns named {repeated!r}"
        expected = "distinct column names in the first line; pass `no_header=True` if it is a row"
        raise DataFileError(path, line, found, ParameterMessage(expected))


def escaped(cell: str) -> str:
    """Prefix an apostrophe to what a spreadsheet would read as a formula; numbers are unchanged."""
    if not cell.lstrip("'").startswith(_FORMULA_SIGNS):
        return cell
    try:
        data_file.finite_number(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _unescaped(cell: str) -> str:
    is_escaped = cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA_SIGNS)
    return cell[1:] if is_escaped else cell


@contextmanager
def _parquet(path: PathLike) -> Iterator[Any]:
    """Open a Parquet file; raise DataFileError if it is damaged."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: install labelweave[app].") from None
    data_file.require_file(path)
    if not Path(path).stat().st_size:
        raise DataFileError(path, None, "an empty file", "a Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise DataFileError(path, None, f"a damaged Parquet file ({reason})", "a whole one") from None


def _parquet_tables(
    path: PathLike, chunk_rows: int | None, groups: Sequence[int] | None = None
) -> Iterator[RawTable]:
    with _parquet(path) as file:
        first_row, n_rows, names = 0, file.metadata.num_rows, file.schema_arrow.names
        if n_rows * len(names) > max(_MOST_REPEATED * (size := Path(path).stat().st_size), _FEW_CELLS):
            found = f"{n_rows} rows in {size} bytes"
            raise DataFileError(path, None, found, "rows that the file can hold")
        _check_header(path, None, names)
        if groups is not None:
            rows_before = [file.metadata.row_group(number).num_rows for number in range(groups[0])]
            first_row = sum(rows_before)
        for batch in file.iter_batches(batch_size=chunk_rows or max(1, n_rows), row_groups=groups):
            columns = dict(zip(names, map(_parquet_column, batch.columns), strict=True))
            yield RawTable(path, Columns(columns), None, first_row)
            first_row += batch.num_rows


def _parquet_column(column: Any) -> Any:
    """Return a column as an array if it is plain, else as a list; damaged files raise here."""
    from pyarrow import ArrowInvalid, chunked_array, large_string, types

    column.validate(full=True)
    values = column.dictionary_decode() if types.is_dictionary(column.type) else column
    if types.is_binary(values.type) or types.is_large_binary(values.type):
        with suppress(ArrowInvalid):  # some programs write text as bytes; real bytes are dropped
            values = values.cast(large_string())
    is_array = is_plain(values) or is_text_lists(values) or are_number_lists(values)
    return chunked_array([values]) if is_array else values.to_pylist()
