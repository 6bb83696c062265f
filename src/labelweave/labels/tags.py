"""Lists of tags, one a row, as targets: what a column of ``["red", "round"]`` says of labels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.frames import column_entries, is_frame, only_column
from labelweave.labels.class_probabilities import is_missing

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_ENTRIES = {"0", "1", "-1", "0.0", "1.0", "nan", "true", "false", "yes", "no"}  # of tables, not tags


def tag_rows(Y: Any) -> list[Any] | None:
    """Return the entries of targets that are lists of tags, one a row; None if they are something else.

    In a Series or a column any lists are tags.  Nested Python lists are if a row is a set or has text in it,
    or none has anything; those of numbers are a table of 0 and 1.
    """
    column = only_column(Y) if is_frame(Y) else Y
    if column is None or sp.issparse(column) or isinstance(column, str) or not hasattr(column, "__len__"):
        return None
    if isinstance(column, (list, tuple)):
        return list(column) if any(map(_holds_tags, column)) or _are_empty(column) else None
    if isinstance(column, np.ndarray) and (column.ndim != 1 or column.dtype.kind != "O"):
        return None
    if getattr(column, "ndim", 1) != 1 or not _is_column(column):
        return None
    rows = column_entries(column)
    return rows if any(isinstance(row, _COLLECTIONS) for row in rows) else None


def _is_column(column: Any) -> bool:
    """Say whether an object has entries, and they may be lists; columns of numbers need not be looked at."""
    if getattr(getattr(column, "dtype", None), "kind", "O") != "O":
        return False
    return any(hasattr(column, method) for method in ("to_pylist", "to_list", "tolist"))


def _holds_tags(row: Any) -> bool:
    if isinstance(row, (set, frozenset)):
        return True
    return isinstance(row, _COLLECTIONS) and any(isinstance(entry, str) for entry in row)


def _are_empty(rows: Sequence[Any]) -> bool:
    return len(rows) > 0 and all(isinstance(row, _COLLECTIONS) and len(row) == 0 for row in rows)


def read_tags(
    rows: Sequence[Any], tags: Sequence[Any] | None = None, *, others: str = "raise"
) -> tuple[sp.csr_array, sp.csr_array | None, list[Any]]:
    """Turn lists of tags into positives, a mask of what is observed, and the tags.

    rows: collections of text or numbers; None, NaN or pandas.NA where nothing is known of a row.  Blanks
        around text do not count, nor do blank tags and repeated ones.
    tags: those there are; by default those of the rows, sorted.
    others: what to do with tags that are not among those given: "raise", "ignore", or "add" them as the last.
    Raises ValueError if a row is something else, or has a tag that is not among those given.
    """
    lists = _known_tags(rows)
    if tags is None or _have_a_column_each(rows, len(tags)):
        _refuse_table(lists)
    found = _sorted({tag for row in lists if row is not None for tag in row}) if tags is None else list(tags)
    if others == "add":
        found += _sorted({str(tag) for row in lists for tag in row or ()} - set(map(str, found)))
    place = {str(tag): column for column, tag in enumerate(found)}
    if len(place) < len(found):
        same = next(tag for column, tag in enumerate(found) if place[str(tag)] != column)
        raise ValueError(f"Two tags are written {str(same)!r}, one as text and one not; write both alike.")
    pairs = [(number, tag) for number, row in enumerate(lists) for tag in row or ()]
    strange = next(((number, tag) for number, tag in pairs if str(tag) not in place), None)
    if others == "ignore":
        pairs = [(number, tag) for number, tag in pairs if str(tag) in place]
    elif strange is not None:
        raise ValueError(
            f"Y at row {strange[0]} has the tag {strange[1]!r}, which is no label of those named."
        )
    shape = (len(lists), len(found))
    columns = np.array([place[str(tag)] for _, tag in pairs], np.intp)
    at = (np.array([number for number, _ in pairs], np.intp), columns)
    positives = sp.csr_array((np.ones(len(pairs), np.int8), at), shape=shape)
    return positives, _whole_rows([row is not None for row in lists], len(found)), found


def _whole_rows(observed: list[bool], n_tags: int) -> sp.csr_array | None:
    if all(observed):
        return None
    counts = np.where(observed, n_tags, 0)
    columns = np.tile(np.arange(n_tags), sum(observed))
    parts = (np.ones(len(columns), np.int8), columns, np.concatenate([[0], np.cumsum(counts)]))
    return sp.csr_array(parts, shape=(len(observed), n_tags))


def _known_tags(rows: Sequence[Any]) -> list[list[Any] | None]:
    return [None if _is_unknown(row) else _tags_of(row, number) for number, row in enumerate(rows)]


def _have_a_column_each(rows: Sequence[Any], n_tags: int) -> bool:
    """Say whether lists are as long as rows of a table of given tags are."""
    return all(
        _is_unknown(row) or (len(row) == n_tags and not isinstance(row, (set, frozenset))) for row in rows
    )


def _is_unknown(row: Any) -> bool:
    return not isinstance(row, _COLLECTIONS) and is_missing(row)


def _tags_of(row: Any, number: int) -> list[Any]:
    if isinstance(row, str):
        raise ValueError(
            f"Y at row {number} is the text {row[:40]!r} where other rows are lists of tags; give a list, as "
            "Series.str.split(',') makes it, or None where no tag is known."
        )
    if not isinstance(row, _COLLECTIONS):
        raise ValueError(
            f"Y at row {number} is of type {type(row).__name__} where other rows are lists of tags; give a "
            "list, a tuple or a set of tags, or None where no tag is known."
        )
    tags = dict.fromkeys(
        _tag(entry, number) for entry in (row.tolist() if isinstance(row, np.ndarray) else row)
    )
    return [tag for tag in tags if tag != ""]


def _tag(entry: Any, number: int) -> Any:
    if isinstance(entry, str):
        return str(entry.strip())
    value: Any = entry.item() if isinstance(entry, np.generic) else entry
    is_number = isinstance(value, Real) and not is_missing(value)
    if is_number:
        return int(value) if value % 1 == 0 else value
    missing = not isinstance(entry, _COLLECTIONS) and is_missing(entry)
    what = "missing" if missing else f"of type {type(entry).__name__}"
    raise ValueError(
        f"Y at row {number} has a tag that is {what}; tags are text or numbers, and a row of which nothing "
        "is known is None."
    )


def _sorted(tags: set[Any]) -> list[Any]:
    texts = any(isinstance(tag, str) for tag in tags)
    return sorted(tags, key=str) if texts else sorted(tags)


def _refuse_table(lists: Sequence[list[Any] | None]) -> None:
    """Refuse a table of 0 and 1 in disguise, which would make two tags."""
    tags = {tag for row in lists for tag in row or ()}
    if tags and {str(tag).lower() for tag in tags} <= _ENTRIES:
        shown = ", ".join(sorted(map(repr, tags)))
        raise ValueError(
            f"Y has lists in which every tag is one of {shown}, as if it were a table of 0 and 1; give a "
            "two-dimensional array of numbers, or name the tags otherwise."
        )


def numbered_tags(rows: Sequence[Any]) -> list[Any] | None:
    """Return the tags of rows as they were given, where these are not all text."""
    tags = read_tags(rows)[2]
    return None if all(isinstance(tag, str) for tag in tags) else tags


def tags_of_either(first: Any, second: Any) -> list[str] | None:
    """Name the tags of two lists of tags, sorted; None where one is something else."""
    rows = [tag_rows(table) for table in (first, second)]
    if rows[0] is None or rows[1] is None:
        return None
    lists = [*_known_tags(rows[0]), *_known_tags(rows[1])]
    _refuse_table(lists)
    return _sorted({str(tag) for row in lists for tag in row or ()})
