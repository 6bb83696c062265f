"""Tables as features and labels, from all cells at once or from one block of rows at a time.

In blocks a file is read twice, first for words and label names, then for features.  Memory holds the features
and labels of all rows, and the cells of one block.  Rows of JSON lines may lack some columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import Any, Unpack

import numpy as np
import scipy.sparse as sp

from labelweave.datasets.columns import is_text
from labelweave.datasets.csr_parts import joined, refuse_large_mask
from labelweave.datasets.data_file import PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.raw_table import RawTable
from labelweave.datasets.table_columns import KINDS, ColumnRoles, TableColumns, refuse_absent, resolved_in
from labelweave.datasets.table_files import raw_tables, table_kind
from labelweave.datasets.table_labels import (
    Known,
    UnknownLabels,
    grouped,
    in_order,
    names_in,
    table_labels,
    warn_of_no_negative,
    with_layout,
)
from labelweave.datasets.table_vectorizer import TableVectorizer
from labelweave.foundation.arguments import checked
from labelweave.labels import LabelMatrix
from labelweave.labels.class_columns import joined_columns

Tables = Callable[[], Iterable[RawTable]]
"""Yields the blocks of a table, each time that it is called."""
OnRows = Callable[[int, int], Any]
_ROWS_AT_ONCE = 10_000


@checked
def read_table(
    path: PathLike,
    vectorizer: TableVectorizer | None = None,
    *,
    label_names: Sequence[str] | None = None,
    unknown_labels: UnknownLabels = "error",
    block_rows: int | None = None,
    **roles: Unpack[ColumnRoles],
) -> LabeledData:
    """Read a table and turn its columns into features.

    Name the columns of a training table; for later tables pass its ``vectorizer`` and ``label_names``.

    Parameters
    ----------
    path : path-like
        A ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.parquet`` file, text also as ``.gz``.
    vectorizer : TableVectorizer or None, default=None
        A fitted one transforms; an unfitted one is fitted; None makes one for
        the text, categorical, numeric and vectors columns.
    label_names : sequence of str or None, default=None
        The known labels; by default those of the file, sorted.
    unknown_labels : {"error", "ignore", "add"}, default="error"
        What to do with a label that is not among them: raise an error, ignore it, or add it.
    block_rows : int or None, default=None
        None keeps all cells in memory.  A number reads the file twice, so many rows at a time, and infers the
        kinds of columns, if none is named, from the first block; for JSON lines, where a column may appear
        later, from the block with the most cells of it.
    **roles
        ``labels``, ``label_separator``, ``empty_labels``, ``text``, ``categorical``, ``numeric``,
        ``vectors``, ``drop``, ``id``, ``decimal_marks``, ``no_header`` and ``holds_classes``, as in
        :class:`TableColumns`.

    Returns
    -------
    LabeledData
        Features as of :meth:`TableVectorizer.transform`, labels, and the fitted ``vectorizer``.

    Raises
    ------
    DataFileError
        If the file is malformed, naming line, row and column.
    ValueError
        If ``block_rows`` is not a positive number.
    """
    if block_rows is not None and block_rows < 1:
        raise ValueError(f"block_rows is {block_rows}; it must be at least 1.")
    columns, known = _columns(roles, vectorizer), (label_names, unknown_labels)
    table = first_rows(path, columns, block_rows)
    if label_names is None:
        columns, found = with_layout(table, columns)
        words = found.words(f"{path}: the cells of column {columns.labels!r}")
        if words is not None and not found.is_path:
            warnings.warn(f"{words}; set label_separator to override this.", UserWarning, stacklevel=3)
    columns, tables = resolved_tables(path, table, columns, block_rows)
    return table_features(tables, columns, vectorizer, known)


def _columns(roles: ColumnRoles, vectorizer: TableVectorizer | None) -> TableColumns:
    columns = TableColumns(**roles)
    if vectorizer is None:
        return columns
    given = [kind for kind in (*KINDS, "drop") if kind in roles]
    if given:
        raise ValueError(
            f"{given[0]} cannot be combined with a vectorizer, which defines the columns; leave it out."
        )
    known = {**getattr(vectorizer, "decimal_marks_", {}), **(columns.decimal_marks or {})}
    return replace(columns, **vectorizer.kinds, decimal_marks=known)


def table_features(
    tables: Tables, columns: TableColumns, vectorizer: TableVectorizer | None = None,
    known: Known = (None, "error"), on_rows: OnRows = lambda number, rows: None,
) -> LabeledData:  # fmt: skip
    """Convert the blocks of a table to features; see :func:`read_table`.

    columns: all feature columns must be named.
    on_rows: called after every block with the number of the pass, from 1, and the rows read in it.
    """
    _pandas()
    vectorizer = TableVectorizer(**columns.kinds) if vectorizer is None else vectorizer
    label_names, unknown_labels = known
    is_new, finds_names = not vectorizer.is_fitted, label_names is None and isinstance(columns.labels, str)
    found, codings, of_classes = set[str](), set[str](), list[bool]()
    first = replace(columns, labels=None) if finds_names else columns  # report wrong labels before features

    def blocks() -> Iterator[RawTable]:
        for table in tables():
            table.columns.expect_decimal_marks(columns.decimal_marks)
            yield table

    def seen() -> Iterator[RawTable]:
        for table in blocks():
            if finds_names:
                found.update(names_in(table, columns))
            Y = table_labels(table, first, known, codings)
            of_classes.append(Y.class_columns is not None)
            yield table
            on_rows(1, table.first_row + len(table))

    if is_new:
        vectorizer.fit_blocks(seen())
    elif finds_names:
        for _ in seen():
            continue
    if finds_names:
        label_names = in_order(found, columns)
    columns = replace(columns, holds_classes=columns.holds_classes or any(of_classes))
    parts: dict[str, list[Any]] = {"X": [], "Y": [], "ids": []}
    for table in blocks():
        parts["Y"].append(table_labels(table, columns, (label_names, unknown_labels), codings))
        parts["X"].append(vectorizer.transform(table))
        parts["ids"].append(table.names(columns.id))
        on_rows(2, table.first_row + len(table))
    if is_new:
        vectorizer.decimal_marks_ = table.columns.decimal_marks(vectorizer.numeric)
    ids = None if columns.id is None else np.concatenate(parts["ids"])
    Y = _joined_labels(parts["Y"])
    if known[0] is None:
        warn_of_no_negative(table.path, columns, Y)
    return LabeledData(
        _stacked(parts["X"]), Y, vectorizer.get_feature_names_out(), ids, vectorizer=vectorizer
    )


def _stacked(parts: list[Any]) -> Any:
    """Stack blocks of rows vertically, and release them."""
    if len(parts) == 1:
        return parts[0]
    if not sp.issparse(parts[0]):
        return np.concatenate(parts)
    width, ends = parts[0].shape[1], np.cumsum([0, *(part.nnz for part in parts)], dtype=np.int64)
    starts = [part.indptr[:-1] + end for part, end in zip(parts, ends, strict=False)]
    indptr = np.concatenate([*starts, ends[-1:]])
    indices, data = joined([part.indices for part in parts]), joined([part.data for part in parts])
    width_of_places = indices.dtype if ends[-1] <= np.iinfo(np.int32).max else np.int64
    return sp.csr_array((data, indices, indptr.astype(width_of_places)), shape=(len(indptr) - 1, width))


def _joined_labels(parts: list[LabelMatrix]) -> LabelMatrix:
    if parts[0].class_columns is not None:
        return reduce(joined_columns, parts)
    if any(part.has_missing for part in parts):
        refuse_large_mask(sum(len(part) for part in parts), parts[0].n_labels)
    return LabelMatrix.stacked(parts)


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


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("Tables need pandas and pyarrow: install labelweave[app].") from None
    return pandas


def labeled_frame(
    table: RawTable, columns: TableColumns, known: Known, codings: set[str] | None = None
) -> LabeledData:
    """Return the feature columns of a raw table as a frame, and its labels.

    codings: the values of label columns in earlier blocks, one set for all blocks of a file.
    """
    pd = _pandas()
    table.columns.expect_decimal_marks(columns.decimal_marks)
    texts = (*(columns.text or ()), *(columns.categorical or ()))
    cells = {name: table.texts(name, joins=name in (columns.text or ())) for name in texts}
    cells = {name: cell.to_pandas().array if is_text(cell) else cell for name, cell in cells.items()}
    cells |= {name: table.numbers(name) for name in columns.numeric or ()}
    cells |= {name: list(table.vectors(name)) for name in columns.vectors or ()}
    frame = pd.DataFrame(cells, index=range(table.first_row, table.first_row + len(table)))
    Y = table_labels(table, columns, known, set() if codings is None else codings)
    return LabeledData(frame, Y, np.array(frame.columns, np.str_), table.names(columns.id))


def telling_blocks(
    path: PathLike, block_rows: int = _ROWS_AT_ONCE, no_header: bool = False
) -> Iterator[RawTable]:  # fmt: skip
    """Yield the blocks of rows that determine the columns: all for JSON lines, else the first."""
    tables = raw_tables(path, block_rows, no_header)
    return tables if table_kind(path) == "json" else islice(tables, 1)


def column_names(path: PathLike, no_header: bool = False) -> list[str]:
    """Return the names of the columns of all rows of a table, in order of appearance."""
    tables = telling_blocks(path, no_header=no_header)
    return list(dict.fromkeys(name for table in tables for name in table.columns))


def has_column(path: PathLike, name: str, no_header: bool = False) -> bool:
    return any(name in table.columns for table in telling_blocks(path, no_header=no_header))


def resolved_tables(
    path: PathLike, table: RawTable, columns: TableColumns, block_rows: int | None
) -> tuple[TableColumns, Tables]:
    """Find the kinds of columns, and what yields the rows: all, which are given, or in blocks of the file."""
    if block_rows is None:
        table = grouped(table, columns)
        return columns.resolved(table), lambda: [table]
    columns = columns_of_blocks(path, columns, block_rows)
    return columns, lambda: completed_blocks(path, columns, block_rows)


def first_rows(path: PathLike, columns: TableColumns, block_rows: int | None) -> RawTable:
    """Return all rows, or the first block with the column that lists labels, or else the first one."""
    if block_rows is None:
        return next(raw_tables(path, no_header=columns.no_header))
    tables = telling_blocks(path, block_rows, columns.no_header)
    first = next(tables)
    if not isinstance(columns.labels, str) or columns.labels in first.columns:
        return first
    return next((table for table in tables if columns.labels in table.columns), first)


def columns_of_blocks(path: PathLike, columns: TableColumns, block_rows: int) -> TableColumns:
    """Find the label columns, and the kinds of others from the block with the most cells of each.

    Specified columns are not changed.
    """
    has_patterns = columns.labels is not None and not isinstance(columns.labels, str)
    if columns.are_resolved and not has_patterns:
        return columns
    return resolved_in(columns, path, lambda: telling_blocks(path, block_rows, columns.no_header))


def completed_blocks(path: PathLike, columns: TableColumns, block_rows: int) -> Iterator[RawTable]:
    """Yield the rows in blocks; a named column that is absent from a block has missing cells.

    Raises DataFileError if no row of the table has a named column.
    """
    named, found = {name for _, name in columns.named()}, set[str]()
    for table in raw_tables(path, block_rows, columns.no_header):
        absent = named.difference(table.columns)
        if not absent <= found:
            refuse_absent(columns, column_names(path, columns.no_header), path)
            found |= absent
        yield completed(table, columns)


def completed(table: RawTable, columns: TableColumns) -> RawTable:
    """Add missing cells for the named columns that some rows of a table lack."""
    absent = [name for _, name in columns.named() if name not in table.columns]
    cells = {name: [None] * len(table) for name in absent}
    return replace(table, columns=table.columns.with_columns(cells)) if absent else table
