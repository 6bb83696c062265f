"""Tables with text, categories, numbers and labels: CSV, TSV, JSON lines, Parquet.

A label cell that is missing (null in JSON and Parquet, ``?`` in any file) leaves the row's labels unobserved.
One that is empty (an empty list or string, an empty CSV cell) says that the row has no positive label, the
last two only unless ``empty_labels="unknown"``.  In columns of 0 and 1 it is one unobserved label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.columns import (
    as_array,
    as_text,
    coded,
    has_any,
    is_missing,
    is_text,
    is_text_lists,
    number_or_truth,
)
from labelweave.datasets.csr_parts import ones_from_counts, targets_of_rows
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.table_blocks import columns_of_blocks, completed_blocks
from labelweave.datasets.table_columns import TableColumns, refuse_nested
from labelweave.datasets.table_files import RawTable, raw_tables
from labelweave.datasets.table_vectorizer import TableVectorizer
from labelweave.datasets.written_lists import written_list
from labelweave.foundation.arguments import ParameterMessage, checked
from labelweave.labels import LabelMatrix

_STRIPPED = re.compile(r"[\s?]")
UnknownLabels = Literal["error", "ignore"]
Known = tuple[Sequence[str] | None, UnknownLabels]  # the labels there are, and what to do with others


def table_features(
    table: RawTable, columns: TableColumns, vectorizer: TableVectorizer | None, known: Known = (None, "error")
) -> LabeledData:
    """Turn the columns of a table that was read into features; see :func:`read_table`."""
    data = labeled_frame(table, columns, known)
    if vectorizer is None:
        vectorizer = TableVectorizer(columns.text, columns.categorical, columns.numeric)
    if vectorizer.missing_numeric == "error":
        refuse_missing_numbers(table, data.X, vectorizer.numeric)
    if not vectorizer.is_fitted:
        vectorizer.fit(data.X)
        vectorizer.decimal_marks_ = table.columns.decimal_marks(vectorizer.numeric)
    X = vectorizer.transform(data.X)
    return LabeledData(X, data.Y, vectorizer.get_feature_names_out(), data.row_ids, vectorizer=vectorizer)


def refuse_missing_numbers(table: RawTable, frame: Any, names: Sequence[str]) -> None:
    missing = np.isnan(frame[list(names)].to_numpy(np.float64))
    if missing.any():
        column = int(np.argmax(missing.any(axis=0)))
        expected = ParameterMessage("a number; `missing_numeric='mean'` fills it in")
        raise table.error(int(np.argmax(missing[:, column])), names[column], "no number", expected)


@checked
def read_table_columns(
    path: PathLike,
    columns: TableColumns,
    *,
    label_names: Sequence[str] | None = None,
    unknown_labels: UnknownLabels = "error",
) -> LabeledData:
    """Read a table and leave its columns as they are; for path, labels and errors see :func:`read_table`.

    Parameters
    ----------
    columns : TableColumns
        What its columns are.

    Returns
    -------
    LabeledData
        X is a DataFrame of the feature columns: numbers as float64 with NaN where missing, everything else as
        strings, empty where missing.
    """
    table = next(raw_tables(path))
    return labeled_frame(table, columns.resolved(table), (label_names, unknown_labels))


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
        What its columns are; text, categorical and numeric must be given.
    chunk_rows : int, default=10000
        How many rows a chunk has.

    Yields
    ------
    LabeledData
        A chunk as :func:`read_table_columns` gives it; the frame's index counts the rows of the file.

    Raises
    ------
    DataFileError
        If the file is malformed, when its line is reached.
    ValueError
        If the kinds of columns or the labels would differ from chunk to chunk, as where one column lists the
        labels and ``label_names`` is not given.
    """
    if not columns.are_resolved:
        raise ValueError(
            "Name the text, categorical and numeric columns: a chunk is too little to guess from."
        )
    if isinstance(columns.labels, str) and label_names is None:
        raise ValueError("Give label_names: the labels of a chunk are not all there are.")
    codings, columns = set[str](), columns_of_blocks(path, columns, chunk_rows)
    for table in completed_blocks(path, columns, chunk_rows):
        yield labeled_frame(table, columns, (label_names, unknown_labels), codings)


