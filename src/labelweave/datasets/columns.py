"""Columns of a table: lists of Python's objects, or arrays of pyarrow, whose cells are read all at once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.datasets.data_file import finite_number
from labelweave.datasets.decimal_marks import DecimalMarks
from labelweave.foundation.array_types import Array
from labelweave.labels.label_names import as_text

__all__ = [
    "Columns",
    "as_array",
    "as_list",
    "as_text",
    "coded",
    "filled",
    "has_any",
    "is_missing",
    "is_plain",
    "is_text",
    "is_text_lists",
    "joined",
    "n_distinct",
    "number",
    "number_or_truth",
    "numbers",
    "says_missing",
    "text_column",
]

# in lower case; not "-", by which spreadsheets and statistical offices write 0
_MISSING_TEXT = frozenset({"", "?", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", r"\n"})

_TRUTH = {"true": 1.0, "false": 0.0}


class Columns(Mapping[str, list[Any]]):
    """The columns of a table by name, as lists; what pyarrow read becomes one when it is asked for.

    given: lists of one length, or arrays that ``pyarrow.chunked_array`` made.
    marks: where numbers may be written as 1.234,5 and not as 1,234.5, says which columns are.
    """

    def __init__(self, given: Mapping[str, Any], marks: DecimalMarks | None = None) -> None:
        self._given, self._marks = dict(given), marks
        self._lists = {name: column for name, column in given.items() if isinstance(column, list)}
        self._numbers: dict[str, npt.NDArray[np.float64] | None] = {}

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._lists:
            self._lists[name] = as_list(self._given[name])
        return self._lists[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given

    @property
    def n_rows(self) -> int:
        """How many cells a column has."""
        return len(next(iter(self._given.values()), ()))

    def given(self, name: str) -> Any:
        """Give a column as it was read: a list or an array."""
        return self._given[name]

    def plain(self, name: str) -> Any:
        """Give a column as it was read where it is an array of text, numbers or truth; else a list."""
        column = self._given[name]
        return column if is_plain(column) else self[name]

    def expect_decimal_marks(self, marks: Mapping[str, str]) -> None:
        """Take a point or a comma for the decimal mark of columns whose numbers do not show theirs."""
        if self._marks is not None:
            self._marks.expect(marks)

    def decimal_marks(self, names: Iterable[str]) -> dict[str, str]:
        """Give the decimal marks of columns whose numbers were read, where it was to be found out."""
        return {} if self._marks is None else self._marks.found(names)

    def numbers(self, name: str) -> npt.NDArray[np.float64] | None:
        """Give a column as numbers; see :func:`numbers`."""
        if name not in self._numbers:
            is_plain_number = self._marks is None or not _has_marks(self.plain(name))
            found = numbers(self.plain(name)) if is_plain_number else None
            self._numbers[name] = numbers(self.unformatted(name)) if found is None else found
            if self._marks is not None and self._numbers[name] is not None:
                self._marks.warn(name)
        return self._numbers[name]

    def all_numbers(
        self, name: str, refusal: Callable[[int, str, str], Exception]
    ) -> npt.NDArray[np.float64]:
        """Give a column as numbers, NaN where a cell is missing.

        refusal: the error to raise, of the row, what was found there and what is expected.
        """
        found = self.numbers(name)
        if found is not None:
            return found
        bare, values = as_list(self.unformatted(name)), np.empty(self.n_rows)
        for row, cell in enumerate(self[name]):
            try:
                values[row] = number_or_truth(bare[row])
            except ValueError as error:
                raise refusal(row, repr(str(cell)[:40]), str(error)) from None
        return values

    def unformatted(self, name: str, most: int | None = None) -> Any:
        """Give a column with 1,234.5 and 50 % and $3 as 1234.5 and 50 and 3, where it is text.

        most: give only so many cells, the first ones.
        """
        column = as_array(self.plain(name)[:most])
        if not isinstance(column, list) and not is_text(column):
            return column
        has_points = self._marks is None or self._marks.are_points(name, column)
        point, comma = ".," if has_points else ",."
        return (_unformatted_list if isinstance(column, list) else _unformatted)(column, point, comma)


def _has_marks(column: Any) -> bool:
    """Say whether a point or a comma is in a column's text."""
    if isinstance(column, list):
        return any(isinstance(cell, str) and ("." in cell or "," in cell) for cell in column)
    from pyarrow import compute

    return is_text(column) and bool(compute.any(compute.match_substring_regex(column, "[.,]")).as_py())


