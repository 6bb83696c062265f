"""The roles of the columns of a table: labels, text, categories, numbers, row names."""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time, timedelta
from difflib import get_close_matches
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from labelweave.datasets.columns import (
    DATE_PARTS,
    as_list,
    date_order,
    filled,
    is_text,
    n_distinct,
    number,
    number_or_none,
    part_of_date,
)
from labelweave.datasets.csv_files import ROW_INDEX, warn_of_header
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.raw_table import NESTED, RawTable
from labelweave.datasets.table_files import table_kind
from labelweave.foundation.arguments import ParameterError, ParameterMessage, checked
from labelweave.foundation.vectors import are_vectors
from labelweave.labels.written_labels import signs_of

_MOST_CATEGORIES = 50
_GLANCE = 1000  # cells, often enough to decide
_MOSTLY_NUMBERS = 9  # numeric cells for each non-numeric one
_FEWEST_ROWS = 20  # with distinct values in all of them, for a column of identifiers
_NAMES_ROWS = re.compile(
    r"(?:^|[\W_])(?i:id|uuid|guid|key|pk|nr|no|row|idx|index|identifier|row\W?num(ber)?)$|[a-z]I[dD]$"
)
_ROW_INDEX = re.compile(rf"__index_level_\d+__|{ROW_INDEX}(?:\.\d+)?")  # as pandas writes and reads it
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+(?:[eE][-+]?\d+)?\s*", re.ASCII)
_CODE = re.compile(r"[\w.:#-]{1,64}")
_DIGIT, _WORD = re.compile(r"\d"), re.compile(r"\w\w")
_MOST_LISTED = 20
KINDS = ("text", "categorical", "numeric", "vectors")
"""The kinds of columns that features are made of."""


class ColumnRoles(TypedDict, total=False):
    """The keywords for the roles of columns; see :class:`TableColumns`."""

    labels: str | Sequence[str] | None
    label_separator: str | None
    empty_labels: Literal["none", "unknown"] | None
    text: str | Sequence[str] | None
    categorical: str | Sequence[str] | None
    numeric: str | Sequence[str] | None
    vectors: str | Sequence[str] | None
    drop: str | Sequence[str] | None
    id: str | None
    decimal_marks: Mapping[str, str] | None
    no_header: bool
    holds_classes: bool


