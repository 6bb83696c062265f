"""The columns of a table that name labels: which, and how their cells are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from labelweave.app.cli.messages import note
from labelweave.datasets import TableColumns
from labelweave.datasets.columns import as_array, as_list, is_text, is_text_lists
from labelweave.datasets.table_files import RawTable
from labelweave.datasets.written_lists import written_list

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
    if any(map(_is_list, names)):
        return given
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


def are_lists(cells: Any) -> bool:
    """Say whether cells of a column are lists, or the texts of some."""
    if is_text_lists(cells):
        return True
    texts = cells.unique().to_pylist() if is_text(cells) else as_list(cells)
    return any(isinstance(cell, list) or (isinstance(cell, str) and _is_list(cell)) for cell in texts)


def _is_list(text: str) -> bool:
    try:
        return text.startswith("[") and written_list(text.strip()) is not None
    except ValueError:  # which its reader says
        return True
