"""Roles of a table's columns: label columns, delimiters in their cells, and a description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from labelweave.app.cli.messages import hint, is_quiet, note, print_lines
from labelweave.datasets import TableColumns
from labelweave.datasets.columns import as_list, is_text, is_text_lists, part_of_date, says_missing, text_of
from labelweave.datasets.raw_table import RawTable
from labelweave.datasets.table_labels import with_layout
from labelweave.labels.written_labels import PLACES, WEIGHTS, is_list

_MOST_NAMES = 20
_SHOWN_COLUMNS = 12
_INDENT = 14
_ZERO_OR_ONE = frozenset({"", "0", "1", "0.0", "1.0", "true", "false", "True", "False"})


def require_labels(table: RawTable, given: TableColumns) -> None:
    if given.labels is None:
        raise click.UsageError(
            "A table needs --labels COLUMN for a column of classes or of lists of labels, or "
            "--label-column COLUMN for each column of 0 and 1. Its "
            f"columns are {', '.join(map(repr, list(table.columns)[:_SHOWN_COLUMNS]))}."
        )


def cut_where_listed(
    table: RawTable, given: TableColumns, otherwise: str = "--one-class reads each as a class, "
) -> TableColumns:
    """Detect the delimiter of cells that look like lists of labels, unless flags set it.

    otherwise: hint about cells that are not lists.
    """
    columns, found = with_layout(table, given)
    words = found.words(f"the cells of column {given.labels!r}")
    if words is None:
        return columns
    decides = f"{otherwise}--label-separator sets another delimiter"
    if found.separator == PLACES:
        decides = f"--label-names names them, {decides}"
    elif found.doubt is not None and WEIGHTS in found.doubt:
        decides = "probabilities go in a column a label, --label-column; --label-separator cuts cells"
    elif found.separator is None:
        paths = "--class-paths makes a taxonomy of them, " if found.is_path else ""
        decides = f"{paths}--label-separator {found.doubt!r} splits them"
    hint(f"{words}; {decides}.")
    return columns


def are_lists(cells: Any) -> bool:
    """Whether cells of a column are lists, or texts of lists."""
    if is_text_lists(cells):
        return True
    texts = cells.unique().to_pylist() if is_text(cells) else as_list(cells)
    return any(isinstance(cell, (list, dict)) or (isinstance(cell, str) and is_list(cell)) for cell in texts)


class ColumnWords(NamedTuple):
    """Roles with the names of their columns, and features that look like labels."""

    roles: dict[str, str]
    like_labels: list[str]

    def show(self) -> None:
        if is_quiet():
            return
        print_lines(self.roles, _INDENT, err=True)
        if self.like_labels:
            note(
                f"the columns {_listed(self.like_labels)} hold only 0 and 1 and are read as features; if "
                "they are labels, pass each as --label-column, or several as 'tag_*' or first..last."
            )


def column_words(
    table: RawTable, given: TableColumns, columns: TableColumns, groups: str | None = None
) -> ColumnWords:
    """Describe the roles of a table's columns, and which features look like labels.

    given: the flags; columns: the resulting roles; groups: the column that names groups of rows.
    """
    labels = (columns.labels,) if isinstance(columns.labels, str) else columns.labels or ()
    kinds = {kind: names or () for kind, names in columns.kinds.items()}
    vectors = {name: table.vectors(name) for name in kinds["vectors"]}
    used = {*labels, *columns.features, columns.id, groups}
    used |= {date[0] for name in kinds["numeric"] if (date := part_of_date(name, [*table.columns]))}
    omitted = [f"{name} ({_reason(table, given, name)})" for name in table.columns if name not in used]
    found = {name: table.numbers(name) for name in kinds["numeric"]} | vectors
    gaps = [name for name, numbers in found.items() if np.isnan(numbers).any()]
    is_arff = str(table.path).lower().endswith(".arff")
    roles = {
        "read as": "a table, by its columns (--format mulan otherwise)" if is_arff else "",
        "labels": _listed(labels),
        **{kind: _listed(names) for kind, names in kinds.items()},
        "vectors": _listed([f"{name} ({one.shape[1]} numbers)" for name, one in vectors.items()]),
        "missing": f"{_listed(gaps)} (imputed with the mean)" if gaps else "",
        "names of rows": columns.id or "",
        "groups": f"{groups}, kept in one fold each" if groups else "",
        "ignored": _listed(omitted),
    }
    guesses = not isinstance(columns.labels, str) and not given.are_resolved
    features = (*kinds["categorical"], *kinds["numeric"]) if guesses else ()
    alike = [name for name in features if {""} < {"", *map(text_of, table.columns[name])} <= _ZERO_OR_ONE]
    return ColumnWords({name: names for name, names in roles.items() if names}, alike)


def _listed(names: Sequence[str]) -> str:
    """Return names as a list, shortened if there are very many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _reason(table: RawTable, given: TableColumns, name: str) -> str:
    if name in (given.drop or ()):
        return "--drop"
    if given.are_resolved:
        return "not named"
    return "empty" if all(says_missing(text_of(cell)) for cell in table.columns[name]) else "identifier"