def _formats(point: str, comma: str) -> tuple[str, str]:
    """Say what a formatted number is, and what is to be left out of it."""
    digits = rf"([1-9]\d{{0,2}}(\{comma}\d{{3}})+|\d+)(\{point}\d+([eE][-+]?\d+)?)?"
    return rf"^\s*[-+]?[$€£¥]?\s*{digits}\s*[%$€£¥]?\s*$", rf"[\{comma}%$€£¥\s]"


def _unformatted(column: Any, point: str, comma: str) -> Any:
    """Write numbers without signs of currencies and percent and without commas between thousands."""
    from pyarrow import compute

    pattern, left_out = _formats(point, comma)
    bare = compute.replace_substring_regex(column, left_out, "")
    is_number = compute.match_substring_regex(column, pattern)
    return compute.if_else(is_number, compute.replace_substring(bare, point, "."), column)


def _unformatted_list(column: list[Any], point: str, comma: str) -> list[Any]:
    """Do the same where pyarrow is not installed, or cells are of several types."""
    pattern, left_out = (re.compile(words, re.ASCII) for words in _formats(point, comma))

    def bare(cell: Any) -> Any:
        is_number = isinstance(cell, str) and pattern.match(cell)
        return left_out.sub("", cell).replace(point, ".") if is_number else cell

    return [bare(cell) for cell in column]


def is_missing(cell: Any) -> bool:
    """Say whether a cell holds nothing: None or NaN; an empty string does not."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def says_missing(text: str) -> bool:
    """Say whether a text is one of those, such as NA and NULL, that programs write for what is missing."""
    return text.strip().lower() in _MISSING_TEXT


def is_text(column: Any) -> bool:
    """Say whether a column is an array of text."""
    if isinstance(column, list):
        return False
    from pyarrow import types

    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def is_plain(column: Any) -> bool:
    """Say whether a column is an array of text, numbers, truth or nothing."""
    if isinstance(column, list):
        return False
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return is_text(column) or any(kind(column.type) for kind in kinds)


def is_text_lists(column: Any) -> bool:
    """Say whether a column is an array of lists of text."""
    if isinstance(column, list):
        return False
    from pyarrow import types

    is_list = types.is_list(column.type) or types.is_large_list(column.type)
    return is_list and bool(types.is_string(column.type.value_type))


def as_list(column: Any) -> list[Any]:
    """Give the cells as Python's own objects."""
    if isinstance(column, list):
        return column
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_string, types.is_large_string)
    if not column.null_count and any(kind(column.type) for kind in kinds):
        cells: list[Any] = column.to_numpy().tolist()  # twice as fast as to_pylist
        return cells
    return list(column.to_pylist())


def as_array(column: Any) -> Any:
    """Make a list of text, or of lists of text, an array; others stay as they are."""
    kinds = set(map(type, column)) - {type(None)} if isinstance(column, list) else set()
    if kinds not in ({str}, {list}):
        return column
    try:
        from pyarrow import ArrowException, array, chunked_array, list_, string
    except ImportError:
        return column
    try:
        made = array(column, string() if kinds == {str} else list_(string()))
    except (ArrowException, ValueError):
        return column
    return made if hasattr(made, "chunks") else chunked_array([made])


def text_column(cells: Sequence[str]) -> Any:
    """Make a column of text, a list where pyarrow is not there."""
    try:
        from pyarrow import array, chunked_array
    except ImportError:
        return list(cells)
    made = array(cells, "string")
    return made if hasattr(made, "chunks") else chunked_array([made])


