"""Labels of tables: in one column that lists them, in columns of 0 and 1, or in columns of classes.

A label cell that is missing (null in JSON and Parquet, ``?`` in any file) makes the row's labels unobserved.
An empty one (an empty list or string, an empty CSV cell) means that the row has no positive label, the last
two only unless ``empty_labels="unknown"``.  In columns of 0 and 1 a missing cell is one unobserved label, and
a blank one is 0 with ``empty_labels="none"``.  Several columns with other values are columns of classes, in
which a blank cell and ``?`` are unobserved.  A cell may hold a list as text: ``['red', 'green']``, as pandas
writes lists to CSV files.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain, pairwise, starmap
from operator import eq
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.columns import (
    are_blank,
    as_list,
    has_any,
    is_missing,
    is_text,
    n_distinct,
    number_or_truth,
    says_missing,
    take,
)
from labelweave.datasets.csr_parts import ones_from_counts, targets_of_rows
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.raw_table import Columns, RawTable
from labelweave.datasets.table_columns import TableColumns
from labelweave.foundation.arguments import ParameterError, ParameterMessage
from labelweave.foundation.frames import TRUTH
from labelweave.labels import LabelMatrix, read_class_columns
from labelweave.labels import written_labels as written
from labelweave.labels.label_matrix import words_on_no_negative
from labelweave.labels.label_names import as_text, names_of

_NO_PLAIN_LIST = rf"^[{re.escape(''.join(written.OPENING))}]|\)$"  # cells that may be lists by themselves
_MOST_AT_ONCE = 2**30  # bytes, less than an array of pyarrow may hold
_TRUTH = TRUTH | dict.fromkeys("x✓✔☑", 1.0)  # marks in tables of answers
_GLANCE = 1000  # cells, enough to find consecutive repetitions where these are common
_FEWEST_RUNS, _FEWEST_AGAIN = 5, 0.1  # of paired rows, and the share of rows after the first of each run
UnknownLabels = Literal["error", "ignore", "add"]
Known = tuple[Sequence[str] | None, UnknownLabels]  # the known labels, and what to do with others


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
    meaning = dict[str, float]()
    for row, cell in enumerate(table.columns[name]):
        if (text := str(cell)) in meaning:
            continue
        meaning[text] = label_value(cell)
        if meaning[text] == np.inf:
            expected = "0, 1, -1, true, false, yes, no, a probability or a blank cell; for a column of label "
            expected = ParameterMessage(f"{expected}names, pass `labels={name!r}`")
            raise table.error(row, name, repr(text[:40]), expected)
    return [meaning[str(cell)] for cell in table.columns[name]]


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
    others = (columns.labels, columns.id, *(columns.drop or ()))
    for name in {*(columns.features or table.columns)}.difference(others):
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
    return RawTable(table.path, Columns(kept | {columns.labels: lists}), line_of)


def _warn_of_pairs(table: RawTable, columns: TableColumns) -> None:
    """Warn if runs of rows differ only in their label, as if rows were (text, label) pairs."""
    given, label = table.columns, columns.labels
    first, *others = [name for name in given if name not in (label, *(columns.drop or ()))] or [""]
    is_named = not isinstance(label, str) or not {label, first} <= {*given} or columns.label_separator
    if is_named or columns.id or not is_text(given.given(label)):
        return
    if not any(starmap(eq, pairwise(as_list(given.given(first)[:_GLANCE])))):
        return
    import pandas as pd

    names = (first, label, *sorted({*(columns.features or others)} & {*others}))
    cells = pd.DataFrame({name: [*map(str, given[name])] for name in names})
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
    cells = table.columns.given(name)
    if is_text(cells):
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


def class_labels(table: RawTable, columns: TableColumns) -> LabelMatrix:
    """Read columns that have one of several classes per row each."""
    if columns.empty_labels == "none":
        said = "`empty_labels='none'` is for labels, but blank cells of classes are unobserved; leave it out."
        raise ParameterError(said)
    cells = [[_class_in(cell) for cell in table.columns[name]] for name in columns.labels]
    names = [str(name) for name in columns.labels]
    return read_class_columns(np.array([*zip(*cells, strict=True), (None,) * len(names)], object)[:-1], names)


def _class_in(cell: Any) -> Any:
    text = cell.strip() if isinstance(cell, str) else cell
    return None if is_missing(cell) or text in ("", "?") else text


def label_value(cell: Any) -> float:
    """Return the label or probability in a cell; infinity if it is neither."""
    try:
        truth = _TRUTH.get(cell.strip().lower()) if isinstance(cell, str) else None
        value = number_or_truth(cell) if truth is None else truth
    except ValueError:
        return np.inf
    return value if 0 <= value <= 1 or value == -1 or np.isnan(value) else np.inf


class ReadLabels(NamedTuple):
    """The labels of all cells: distinct names, their indices row by row, and the counts per row."""

    names: list[str]
    codes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    is_unknown: npt.NDArray[np.bool_]


def read_labels(table: RawTable, columns: TableColumns) -> ReadLabels:
    """Split the cells of the column that lists labels."""
    column = table.columns.given(columns.labels)
    plain = columns.label_separator if written.is_plain(columns.label_separator) else None
    if is_text(column) and plain is not None:
        found = _split_at_once(column, plain, columns.empty_labels != "unknown")
        if found is not None:
            return found
    places, known, rows = dict[str, int](), dict[str, list[int] | None](), list[list[int] | None]()
    for row, cell in enumerate(table.columns[columns.labels]):
        is_one_text = isinstance(cell, str)  # split each distinct text once
        if is_one_text and cell in known:
            rows.append(known[cell])
            continue
        names = None
        if plain is not None and is_one_text and cell[:1] not in written.OPENING and cell[-1:] != ")":
            names = [name for part in cell.split(plain) if (name := part.strip())]
        if not names or names == ["?"]:
            names = labels_of(table, row, columns, cell)
        rows.append(None if names is None else [places.setdefault(name, len(places)) for name in names])
        if is_one_text:
            known[cell] = rows[-1]
    codes = np.fromiter(chain.from_iterable(filter(None, rows)), np.int64)
    counts = np.array([len(row or ()) for row in rows], np.int64)
    return ReadLabels([*places], codes, counts, np.array([row is None for row in rows], bool))


def _split_at_once(column: Any, separator: str, may_be_blank: bool) -> ReadLabels | None:
    """Split a text column by pyarrow; None if a cell is missing, or may be a list by itself."""
    from pyarrow import compute

    if column.null_count or column.nbytes > _MOST_AT_ONCE or has_any(column, _NO_PLAIN_LIST):
        return None
    lists = compute.split_pattern(column.combine_chunks(), separator)
    parts = compute.utf8_trim_whitespace(lists.flatten())
    is_name = compute.not_equal(parts, "")
    is_kept, starts = is_name.to_numpy(zero_copy_only=False), lists.offsets.to_numpy()[:-1]
    counts = np.add.reduceat(is_kept, starts, dtype=np.int64)
    found = compute.dictionary_encode(parts.filter(is_name))
    names = found.dictionary.to_pylist()
    if "?" in names or not (may_be_blank or counts.all()):
        return None
    codes = found.indices.to_numpy().astype(np.int64)
    return ReadLabels(names, codes, counts, np.zeros(len(counts), bool))


def labels_of(table: RawTable, row: int, columns: TableColumns, cell: Any) -> list[str] | None:
    text = cell.strip() if isinstance(cell, str) else None
    if text in ("", "?"):
        return None if text or columns.empty_labels == "unknown" else []
    try:
        if text is not None:
            names = written.names_in(text, columns.label_separator)
        elif isinstance(cell, dict) or (isinstance(cell, list) and dict in map(type, cell)):
            names = names_of(cell)
        elif isinstance(cell, list):
            names = [name.strip() if isinstance(name, str) else _as_name(name) for name in cell]
            names = written.names_inside(names, columns.label_separator)
        else:
            return None if is_missing(cell) else [as_text(cell)]
    except ValueError as error:
        shown = json.dumps(cell, ensure_ascii=False, default=str) if text is None else text
        raise table.error(row, columns.labels, repr(shown[:40]), str(error)) from None
    if "" in names:
        found = f"the label {cell[names.index('')] if isinstance(cell, list) else ''!r}"
        raise table.error(row, columns.labels, found, "label names that are not empty")
    return names


def _as_name(name: Any) -> str:
    """Convert a label in a list to text, empty if it is none."""
    if isinstance(name, float) and name % 1:
        raise ValueError("names or whole numbers")
    return "" if is_missing(name) or isinstance(name, (list, dict)) else str(name).strip()