@checked
@dataclass(frozen=True)
class TableColumns:
    """The roles of the columns of a table.

    Parameters
    ----------
    labels : str, sequence of str or None, default=None
        One column that lists the labels of a row, or several columns of 0 and 1, one per label, also as a
        pattern ``"tag_*"`` or a range ``"tag_1..tag_9"``; None if the rows have no labels.
    label_separator : str or None, default=None
        The separator between the labels if the label column is a string, also with brackets, ``[,]``, or a
        regular expression between slashes, ``/,| and /``; by default :func:`read_table` detects it, with a
        warning, and elsewhere such a string is one label.
    text, categorical, numeric, vectors : str, sequence of str or None, default=None
        The feature columns.  Columns without a role are dropped, unless all four are None: then the kind of
        every other column is inferred from its cells, and identifiers, with a distinct value in every row,
        are dropped with a warning.
    drop : str, sequence of str or None, default=None
        Columns to drop then.
    id : str or None, default=None
        The column that names the rows.
    empty_labels : {"none", "unknown"} or None, default=None
        What a blank cell means: that the row has no label, or not this one; or that they are unobserved.
        None is "none" for one column that lists labels and "unknown" for columns of one label each.
    decimal_marks : mapping of str to {".", ","} or None, default=None
        The decimal marks of numeric columns in a CSV file with semicolons as delimiters, where no number
        shows it, as 1.125 alone does not; by default the comma.
    no_header : bool, default=False
        Whether the first line of a CSV or TSV file is a row, and the columns are named ``"1"``, ``"2"`` and
        so on; otherwise it names them.
    holds_classes : bool, default=False
        Whether several label columns each have one of several classes per row, even if all cells are 0 and 1;
        readers detect other values.
    """

    labels: Any = None
    label_separator: str | None = None
    text: Any = None
    categorical: Any = None
    numeric: Any = None
    vectors: Any = None
    drop: Any = None
    id: str | None = None
    empty_labels: Literal["none", "unknown"] | None = None
    decimal_marks: Mapping[str, str] | None = None
    no_header: bool = False
    holds_classes: bool = False

    def __post_init__(self) -> None:
        for role in (*KINDS, "drop"):
            object.__setattr__(self, role, column_names(getattr(self, role)))
        if self.labels is not None and not isinstance(self.labels, str):
            object.__setattr__(self, "labels", column_names(self.labels))
        if self.label_separator is not None and not self.label_separator:
            said = "`label_separator` is empty; pass the text between labels, such as ',' or '|'."
            raise ParameterError(said)
        signs_of(self.label_separator or "")
        if self.empty_labels not in ("none", "unknown", None):
            raise ValueError(f"empty_labels is {self.empty_labels!r}; it must be 'none' or 'unknown'.")
        for name, mark in (self.decimal_marks or {}).items():
            if mark not in (".", ","):
                raise ValueError(f"decimal_marks has {mark!r} for {name!r}; it must be '.' or ','.")
        roles: dict[str, str] = {}
        for role, name in self.named():
            if name in roles:
                raise ValueError(f"The column {name!r} is given as {roles[name]} and as {role}; choose one.")
            roles[name] = role

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield every named column with its role.

        Yields
        ------
        (str, str)
            A role and a column's name.
        """
        for role in ("labels", *KINDS, "drop", "id"):
            for name in column_names(getattr(self, role)) or ():
                yield role, name

    @property
    def kinds(self) -> dict[str, Any]:
        """The feature columns of each kind: text, categorical, numeric and vectors."""
        return {kind: getattr(self, kind) for kind in KINDS}

    @property
    def features(self) -> tuple[str, ...]:
        """The feature columns of all kinds."""
        return tuple(name for names in self.kinds.values() for name in names or ())

    @property
    def are_resolved(self) -> bool:
        """Whether the feature columns are specified, so that no cell need be inspected."""
        return any(names is not None for names in self.kinds.values())

    def resolved(self, table: RawTable) -> TableColumns:
        """Check the columns against a table, and infer the kinds of columns if none is specified.

        Parameters
        ----------
        table : RawTable
            The table.

        Returns
        -------
        TableColumns
            With all feature columns named.

        Raises
        ------
        DataFileError
            If a named column is absent, or no feature column is left.
        """
        return resolved_in(self, table.path, lambda: [table])


def resolved_in(
    columns: TableColumns, path: PathLike, tables: Callable[[], Iterable[RawTable]]
) -> TableColumns:
    """Resolve columns from blocks of rows; the block with the most cells of a column sets its kind."""
    names = list(dict.fromkeys(name for table in tables() for name in table.columns))
    if not columns.no_header and table_kind(path) in ("csv", "tsv"):
        first = next(iter(tables())).columns
        warn_of_header(path, {name: first.plain(name) for name in first})
    columns = with_label_columns(columns, names)
    refuse_absent(columns, names, path)
    if columns.are_resolved:
        return columns
    columns = with_usual_labels(columns, next(iter(tables())))
    return with_kinds(columns, _kinds_of_others(columns, tables()), path)


def with_usual_labels(columns: TableColumns, table: RawTable) -> TableColumns:
    """Set the label column of fastText or spaCy (``cats``) files if none is named."""
    usual = "labels" if table_kind(table.path) == "fasttext" else "cats"
    if columns.labels is not None or usual not in table.columns:
        return columns
    is_usual = usual == "labels" or all(isinstance(cell, dict) for cell in table.columns[usual][:_GLANCE])
    return replace(columns, labels=usual) if is_usual else columns


def _kinds_of_others(columns: TableColumns, tables: Iterable[RawTable]) -> dict[str, str]:
    """Infer the kinds of columns without a role."""
    named = {name for _, name in columns.named()}
    kinds, most = dict[str, str](), dict[str, int]()
    for table in tables:
        table.columns.expect_decimal_marks(columns.decimal_marks)
        for name in (name for name in table.columns if name not in named):
            cells = table.columns.plain(name)
            count = len(filled(cells))
            if count > most.get(name, -1):
                kinds[name] = kind_of(table, name)
                most[name] = count
    return kinds


def with_label_columns(columns: TableColumns, names: Iterable[str]) -> TableColumns:
    """Expand patterns and ranges of label columns, unless a column has that name.

    names: of the existing columns.
    """
    if columns.labels is None or isinstance(columns.labels, str):
        return columns
    places = {name: place for place, name in enumerate(names)}
    found = [name for given in columns.labels for name in _matching(given, places)]
    return replace(columns, labels=tuple(dict.fromkeys(found)))


def refuse_absent(columns: TableColumns, names: Collection[str], path: PathLike) -> None:
    needed = (*(name for _, name in columns.named()), *(columns.decimal_marks or ()))
    absent = next((name for name in needed if name not in names and not part_of_date(name, names)), None)
    if absent is not None:
        expected = f"one of its columns{listed_columns(absent, names)}"
        raise DataFileError(path, None, f"no column {absent!r}", expected)


def with_kinds(columns: TableColumns, kinds: Mapping[str, str], path: PathLike) -> TableColumns:
    """Set the feature columns of a table by the kinds of the columns without a role.

    Raises DataFileError if no feature column is left.
    """
    by_kind: dict[str, list[str]] = {kind: [] for kind in (*KINDS, "identifier", "empty", "date")}
    for name, kind in kinds.items():
        of_date, _, order = kind.partition("date")
        by_kind[of_date or "date"].append(name)
        if not of_date:
            by_kind["numeric"] += [f"{name} ({part}{order})" for part in DATE_PARTS]
    if not any(by_kind[kind] for kind in KINDS):
        others = " and identifiers" if by_kind["identifier"] else ""
        found, expected = f"no column besides labels{others}", "at least one column of features"
        raise DataFileError(path, None, found, expected)
    if by_kind["identifier"]:
        shown = ", ".join(map(repr, by_kind["identifier"][:5]))
        said = f"{path}: the columns {shown} look like identifiers and are ignored; to keep them, name "
        said = ParameterMessage(f"{said}them in `text`, `categorical` or `numeric`")
        warnings.warn(said, UserWarning, stacklevel=2)
    drop = (*(columns.drop or ()), *by_kind["identifier"], *by_kind["empty"]) or None
    found_kinds: dict[str, Any] = {kind: by_kind[kind] for kind in KINDS}
    return replace(columns, drop=drop, **found_kinds)


def columns_of_frame(frame: Any, columns: TableColumns) -> TableColumns:
    """Infer the kinds of the columns of a pandas frame, as for a table read from a file."""
    table = RawTable.of_frame(frame)
    other = next((name for name in table.columns if not isinstance(name, str)), None)
    if other is not None:
        raise ValueError(f"X has a column {other!r} whose name is not text; rename it to {str(other)!r}.")
    refuse_absent(columns, table.columns, table.path)
    if columns.are_resolved:
        return columns
    kinds = _kinds_of_others(columns, [table])
    has_type = {name for name, kind in frame.dtypes.items() if str(kind) == "category"}
    kinds |= {name: "categorical" for name in has_type if kinds.get(name) in ("text", "numeric")}
    return with_kinds(columns, kinds, table.path)


def listed_columns(absent: str, columns: Iterable[str]) -> str:
    """List the existing columns for an absent one, the most similar name first."""
    names = list(map(str, columns))
    close = "".join(f", such as {like!r}" for like in get_close_matches(absent, names, 1))
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return f"{close}: {', '.join(names[:_MOST_LISTED])}{more}"


def column_names(names: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the names of one or several columns as a tuple, or None."""
    if names is None:
        return None
    is_list = isinstance(names, Iterable) and getattr(names, "ndim", 1) == 1
    listed = (names,) if isinstance(names, str) else tuple(names) if is_list else ()
    if not is_list or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"{names!r} is not the name of a column; pass one, or a list of names.")
    return listed


