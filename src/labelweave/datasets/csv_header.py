"""The first lines of CSV files as other programs write them: a delimiter's name, columns without one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from labelweave.datasets.columns import are_equal, as_list, filled
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.foundation.array_types import Array

DELIMITERS = ",;\t|"  # of CSV files, whose header has most of one
ROW_INDEX = "Unnamed: 0"
"""What pandas calls a first column without a name, its own row index."""

_DELIMITER_LINE = re.compile(rb'"?sep=([\t -~])"?\r?\n', re.IGNORECASE)


def delimiter_of(block: bytes) -> tuple[str, int]:
    """Say what parts the cells of a CSV file by its first lines, and how many bytes of these only say so.

    Spreadsheets write, and read, a first line such as ``sep=;``.
    """
    found = _DELIMITER_LINE.match(block)
    if found is not None:
        return found[1].decode(), found.end()
    first_line = block[: block.find(b"\n") + 1 or None]
    return max(DELIMITERS, key=first_line.decode("latin-1").count), 0


def with_row_index(header: Sequence[str]) -> list[str]:
    """Name the first column where nothing does, as in tables that pandas and R write."""
    if not header or header[0]:
        return list(header)
    names = chain([ROW_INDEX], (f"{ROW_INDEX}.{number}" for number in count(1)))
    return [next(name for name in names if name not in header), *header[1:]]


def refuse_header_again(path: PathLike, header: Sequence[str], columns: Sequence[Any], lines: Array) -> None:
    """Refuse a line of names among the rows, as files that were joined to one have."""
    are_names = np.full(len(lines), len(header) > 1)
    for name, column in zip(header, columns, strict=True):
        if not are_names.any():
            return
        are_names &= are_equal(column, name)
    for line in lines[are_names][:1]:
        raise DataFileError(path, int(line), "the names of the columns again", "rows; leave out such lines")


def named_columns(path: PathLike, line: int, header: Sequence[str], columns: Sequence[Any]) -> dict[str, Any]:
    """Give columns by name; those without a name are left out, and refused if they have cells.

    line: that of the header.
    """
    for place, (name, column) in enumerate(zip(header, columns, strict=True)):
        strange = [] if name else [cell for cell in as_list(filled(column)) if cell.strip()]
        if strange:
            found = f"no name for the column at place {place + 1}, with cells such as {strange[0][:40]!r}"
            expected = "a name for every column with cells; write one into this line, or delete the column"
            raise DataFileError(path, line, found, expected)
    return {name: column for name, column in zip(header, columns, strict=True) if name}
