"""A classifier of the rows of frames in partitions: words are counted, and features made, where rows are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import scipy.sparse as sp
from distributed import Client

import dask
from labelweave.dask.client import innermost, unfitted
from labelweave.dask.partitions import NO_ROWS
from labelweave.dask.waiting import gathered, returning_refusals
from labelweave.datasets import TableColumns, TableVectorizer
from labelweave.datasets.table_columns import kinds_of_frames, with_kinds
from labelweave.datasets.table_counts import TableCounts
from labelweave.estimators import TableModel
from labelweave.estimators.table_model import frame_of

_ENOUGH = 1000  # rows to guess the kinds of columns from


def fit_frames(
    model: TableModel, client: Client, parts: Sequence[tuple[Any, ...]], fit: Callable[..., int]
) -> int:
    """Learn features from the frames of all partitions, and fit the classifier to them; count their rows.

    fit: fits a model in place to partitions.
    """
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
    """Guess the kinds of columns from the first partitions that have rows enough."""
    first: list[Any] = []
    n_rows = 0
    for frame in frames:
        first.append(frame)
        n_rows += gathered(client, client.compute([dask.delayed(len)(frame)]))[0]
        if n_rows >= _ENOUGH:
            break
    kinds = gathered(client, client.compute([dask.delayed(_kinds)(first, columns)]))[0]
    return with_kinds(columns, kinds, "X")


@returning_refusals
def _kinds(frames: Sequence[Any], columns: TableColumns) -> dict[str, str]:
    tables = [table for table in map(frame_of, frames) if len(table)]
    if not tables:
        raise ValueError(NO_ROWS)
    return kinds_of_frames(tables, columns)


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


def _featured(vectorizer: TableVectorizer, rows: Any, y: Any) -> tuple[sp.csr_array, Any]:
    """Make the features of a partition; who reads it says what is wrong, with the partition."""
    frame = frame_of(rows)
    try:
        if len(frame):
            return vectorizer.transform(frame), y
    except ValueError as error:
        y = error
    return sp.csr_array((len(frame), len(vectorizer.get_feature_names_out()))), y
