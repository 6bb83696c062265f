"""Records of CSV files as other programs write them: delimiter lines, unnamed columns, headers."""

from __future__ import annotations

import csv
import re
import sys
import warnings
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from itertools import chain, count, pairwise
from typing import Any, NamedTuple

import numpy as np

from labelweave.datasets.columns import as_list, filled, is_text, number_or_none, says_missing, text_of
from labelweave.datasets.data_file import (
    DataFileError,
    PathLike,
    contains,
    is_gzip,
    numbered_lines,
    read_blocks,
)
from labelweave.foundation.arguments import ParameterMessage

DELIMITERS = ",;\t|"  # the most frequent one in the header is that of the file
ROW_INDEX = "Unnamed: 0"
"""What pandas calls a first column without a name, its own row index."""

CsvRecord = tuple[int, list[str]]


class CsvForm(NamedTuple):
    """How to parse a file.

    delimiter: the character between cells.  skipped: leading lines that only state the delimiter.
    quotes: whether quotation marks enclose cells; otherwise they are text.
    header: whether the first record names the columns.
    """

    delimiter: str
    skipped: int
    quotes: bool = True
    header: bool = True


_LONGEST_CELL = min(sys.maxsize, 2**31 - 1)
_QUOTE, _LINE_END = b'"\n'
_LONE_QUOTE = re.compile(rb'(?m:^|\t)"(?:[^"\t\r\n]|"")*+(?!"(?:[\t\r\n]|\Z))')
_LIKE_ROWS = re.compile(rb'(?m:^|\t)"(?=[^"]*\t)(?=[^"]*\n)')  # quoted cells that hold tabs and line ends
_PART, _DIGIT = re.compile(r"\s*[,;|]\s*"), re.compile(r"\d")  # of a list of labels, and of a number
_GLANCE, _MOST_LISTED = 1000, 20  # cells, often enough to decide
_FEWEST_ALIKE, _FEWEST_ROWS = 8, 20  # cells needed to identify one of another kind, and few distinct ones
_LEAST_TEXT, _LONGEST_NAME = 20, 60  # characters of texts of several words, and of names of columns
_DELIMITER_LINE = re.compile(r'"?sep=([\t -~])"?', re.IGNORECASE)


def delimiter_of(first_line: str) -> tuple[str, int]:
    """Detect the delimiter of a CSV file from its first line, and count the lines that only state it.

    Spreadsheets write, and read, a first line such as ``sep=;``.
    """
    found = _DELIMITER_LINE.fullmatch(first_line)
    return (max(DELIMITERS, key=first_line.count), 0) if found is None else (found[1], 1)


def quotes_enclose(path: PathLike) -> bool:
    """Return whether quotation marks enclose cells between tabs; warn if that is uncertain.

    They do not if a cell begins with a mark that does not close it, and all lines have as many tabs.
    """
    line = _line_of(path, _LONE_QUOTE) if contains(path, b'"') else None
    n_tabs = set[int]() if line is None else {text.count("\t") for _, text in numbered_lines(path) if text}
    is_text = len(n_tabs) == 1 and n_tabs != {0}
    line = line if is_text or line is None else _line_of(path, _LIKE_ROWS)
    if line is not None:
        said = (
            "does not close it, and all lines have as many tabs; quotation marks are read as text"
            if is_text
            else "encloses tabs and line ends; if the mark is text, double it inside a quoted cell"
        )
        said = f"{path}:{line}: a quotation mark begins a cell and {said}"
        warnings.warn(said, UserWarning, stacklevel=2)
    return not is_text


def _line_of(path: PathLike, pattern: re.Pattern[bytes]) -> int | None:
    for first_line, block in read_blocks(path):
        if b'"' in block and (found := pattern.search(block)):
            return first_line + block.count(b"\n", 0, found.start() + 1)
    return None


