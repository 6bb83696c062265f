"""Columns of a table: pyarrow arrays, which are parsed as a whole, or lists of Python objects.

In a CSV file with semicolons as delimiters, each column has its own decimal mark.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.datasets.data_file import DataFileError, PathLike, finite_number
from labelweave.foundation.array_types import Array
from labelweave.foundation.vectors import Refusal, are_number_lists
from labelweave.labels.label_names import as_text

# in lower case; not "-", which means 0 in spreadsheets and official statistics
_MISSING_TEXT = frozenset({"", "?", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", r"\n"})

_TRUTH = {"true": 1.0, "false": 0.0}
_TEXT_LISTS = re.compile(r"(large_)?list<\w+: string( not null)?>")
_PLAIN = re.compile(r"(large_)?string|u?int\d+|halffloat|float|double|bool|null")
_COMMA = r",|\..*\."
_POINT = r"^[^.,]*\.[^.,]*$"
_GROUP = r"^\D*[1-9]\d{0,2}\.\d{3}\D*$"
# commas that cannot separate thousands, and commas that may
_FRACTION = r"^[^.,\d]*(\d+,(\d{1,2}|\d{4,})|0\d*,\d+)[^.,\d]*$"
_THOUSANDS = r"^\D*[1-9]\d{0,2},\d{3}\D*$"
# the names of features, and those of pandas
DATE_PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week", "hour": "hour"}
_PART = re.compile(rf"(.+) \((({'|'.join(DATE_PARTS)})(, d/m|, m/d)?)\)", re.DOTALL)
_YEAR_LAST = {  # "d/m" and "m/d" are the order where the separator is not a point
    order: re.compile(rf"\A(\d\d?)([{signs}])(\d\d?)\2(\d{{4}})(?=\Z|[T ])", re.ASCII)
    for order, signs in {"": ".", "d/m": "/-", "m/d": "/-"}.items()
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*"
_NAMED_MONTH = re.compile(rf"(?:(\d\d?)[ -]{_MONTH}|{_MONTH}\.? (\d\d?)),?[ -](\d{{4}})(?=\Z|[T ])", re.I)
_TIME = r"[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s?(Z|[+-]\d\d:?\d\d)?"
_DATE = re.compile(rf"\d{{4}}[-/](0[1-9]|1[0-2])[-/](0[1-9]|[12]\d|3[01])({_TIME})?", re.ASCII)
_SPACES = r"\x{a0}\x{202f}'"  # thousands separators in some countries
_TAKEN_FOR = {".": "fractions", ",": "thousands"}


@dataclass(frozen=True)
class DecimalMarks:
    """For each column, whether a point is the decimal mark; otherwise it separates thousands.

    It is the decimal mark if a number shows it, as 2.5 or 0.125 does, and none has a decimal comma.  If no
    number shows either, the expected mark applies.  Blocks of one file share this object, so that they agree
    with the whole file or are refused.
    """

    path: PathLike
    usual: str = ","  # the decimal mark; a point where commas or tabs are delimiters
    _expected: dict[str, str] = field(default_factory=dict)
    # per column "comma", "point", and how groups of digits were read
    _seen: dict[str, set[str]] = field(default_factory=dict)

    def expect(self, marks: Mapping[str, str]) -> None:
        """Set the decimal marks, a point or a comma, of columns whose numbers do not show theirs."""
        self._expected.update(marks)

    def found(self, names: Iterable[str]) -> dict[str, str]:
        """Return the decimal marks of the numeric columns read, where points or commas show them."""
        seen = {name: self._seen.get(name, set()) for name in names}
        comma = {"comma", "thousands"} if self.usual == "," else {"comma"}
        read = {name: "," if what & comma else "." for name, what in seen.items() if what}
        return {**{name: mark for name, mark in self._expected.items() if name in seen}, **read}

    def are_points(self, name: str, column: Any) -> bool:
        """Return whether the point is the decimal mark in a text column.

        Raises DataFileError if an earlier block was read otherwise.
        """
        seen = self._seen.setdefault(name, set())
        if self.usual == ".":
            patterns = (_FRACTION, _THOUSANDS) if has_any(column, ",") else ()
            n_shown, n_groups = [_matches(column, shown).sum() for shown in patterns] or (0, 0)
            are_more = n_shown > n_groups and not _matches(column, r"\.").any()
            are_commas = are_more or "comma" in seen or self._expected.get(name) == ","
            if are_commas and "thousands" in seen:
                what = f"decimal commas in column {name!r}, where commas separated thousands in earlier rows"
                raise DataFileError(self.path, None, what, "one meaning; read the whole file at once")
            if are_commas or n_groups:
                seen.add("comma" if are_commas else "thousands")
            return not are_commas
        is_group = _matches(column, _GROUP)
        if _matches(column, _COMMA).any():
            seen.add("comma")
        if (_matches(column, _POINT) & ~is_group).any():
            seen.add("point")
        is_shown = bool(seen & {"comma", "point"})
        found = "comma" not in seen if is_shown else self._expected.get(name) == "."
        taken, other = ("fractions", "thousands") if found else ("thousands", "fractions")
        if other in seen:
            what = f"points before {taken} in column {name!r}, read before as {other}"
            raise DataFileError(self.path, None, what, "one meaning; read the whole file at once")
        if is_group.any():
            seen.add(taken)
        return found

    def warn(self, name: str) -> None:
        """Warn once about a numeric column whose points are ambiguous."""
        seen, expected = set() if self.usual == "." else self._seen.get(name, set()), self._expected.get(name)
        taken = seen & set(_TAKEN_FOR.values())
        words = ""
        if {"comma", "point"} <= seen:
            words = (
                f"the numbers of column {name!r} mix decimal points with decimal commas or thousands "
                "separators"
            )
        elif expected is not None and taken - {_TAKEN_FOR[expected]}:
            words = (
                f"the numbers of column {name!r} have points before {taken.pop()}, but before "
                f"{_TAKEN_FOR[expected]} in the training file"
            )
        elif "thousands" in taken and "comma" not in seen and expected is None:
            words = (
                f"every point of column {name!r} precedes three digits and is read as a thousands separator "
                "(1.125 is 1125), as cells are separated by semicolons; for fractions, separate cells by "
                "commas"
            )
        if words and "warned" not in seen:
            seen.add("warned")
            warnings.warn(f"{self.path}: {words}", UserWarning, stacklevel=2)


def _matches(column: Any, pattern: str) -> Array:
    from pyarrow import compute

    return np.asarray(compute.match_substring_regex(column, pattern).fill_null(False).to_numpy())


class Columns(Mapping[str, list[Any]]):
    """The columns of a table by name, as lists; pyarrow arrays are converted on access.

    given: lists of one length, or arrays that ``pyarrow.chunked_array`` made.
    marks: the decimal marks per column, where numbers may be written as 1.234,5 and not as 1,234.5.
    """

    def __init__(self, given: Mapping[str, Any], marks: DecimalMarks | None = None) -> None:
        self._given, self._marks = dict(given), marks
        self._lists = {name: column for name, column in given.items() if isinstance(column, list)}
        self._numbers: dict[str, npt.NDArray[np.float64] | None] = {}

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._lists:
            self._lists[name] = as_list(self.given(name))
        return self._lists[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given or part_of_date(str(name), self._given) is not None

    def with_column(self, name: str, column: Any) -> Columns:
        return Columns(self._given | {name: column}, self._marks)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self._given.values()), ()))

    def given(self, name: str) -> Any:
        """Return a column as an array if it has text or lists of text, or was read as one; else as a list."""
        part = part_of_date(name, self._given)
        if part is not None:
            return parts_of_dates(self[part[0]], part[1])
        self._given[name] = as_array(self._given[name])
        return self._given[name]

    def plain(self, name: str) -> Any:
        """Return a column as an array if it has text, numbers, booleans or vectors; else as a list."""
        column = self.given(name)
        return column if is_plain(column) or are_number_lists(column) else self[name]

    def expect_decimal_marks(self, marks: Mapping[str, str]) -> None:
        """Set the decimal mark, a point or a comma, of columns whose numbers do not show theirs."""
        if self._marks is not None:
            self._marks.expect(marks)

    def decimal_marks(self, names: Iterable[str]) -> dict[str, str]:
        """Return the decimal marks that were detected in numeric columns."""
        return {} if self._marks is None else self._marks.found(names)

    def numbers(self, name: str) -> npt.NDArray[np.float64] | None:
        """Parse a column as :func:`numbers` does, and also numbers such as 1,234.5 and 50 %."""
        if name not in self._numbers:
            column = self.plain(name)
            has_commas = self._marks is not None and self._marks.usual == "," and is_text(column)
            found = None if has_commas and has_any(column, "[.,]") else numbers(column)
            if found is None and not _begins_with_word(column):
                found = numbers(self.unformatted(name))
            self._numbers[name] = found
            if self._marks is not None and self._numbers[name] is not None:
                self._marks.warn(name)
        return self._numbers[name]

    def all_numbers(self, name: str, refusal: Refusal) -> npt.NDArray[np.float64]:
        """Parse a column as numbers, NaN where a cell is missing.

        refusal: makes the error to raise from the row, what was found there and what is expected.
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
        """Return a column with 1,234.5, 50 % and $3 as 1234.5, 50 and 3, if it is text.

        most: the number of leading cells to return.
        """
        column = self.plain(name)[:most]
        if isinstance(column, list):
            texts = as_array([cell if isinstance(cell, str) else None for cell in column])
            bare = as_list(_unformatted(texts, ".", ",")) if is_text(texts) else [None] * len(column)
            return [cell if text is None else text for cell, text in zip(column, bare, strict=True)]
        if not is_text(column):
            return column
        has_points = self._marks is None or self._marks.are_points(name, column)
        return _unformatted(column, *(".," if has_points else ",."))


