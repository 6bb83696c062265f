"""Rows of a table, of a file or a DataFrame, and how all readers take its columns.

A column is read as texts, numbers, vectors or names of rows, whatever its file or library; cells that do not
suit are refused with their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.datasets.columns import (
    DATE_PARTS,
    DecimalMarks,
    Texts,
    as_array,
    as_list,
    begins_with_word,
    dates_in,
    has_any,
    is_missing,
    is_plain,
    is_text,
    number_or_truth,
    numbers,
    of_pandas,
    part_of_date,
    text_of,
    without_signs,
)
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.foundation.arguments import ParameterMessage
from labelweave.foundation.array_types import Array
from labelweave.foundation.frames import as_pandas
from labelweave.foundation.vectors import are_number_lists, are_vectors, have_one_length, stacked

NESTED = (list, dict, bytes)
_AS_TEXT = "; if it lists words or ids, name the column in `text`"


class Columns(Mapping[str, list[Any]]):
    """The columns of a table by name, as lists; arrays and columns of pandas are converted on access.

    given: lists of one length, arrays that ``pyarrow.chunked_array`` made, or the frame of pandas.
    marks: the decimal marks per column, where numbers may be written as 1.234,5 and not as 1,234.5.
    """

    def __init__(self, given: Mapping[str, Any], marks: DecimalMarks | None = None) -> None:
        self._given, self._marks = dict(given), marks
        self._lists = {name: column for name, column in given.items() if isinstance(column, list)}
        self._numbers: dict[str, npt.NDArray[np.float64] | None] = {}
        self._dates: dict[tuple[str, str], Any] = {}

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._lists:
            self._lists[name] = as_list(self._as_in_file(name) if name in self._given else self.given(name))
        return self._lists[name]

    def _as_in_file(self, name: str) -> Any:
        column = self._given[name]
        if hasattr(column, "columns"):  # the frame
            column = column[name]
        if hasattr(column, "columns"):
            raise ValueError(f"X has two columns named {name!r}; rename one.")
        self._given[name] = of_pandas(column) if hasattr(column, "iloc") else column
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given or part_of_date(str(name), self._given) is not None

    def with_columns(self, columns: dict[str, Any]) -> Columns:
        return Columns(self._given | columns, self._marks)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self._given.values()), ()))

    def given(self, name: str) -> Any:
        """Return a column as an array if it has text or lists of text, or was read as one; else as a list."""
        date = part_of_date(name, self._given)
        if date is not None:
            part, _, order = date[1].partition(", ")
            if (date[0], order) not in self._dates:
                self._dates[date[0], order] = dates_in(date[0], self[date[0]], order)
            return [*getattr(self._dates[date[0], order], DATE_PARTS[part]).astype(float)]
        self._given[name] = as_array(self._as_in_file(name))
        return self._given[name]

    def plain(self, name: str) -> Any:
        """Return a column as an array if it has text, numbers, booleans or vectors; else as a list."""
        column = self.given(name)
        return column if is_plain(column) or are_number_lists(column) else self[name]

    def expect_decimal_marks(self, marks: Mapping[str, str] | None) -> None:
        """Set the decimal mark, a point or a comma, of columns whose numbers do not show theirs."""
        if self._marks is not None:
            self._marks.expect(marks or {})

    def decimal_marks(self, names: Iterable[str]) -> dict[str, str]:
        """Return the decimal marks that were detected in numeric columns."""
        return {} if self._marks is None else self._marks.found(names)

    def numbers(self, name: str) -> npt.NDArray[np.float64] | None:
        """Parse a column as :func:`numbers` does, and also numbers such as 1,234.5 and 50 %."""
        if name not in self._numbers:
            column = self.plain(name)
            has_commas = self._marks is not None and self._marks.usual == "," and is_text(column)
            found = None if has_commas and has_any(column, "[.,]") else numbers(column)
            if found is None and not begins_with_word(column):
                found = numbers(self.unformatted(name))
            self._numbers[name] = found
            if self._marks is not None and self._numbers[name] is not None:
                self._marks.warn(name)
        return self._numbers[name]

    def unformatted(self, name: str, most: int | None = None) -> Any:
        """Return a column with 1,234.5, 50 % and $3 as 1234.5, 50 and 3, if it is text.

        most: the number of leading cells to return.
        """
        column = self.plain(name)[:most]
        if isinstance(column, list):
            texts = as_array([cell if isinstance(cell, str) else None for cell in column])
            bare = as_list(without_signs(texts, ".", ",")) if is_text(texts) else [None] * len(column)
            return [cell if text is None else text for cell, text in zip(column, bare, strict=True)]
        if not is_text(column):
            return column
        has_points = self._marks is None or self._marks.are_points(name, column)
        return without_signs(column, *(".," if has_points else ",."))


@dataclass(frozen=True)
class RawTable:
    """Some rows of a table, with cells as in the file or the DataFrame.

    line_of: maps the number of a row in the file to its line; None if the file has no lines.
    first_row: the number of the first row, from zero.
    index: the names of the rows of a DataFrame; None for a file.
    """

    path: PathLike
    columns: Columns
    line_of: Callable[[int], int] | None = None
    first_row: int = 0
    index: Any = None

    @classmethod
    def of_frame(cls, rows: Any) -> RawTable:
        """Take the columns of a DataFrame of any library; raise TypeError for another object."""
        if not hasattr(frame := as_pandas(rows), "columns"):
            raise TypeError(f"X is of type {type(rows).__name__}; pass a DataFrame.")
        return cls("X", Columns(dict.fromkeys(frame.columns, frame)), index=frame.index)

    def __len__(self) -> int:
        return self.columns.n_rows if self.index is None else len(self.index)

    def error(self, row: int, column: str, found: str, expected: str) -> ValueError:
        """Make the error about a cell: of the file, or about the frame X."""
        if self.index is not None:
            template = getattr(expected, "template", expected)
            said = f"Row {self.index[row]}, column {column!r} is {found}; it must be {template}."
            return ValueError(ParameterMessage(said) if isinstance(expected, ParameterMessage) else said)
        row += self.first_row
        place = f"{found} in column {column!r} of row {row}"
        return DataFileError(self.path, None if self.line_of is None else self.line_of(row), place, expected)

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """Parse a column as numbers, NaN where a cell is missing."""
        found = self.columns.numbers(name)
        if found is not None:
            return found
        bare, values = as_list(self.columns.unformatted(name)), np.empty(len(self))
        for row, cell in enumerate(self.columns[name]):
            try:
                values[row] = number_or_truth(bare[row])
            except ValueError as error:
                raise self.error(row, name, repr(str(cell)[:40]), str(error)) from None
        return values

    def texts(self, name: str, *, joins: bool) -> Any:
        """Return a column as texts, an array or a list, empty where missing; refuse vectors.

        joins: whether lists are joined by spaces, as of words; otherwise they are refused.
        """
        if self.index is not None and isinstance(cells := self.columns[name], Texts):
            return cells
        column = self.columns.plain(name)
        if is_text(column):
            return column.fill_null("")
        if are_vectors(column) and (not joins or have_one_length(column)):
            raise self.error(0, name, "a vector", ParameterMessage("text; name the column in `vectors`"))
        self.refuse_nested(name, "a string", NESTED[joins:])
        return [text_of(cell) for cell in self.columns[name]]

    def vectors(self, name: str, length: int | None = None) -> Array:
        """Stack a column of vectors (n, k); length: k, if it is known."""

        def error(row: int, found: str, expected: str) -> ValueError:
            return self.error(
                row, name, found, expected if length else ParameterMessage(f"{expected}{_AS_TEXT}")
            )

        return stacked(self.columns.plain(name), error, length)

    def names(self, name: str | None, what: str = "the name of the row") -> Any:
        """Read a column of row names or groups; raise an error if a cell is missing."""
        if name is None:
            return None
        cells = self.columns[name]
        for row, cell in enumerate(cells):
            if is_missing(cell) or cell == "":
                raise self.error(row, name, "nothing", what)
        self.refuse_nested(name, f"{what}, text or a number")
        found = np.empty(len(cells), object)  # keeps the type and width of each name
        found[:] = [cell if isinstance(cell, (str, int, float)) else str(cell) for cell in cells]
        return found

    def refuse_nested(self, name: str, expected: str, kinds: tuple[type, ...] = NESTED) -> None:
        """Raise an error if a cell of a column is a list, an object or bytes, or of the given kinds."""
        for row, cell in enumerate(self.columns[name]):
            if isinstance(cell, kinds):
                raise self.error(row, name, f"a {type(cell).__name__}", expected)