def csv_records(
    path: PathLike, lines: Iterator[tuple[int, str]], form: CsvForm, keeps_blank: bool = False
) -> Iterator[CsvRecord]:
    """Yield the non-blank records with their first lines.

    keeps_blank: whether a blank line before the last record is a blank cell in a file of one column.

    Raises DataFileError if quotation marks or line ends are misplaced.
    """
    start, text = next(lines, (1, ""))
    texts = chain([text + "\n"], (line + "\n" for _, line in lines))
    quoting: Any = csv.QUOTE_MINIMAL if form.quotes else csv.QUOTE_NONE
    reader = csv.reader(texts, delimiter=form.delimiter, strict=True, quoting=quoting)
    record: list[str] | None = []
    width, blank = 0, list[int]()
    while record is not None:
        line, usual_limit = start + reader.line_num, csv.field_size_limit(_LONGEST_CELL)
        try:
            record = next(reader, None)
        except csv.Error as error:
            is_end = "new-line character" in str(error)
            found = "a line end CR alone" if is_end else f"a broken record ({error})"
            save = "line ends LF or CRLF; save the file with these" if is_end else "closed quotation marks"
            raise DataFileError(path, line, found, save) from None
        finally:
            csv.field_size_limit(usual_limit)
        if record:
            yield from ((number, [""]) for number in blank)
            yield line, record
            width, blank = len(record), []
        elif width == 1 and keeps_blank:
            blank.append(line)


def with_row_index(header: Sequence[str]) -> list[str]:
    """Name the first column if it has no name, as in tables that pandas and R write."""
    if not header or header[0]:
        return list(header)
    names = chain([ROW_INDEX], (f"{ROW_INDEX}.{number}" for number in count(1)))
    return [next(name for name in names if name not in header), *header[1:]]


def named_columns(path: PathLike, line: int, header: Sequence[str], columns: Sequence[Any]) -> dict[str, Any]:
    """Return columns by name; unnamed ones are dropped, and refused if they have cells.

    line: that of the header.
    """
    for place, (name, column) in enumerate(zip(header, columns, strict=True)):
        strange = [] if name else [cell for cell in as_list(filled(column)) if cell.strip()]
        if strange:
            found = f"no name for column {place + 1}, with cells such as {strange[0][:40]!r}"
            expected = "a name for every column with cells; add one to this line, or delete the column"
            raise DataFileError(path, line, found, expected)
    return {name: column for name, column in zip(header, columns, strict=True) if name}


def is_usual(path: PathLike, form: CsvForm) -> bool:
    """Return whether line ends are LF, or CRLF outside quotes, and quotes enclose cells or are doubled.

    pyarrow accepts some malformed files that fail this check.
    """
    edges, is_open = [ord(form.delimiter), _LINE_END], False
    for _, block in read_blocks(path):
        text = block.replace(b"\r\n", b"\n") if b"\r" in block else block  # searching for one byte is fast
        if b"\r" in text:
            return False
        if not form.quotes or (b'"' not in text and not is_open):
            continue
        codes = np.frombuffer(b"\n" + text + b"\n", np.uint8)
        quotes = np.flatnonzero(codes == _QUOTE)
        opens = (np.arange(len(quotes)) % 2 == 0) ^ is_open
        is_fine = np.isin(np.where(opens, codes[quotes - 1], codes[quotes + 1]), edges)
        doubled = opens[1:] & (np.diff(quotes) == 1)
        is_fine[1:] |= doubled
        is_fine[:-1] |= doubled
        ends = np.flatnonzero(codes[1:-1] == _LINE_END) if text is not block else quotes[:0]
        if not is_fine.all() or ((np.searchsorted(quotes, ends) + is_open) % 2).any():
            return False
        is_open ^= len(quotes) % 2 == 1
    return not is_open


def usual_batches(path: PathLike, form: CsvForm, width: int) -> Generator[list[Any], None, int | None]:
    """Yield the columns of the records after the header, parsed by pyarrow in large batches.

    width: the number of cells per record.
    Returns None at the end of the file, otherwise the number of records before the one that pyarrow refused.
    """
    n_given, is_header = 0, int(form.header)
    try:
        from pyarrow import ArrowException, chunked_array, csv, input_stream, string
    except ImportError:
        return 0
    types = {f"f{place}": string() for place in range(width)}  # the default names of pyarrow
    options = (
        csv.ReadOptions(use_threads=False, skip_rows=form.skipped, autogenerate_column_names=True),
        csv.ParseOptions(
            delimiter=form.delimiter, newlines_in_values=form.quotes, quote_char='"' if form.quotes else False
        ),
        csv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )
    packing = "gzip" if is_gzip(path) else None
    try:  # pyarrow's threads abort a process that ends while they wait for a stream of Python
        with input_stream(path, packing) as stream, csv.open_csv(stream, *options) as reader:
            for batch in filter(len, reader):
                if batch.num_columns != width:
                    return 0
                yield [chunked_array([column[is_header:]]) for column in batch.columns]
                n_given += batch.num_rows - is_header
                is_header = 0
    except ArrowException:
        return n_given
    return None


