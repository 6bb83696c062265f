"""What ``labelweave fit`` takes the columns of a table for, and which of them look like labels as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.app.cli.messages import note, print_lines
from labelweave.datasets import TableColumns
from labelweave.datasets.columns import is_missing
from labelweave.datasets.table import numbers_of
from labelweave.datasets.table_files import RawTable

_MOST_NAMES = 20
_INDENT = 14
_ZERO_OR_ONE = frozenset({"0", "1", "0.0", "1.0", "true", "false", "True", "False"})


class ColumnWords(NamedTuple):
    """Roles with the names of their columns, and features that look like labels."""

    roles: dict[str, str]
    like_labels: list[str]

    def show(self) -> None:
        """Write them to stderr."""
        print_lines(self.roles, _INDENT, err=True)
        if self.like_labels:
            note(
                f"the columns {_listed(self.like_labels)} hold 0 and 1 only and are taken for features; if "
                "they are labels, give each as --label-column, or several as 'tag_*' or first..last."
            )


def column_words(table: RawTable, given: TableColumns, columns: TableColumns) -> ColumnWords:
    """Say what the columns of a table are taken for.

    given: what the flags say; columns: what became of that.
    """
    labels = (columns.labels,) if isinstance(columns.labels, str) else columns.labels or ()
    roles = {
        "labels": _listed(labels),
        **{kind: _listed(getattr(columns, kind)) for kind in ("text", "categorical", "numeric")},
        "missing": _listed(_with_gaps(table, columns), "the mean is taken"),
        "names of rows": "" if columns.id is None else columns.id,
        "left out": _listed(_left_out(table, given, columns, labels)),
    }
    guesses = not isinstance(columns.labels, str) and not given.are_resolved
    features = (*columns.categorical, *columns.numeric) if guesses else ()
    alike = [name for name in features if _is_binary(table.columns[name])]
    return ColumnWords({name: names for name, names in roles.items() if names}, alike)


def _listed(names: Sequence[str] | None, reason: str = "") -> str:
    """List names, not all of very many."""
    names = names or ()
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    said = f" ({reason})" if names and reason else ""
    return ", ".join(names[:_MOST_NAMES]) + more + said


def _with_gaps(table: RawTable, columns: TableColumns) -> list[str]:
    """Name the columns of numbers in which cells are missing."""
    return [name for name in columns.numeric or () if np.isnan(numbers_of(table, name)).any()]


def _left_out(
    table: RawTable, given: TableColumns, columns: TableColumns, labels: Sequence[str]
) -> list[str]:
    """Name the columns that no feature is made of, with the reason."""
    used = {
        *labels,
        *(columns.text or ()),
        *(columns.categorical or ()),
        *(columns.numeric or ()),
        columns.id,
    }
    return [f"{name} ({_reason(table, given, name)})" for name in table.columns if name not in used]


def _reason(table: RawTable, given: TableColumns, name: str) -> str:
    if name in (given.drop or ()):
        return "--drop"
    if given.are_resolved:
        return "not named"
    is_empty = all(is_missing(cell) or cell == "" for cell in table.columns[name])
    return "empty" if is_empty else "identifier"


def _is_binary(cells: list[Any]) -> bool:
    found = {"" if is_missing(cell) else str(cell) for cell in cells} - {""}
    return bool(found) and found <= _ZERO_OR_ONE
