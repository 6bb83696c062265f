"""Lists of tags, one per row, as targets, such as a column of ``["red", "round"]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.frames import column_entries, is_frame, library_of, only_column
from labelweave.labels import written_labels as written
from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.label_names import names_of

_BRACKETED = ("><", "[,]", "{,}", "(,)", '[","]', '[";"]')  # separators
_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_ENTRIES = {"0", "1", "-1", "0.0", "1.0", "nan", "true", "false", "yes", "no"}  # entries of tables, not tags


class TagRows(list[Any]):
    """The lists of tags of rows, as found in targets of a user's library."""

    def __init__(self, rows: Iterable[Any], library: str = "builtins") -> None:
        super().__init__(rows)
        self.library = library

    @cached_property
    def checked(self) -> list[list[Any] | None]:
        """The distinct tags of every row, None where it is unobserved; ValueError names a row without."""
        lists = [None if _is_unknown(row) else _tags_of(row, number) for number, row in enumerate(self)]
        tags = {*chain.from_iterable(filter(None, lists))}
        if not any("'" in tag or '"' in tag for tag in tags if isinstance(tag, str)):
            return lists
        return [tags and _unpacked(tags, number) for number, tags in enumerate(lists)]

    @property
    def originals(self) -> list[Any] | None:
        """The sorted tags, if one is not text."""
        tags = _distinct(self.checked)
        return None if all(isinstance(tag, str) for tag in tags) else tags


def tag_rows(Y: Any, say: Callable[[str], None] | None = None) -> TagRows | None:
    """Return the entries of targets that are lists of tags, one per row; None for other targets.

    In a Series or a column, any lists are tags.  Nested Python lists are tags if a row is a set or contains
    text, if all are empty, or if they have numbers and different lengths; others are a table of 0 and 1.
    Texts in a list or a column are parsed as cells of tables, those in an array are classes.
    say: is called with a message on how texts were split.
    """
    if isinstance(Y, TagRows):
        return Y
    rows = _entries_with_tags(Y, say)
    return None if rows is None else TagRows(rows, library_of(Y))


def _entries_with_tags(Y: Any, say: Callable[[str], None] | None) -> list[Any] | None:
    column = only_column(Y) if is_frame(Y) else Y
    if column is None or sp.issparse(column) or isinstance(column, str) or not hasattr(column, "__len__"):
        return None
    if isinstance(column, (list, tuple)):
        column = [*_with_names(column)]
        are_tags = any(map(_holds_tags, column)) or _are_empty(column) or _are_of_numbers(column)
        return _listed_tags(column, say) if are_tags else _written_tags(column, say)
    if isinstance(column, np.ndarray) and (column.ndim != 1 or column.dtype.kind != "O"):
        return None
    if getattr(column, "ndim", 1) != 1 or not _is_column(column):
        return None
    rows = [*_with_names(column_entries(column))]
    if any(isinstance(row, _COLLECTIONS) for row in rows):
        return _listed_tags(rows, say)
    dtype = "category" if isinstance(column, np.ndarray) else str(getattr(column, "dtype", ""))
    return None if dtype.lower().startswith("categor") else _written_tags(rows, say)


def _with_names(rows: Sequence[Any]) -> Sequence[Any]:
    """Return rows that are objects, as JSON has them, or lists of objects, as lists of the names in them."""
    are_all = all(isinstance(row, dict) or is_missing(row) for row in rows)
    first = chain.from_iterable(row[:1] for row in rows if isinstance(row, (list, tuple)))
    if not are_all and not any(isinstance(one, dict) for one in first):
        return rows
    found = list[Any](rows)
    for number, row in enumerate(rows):
        try:
            found[number] = names_of(row) if isinstance(row, (list, tuple, dict)) else row
        except ValueError as error:
            raise ValueError(f"Y at row {number} is {str(row)[:40]!r}; pass {error}.") from None
    return found


def _listed_tags(rows: list[Any], say: Callable[[str], None] | None) -> list[Any]:
    """Return lists of tags unchanged; report if one tag seems to be several, as in ``["a, b"]``."""
    if say is not None:
        found = written.layout_inside([rows[half] for half in written.in_halves(len(rows))])
        words = written.Layout(None, found.example, found.separator or found.doubt).words("the tags of Y")
        if words is not None:
            say(f"{words}; split those that contain several.")
    return rows


