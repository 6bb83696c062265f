"""Data files as partitions: read by workers, which must all see them, under the same names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from glob import glob, has_magic
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

import dask
from labelweave.array_types import Array
from labelweave.dask.waiting import gathered
from labelweave.datasets import TableColumns, TableVectorizer, read_any
from labelweave.datasets.data_file import DataFileError
from labelweave.datasets.table import labeled_frame, refuse_missing_numbers, table_features
from labelweave.datasets.table_counts import TableCounts
from labelweave.datasets.table_files import RawTable, parquet_part, parquet_parts, raw_tables, table_kind
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import classes_of_labels

_SHARE = 1 / 32  # of the memory budget that a part of a Parquet file may take, before features are made


@dataclass(frozen=True)
class FilePart:
    """A file, or row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...] | None = None

    def table(self) -> RawTable:
        """Read it, a table."""
        return next(raw_tables(self.path)) if self.groups is None else parquet_part(self.path, self.groups)


def files_of(given: Sequence[str]) -> list[str]:
    """Name the files of folders, patterns and files, those of a folder and of a pattern by their names.

    Raises DataFileError if there are none.
    """
    found: list[str] = []
    for name in given:
        path = Path(name)
        if path.is_dir():
            inside = sorted(
                str(file) for file in path.iterdir() if file.is_file() and file.name[0] not in "._"
            )
        else:
            inside = sorted(glob(name)) if has_magic(name) and not path.exists() else [name]
        if not inside:
            raise DataFileError(
                name, None, "no files", "data files in a folder, or a pattern that some match"
            )
        found += inside
    return found


def parts_of(paths: Sequence[str], budget: float) -> list[FilePart]:
    """Divide files into partitions: Parquet files by their row groups, others are one each.

    budget: megabytes that a worker may take for rows.
    """
    parts: list[FilePart] = []
    for path in paths:
        is_parquet = table_kind(path) == "parquet"
        groups = parquet_parts(path, _SHARE * budget) if is_parquet else [None]
        parts += [FilePart(path, group) for group in groups]
    if not parts:
        raise DataFileError(paths[0], None, "no rows", "at least one row")
    return parts


@dataclass(frozen=True)
class TablePlan:
    """How the parts of a table are read: columns, what makes features, and the labels there are."""

    columns: TableColumns
    vectorizer: TableVectorizer
    label_names: list[str]


def planned(
    client: Client, parts: Sequence[FilePart], columns: TableColumns, vectorizer: TableVectorizer, *,
    is_verbose: bool = False,
) -> TablePlan:  # fmt: skip
    """Look at all parts of a table, to learn its labels and what makes features.

    columns: with all feature columns named.
    Raises DataFileError or ValueError if a part does not go with them.
    """
    looks = client.map(_looked_at, parts, columns=columns, vectorizer=vectorizer, pure=False)
    found = gathered(client, looks, "partitions looked at" if is_verbose else "")
    for one in found:
        if isinstance(one, ValueError):
            raise one
    counts, names = reduce(add, [one[0] for one in found]), [one[1] for one in found]
    is_listed = isinstance(columns.labels, str)
    labels = sorted(set().union(*names)) if is_listed else [str(name) for name in names[0]]
    return TablePlan(columns, counts.fitted(vectorizer), labels)


def _looked_at(
    part: FilePart, columns: TableColumns, vectorizer: TableVectorizer
) -> tuple[TableCounts, list[str]] | ValueError:
    try:
        table = part.table()
        data = labeled_frame(table, columns.resolved(table), (None, "error"))
        if vectorizer.missing_numeric == "error":
            refuse_missing_numbers(table, data.X, vectorizer.numeric)
        names = [] if data.Y.names is None else [str(name) for name in data.Y.names]
        return TableCounts.of(vectorizer, data.X), names
    except ValueError as error:  # the file is named in it
        return error


def table_pairs(client: Client, parts: Sequence[FilePart], plan: TablePlan) -> list[Any]:
    """Give features and labels of every part of a table, as delayed pairs."""
    return _pairs(client, _table_pair, parts, dask.delayed(plan))


def _pairs(client: Client, read: Any, parts: Sequence[Any], *given: Any) -> list[Any]:
    """Let each worker read neighbours, which are brought together."""
    made = dask.delayed(read, pure=False)
    pairs: list[Any] = []
    workers = list(client.nthreads())
    stretches = np.array_split(np.arange(len(parts)), max(1, len(workers)))
    for number, own in enumerate(stretches):
        home = {"workers": workers[number : number + 1], "allow_other_workers": True} if workers else {}
        with dask.annotate(**home):
            pairs += [made(parts[part], *given) for part in own]
    return pairs


def _table_pair(part: FilePart, plan: TablePlan) -> tuple[Any, Any]:
    known = plan.label_names, "error"
    data = table_features(part.table(), plan.columns, plan.vectorizer, known)  # type: ignore[arg-type]
    return data.X, data.Y


def matrix_pairs(
    client: Client, parts: Sequence[FilePart], format: str, options: dict[str, Any], names: Array | None
) -> list[Any]:
    """Give features and labels of files of other formats, as delayed pairs.

    names: of the features of all of them, where the format has any.
    """
    return _pairs(client, _matrix_pair, [part.path for part in parts], format, options, names)


def with_classes(pairs: Sequence[Any], *, keeps_unknown: bool) -> list[Any]:
    """Take labels for the classes of rows, of which each has one or none.

    keeps_unknown: whether rows of no class are kept.
    """
    made = dask.delayed(_with_classes, pure=False)
    return [made(pair, keeps_unknown) for pair in pairs]


def _with_classes(pair: tuple[Any, LabelMatrix], keeps_unknown: bool) -> tuple[Any, Any]:
    X, Y = pair
    try:
        classes = classes_of_labels(Y, Y.words, None)
    except ValueError as error:  # who reads the rows says so, with the partition
        return X, error
    if keeps_unknown:
        return X, classes
    known = np.flatnonzero(classes != None)  # noqa: E711
    return X[known], classes[known]


def names_in(
    client: Client, part: FilePart, format: str, options: dict[str, Any]
) -> tuple[list[str], Array | None]:
    """Name the labels of a file of another format, by numbers where there are no names, and its features."""
    (found,) = gathered(client, [client.submit(_names_in, part.path, format, options, pure=False)])
    if isinstance(found, ValueError):
        raise found
    labels, features = found
    return labels, features


def _names_in(path: str, format: str, options: dict[str, Any]) -> tuple[list[str], Array | None] | ValueError:
    try:
        data = read_any(path, format, **options)
    except ValueError as error:  # the file is named in it
        return error
    return list(data.Y.words), None if data.feature_names is None else np.asarray(data.feature_names, np.str_)


def _matrix_pair(path: str, format: str, options: dict[str, Any], names: Array | None) -> tuple[Any, Any]:
    data = read_any(path, format, **options)
    own = data.feature_names
    if names is None or own is None or np.array_equal(np.asarray(own, np.str_), names):
        return data.X, data.Y
    # who reads the rows says so, with the partition
    return data.X, ValueError(f"{path} has other features than the first file, or in another order.")