def labeled_frame(
    table: RawTable, columns: TableColumns, known: Known, codings: set[str] | None = None
) -> LabeledData:
    """Give the feature columns of a table that was read as a frame, and its labels.

    codings: what columns of one label had in blocks before, one set for all blocks of a file.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("Tables need pandas: install labelweave[app].") from None
    table.columns.expect_decimal_marks(columns.decimal_marks or {})
    strings = (*(columns.text or ()), *(columns.categorical or ()))
    cells: dict[str, Any] = {name: _strings(table, name) for name in strings}
    cells |= {name: numbers_of(table, name) for name in columns.numeric or ()}
    frame = pd.DataFrame(cells, index=range(table.first_row, table.first_row + len(table)))
    Y = table_labels(table, columns, known, set() if codings is None else codings)
    return LabeledData(frame, Y, np.array(frame.columns, np.str_), _row_ids(table, columns.id))


def _strings(table: RawTable, name: str) -> Any:
    column = table.columns.plain(name)
    if is_text(column):
        return (column.fill_null("") if column.null_count else column).to_pandas().array
    cells = table.columns[name]
    if set(map(type, cells)) == {str}:
        return cells
    refuse_nested(table, name, "a string")
    return ["" if is_missing(cell) else as_text(cell) for cell in cells]


def numbers_of(table: RawTable, name: str) -> npt.NDArray[np.float64]:
    """Read a column of numbers, NaN where a cell is missing."""
    return table.columns.all_numbers(
        name, lambda row, found, expected: table.error(row, name, found, expected)
    )


def _row_ids(table: RawTable, name: str | None) -> npt.NDArray[Any] | None:
    if name is None:
        return None
    column, cells = table.columns.given(name), table.columns[name]
    if not is_text(column) or column.null_count or has_any(column, ""):
        for row, cell in enumerate(cells):
            if is_missing(cell) or cell == "":
                raise table.error(row, name, "nothing", "the name of the row")
    if not is_text(column):
        refuse_nested(table, name, "the name of the row, text or a number")
    names = np.empty(len(cells), object)  # none is rounded to the type, or as wide as the longest, of another
    names[:] = [cell if isinstance(cell, (str, int, float)) else str(cell) for cell in cells]
    return names


def table_labels(table: RawTable, columns: TableColumns, known: Known, codings: set[str]) -> LabelMatrix:
    """Read the labels of some rows; where their names are not known they are those of the rows, sorted."""
    label_names, unknown_labels = known
    if unknown_labels not in ("error", "ignore"):
        raise ValueError(f"unknown_labels is {unknown_labels!r}; it is 'error' or 'ignore'.")
    if columns.labels is None:
        n_labels = 0 if label_names is None else len(label_names)
        nothing = sp.csr_array((len(table), n_labels), dtype=np.int8)
        return LabelMatrix(nothing, None if label_names is None else nothing, label_names)
    if isinstance(columns.labels, str):
        return _listed_labels(table, columns, known)
    return _binary_labels(table, columns.labels, known, codings)


def _binary_labels(table: RawTable, names: Sequence[str], known: Known, codings: set[str]) -> LabelMatrix:
    label_names, unknown_labels = known
    chosen = list(names if label_names is None else label_names)
    unknown, absent = sorted(set(names) - set(chosen)), sorted(set(chosen) - set(names))
    if absent or (unknown and unknown_labels == "error"):
        what = f"no label column {absent[0]!r}" if absent else f"the label column {unknown[0]!r}"
        raise DataFileError(table.path, None, what, "the label columns the model was trained with")
    values = np.empty((len(table), len(chosen)))
    for place, name in enumerate(chosen):
        values[:, place] = _binary_column(table, name)
    is_share = (values > 0) & (values < 1)
    _refuse_mixed(table, chosen, {"0": values == 0, "-1": values == -1, "probabilities": is_share}, codings)
    return (LabelMatrix.from_probabilities if is_share.any() else LabelMatrix.from_any)(values, chosen)


def _refuse_mixed(
    table: RawTable, names: Sequence[str], entries: dict[str, npt.NDArray[np.bool_]], codings: set[str]
) -> None:
    """Refuse -1 beside 0 or probabilities, here or in blocks before."""
    codings.update(coding for coding, where in entries.items() if where.any())
    if "-1" not in codings or len(codings) == 1:
        return
    other = "probabilities" if "probabilities" in codings else "0"
    one, beside = ("-1", other) if entries["-1"].any() else (other, "-1")
    row, place = np.argwhere(entries[one])[0]
    expected = (
        "numbers from 0 to 1" if other != "0" else "0 and 1, or -1 and 1, and nothing where not observed"
    )
    raise table.error(int(row), names[place], f"{one} beside {beside}", expected)


def _binary_column(table: RawTable, name: str) -> npt.ArrayLike:
    """Read a column of 0 and 1, or of probabilities, each text once."""
    table.columns.expect_decimal_marks({name: "."})  # there are no thousands
    found = table.columns.numbers(name)
    if found is not None and (((found >= 0) & (found <= 1)) | (found == -1) | np.isnan(found)).all():
        return found
    cells = table.columns[name]
    first = {str(cell): row for row, cell in reversed(list(enumerate(cells)))}
    meaning = {text: _binary(table, row, name) for text, row in sorted(first.items(), key=itemgetter(1))}
    return [meaning[str(cell)] for cell in cells]


def _binary(table: RawTable, row: int, name: str) -> float:
    cell = table.columns[name][row]
    try:
        value = number_or_truth(cell)
    except ValueError:
        value = np.inf
    if not (0 <= value <= 1 or value == -1 or np.isnan(value)):
        expected = ParameterMessage(
            "0, 1, -1, true, false, a probability or nothing for a label; a column that names labels is "
            f"given by `labels={name!r}`"
        )
        raise table.error(row, name, f"{str(cell)[:40]!r}", expected)
    return value


def names_in(table: RawTable, columns: TableColumns) -> list[str]:
    """List the labels that the cells of one column name, sorted."""
    return _named(_written_labels(table, columns))


def _named(written: _Written) -> list[str]:
    is_used = np.bincount(written.codes, minlength=len(written.texts)) > 0
    return sorted({text.strip() for text, used in zip(written.texts, is_used, strict=True) if used} - {""})


def _listed_labels(table: RawTable, columns: TableColumns, known: Known) -> LabelMatrix:
    label_names, unknown_labels = known
    written = _written_labels(table, columns)
    meant, found = [text.strip() for text in written.texts], _named(written)
    names = found if label_names is None else list(label_names)
    if not names:
        raise DataFileError(table.path, None, f"no label in column {columns.labels!r}", "at least one label")
    index = {name: position for position, name in enumerate(names)}
    places = np.array([index.get(name, -1) for name in meant], np.int64)
    if unknown_labels == "error" and not index.keys() >= set(found):
        is_unknown = np.array([bool(name) and name not in index for name in meant])
        place = int(is_unknown[written.codes].argmax())
        name = meant[written.codes[place]]
        close = "".join(f", such as {like!r}" for like in get_close_matches(name, names, 1))
        expected = ParameterMessage(
            f"a label the model was trained with{close}; `unknown_labels='ignore'` passes over others"
        )
        raise table.error(
            int(written.rows[place]), columns.labels, f"the unknown label {name[:40]!r}", expected
        )
    labels = places[written.codes]
    is_named = labels >= 0
    counts = np.bincount(written.rows[is_named], minlength=len(table))
    listed = ones_from_counts(labels[is_named], counts, len(names))
    listed.sum_duplicates()
    return targets_of_rows(listed.indices, np.diff(listed.indptr), written.is_unknown, names)


class _Written(NamedTuple):
    """The labels of all cells: distinct texts, which of them stand in which rows, and unobserved rows."""

    texts: list[str]
    codes: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    is_unknown: npt.NDArray[np.bool_]


def _written_labels(table: RawTable, columns: TableColumns) -> _Written:
    """Split all label cells."""
    column, separator = as_array(table.columns.given(columns.labels)), columns.label_separator
    is_plain_text = is_text(column) and not has_any(column, "[", at_start=True)
    if is_text_lists(column) or (is_plain_text and not (separator and _STRIPPED.search(separator))):
        found = _written_in_array(column, separator, columns.empty_labels == "unknown")
        if found is not None:
            return found
    lists = [_labels_of(table, row, columns) for row in range(len(table))]
    is_unknown = np.array([names is None for names in lists])
    codes, texts = coded([*chain.from_iterable(filter(None, lists))])
    counts = np.array([len(names or ()) for names in lists], np.int64)
    return _Written(texts, codes, np.repeat(np.arange(len(table)), counts), is_unknown)


def _written_in_array(column: Any, separator: str | None, is_blank_unknown: bool) -> _Written | None:
    """Split the cells of an array of text or of lists, all at once; None where a list has no text."""
    from pyarrow import compute

    is_list = not is_text(column)
    lists = compute.split_pattern(column, separator) if separator and not is_list else column
    is_split = is_list or separator
    parts = compute.list_flatten(lists) if is_split else column.drop_null()
    is_unknown = column.is_null().to_numpy()
    counts = ~is_unknown if not is_split else compute.list_value_length(lists).fill_null(0).to_numpy()
    if is_list and parts.null_count:
        return None
    codes, texts = coded(parts)
    if is_list:
        has_blank = not all(map(str.strip, texts))
        return (
            None
            if has_blank
            else _Written(texts, codes, np.repeat(np.arange(len(column)), counts), is_unknown)
        )
    # no part of a cell that is split is the whole cell, as the separator is neither blank nor "?"
    spellings = {"?", ""} if is_blank_unknown else {"?"}
    is_nothing = np.array([text.strip() in spellings for text in texts], bool)
    rows = np.repeat(np.arange(len(column)), counts)
    unknown_parts = is_nothing[codes] & (counts[rows] == 1)
    is_unknown[rows[unknown_parts]] = True
    return _Written(texts, codes[~unknown_parts], rows[~unknown_parts], is_unknown)


def _labels_of(table: RawTable, row: int, columns: TableColumns) -> list[str] | None:
    """Split a label cell; None means that the row was not observed."""
    cell = _with_list(table, row, columns.labels)
    if is_missing(cell) or (isinstance(cell, str) and cell.strip() == "?"):
        return None
    if isinstance(cell, str):
        if columns.empty_labels == "unknown" and not cell.strip():
            return None
        names = cell.split(columns.label_separator) if columns.label_separator else [cell]
        return [name.strip() for name in names if name.strip()]
    if isinstance(cell, dict):
        raise table.error(row, columns.labels, "a JSON object", "a list of labels or a string")
    if not isinstance(cell, list):
        return [as_text(cell)]
    for name in cell:
        if is_missing(name) or isinstance(name, (list, dict)) or not str(name).strip():
            raise table.error(row, columns.labels, f"the label {name!r}", "names that are not empty")
    return [str(name).strip() for name in cell]


def _with_list(table: RawTable, row: int, name: str) -> Any:
    """Give a cell, as a list where it is the text of one."""
    cell = table.columns[name][row]
    if not isinstance(cell, str) or not cell.startswith("["):
        return cell
    try:
        found = written_list(cell.strip())
    except ValueError as error:
        raise table.error(row, name, repr(cell[:40]), str(error)) from None
    return cell if found is None else found