def _matching(given: str, places: dict[str, int]) -> list[str]:
    """Return the columns that a name, a pattern or a range matches; the name itself if there are none."""
    first, _, last = given.partition("..")
    if given in places:
        return [given]
    if first in places and last in places:
        return list(places)[places[first] : places[last] + 1] or [given]
    is_pattern = any(sign in given for sign in "*?[")
    return fnmatch.filter(places, given) or [given] if is_pattern else [given]


def kind_of(table: RawTable, name: str) -> str:
    """Infer the kind of a column: vectors, numbers, few repeated values, an identifier, or text."""
    column = table.columns.plain(name)
    cells, is_index = filled(column), _ROW_INDEX.fullmatch(name) is not None
    if is_index or not len(cells) or are_vectors(column):
        return "identifier" if is_index else "vectors" if len(cells) else "empty"
    found = table.columns.numbers(name)
    values = _numbers_in(cells) if found is None else found
    if values is not None:
        if np.isnan(values).all():
            return "empty"
        if not (are_names := _are_identifiers(name, cells, found, len(table))):
            _warn_of_name(table, name, values)
        return "identifier" if are_names else "numeric"
    if (order := date_order(cells)) is not None:
        if " or " not in order:
            return f"date{order and ', '}{order}"
        said = f"{table.path}: dates of column {name!r}, such as {as_list(cells[:1])[0]!r}, may begin with "
        said += "the day or the month and are read as words; write them as 2024-01-31, or name "
        said = ParameterMessage(f"{said}{f'{name} (month, d/m)'!r} in `numeric`")
        warnings.warn(said, UserWarning, stacklevel=2)
    if not is_text(cells):
        wanted = "text or a number; name the column in `text` if it lists words, or in `drop`"
        table.refuse_nested(name, ParameterMessage(wanted), (list,))
        wanted = ParameterMessage("text or a number; name the column in `drop`")
        table.refuse_nested(name, wanted, (*NESTED, time, timedelta))
    if _are_identifiers(name, cells, None, len(table)):
        return "identifier"
    if all(_DECIMAL_COMMA.fullmatch(str(cell)) for cell in as_list(cells[:_GLANCE])):
        said = f"the cells of column {name!r} look like numbers with decimal commas and are read as words"
        said += "; use decimal points, or separate the cells of a CSV file by semicolons"
        warnings.warn(f"{table.path}: {said}", UserWarning, stacklevel=2)
    _warn_of_numbers(table, name)
    most = min(_MOST_CATEGORIES, len(cells) // 2)
    are_few = n_distinct(cells[:_GLANCE]) <= most and n_distinct(cells) <= most
    return (
        "text" if not are_few and any(_WORD.search(str(cell)) for cell in as_list(cells)) else "categorical"
    )


def _warn_of_name(table: RawTable, name: str, values: npt.NDArray[np.float64]) -> None:
    if _NAMES_ROWS.search(name) and not np.nanmax(values % 1):
        said = f"{table.path}: the column {name!r} holds integers and has a name that is usual for row names"
        said = ParameterMessage(f"{said}; it is used as a feature; otherwise name it in `drop` or `id`")
        warnings.warn(said, UserWarning, stacklevel=2)


def _warn_of_numbers(table: RawTable, name: str) -> None:
    """Warn about a column that a few cells keep from being numeric, and name the first of them."""
    for most in (_GLANCE, None):
        values = [*map(number_or_none, as_list(table.columns.unformatted(name, most)))]
        strange = [row for row, value in enumerate(values) if value is None]
        n_numbers = np.isfinite(np.array(values, np.float64)).sum()
        if n_numbers < _MOSTLY_NUMBERS * len(strange):
            return
    if not strange:  # numbers and numbers as text, as JSON allows
        return
    found = repr(str(table.columns[name][strange[0]])[:40])
    expected = ParameterMessage(
        "a number like nearly all cells of this column, which is now read as words; leave such cells empty, "
        "or name it in `text` or `categorical`"
    )
    warnings.warn(table.error(strange[0], name, found, expected).args[0], UserWarning, stacklevel=2)


def _numbers_in(cells: Any) -> npt.NDArray[np.float64] | None:
    try:
        number(as_list(cells[:1])[0])
        return np.array([number(cell) for cell in as_list(cells)])
    except ValueError:
        return None


def _are_identifiers(name: str, cells: Any, found: npt.NDArray[np.float64] | None, n_rows: int) -> bool:
    """Return whether every row has a distinct value that looks like a number or code of the row.

    found: the cells as numbers, if they are numeric.
    """
    if n_rows < _FEWEST_ROWS or len(cells) < n_rows:
        return False
    if found is not None and not (found % 1 == 0).all():
        return False
    if found is None and not _CODE.fullmatch(str(as_list(cells[:1])[0])):
        return False
    if n_distinct(cells[:_GLANCE]) < min(_GLANCE, n_rows) or n_distinct(cells) < n_rows:
        return False
    if found is None:
        words = [*map(str, as_list(cells))]
        return all(map(_CODE.fullmatch, words)) and (
            _NAMES_ROWS.search(name) is not None or all(map(_DIGIT.search, words))
        )
    return bool(found.max() - found.min() == n_rows - 1) or _NAMES_ROWS.search(name) is not None