def _unformatted(column: Any, point: str, comma: str) -> Any:
    """Remove currency signs, percent signs and thousands separators from numbers."""
    from pyarrow import compute

    digits = rf"([1-9]\d{{0,2}}([\{comma}{_SPACES}]\d{{3}})+|\d+)(\{point}\d+([eE][-+]?\d+)?)?"
    is_number = compute.match_substring_regex(column, rf"^\s*[-+]?[$€£¥]?\s*{digits}\s*[%$€£¥]?\s*$")
    bare = compute.replace_substring_regex(column, rf"[\{comma}{_SPACES}%$€£¥\s]", "")
    return compute.if_else(is_number, compute.replace_substring(bare, point, "."), column)


def _begins_with_word(column: Any) -> bool:
    """Return whether the first cell is no number with either decimal mark."""
    marks = (".,", ",.") if is_text(column) else ()
    return bool(marks) and all(numbers(_unformatted(column[:1], *pair)) is None for pair in marks)


def is_missing(cell: Any) -> bool:
    """Return whether a cell is None or NaN; an empty string is not missing."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def part_of_date(name: str, columns: Container[str]) -> tuple[str, str] | None:
    """Split a name such as ``born (month)`` into column and part; None if it is no part.

    ``born (month, d/m)`` is one of dates such as 31/01/2024, and ``born (month, m/d)`` of 01/31/2024.
    """
    found = None if name in columns else _PART.fullmatch(name)
    return (found[1], found[2]) if found is not None and found[1] in columns else None


def parts_of_dates(cells: Sequence[Any], part: str) -> list[float]:
    """Return the year, month, day, weekday (Monday is 0) or hour of dates, NaN where missing."""
    import pandas as pd

    part, _, order = part.partition(", ")
    texts = [_as_iso(cell, order) if cell not in (None, "") else None for cell in cells]
    times = pd.to_datetime(pd.Series(texts, dtype=object), errors="coerce", format="ISO8601", utc=True)
    return [*getattr(times.dt, DATE_PARTS[part]).astype(float)]


def date_order(cells: Any) -> str | None:
    """Return the order of dates, "d/m" or "m/d", or "" where the format is unambiguous, as 2024-01-31.

    It is "d/m or m/d" if no cell shows the order, and None if a non-blank cell is no date.
    """
    begun = [order for order in _YEAR_LAST if _are_dates(cells[:1], order)]
    if "" in begun and _are_dates(cells, ""):
        return ""
    return " or ".join(order for order in begun if order and _are_dates(cells, order)) or None


def _are_dates(cells: Any, order: str) -> bool:
    return all(_DATE.fullmatch(_as_iso(one, order)) or says_missing(str(one)) for one in as_list(cells))


def _as_iso(cell: Any, order: str) -> str:
    """Convert ``31.1.2024``, ``Jan 31, 2024``, and by an order ``31/1/2024``, to ``2024-01-31``."""
    found = _YEAR_LAST[order].match(text := str(cell))
    named = _NAMED_MONTH.match(text) if found is None and not order else None
    if named is not None:
        day, month, year = named[1] or named[4], (named[2] or named[3]).lower(), named[5]
        return f"{year}-{_MONTHS.index(month) + 1:0>2}-{day:0>2}{text[named.end() :]}"
    if found is None:
        return text
    day, month = (found[3], found[1]) if order == "m/d" else (found[1], found[3])
    return f"{found[4]}-{month:0>2}-{day:0>2}{text[found.end() :]}"


def are_blank(column: Any) -> Any:
    """Return which cells are missing, empty or only whitespace."""
    if not is_text(column):
        return np.array([is_missing(cell) or not str(cell).strip() for cell in as_list(column)], bool)
    from pyarrow import compute

    is_blank = compute.equal(compute.utf8_trim_whitespace(column), "")
    return is_blank.fill_null(True).to_numpy()


def take(column: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Return some cells of a column."""
    return [column[row] for row in rows] if isinstance(column, list) else column.take(rows)


