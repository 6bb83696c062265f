"""The columns of a table that name labels: which, and how their cells are cut."""

from __future__ import annotations

from dataclasses import replace

import click

from labelweave.cli.messages import note
from labelweave.datasets import TableColumns
from labelweave.datasets.columns import as_array, is_text
from labelweave.datasets.table_files import RawTable

_SEPARATORS = (",", ";", "|")
_SHOWN_COLUMNS = 12


def require_labels(table: RawTable, given: TableColumns) -> None:
    """Refuse a table of which nothing says what the labels are."""
    if given.labels is None:
        raise click.UsageError(
            "A table needs --labels or --label-column to say what its labels are: --labels COLUMN for a "
            "column of classes or of lists of labels, --label-column COLUMN for each column of 0 and 1. Its "
            f"columns are {', '.join(map(repr, list(table.columns)[:_SHOWN_COLUMNS]))}."
        )


def cut_where_listed(
    table: RawTable, given: TableColumns, quiet: bool, otherwise: str = "; --one-class takes each for a class"
) -> TableColumns:
    """Find what separates labels where cells look like lists of them, and nothing says how to cut them.

    They do where a fourth of the different cells have a separator, and cutting there leaves fewer names.
    otherwise: what is said of cells that are no lists.
    """
    if not isinstance(given.labels, str) or given.label_separator or given.labels not in table.columns:
        return given
    cells = as_array(table.columns.given(given.labels))
    texts = cells.unique().to_pylist() if not isinstance(cells, list) and is_text(cells) else []
    names = {text.strip() for text in texts if text and text.strip()}
    for separator in _SEPARATORS:
        lists = sorted(name for name in names if separator in name)
        parts = {part.strip() for name in names for part in name.split(separator)}
        if 4 * len(lists) >= len(names) and len(parts) < len(names):
            if not quiet:
                note(
                    f"the cells of column {given.labels!r} list labels, such as {lists[0][:40]!r}, and are "
                    f"cut at {separator!r}{otherwise}."
                )
            return replace(given, label_separator=separator)
    return given
