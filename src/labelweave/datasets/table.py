"""Tables with text, categories, numbers and labels: CSV, TSV, JSON lines, Parquet.

A label cell that is missing (null in JSON and Parquet, ``?`` in any file) leaves the row's labels unobserved.
One that is empty (an empty list or string, an empty CSV cell) says that the row has no positive label, the
last two only unless ``empty_labels="unknown"``.  In columns of 0 and 1 it is one unobserved label.  A list
may stand in a cell as text: ``['red', 'green']``, as pandas writes lists to CSV files.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.columns import is_missing, is_text, number_or_truth
from labelweave.datasets.csr_parts import ones_from_counts, targets_of_rows
from labelweave.datasets.data_file import DataFileError, PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.table_blocks import columns_of_blocks, completed_blocks
from labelweave.datasets.table_columns import TableColumns, refuse_nested
from labelweave.datasets.table_files import RawTable, raw_tables
from labelweave.foundation.arguments import ParameterMessage, checked
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import as_text

UnknownLabels = Literal["error", "ignore", "add"]
Known = tuple[Sequence[str] | None, UnknownLabels]  # the labels there are, and what to do with others
_NAME = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?"""
_LIST = re.compile(rf"\[\s*(?:(?:{_NAME})\s*(?:,\s*(?:{_NAME})\s*)*)?\]", re.ASCII | re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BEGIN = re.compile(r"""\[\s*['"]""", re.ASCII)


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
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("Tables need pandas and pyarrow: install labelweave[app].") from None
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
        return column.fill_null("").to_pandas().array
    refuse_nested(table, name, "a string")
    return ["" if is_missing(cell) else as_text(cell) for cell in table.columns[name]]


def numbers_of(table: RawTable, name: str) -> npt.NDArray[np.float64]:
    return table.columns.all_numbers(
        name, lambda row, found, expected: table.error(row, name, found, expected)
    )


def _row_ids(table: RawTable, name: str | None) -> npt.NDArray[Any] | None:
    if name is None:
        return None
    cells = table.columns[name]
    for row, cell in enumerate(cells):
        if is_missing(cell) or cell == "":
            raise table.error(row, name, "nothing", "the name of the row")
    refuse_nested(table, name, "the name of the row, text or a number")
    names = np.empty(len(cells), object)  # none is rounded to the type, or as wide as the longest, of another
    names[:] = [cell if isinstance(cell, (str, int, float)) else str(cell) for cell in cells]
    return names


def table_labels(table: RawTable, columns: TableColumns, known: Known, codings: set[str]) -> LabelMatrix:
    """Read the labels of some rows; where their names are not known they are those of the rows, sorted."""
    label_names, unknown_labels = known
    if unknown_labels not in ("error", "ignore", "add"):
        raise ValueError(f"unknown_labels is {unknown_labels!r}; it is 'error', 'ignore' or 'add'.")
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
    chosen += unknown if unknown_labels == "add" else []
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
    return sorted(_read_labels(table, columns).names)


def _listed_labels(table: RawTable, columns: TableColumns, known: Known) -> LabelMatrix:
    label_names, unknown_labels = known
    read = _read_labels(table, columns)
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
        expected = ParameterMessage(
            f"a label the model was trained with{close}; `unknown_labels='ignore'` passes over others"
        )
        found = f"the unknown label {name[:40]!r}"
        raise table.error(int(rows[place]), columns.labels, found, expected)
    counts = np.bincount(rows[is_named], minlength=len(table))
    listed = ones_from_counts(labels[is_named], counts, len(names))
    listed.sum_duplicates()
    return targets_of_rows(listed.indices, np.diff(listed.indptr), read.is_unknown, names)


class _ReadLabels(NamedTuple):
    """The labels of all cells: distinct names, which of them stand in all rows, how many a row has."""

    names: list[str]
    codes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    is_unknown: npt.NDArray[np.bool_]


def _read_labels(table: RawTable, columns: TableColumns) -> _ReadLabels:
    places, known, rows = dict[str, int](), dict[str, list[int] | None](), list[list[int] | None]()
    for row, cell in enumerate(table.columns[columns.labels]):
        is_text = isinstance(cell, str)  # each text is split once
        if is_text and cell in known:
            rows.append(known[cell])
            continue
        names = _labels_of(table, row, columns, cell)
        rows.append(None if names is None else [places.setdefault(name, len(places)) for name in names])
        if is_text:
            known[cell] = rows[-1]
    codes = np.fromiter(chain.from_iterable(filter(None, rows)), np.int64)
    counts = np.array([len(row or ()) for row in rows], np.int64)
    return _ReadLabels([*places], codes, counts, np.array([row is None for row in rows], bool))


def _labels_of(table: RawTable, row: int, columns: TableColumns, cell: Any) -> list[str] | None:
    if isinstance(cell, str) and cell.startswith("["):
        try:
            listed = written_list(cell.strip())
        except ValueError as error:
            raise table.error(row, columns.labels, repr(cell[:40]), str(error)) from None
        cell = cell if listed is None else listed
    if isinstance(cell, str):
        names = cell.split(columns.label_separator) if columns.label_separator else [cell]
        names = [text for name in names if (text := name.strip())]
        is_unknown = not cell.strip() and columns.empty_labels == "unknown"
        return None if is_unknown or cell.strip() == "?" else names
    if is_missing(cell):
        return None
    if isinstance(cell, dict):
        raise table.error(row, columns.labels, "a JSON object", "a list of labels or a string")
    if not isinstance(cell, list):
        return [as_text(cell)]
    names = [name.strip() if isinstance(name, str) else _as_name(name) for name in cell]
    if "" in names:
        found = f"the label {cell[names.index('')]!r}"
        raise table.error(row, columns.labels, found, "names that are not empty")
    return names


def _as_name(name: Any) -> str:
    """Write a label in a list as text, empty where it is none."""
    return "" if is_missing(name) or isinstance(name, (list, dict)) else str(name).strip()


def written_list(text: str) -> list[str] | None:
    """Read a list of names in quotes and of numbers, of Python or JSON; None where a text is no such list.

    Raises ValueError if it begins like one and cannot be read, as NumPy's ``['red' 'green']`` does.
    """
    if not _LIST.fullmatch(text):
        if _BEGIN.match(text) and text.endswith("]"):
            raise ValueError("a list of names in quotes with commas between them")
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = _python_list(text)
    names = [*map(as_text, found)]
    if any(map(_SURROGATE.search, names)):
        raise ValueError("names without half a pair of surrogates, which is no character")
    return names


def _python_list(text: str) -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of backslashes that escape nothing
            return list(ast.literal_eval(text))
    except SyntaxError:
        raise ValueError("names in quotes without broken escapes") from None
