"""Tables with text, categories, numbers and labels: CSV, TSV, JSON lines, Parquet.

A label cell that is missing (null in JSON and Parquet, ``?`` in any file) makes the row's labels unobserved.
An empty one (an empty list or string, an empty CSV cell) means that the row has no positive label, the last
two only unless ``empty_labels="unknown"``.  In columns of 0 and 1 a missing cell is one unobserved label, and
a blank one is 0 with ``empty_labels="none"``.  Several columns with other values are columns of classes, in
which a blank cell and ``?`` are unobserved.  A cell may hold a list as text: ``['red', 'green']``, as pandas
writes lists to CSV files.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise, starmap
from operator import eq, itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.columns import (
    Columns,
    are_blank,
    as_array,
    as_list,
    is_missing,
    is_text,
    n_distinct,
    says_missing,
    take,
    text_of,
)
from labelweave.datasets.csr_parts import ones_from_counts, targets_of_rows
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.table_blocks import columns_of_blocks, completed_blocks
from labelweave.datasets.table_cells import class_labels, label_value, labels_of, read_labels
from labelweave.datasets.table_columns import KINDS, TableColumns, refuse_nested
from labelweave.datasets.table_files import RawTable, raw_tables
from labelweave.foundation.arguments import ParameterMessage, checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.vectors import are_vectors, stacked
from labelweave.labels import LabelMatrix
from labelweave.labels import written_labels as written
from labelweave.labels.label_matrix import words_on_no_negative

_GLANCE = 1000  # cells, enough to find consecutive repetitions where these are common
_FEWEST_RUNS, _FEWEST_AGAIN = 5, 0.1  # of paired rows, and the share of rows after the first of each run
UnknownLabels = Literal["error", "ignore", "add"]
Known = tuple[Sequence[str] | None, UnknownLabels]  # the known labels, and what to do with others


def refuse_missing_numbers(table: RawTable, vectorizer: Any) -> None:
    """Raise DataFileError for missing numbers, also in vectors, unless the vectorizer imputes them."""
    if vectorizer.missing_numeric != "error":
        return
    found = {name: numbers_of(table, name)[:, None] for name in vectorizer.numeric}
    found |= {name: vectors_of(table, name) for name in vectorizer.vectors}
    for name, numbers in found.items():
        rows = np.flatnonzero(np.isnan(numbers).any(axis=1))
        if len(rows):
            expected = ParameterMessage("a number; `missing_numeric='mean'` fills it in")
            raise table.error(int(rows[0]), name, "no number", expected)


@checked
def read_table_columns(
    path: PathLike,
    columns: TableColumns,
    *,
    label_names: Sequence[str] | None = None,
    unknown_labels: UnknownLabels = "error",
) -> LabeledData:
    """Read a table without vectorizing its columns; for path, labels and errors see :func:`read_table`.

    Parameters
    ----------
    columns : TableColumns
        What its columns are.

    Returns
    -------
    LabeledData
        X is a DataFrame of the feature columns: numbers as float64 with NaN where missing, vectors as arrays,
        everything else as strings, empty where missing.
    """
    table = next(raw_tables(path, no_header=columns.no_header))
    table = grouped(table, columns)
    columns = columns.resolved(table)
    data = labeled_frame(table, columns, (label_names, unknown_labels))
    if label_names is None:
        warn_of_no_negative(path, columns, data.Y)
    return data


@checked
def iterate_table(
    path: PathLike,
    columns: TableColumns,
    chunk_rows: int = 10_000,
    *,
    label_names: Sequence[str] | None = None,
    unknown_labels: UnknownLabels = "error",
) -> Iterator[LabeledData]:
    """Read a table in chunks of rows; for path and labels see :func:`read_table`.

    Parameters
    ----------
    columns : TableColumns
        The roles of its columns; feature columns must be specified.
    chunk_rows : int, default=10000
        The number of rows per chunk.

    Yields
    ------
    LabeledData
        A chunk as :func:`read_table_columns` returns it; the frame's index counts the rows of the file.

    Raises
    ------
    DataFileError
        If the file is malformed, when its line is reached.
    ValueError
        If the kinds of columns or the labels would differ between chunks, as when one column lists the labels
        and ``label_names`` is None.
    """
    if not columns.are_resolved:
        raise ValueError(
            "No text, categorical, numeric or vectors column is named; name them, since a chunk is too small "
            "to detect them."
        )
    if isinstance(columns.labels, str) and label_names is None:
        raise ValueError("label_names is missing; pass the names of all labels, since a chunk may lack some.")
    codings, columns = set[str](), columns_of_blocks(path, columns, chunk_rows)
    for table in completed_blocks(path, columns, chunk_rows):
        yield labeled_frame(table, columns, (label_names, unknown_labels), codings)


def labeled_frame(
    table: RawTable, columns: TableColumns, known: Known, codings: set[str] | None = None
) -> LabeledData:
    """Return the feature columns of a raw table as a frame, and its labels.

    codings: the values of label columns in earlier blocks, one set for all blocks of a file.
    """
    try:
        import pandas as pd
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("Tables need pandas and pyarrow: install labelweave[app].") from None
    table.columns.expect_decimal_marks(columns.decimal_marks or {})
    strings = (*(columns.text or ()), *(columns.categorical or ()))
    cells: dict[str, Any] = {name: _strings(table, name, name in (columns.text or ())) for name in strings}
    cells |= {name: numbers_of(table, name) for name in columns.numeric or ()}
    cells |= {name: list(vectors_of(table, name)) for name in columns.vectors or ()}
    frame = pd.DataFrame(cells, index=range(table.first_row, table.first_row + len(table)))
    Y = table_labels(table, columns, known, set() if codings is None else codings)
    return LabeledData(frame, Y, np.array(frame.columns, np.str_), row_names(table, columns.id))


def _strings(table: RawTable, name: str, may_be_words: bool) -> Any:
    column = table.columns.plain(name)
    if is_text(column):
        return column.fill_null("").to_pandas().array
    if are_vectors(column):
        raise table.error(0, name, "a vector", ParameterMessage("text; name the column in `vectors`"))
    refuse_nested(table, name, "a string", (dict, bytes) if may_be_words else (list, dict, bytes))
    return [text_of(cell) for cell in table.columns[name]]


def numbers_of(table: RawTable, name: str) -> npt.NDArray[np.float64]:
    return table.columns.all_numbers(
        name, lambda row, found, expected: table.error(row, name, found, expected)
    )


def vectors_of(table: RawTable, name: str) -> Array:
    return stacked(
        table.columns.plain(name), lambda row, found, expected: table.error(row, name, found, expected)
    )


def row_names(table: RawTable, name: str | None, what: str = "the name of the row") -> Any:
    """Read a column of row names or groups; raise DataFileError if a cell is missing."""
    if name is None:
        return None
    cells = table.columns[name]
    for row, cell in enumerate(cells):
        if is_missing(cell) or cell == "":
            raise table.error(row, name, "nothing", what)
    refuse_nested(table, name, f"{what}, text or a number")
    names = np.empty(len(cells), object)  # keeps the type and width of each name
    names[:] = [cell if isinstance(cell, (str, int, float)) else str(cell) for cell in cells]
    return names


def table_labels(table: RawTable, columns: TableColumns, known: Known, codings: set[str]) -> LabelMatrix:
    """Read the labels of some rows; unless the names are known, they are those of the rows, sorted."""
    label_names, unknown_labels = known
    if unknown_labels not in ("error", "ignore", "add"):
        raise ValueError(f"unknown_labels is {unknown_labels!r}; it must be 'error', 'ignore' or 'add'.")
    if columns.labels is None:
        n_labels = 0 if label_names is None else len(label_names)
        nothing = sp.csr_array((len(table), n_labels), dtype=np.int8)
        return LabelMatrix(nothing, None if label_names is None else nothing, label_names)
    if isinstance(columns.labels, str):
        return _listed_labels(table, columns, known)
    if columns.holds_classes:
        return class_labels(table, columns)
    return _binary_labels(table, columns, known, codings)


def warn_of_no_negative(path: PathLike, columns: TableColumns, Y: LabelMatrix) -> None:
    """Warn about label columns that hold only 1 and blank cells, and so no negative row."""
    is_given = columns.empty_labels is not None or isinstance(columns.labels, str)
    if not is_given and (words := words_on_no_negative(Y)) is not None:
        ways = "`empty_labels='none'` reads them as 0, and `empty_labels='unknown'` silences this"
        warnings.warn(ParameterMessage(f"{path}: {words}; {ways}"), UserWarning, stacklevel=2)


def _binary_labels(table: RawTable, columns: TableColumns, known: Known, codings: set[str]) -> LabelMatrix:
    names, (label_names, unknown_labels) = columns.labels, known
    chosen = list(names if label_names is None else label_names)
    unknown, absent = sorted(set(names) - set(chosen)), sorted(set(chosen) - set(names))
    chosen += unknown if unknown_labels == "add" else []
    if absent or (unknown and unknown_labels == "error"):
        what = f"no label column {absent[0]!r}" if absent else f"the label column {unknown[0]!r}"
        raise DataFileError(table.path, None, what, "the label columns the model was trained with")
    values = np.empty((len(table), len(chosen)))
    for place, name in enumerate(chosen):
        try:
            values[:, place] = _binary_column(table, name)
        except DataFileError:
            if label_names is not None or len(chosen) == 1 or not _hold_classes(table, chosen):
                raise
            return class_labels(table, replace(columns, holds_classes=True))
        if columns.empty_labels == "none":
            values[are_blank(table.columns.plain(name)), place] = 0
    is_share = (values > 0) & (values < 1)
    _refuse_mixed(table, chosen, {"0": values == 0, "-1": values == -1, "probabilities": is_share}, codings)
    return (LabelMatrix.from_probabilities if is_share.any() else LabelMatrix.from_any)(values, chosen)


def _hold_classes(table: RawTable, names: Sequence[str]) -> bool:
    """Return whether several cells of label columns are no labels; a single one is taken for a mistake."""
    return sum(label_value(cell) == np.inf for name in names for cell in table.columns[name]) > 1


def _refuse_mixed(
    table: RawTable, names: Sequence[str], entries: dict[str, npt.NDArray[np.bool_]], codings: set[str]
) -> None:
    """Raise DataFileError for -1 together with 0 or probabilities, here or in earlier blocks."""
    codings.update(coding for coding, where in entries.items() if where.any())
    if "-1" not in codings or len(codings) == 1:
        return
    other = "probabilities" if "probabilities" in codings else "0"
    one, beside = ("-1", other) if entries["-1"].any() else (other, "-1")
    row, place = np.argwhere(entries[one])[0]
    expected = (
        "numbers from 0 to 1" if other != "0" else "0 and 1, or -1 and 1, and blank cells where not observed"
    )
    raise table.error(int(row), names[place], f"{one} beside {beside}", expected)


def _binary_column(table: RawTable, name: str) -> npt.ArrayLike:
    """Parse a column of 0 and 1, or of probabilities, each distinct text once."""
    table.columns.expect_decimal_marks({name: "."})  # no thousands separators
    found = table.columns.numbers(name)
    if found is not None and (((found >= 0) & (found <= 1)) | (found == -1) | np.isnan(found)).all():
        return found
    cells = table.columns[name]
    first = {str(cell): row for row, cell in reversed(list(enumerate(cells)))}
    meaning = {text: _binary(table, row, name) for text, row in sorted(first.items(), key=itemgetter(1))}
    return [meaning[str(cell)] for cell in cells]


def _binary(table: RawTable, row: int, name: str) -> float:
    cell = table.columns[name][row]
    value = label_value(cell)
    if value == np.inf:
        expected = ParameterMessage(
            "0, 1, -1, true, false, yes, no, a probability or a blank cell; for a column of label names, "
            f"pass `labels={name!r}`"
        )
        raise table.error(row, name, f"{str(cell)[:40]!r}", expected)
    return value


def has_pairs(table: RawTable, columns: TableColumns) -> bool:
    """Return whether row names repeat and one column lists labels, as if rows were (name, label) pairs."""
    is_listed, name = isinstance(columns.labels, str) and columns.labels in table.columns, columns.id
    return is_listed and name in table.columns and n_distinct(table.columns.given(str(name))) < len(table)


def grouped(table: RawTable, columns: TableColumns) -> RawTable:
    """Merge the rows with the same name and features into one row with all their labels."""
    if not has_pairs(table, columns):
        _warn_of_pairs(table, columns)
        return table
    ids = [*map(str, table.columns[str(columns.id)])]
    found, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    named = {name for kind in KINDS for name in getattr(columns, kind) or ()} or {*table.columns}
    for name in named.difference((columns.labels, columns.id), columns.drop or ()):
        cells = np.array([*map(str, table.columns[name])], object)
        differs = np.flatnonzero(cells != cells[first][codes])
        if len(differs):
            what = f"a cell that differs from the first row with the same name in column {columns.id!r}"
            wanted = "the same cell, to merge both rows, or drop the column"
            said = str(table.error(int(differs[0]), name, what, wanted))
            warnings.warn(f"{said} The rows are not merged.", UserWarning, stacklevel=2)
            return table
    rows, lists = np.argsort(np.argsort(first)), list[list[str] | None]([None] * len(found))
    for row, cell in enumerate(table.columns[columns.labels]):
        names, group = labels_of(table, row, columns, cell), rows[codes[row]]
        lists[group] = lists[group] if names is None else [*(lists[group] or ()), *names]
    first.sort()
    said = f"names in column {columns.id!r} repeat ({len(found)} in {len(table)} rows)"
    warnings.warn(f"{table.path}: {said}; their labels are merged", UserWarning, stacklevel=2)
    kept = {name: take(table.columns.given(name), first) for name in table.columns}
    lines = table.line_of
    line_of = None if lines is None else (lambda row: lines(int(first[row])))
    return RawTable(table.path, Columns(kept | {columns.labels: lists}), line_of, 0)


def _warn_of_pairs(table: RawTable, columns: TableColumns) -> None:
    """Warn if runs of rows differ only in their label, as if rows were (text, label) pairs."""
    given, label = table.columns, columns.labels
    first, *others = [name for name in given if name not in (label, *(columns.drop or ()))] or [""]
    named = {name for kind in KINDS for name in getattr(columns, kind) or ()} or {*others}
    is_named = not isinstance(label, str) or not {label, first} <= {*given} or columns.label_separator
    if is_named or columns.id or not is_text(given.given(label)):
        return
    if not any(starmap(eq, pairwise(as_list(given.given(first)[:_GLANCE])))):
        return
    import pandas as pd

    cells = pd.DataFrame(
        {name: [*map(str, given[name])] for name in (first, label, *sorted(named & {*others}))}
    )
    again, same = (part.eq(part.shift()) for part in (cells[first], cells.drop(columns=label)))
    n_runs = int((~again).sum())
    is_run = n_runs == cells[first].nunique() and bool(same[again].to_numpy().all())
    if is_run and n_runs >= _FEWEST_RUNS and again.mean() > _FEWEST_AGAIN and not cells.duplicated().any():
        said = f"{table.path}: consecutive rows with the same {first!r} differ only in column {label!r}"
        said = ParameterMessage(f"{said}; `id={first!r}` merges them into one row with all labels")
        warnings.warn(said, UserWarning, stacklevel=2)


def with_layout(table: RawTable, columns: TableColumns) -> tuple[TableColumns, written.Layout]:
    """Detect how the cells of a column write labels, unless specified; return also the layout."""
    name = columns.labels
    if not isinstance(name, str) or columns.label_separator or name not in table.columns:
        return columns, written.Layout(None)
    cells = as_array(table.columns.given(name))
    if not isinstance(cells, list) and is_text(cells):
        parts = (cells[place] for place in written.in_halves(len(cells)))
        found = written.found_layout([part.unique().drop_null().to_pylist() for part in parts])
    else:
        lists = [cell for cell in as_list(cells) if not is_missing(cell)]
        found = written.layout_inside([lists[half] for half in written.in_halves(len(lists))])
        if written.are_places(lists):
            found = written.Layout(written.PLACES, str(lists[0]))
    return replace(columns, label_separator=found.separator), found


def in_order(names: Collection[str], columns: TableColumns) -> list[str]:
    """Sort the labels of blocks; labels that are positions in cells keep their order."""
    return place_names(columns, len(names)) if columns.label_separator == written.PLACES else sorted(names)


def place_names(columns: TableColumns, width: int) -> list[str]:
    """Name the labels of cells with 0 or 1 per label, after a column such as "a,b,c"; else by numbers."""
    text = str(columns.labels).strip("[]{}() ")
    found = (re.split(rf"\s*[{signs}]\s*", text) for signs in (",;|", "/", r"\s"))
    numbers = [*map(str, range(width))]
    return next((names for names in found if len({*names}) == len(names) == width), numbers)


def names_in(table: RawTable, columns: TableColumns) -> list[str]:
    """Return the sorted labels that the cells of one column list."""
    if columns.label_separator == written.PLACES:
        return place_names(columns, _placed_labels(table, columns, None).shape[1])
    return sorted(read_labels(table, columns).names)


def _placed_labels(table: RawTable, columns: TableColumns, names: Sequence[str] | None) -> npt.NDArray[Any]:
    """Parse cells with 0 or 1 per label, each distinct text once; a missing cell is a row of NaN."""
    cells, known = table.columns[columns.labels], dict[str, Any]()
    width = None if names is None else len(names)
    for row, cell in enumerate(cells):
        if (key := str(cell)) not in known:
            is_nothing = is_missing(cell) or says_missing(key)
            known[key] = None if is_nothing else written.places_of(cell) or ()
            width = width if is_nothing else width or len(known[key])
            if not is_nothing and (len(known[key]) != width or not width):
                expected = f"a list of {width or 'as many'} numbers, 0 or 1 per label"
                raise table.error(row, columns.labels, repr(key[:40]), expected)
    nothing = [np.nan] * (width or 0)
    return np.array([nothing if known[str(cell)] is None else known[str(cell)] for cell in cells])


def _listed_labels(table: RawTable, columns: TableColumns, known: Known) -> LabelMatrix:
    label_names, unknown_labels = known
    if columns.label_separator == written.PLACES:
        values = _placed_labels(table, columns, label_names)
        return LabelMatrix.from_any(values, label_names or place_names(columns, values.shape[1]))
    read = read_labels(table, columns)
    names = sorted(read.names) if label_names is None else list(label_names)
    names += sorted(set(read.names) - set(names)) if unknown_labels == "add" else []
    if not names:
        raise DataFileError(table.path, None, f"no label in column {columns.labels!r}", "at least one label")
    index = {name: position for position, name in enumerate(names)}
    labels = np.array([index.get(name, -1) for name in read.names], np.int64)[read.codes]
    is_named, rows = labels >= 0, np.repeat(np.arange(len(table)), read.counts)
    if unknown_labels == "error" and not is_named.all():
        place = int(np.argmin(is_named))
        name = read.names[read.codes[place]]
        close = "".join(f", such as {like!r}" for like in get_close_matches(name, names, 1))
        expected = ParameterMessage(f"a label of the model{close}; `unknown_labels='ignore'` ignores others")
        found = f"the unknown label {name[:40]!r}"
        raise table.error(int(rows[place]), columns.labels, found, expected)
    counts = np.bincount(rows[is_named], minlength=len(table))
    listed = ones_from_counts(labels[is_named], counts, len(names))
    listed.sum_duplicates()
    if {"0", "1"} <= {*names} and 4 * (counts.sum() - listed.nnz) > counts.sum():
        cells = table.columns[columns.labels]
        widths = np.array([len(written.places_of(cell) or ()) for cell in cells])
        row = int(np.argmax(widths != widths.max()))
        wanted = "0 or 1 for each label in all cells, or a list of distinct labels"
        raise table.error(row, columns.labels, repr(str(cells[row])[:40]), wanted)
    return targets_of_rows(listed.indices, np.diff(listed.indptr), read.is_unknown, names)