def text_of(cell: Any) -> str:
    """Convert a cell to text; the words of a list are joined by spaces."""
    if isinstance(cell, list):
        return " ".join(map(text_of, cell))
    return "" if is_missing(cell) else as_text(cell)


def says_missing(text: str) -> bool:
    """Return whether a text is a common marker of missing values, such as NA or NULL."""
    return text.strip().lower() in _MISSING_TEXT


def is_text(column: Any) -> bool:
    return not isinstance(column, list) and str(column.type) in ("string", "large_string")


def is_plain(column: Any) -> bool:
    """Return whether a column is an array of text, numbers, booleans or nulls."""
    return not isinstance(column, list) and _PLAIN.fullmatch(str(column.type)) is not None


def is_text_lists(column: Any) -> bool:
    return not isinstance(column, list) and _TEXT_LISTS.fullmatch(str(column.type)) is not None


def as_list(column: Any) -> list[Any]:
    """Return the cells as Python objects."""
    if isinstance(column, list):
        return column
    if not column.null_count and is_plain(column):
        cells: list[Any] = column.to_numpy().tolist()  # twice as fast as to_pylist
        return cells
    return list(column.to_pylist())


def as_array(column: Any) -> Any:
    """Convert a list of text, or of lists of text, to an array; others are unchanged."""
    kinds = set(map(type, column)) - {type(None)} if isinstance(column, list) else set()
    if kinds == {str}:
        return text_column(column)
    if kinds != {list}:
        return column
    from pyarrow import ArrowException, array, chunked_array, list_, string

    try:
        return chunked_array([array(column, list_(string()))])
    except (ArrowException, ValueError):
        return column


