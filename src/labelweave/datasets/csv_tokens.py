"""Records of usual CSV text, taken apart by pyarrow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.foundation.array_types import Array

_QUOTE, _LINE_END = b'"\n'


class Tokens(NamedTuple):
    """The records of a text: their lines, counted from 0, and the columns as pyarrow's arrays.

    rest: what follows the last record that has ended, after so many lines.
    """

    lines: Array
    columns: list[Any]
    rest: bytes
    n_lines: int


def tokenized(text: bytes, delimiter: str, width: int | None) -> Tokens | None:
    """Take records apart; None where they are not all of one width, or quotes are not where they belong.

    text: whole lines; where the last one has no end, it is taken to have one.
    width: how many cells a record has; None if any.
    """
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    text = text if text.endswith(b"\n") else text + b"\n"
    codes = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(codes == _LINE_END)
    quotes = np.flatnonzero(codes == _QUOTE) if b'"' in text else newlines[:0]
    if b"\r" in text or (len(quotes) and not _are_at_edges(codes, quotes, ord(delimiter))):
        return None
    # a line end is that of a record where as many quotes were opened as closed
    is_end = np.searchsorted(quotes, newlines) % 2 == 0 if len(quotes) else np.ones(len(newlines), bool)
    numbers = np.flatnonzero(is_end) + 1
    if not len(numbers):
        return None
    ends = newlines[is_end] + 1
    starts, first_lines = np.append(0, ends[:-1]), np.append(0, numbers[:-1])
    rows = np.flatnonzero(ends - starts > 1)  # blank lines are no records
    size, n_lines = int(ends[-1]), int(numbers[-1])
    if not len(rows):
        return Tokens(rows, [], text[size:], n_lines)
    most = text.count(delimiter.encode(), starts[rows[0]], ends[rows[0]]) + 1
    columns = _columns(memoryview(text)[:size], delimiter, most, n_lines > len(numbers))
    if columns is None or len(columns) != (width or len(columns)) or len(columns[0]) != len(rows):
        return None
    return Tokens(first_lines[rows], columns, text[size:], n_lines)


def _are_at_edges(codes: Array, quotes: Array, delimiter: int) -> bool:
    """Say whether every quote opens a cell, closes one, or stands doubled in one."""
    opening, closing = quotes[::2], quotes[1::2]
    around = np.array([delimiter, _LINE_END])
    doubled = opening[1:] == closing[: len(opening) - 1] + 1
    opens = np.isin(codes[opening - 1], around) | (opening == 0)
    closes = np.isin(codes[closing + 1], around)  # the text ends with a line end
    opens[1:] |= doubled
    closes[: len(doubled)] |= doubled
    return bool(opens.all() and closes.all())


def _columns(text: memoryview, delimiter: str, most: int, has_newlines: bool) -> list[Any] | None:
    """Give at most so many columns of text; None if pyarrow refuses or is not there."""
    try:
        from pyarrow import ArrowException, BufferReader, csv, py_buffer, string
    except ImportError:
        return None
    types = {f"f{place}": string() for place in range(most)}  # pyarrow's own names
    options = (
        csv.ReadOptions(autogenerate_column_names=True),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=has_newlines),
        csv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )
    try:
        table: Any = csv.read_csv(BufferReader(py_buffer(text)), *options)
    except ArrowException:
        return None
    return list(table.columns)
