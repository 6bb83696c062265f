"""Features from tables, from all cells at once or from one block of rows at a time.

In blocks a file is read twice, first for words and label names, then for features.  Memory holds the features
and labels of all rows, and the cells of one block.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Unpack

import numpy as np
import scipy.sparse as sp

from labelweave.datasets.csr_parts import joined, refuse_large_mask
from labelweave.datasets.data_file import PathLike
from labelweave.datasets.labeled_data import LabeledData
from labelweave.datasets.table import (
    Known,
    UnknownLabels,
    grouped,
    in_order,
    labeled_frame,
    names_in,
    refuse_missing_numbers,
    warn_of_no_negative,
    with_layout,
)
from labelweave.datasets.table_blocks import columns_of_blocks, completed_blocks, first_block
from labelweave.datasets.table_columns import KINDS, ColumnRoles, TableColumns
from labelweave.datasets.table_files import RawTable, raw_tables
from labelweave.datasets.table_vectorizer import TableVectorizer
from labelweave.foundation.arguments import checked
from labelweave.labels import LabelMatrix
from labelweave.labels.class_columns import joined_columns

OnRows = Callable[[int, int], Any]


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
        Features, dense where all are of vectors and numbers, labels, and the fitted ``vectorizer``.

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
    if block_rows is None:
        table = next(raw_tables(path, no_header=columns.no_header))
    else:
        table = first_block(path, columns, block_rows)
    if label_names is None:
        columns, found = with_layout(table, columns)
        words = found.words(f"{path}: the cells of column {columns.labels!r}")
        if words is not None and not found.is_path:
            warnings.warn(f"{words}; set label_separator to override this.", UserWarning, stacklevel=3)
    if block_rows is None:
        table = grouped(table, columns)
        return table_features(table, columns.resolved(table), vectorizer, known)
    columns = columns_of_blocks(path, columns, block_rows)
    return features_in_blocks(path, columns, vectorizer, known, block_rows)


def _columns(roles: ColumnRoles, vectorizer: TableVectorizer | None) -> TableColumns:
    columns = TableColumns(**roles)
    if vectorizer is None:
        return columns
    given = [kind for kind in (*KINDS, "drop") if kind in roles]
    if given:
        raise ValueError(
            f"{given[0]} cannot be combined with a vectorizer, which defines the columns; leave it out."
        )
    kinds = {kind: getattr(vectorizer, kind) for kind in KINDS}
    known = {**getattr(vectorizer, "decimal_marks_", {}), **(columns.decimal_marks or {})}
    return replace(columns, **kinds, decimal_marks=known)


def table_features(
    table: RawTable, columns: TableColumns, vectorizer: TableVectorizer | None, known: Known = (None, "error")
) -> LabeledData:
    """Convert the columns of a raw table to features; see :func:`read_table`."""
    return _features(lambda: [table], columns, vectorizer, known, lambda number, rows: None)


def features_in_blocks(
    path: PathLike, columns: TableColumns, vectorizer: TableVectorizer | None, known: Known, block_rows: int,
    on_rows: OnRows = lambda number, rows: None,
) -> LabeledData:  # fmt: skip
    """Convert a table to features, one block of rows at a time.

    columns: all feature columns must be named.
    on_rows: called after every block with the number of the pass, from 1, and the rows read in it.
    """
    return _features(lambda: completed_blocks(path, columns, block_rows), columns, vectorizer, known, on_rows)


def _features(
    tables: Callable[[], Iterable[RawTable]], columns: TableColumns, vectorizer: TableVectorizer | None,
    known: Known, on_rows: OnRows,
) -> LabeledData:  # fmt: skip
    if vectorizer is None:
        vectorizer = TableVectorizer(**{kind: getattr(columns, kind) for kind in KINDS})
    label_names, unknown_labels = known
    is_new, finds_names = not vectorizer.is_fitted, label_names is None and isinstance(columns.labels, str)
    found, codings, of_classes = set[str](), set[str](), list[bool]()
    first = replace(columns, labels=None) if finds_names else columns  # report wrong labels before features

    def frames() -> Iterator[Any]:
        for table in tables():
            if finds_names:
                found.update(names_in(table, columns))
            made = labeled_frame(table, first, known, codings)
            refuse_missing_numbers(table, vectorizer)
            of_classes.append(made.Y.class_columns is not None)
            yield made.X
            on_rows(1, table.first_row + len(table))

    if is_new:
        vectorizer.fit_blocks(frames())
    elif finds_names:
        for _ in frames():
            continue
    if finds_names:
        label_names = in_order(found, columns)
    columns = replace(columns, holds_classes=columns.holds_classes or any(of_classes))
    parts: dict[str, list[Any]] = {"X": [], "Y": [], "ids": []}
    for table in tables():
        one = labeled_frame(table, columns, (label_names, unknown_labels), codings)
        refuse_missing_numbers(table, vectorizer)
        parts["X"].append(vectorizer.transform(one.X))
        parts["Y"].append(one.Y)
        parts["ids"].append(one.row_ids)
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
