"""Cells of a column, a pyarrow array, which is parsed as a whole, or a list: texts, numbers and dates.

In a CSV file with semicolons as delimiters, each column has its own decimal mark.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.datasets.data_file import DataFileError, PathLike, finite_number
from labelweave.foundation.array_types import Array
from labelweave.foundation.vectors import are_vectors, vector_cells
from labelweave.labels.label_names import as_text

# in lower case; not "-", which means 0 in spreadsheets and official statistics
_MISSING_TEXT = frozenset({"", "?", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", r"\n"})

_TRUTH = {"true": 1.0, "false": 0.0}
_WORDS, _NUMBERS, _LETTER = re.compile(r"\b\w\w+\b"), re.compile(r"\b\w+\b"), re.compile(r"[^\W\d_]")
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


def without_signs(column: Any, point: str, comma: str) -> Any:
    """Remove currency signs, percent signs and thousands separators from numbers."""
    from pyarrow import compute

    digits = rf"([1-9]\d{{0,2}}([\{comma}{_SPACES}]\d{{3}})+|\d+)(\{point}\d+([eE][-+]?\d+)?)?"
    is_number = compute.match_substring_regex(column, rf"^\s*[-+]?[$€£¥]?\s*{digits}\s*[%$€£¥]?\s*$")
    bare = compute.replace_substring_regex(column, rf"[\{comma}{_SPACES}%$€£¥\s]", "")
    return compute.if_else(is_number, compute.replace_substring(bare, point, "."), column)


def begins_with_word(column: Any) -> bool:
    """Return whether the first cell is no number with either decimal mark."""
    marks = (".,", ",.") if is_text(column) else ()
    return bool(marks) and all(numbers(without_signs(column[:1], *pair)) is None for pair in marks)


def is_missing(cell: Any) -> bool:
    """Return whether a cell is None or NaN; an empty string is not missing."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def part_of_date(name: str, columns: Container[str]) -> tuple[str, str] | None:
    """Split a name such as ``born (month)`` into column and part; None if it is no part.

    ``born (month, d/m)`` is one of dates such as 31/01/2024, and ``born (month, m/d)`` of 01/31/2024.
    """
    found = None if name in columns else _PART.fullmatch(name)
    return (found[1], found[2]) if found is not None and found[1] in columns else None


def dates_in(name: str, cells: Sequence[Any], order: str) -> Any:
    """Parse the dates of a column, NaT where missing; warn about cells that are no dates, as 2024-02-31."""
    import pandas as pd

    texts = [_as_iso(cell, order) if cell not in (None, "") else None for cell in cells]
    times = pd.to_datetime(pd.Series(texts, dtype=object), errors="coerce", format="ISO8601", utc=True)
    wrong = [row for row in np.flatnonzero(times.isna()).tolist() if not says_missing(text_of(cells[row]))]
    if wrong:
        said = f"{len(wrong)} of {len(cells)} cells of column {name!r} are no dates and count as missing"
        warnings.warn(f"{said}, such as {str(cells[wrong[0]])[:40]!r}", UserWarning, stacklevel=2)
    return times.dt


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


def words_in(text: str) -> list[str]:
    """Return the words of two letters or more; of texts without letters, as lists of ids, all numbers."""
    return (_WORDS if _LETTER.search(text) else _NUMBERS).findall(text)


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


class Texts(list[str]):
    """The cells of a column of pandas, if all are text."""


def of_pandas(column: Any) -> Any:
    """Convert numbers to an array, and others to a list, with None where a cell is missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        values = column.to_numpy(np.float64 if column.dtype.kind == "f" else None)
        return text_column(values, None)
    cells: list[Any] = column.to_numpy(object).tolist()
    if {*map(type, cells)} == {str}:
        return Texts(cells)
    if are_vectors(column):
        return [*vector_cells(column)]
    cells = column.astype(object).where(column.notna(), None).tolist()
    return [cell.tolist() if getattr(cell, "ndim", 0) else cell for cell in cells]


def text_column(cells: Any, kind: str | None = "string") -> Any:
    """Make an array; a list if pyarrow, which files of predictions do not need, is not installed."""
    try:
        from pyarrow import array, chunked_array
    except ImportError:
        return list(cells)
    made = array(cells, kind)
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