def warn_of_header(path: PathLike, columns: Mapping[str, Any]) -> None:
    """Warn if the first line may be a row, or the second line too may belong to a header."""
    some = {name: column[:_GLANCE] for name, column in columns.items()}
    some = {name: as_list(one) if is_text(one) else [*map(text_of, one)] for name, one in some.items()}
    names = sorted(some, key=lambda name: number_or_none(some[name][0]) is None)  # of numbers, which decide
    _warn_of_no_header(path, {name: some[name] for name in names})
    _warn_of_second_header(path, {name: some[name] for name in names})


def _warn_of_no_header(path: PathLike, columns: Mapping[str, list[str]]) -> None:
    """Warn if the first line may be a row: a name is a number, occurs in its column, or is as long a text.

    It is no row if a column of numbers or of few distinct cells has another word as its name; evenly
    increasing numbers are names.
    """
    values, alike = {name: number_or_none(name) for name in columns}, list[str]()
    numbers = sorted(value for value in values.values() if value is not None)
    steps = {after - before for before, after in pairwise(numbers)}
    for name, value in values.items():
        cells = [*filter(None, columns[name])]
        some = cells[:_MOST_LISTED]
        are_numbers = bool(some) and all(number_or_none(cell) is not None for cell in some)
        if value is None and are_numbers:
            return
        texts, parts = {*cells}, {*_PART.split(name)}
        are_few = len(cells) >= _FEWEST_ROWS and 10 * len(texts) <= len(cells) and name not in texts
        if value is None and are_few:
            return
        is_number = value is not None and some and all(map(_DIGIT.search, some)) and len(steps) != 1
        is_list = len(parts) > 1 and parts <= {part for cell in texts for part in _PART.split(cell)}
        if name in texts or is_number or is_list or _is_such_text(name, texts):
            alike.append(name)
    for name in alike[:1]:
        said = f"{path}: the name {name[:40]!r} of a column looks like a cell; if the first line is a row"
        warnings.warn(ParameterMessage(f"{said}, pass `no_header=True`"), UserWarning, stacklevel=2)


def _is_such_text(name: str, texts: Collection[str]) -> bool:
    """Return whether a name is as long as texts of a column, and has blanks and question marks as they do."""
    lengths = sorted(map(len, texts)) or [0]
    least, middle = lengths[len(lengths) // 50], lengths[len(lengths) // 2]
    alike = [(2 * sum(sign in text for text in texts) > len(texts)) == (sign in name) for sign in " ?"]
    is_usual = max(_LEAST_TEXT, least) <= len(name) <= 2 * lengths[-1] and middle >= _LEAST_TEXT
    return alike[1] and ((is_usual and alike[0]) or len(name) > _LONGEST_NAME)


def _warn_of_second_header(path: PathLike, columns: Mapping[str, list[str]]) -> None:
    """Warn if the first row differs from all others wherever these are numbers or repeat.

    Such rows hold units, types, question texts, or the second level of pandas column names.
    """
    strange, alike = list[str](), list[str]()
    for name in columns:
        first, *others = [*columns[name], ""]
        cells = [cell for cell in others[1:] if not says_missing(cell)]  # there may be a third header line
        are_numbers = all(number_or_none(cell) is not None for cell in cells[:_MOST_LISTED])
        tells = len(cells) >= _FEWEST_ALIKE and not says_missing(first)
        if tells and are_numbers and number_or_none(first) is not None:
            return
        if tells and (are_numbers or 2 * len({*cells}) <= len(cells)):
            (alike if first in cells else strange).append(f"{first[:40]!r} in column {name!r}")
    if len(strange) > max(1, len(alike)):
        said = f"the first row differs from all others, with {' and '.join(strange[:2])}, like units, types "
        said += "or questions below a header; if it is such a line, delete it from the file"
        warnings.warn(f"{path}: {said}", UserWarning, stacklevel=2)