def _written_tags(rows: Sequence[Any], say: Callable[[str], None] | None = None) -> list[Any] | None:
    """Parse texts that list tags; None if each is one class, or some are no texts."""
    texts = _texts_in(rows)
    if texts is None:
        return None
    parts = [dict.fromkeys(text for text in texts[half] if text) for half in written.in_halves(len(texts))]
    found = written.found_layout(parts)
    if found.separator == written.PLACES:
        said = f"The texts of Y, such as {found.example[:40]!r}, hold 0 or 1 for each label"
        raise ValueError(f"{said}; give a two-dimensional array of numbers, a row each.")
    words = None if say is None or found.is_path else found.words("the texts of Y")
    if say is not None and words is not None:
        say(f"{words}; pass lists of tags to override this, or y.to_numpy() for classes.")
    is_cut = found.separator is not None or any(map(written.is_list, chain(*parts)))
    return _cut_alike(texts, found.separator) if is_cut else None


def _texts_in(rows: Sequence[Any]) -> list[str | None] | None:
    """Return the entries if all are texts or missing; else None."""
    if not len(rows) or not all(isinstance(row, str) or is_missing(row) for row in rows):
        return None
    return [row.strip() if isinstance(row, str) and row.strip() != "?" else None for row in rows]


def _cut_alike(texts: Sequence[str | None], separator: str | None) -> list[Any]:
    read = dict[str, list[str]]()
    for number, text in enumerate(texts):
        if text is not None and text not in read:
            try:
                read[text] = written.names_in(text, separator)
            except ValueError as error:
                raise ValueError(f"Y at row {number} is {text[:40]!r}; pass {error}.") from None
    return [None if text is None else read[text] for text in texts]


def texts_of(Y: Any) -> list[str | None] | None:
    """Return the entries of a column or list of texts, which may be classes or lists of tags; else None."""
    column = only_column(Y) if is_frame(Y) else Y
    is_one = isinstance(column, (list, tuple)) or (column is not None and _is_column(column))
    return _texts_in(column_entries(column)) if is_one and getattr(column, "ndim", 1) == 1 else None


def tags_of_texts(Y: Any, tags: Sequence[str]) -> list[Any] | None:
    """Return the rows of :func:`tag_rows`, with texts split so that most of their parts are known tags."""
    texts, known = texts_of(Y), {*tags}
    if texts is None:
        return tag_rows(Y)
    some = [*filter(None, texts)]
    signs = (None, *written.separators_in(some), *_BRACKETED, written.together("\0".join(some)))
    cells = [_cut_alike(texts, separator) for separator in signs]
    return max(cells, key=lambda rows: sum(tag in known for row in rows for tag in row or ()))


def _are_of_numbers(rows: Sequence[Any]) -> bool:
    """Return whether rows are lists of numbers, of different lengths, and not only 0 and 1."""
    lists = [row for row in rows if row is not None]
    if not all(isinstance(row, (list, tuple)) for row in lists) or len({*map(len, lists)}) < 2:
        return False
    entries = [entry for row in lists for entry in row]
    return all(isinstance(entry, Real) for entry in entries) and not {*entries} <= {0, 1, -1}


def _is_column(column: Any) -> bool:
    """Return whether an object is a column whose entries may be lists; numeric columns are not."""
    if getattr(getattr(column, "dtype", None), "kind", "O") != "O":
        return False
    return any(hasattr(column, method) for method in ("to_pylist", "to_list", "tolist"))


def _holds_tags(row: Any) -> bool:
    is_list = isinstance(row, _COLLECTIONS) and any(isinstance(entry, str) for entry in row)
    return is_list or isinstance(row, (set, frozenset))


def _are_empty(rows: Sequence[Any]) -> bool:
    return len(rows) > 0 and all(isinstance(row, _COLLECTIONS) and len(row) == 0 for row in rows)


