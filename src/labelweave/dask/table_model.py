"""A classifier of DataFrames in partitions: words are counted, and features computed, where rows are.

Counts of partitions add up to those of a table's vectorizer on all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone

import dask
from labelweave.dask.client import innermost, unfitted
from labelweave.dask.partitions import NO_ROWS
from labelweave.dask.waiting import gathered, returning_refusals
from labelweave.datasets import TableColumns, TableVectorizer
from labelweave.datasets.table_columns import columns_of_frame
from labelweave.datasets.table_vectorizer import refuse_no_scale
from labelweave.datasets.vector_files import DenseBlock
from labelweave.estimators import TableModel
from labelweave.estimators.table_model import frame_of

_ENOUGH = 1000  # rows to infer the kinds of columns from


@dataclass(frozen=True)
class TableCounts:
    """Counts over some rows of a table.

    words, values: for each text column, the number of rows with each word; of each categorical column.
    numbers: of numeric columns their count, mean, and sum of squared deviations.
    vectors: sums of each column of vectors.
    Shapes: numbers (3, n_numeric).
    """

    n_rows: int
    words: list[Counter[str]]
    values: list[set[str]]
    numbers: npt.NDArray[np.float64]
    vectors: list[DenseBlock]

    @classmethod
    def of(cls, vectorizer: TableVectorizer, frame: Any) -> TableCounts:
        """Count in rows for a vectorizer before its fit.

        Raises ValueError if a column is absent, or a number is missing or not numeric.
        """
        rows = vectorizer._table(frame)
        table = vectorizer._numbers(rows)
        is_there = ~np.isnan(table)
        counts = is_there.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name at the end
            means = np.where(is_there, table, 0).sum(axis=0) / np.maximum(counts, 1)
            squares = np.where(is_there, np.square(table - means), 0).sum(axis=0)
        words, values, _ = vectorizer._nothing_seen()
        vectorizer._see(rows, words, values)
        numbers = np.array([counts, means, squares], np.float64).reshape(3, -1)
        return cls(len(rows), words, values, numbers, vectorizer._blocks(rows))

    def __add__(self, other: TableCounts) -> TableCounts:
        (count, mean, squares), (more, its_mean, its_squares) = self.numbers, other.numbers
        total = np.maximum(count + more, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = its_mean - mean
            together = squares + its_squares + np.square(apart) * count * more / total
            numbers = [count + more, mean + apart * more / total, together]
        return TableCounts(
            self.n_rows + other.n_rows,
            [one + two for one, two in zip(self.words, other.words, strict=True)],
            [one | two for one, two in zip(self.values, other.values, strict=True)],
            np.array(numbers),
            [one + two for one, two in zip(self.vectors, other.vectors, strict=True)],
        )

    def fitted(self, vectorizer: TableVectorizer) -> TableVectorizer:
        """Return a vectorizer fitted to the counted rows, up to rounding like a fit to all of them at once.

        Raises ValueError if a text column has no frequent word, or a numeric one no number.
        """
        count, means, squares = self.numbers
        refuse_no_scale(vectorizer.numeric, count, squares)
        scales = np.sqrt(squares / np.maximum(count, 1))
        scales = np.where(scales > 10 * np.finfo(np.float64).eps * np.abs(means), scales, 1.0)
        made: TableVectorizer = clone(vectorizer)
        return made._keep(self.words, self.values, self.n_rows, means, scales, self.vectors)


def fit_frames(
    model: TableModel, client: Client, parts: Sequence[tuple[Any, ...]], fit: Callable[..., int]
) -> int:
    """Fit features to the DataFrames of all partitions, and then the classifier; return the row count.

    fit: fits a model in place to partitions.
    """
    if model.encoder is not None:
        said = "An encoder does not support Dask collections, as its weight is chosen on rows in memory"
        raise ValueError(f"{said}; omit it, or put its vectors into a column.")
    classifier, columns = unfitted(model.classifier), model._columns()
    frames, is_verbose = [part[0] for part in parts], bool(innermost(classifier).verbose)
    if not columns.are_resolved:
        columns = _guessed(client, frames, columns)
    vectorizer = _fitted(client, frames, model._vectorizer(columns), is_verbose=is_verbose)
    featured, kept = dask.delayed(_featured, pure=False), dask.delayed(vectorizer)
    pairs = [featured(kept, *part[:2]) for part in parts]
    weighted = zip(pairs, parts, strict=True)
    n_rows = fit(classifier, [(pair[0], pair[1], part[2], None) for pair, part in weighted])
    model._keep(vectorizer, classifier, replace(columns, decimal_marks=vectorizer.decimal_marks_ or None))
    return n_rows


def _guessed(client: Client, frames: Sequence[Any], columns: TableColumns) -> TableColumns:
    """Infer the kinds of columns from the first partitions with enough rows."""
    first, n_rows = list[Any](), 0
    for frame in frames:
        first.append(frame)
        n_rows += gathered(client, client.compute([dask.delayed(len)(frame)]))[0]
        if n_rows >= _ENOUGH:
            break
    found: TableColumns = gathered(client, client.compute([dask.delayed(_columns)(first, columns)]))[0]
    return found


@returning_refusals
def _columns(frames: Sequence[Any], columns: TableColumns) -> TableColumns:
    import pandas as pd

    tables = [table for table in map(frame_of, frames) if len(table)]
    if not tables:
        raise ValueError(NO_ROWS)
    kept = dict.fromkeys(tables[0].select_dtypes("category"), "category")
    return columns_of_frame(pd.concat(tables).astype(kept), columns)


def _fitted(
    client: Client, frames: Sequence[Any], vectorizer: TableVectorizer, *, is_verbose: bool
) -> TableVectorizer:
    """Fit a vectorizer to all partitions."""
    count, kept = dask.delayed(_counted, pure=False), dask.delayed(vectorizer)
    futures = client.compute([count(kept, frame) for frame in frames])
    found = gathered(client, futures, "partitions counted" * is_verbose, part="Partition")
    counts = [one for one in found if one is not None]
    if not counts:
        raise ValueError(NO_ROWS)
    total: TableCounts = reduce(add, counts)
    return total.fitted(vectorizer)


@returning_refusals
def _counted(vectorizer: TableVectorizer, rows: Any) -> TableCounts | None:
    frame = frame_of(rows)
    return TableCounts.of(vectorizer, frame) if len(frame) else None


def _featured(vectorizer: TableVectorizer, rows: Any, y: Any) -> tuple[Any, Any]:
    """Compute the features of a partition; errors are raised when it is read, with the partition."""
    frame = frame_of(rows)
    try:
        if len(frame):
            return vectorizer.transform(frame), y
    except ValueError as error:
        y = error
    shape = len(frame), len(vectorizer.get_feature_names_out())
    return (np.empty(shape, np.float32) if vectorizer.makes_dense else sp.csr_array(shape)), y