def text_column(cells: Sequence[str | None]) -> Any:
    """Make a text column; a list if pyarrow, which files of predictions do not need, is not installed."""
    try:
        from pyarrow import array, chunked_array
    except ImportError:
        return list(cells)
    made = array(cells, "string")
    return made if hasattr(made, "chunks") else chunked_array([made])  # several chunks above 2 GB


def joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], list):
        return [*chain.from_iterable(parts)]
    from pyarrow import chunked_array

    return chunked_array(list(chain.from_iterable(part.chunks for part in parts)))


def has_any(column: Any, pattern: str) -> bool:
    """Return whether any cell of a text array matches a regular expression."""
    from pyarrow import compute

    return bool(compute.any(compute.match_substring_regex(column, pattern)).as_py())


def filled(column: Any) -> Any:
    """Drop missing cells and empty strings."""
    if isinstance(column, list):
        return [cell for cell in column if not is_missing(cell) and (not isinstance(cell, str) or cell)]
    from pyarrow import compute

    column = column.drop_null()
    if is_text(column):
        return column.filter(compute.not_equal(column, ""))
    is_float = str(column.type) in ("halffloat", "float", "double")
    return column.filter(compute.invert(compute.is_nan(column))) if is_float else column


def n_distinct(column: Any) -> int:
    if isinstance(column, list):
        return len(set(map(str, column)))
    from pyarrow import compute

    return int(compute.count_distinct(column).as_py())


def number(cell: Any) -> float:
    """Parse a number; NaN for None, an empty string, ``?`` and other markers of missing values."""
    if is_missing(cell):
        return float("nan")
    if isinstance(cell, str):
        return float("nan") if says_missing(cell) else finite_number(cell.strip())
    try:
        return finite_number(repr(float(cell)))
    except (TypeError, OverflowError):
        raise ValueError("a finite number") from None


def number_or_none(cell: Any) -> float | None:
    try:
        return number(cell)
    except ValueError:
        return None


def number_or_truth(cell: Any) -> float:
    """Parse a number as :func:`number` does, and true and false, in any case, as 1 and 0."""
    found = _TRUTH.get(cell.strip().lower()) if isinstance(cell, str) else None
    return number(cell) if found is None else found


def numbers(column: Any) -> npt.NDArray[np.float64] | None:
    """Parse numbers as :func:`number` does, vectorized; None if a cell is unusual or no number."""
    try:
        if is_text(column):
            return _written_numbers(column)
        if not isinstance(column, list):
            values = column.cast("float64", safe=False).to_numpy()
        elif set(map(type, column)) <= {int, float, bool, Decimal, type(None)}:
            values = np.array(column, np.float64)
        else:
            return None
    except (ValueError, OverflowError, NotImplementedError):
        return None
    return None if np.isinf(values).any() else values


def _written_numbers(column: Any) -> npt.NDArray[np.float64] | None:
    """Parse numbers by pyarrow, which accepts fewer formats than :func:`number`, but also inf and nan."""
    from pyarrow import array, compute, scalar

    number(column[0].as_py())  # the first cell is enough to reject a text column
    with suppress(ValueError):
        values: npt.NDArray[np.float64] = column.cast("float64").to_numpy()
        if np.isfinite(values).all():
            return values
    missing = array(sorted(_MISSING_TEXT), column.type)
    is_nothing = compute.is_in(compute.utf8_lower(column), value_set=missing)
    rest = compute.if_else(is_nothing, scalar(None, column.type), column).cast("float64")
    values = rest.to_numpy()
    return values if np.isfinite(values).sum() + rest.null_count == len(values) else None