def read_tags(
    rows: Sequence[Any], tags: Sequence[Any] | None = None, *, others: str = "raise"
) -> tuple[sp.csr_array, sp.csr_array | None, list[Any]]:
    """Convert lists of tags to positives, a mask of observed entries, and the tags.

    rows: collections of text or numbers; None, NaN or pandas.NA for an unobserved row.  Whitespace around
        text, empty tags and duplicates are ignored.
    tags: the known tags; by default those of the rows, sorted.
    others: what to do with unknown tags: "raise", "ignore", or "add" them at the end.
    Raises ValueError if a row is something else, or has an unknown tag.
    """
    lists = (rows if isinstance(rows, TagRows) else TagRows(rows)).checked
    if tags is None or _have_a_column_each(rows, len(tags)):
        _refuse_table(lists)
    found = _distinct(lists) if tags is None else list(tags)
    if others == "add":
        found += sorted({*map(str, _distinct(lists))} - {*map(str, found)})
    place = {str(tag): column for column, tag in enumerate(found)}
    if len(place) < len(found):
        same = next(tag for column, tag in enumerate(found) if place[str(tag)] != column)
        raise ValueError(f"The tag {str(same)!r} occurs as text and as a number; use one type.")
    pairs = [(number, tag) for number, row in enumerate(lists) for tag in row or ()]
    strange = next(((number, tag) for number, tag in pairs if str(tag) not in place), None)
    if others == "ignore":
        pairs = [(number, tag) for number, tag in pairs if str(tag) in place]
    elif strange is not None:
        raise ValueError(
            f"Y at row {strange[0]} has the tag {strange[1]!r}, which is not among the label "
            "names; remove it, or name it."
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


def _have_a_column_each(rows: Sequence[Any], n_tags: int) -> bool:
    """Return whether lists have the length of the rows of a table with these tags."""
    return all(
        _is_unknown(row) or (len(row) == n_tags and not isinstance(row, (set, frozenset))) for row in rows
    )


def _is_unknown(row: Any) -> bool:
    return not isinstance(row, _COLLECTIONS) and is_missing(row)


def _tags_of(row: Any, number: int) -> list[Any]:
    if not isinstance(row, _COLLECTIONS):
        what = f"the text {row[:40]!r}" if isinstance(row, str) else f"of type {type(row).__name__}"
        raise ValueError(
            f"Y at row {number} is {what} where other rows are lists of tags; pass a list, tuple or set, or "
            "None where unknown (Series.str.split splits texts)."
        )
    entries = row.tolist() if isinstance(row, np.ndarray) else row
    return [tag for tag in dict.fromkeys(_tag(entry, number) for entry in entries) if tag != ""]


def _unpacked(tags: list[Any], number: int) -> list[Any]:
    """Parse tags that are lists as text."""
    try:
        return written.names_inside(tags, None) if all(isinstance(tag, str) for tag in tags) else tags
    except ValueError as error:
        raise ValueError(f"Y at row {number} has a tag in {str(tags)[:40]!r}; pass {error}.") from None


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
        f"Y at row {number} has a tag that is {what}; tags must be text or numbers, and unobserved rows None."
    )


def _distinct(lists: Sequence[list[Any] | None]) -> list[Any]:
    """Return the sorted tags of rows."""
    tags = {*chain.from_iterable(filter(None, lists))}
    return sorted(tags, key=str if any(isinstance(tag, str) for tag in tags) else None)


def _refuse_table(lists: Sequence[list[Any] | None]) -> None:
    """Raise ValueError for a table of 0 and 1 or of probabilities, whose entries would be read as tags."""
    tags = _distinct(lists)
    are_shares = all(isinstance(tag, (int, float)) and 0 <= tag <= 1 for tag in tags)
    if tags and (are_shares or {str(tag).lower() for tag in tags} <= _ENTRIES):
        shown = ", ".join(sorted(map(repr, tags))[:5])
        raise ValueError(
            f"Y has lists with only the tags {shown}, like a table of numbers; pass a two-dimensional array, "
            "or rename the tags."
        )


def tags_of_either(first: Any, second: Any) -> list[str] | None:
    """Return the sorted tags of two lists of tags; None if one is something else."""
    rows = tag_rows(first), tag_rows(second)
    if rows[0] is None or rows[1] is None:
        return None
    _refuse_table(lists := [*rows[0].checked, *rows[1].checked])
    return sorted({*map(str, _distinct(lists))})
