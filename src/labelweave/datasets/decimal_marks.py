"""What points mean in the numbers of a CSV file whose cells semicolons part."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.foundation.array_types import Array

_COMMA = r",|\..*\."
_POINT = r"^[^.,]*\.[^.,]*$"
_GROUP = r"^\D*[1-9]\d{0,2}\.\d{3}\D*$"
_TAKEN_FOR = {".": "fractions", ",": "thousands"}


@dataclass(frozen=True)
class DecimalMarks:
    """Says of each column whether its points stand before fractions; else they stand between thousands.

    They do where a number shows it, as 2.5 or 0.125 does, and none has a decimal comma.  Where no number
    shows anything, it is as expected.  Blocks of one file share this object, so that they mean what the whole
    file does or are refused.
    """

    path: PathLike
    _expected: dict[str, str] = field(default_factory=dict)
    # of each column "comma", "point", and what groups of digits were taken for
    _seen: dict[str, set[str]] = field(default_factory=dict)

    def expect(self, marks: Mapping[str, str]) -> None:
        """Take these decimal marks, a point or a comma, for columns whose numbers do not show theirs."""
        self._expected.update(marks)

    def found(self, names: Iterable[str]) -> dict[str, str]:
        """Give the decimal marks of columns of numbers that were read, as far as points or commas told."""
        seen = {name: self._seen.get(name, set()) for name in names}
        read = {name: "," if what & {"comma", "thousands"} else "." for name, what in seen.items() if what}
        return {**{name: mark for name, mark in self._expected.items() if name in seen}, **read}

    def are_points(self, name: str, column: Any) -> bool:
        """Say whether 1.125 is a little more than one in a column of text.

        Raises DataFileError if an earlier block was read otherwise.
        """
        seen = self._seen.setdefault(name, set())
        is_group = _matches(column, _GROUP)
        if _matches(column, _COMMA).any():
            seen.add("comma")
        if (_matches(column, _POINT) & ~is_group).any():
            seen.add("point")
        is_shown = bool(seen & {"comma", "point"})
        found = "comma" not in seen if is_shown else self._expected.get(name) == "."
        taken, other = ("fractions", "thousands") if found else ("thousands", "fractions")
        if other in seen:
            what = f"points before {taken} in column {name!r}, which were read as points before {other} above"
            raise DataFileError(self.path, None, what, "one kind of points; read the file as a whole")
        if is_group.any():
            seen.add(taken)
        return found

    def warn(self, name: str) -> None:
        """Warn of a column of numbers, once, where its points may mean something else."""
        seen, expected = self._seen.get(name, set()), self._expected.get(name)
        taken = seen & set(_TAKEN_FOR.values())
        words = ""
        if {"comma", "point"} <= seen:
            words = (
                f"the numbers of column {name!r} have points before fractions as well as between "
                "thousands, or decimal commas"
            )
        elif expected is not None and taken - {_TAKEN_FOR[expected]}:
            words = (
                f"the numbers of column {name!r} show that points stand before {taken.pop()}, where "
                f"{_TAKEN_FOR[expected]} were expected, as in the training file"
            )
        elif "thousands" in taken and "comma" not in seen and expected is None:
            words = (
                f"the points of column {name!r} all stand before three digits and are taken for thousands, "
                "1.125 for 1125, as semicolons part the cells; part these by commas if they are fractions"
            )
        if words and "warned" not in seen:
            seen.add("warned")
            warnings.warn(f"{self.path}: {words}", UserWarning, stacklevel=2)


def _matches(column: Any, pattern: str) -> Array:
    from pyarrow import compute

    return np.asarray(compute.match_substring_regex(column, pattern).fill_null(False).to_numpy())