def joined(parts: Sequence[Any]) -> Any:
    """Put columns of text below one another."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [*chain.from_iterable(parts)]
    from pyarrow import chunked_array

    return chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def has_any(column: Any, text: str, *, at_start: bool = False) -> bool:
    """Say whether a cell of an array of text is a text, or starts with it."""
    from pyarrow import compute

    found = compute.starts_with(column, text) if at_start else compute.equal(column, text)
    return bool(compute.any(found).as_py())


def are_equal(column: Any, text: str) -> Array:
    """Say which cells of a column of text are a text."""
    if isinstance(column, list):
        return np.array([cell == text for cell in column], bool)
    from pyarrow import compute

    return np.asarray(compute.equal(column, text).to_numpy(), bool)


def filled(column: Any) -> Any:
    """Leave out the cells that hold nothing or an empty string."""
    if isinstance(column, list):
        if set(map(type, column)) == {str}:
            return [*filter(None, column)]
        return [cell for cell in column if not is_missing(cell) and cell != ""]
    from pyarrow import compute, types

    column = column.drop_null() if column.null_count else column
    if is_text(column):
        return column.filter(compute.not_equal(column, "")) if has_any(column, "") else column
    if not types.is_floating(column.type):
        return column
    return column.filter(compute.invert(compute.is_nan(column)))


def n_distinct(column: Any) -> int:
    """Count how many different texts the cells are."""
    if isinstance(column, list):
        return len(set(map(str, column)))
    from pyarrow import compute

    return int(compute.count_distinct(column).as_py())


def number(cell: Any) -> float:
    """Read a number; NaN from None, an empty string, ``?`` and how else missing numbers are written."""
    if is_missing(cell):
        return float("nan")
    if isinstance(cell, str):
        return float("nan") if says_missing(cell) else finite_number(cell.strip())
    try:
        return finite_number(repr(float(cell)))
    except (TypeError, OverflowError):
        raise ValueError("a finite number") from None


def number_or_truth(cell: Any) -> float:
    """Read a number as :func:`number` does, and true and false, in any case, as 1 and 0."""
    found = _TRUTH.get(cell.strip().lower()) if isinstance(cell, str) else None
    return number(cell) if found is None else found


def numbers(column: Any) -> npt.NDArray[np.float64] | None:
    """Read numbers as :func:`number` does, all at once; None if one of them is unusual or none."""
    kinds = set(map(type, column)) if isinstance(column, list) else set()
    try:
        if kinds == {str}:
            column = text_column(column)
            if isinstance(column, list):  # without pyarrow
                return np.array([number(cell) for cell in column])
        if is_text(column):
            return _written_numbers(column)
        if not isinstance(column, list):
            values = column.cast("float64", safe=False).to_numpy()
        elif kinds <= {int, float, bool, Decimal, type(None)}:
            values = np.array(column, np.float64)
        else:
            return None
    except (ValueError, OverflowError, NotImplementedError):
        return None
    return None if np.isinf(values).any() else values


def _written_numbers(column: Any) -> npt.NDArray[np.float64] | None:
    """Read numbers by pyarrow, which takes fewer forms than :func:`number`, and inf and nan beside them."""
    from pyarrow import array, compute, scalar

    number(column[0].as_py())  # of a column of text no more is looked at
    with suppress(ValueError):
        values: npt.NDArray[np.float64] = column.cast("float64").to_numpy()
        if np.isfinite(values).all():
            return values
    missing = array(sorted(_MISSING_TEXT), column.type)
    is_nothing = compute.is_in(compute.utf8_lower(column), value_set=missing)
    rest = compute.if_else(is_nothing, scalar(None, column.type), column).cast("float64")
    values = rest.to_numpy()
    return values if np.isfinite(values).sum() + rest.null_count == len(values) else None


def coded(texts: Any) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Give each text as a place in a list of distinct ones."""
    if isinstance(texts, list):
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        return np.fromiter(map(places.__getitem__, texts), np.int64, len(texts)), list(places)
    if not len(texts):
        return np.zeros(0, np.int64), []
    encoded = texts.dictionary_encode().unify_dictionaries()
    codes = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return np.concatenate(codes).astype(np.int64), encoded.chunk(0).dictionary.to_pylist()
