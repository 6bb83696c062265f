"""Data files as partitions, read by workers, which all need access under the same names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from glob import glob, has_magic
from operator import add
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

import dask
from labelweave.dask.client import connected
from labelweave.dask.rows import free_labels
from labelweave.dask.table_model import TableCounts
from labelweave.dask.waiting import gathered, returning_refusals
from labelweave.datasets import TableColumns, TableVectorizer, detect_format, read_any
from labelweave.datasets.any_file import NUMBERED, refuse_unknown_options
from labelweave.datasets.data_file import DataFileError
from labelweave.datasets.raw_table import RawTable
from labelweave.datasets.table_files import parquet_part, parquet_parts, raw_tables, table_kind
from labelweave.datasets.table_labels import in_order, table_labels
from labelweave.datasets.table_reading import table_features
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import classes_of_labels

WITH_NAMES = "mulan", "hierarchical_arff"
"""Formats with feature names."""
_SHARE = 1 / 32  # of the memory budget, for a part of a Parquet file before featurization


@dataclass(frozen=True)
class FilePart:
    """A file, or row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...] | None = None

    def table(self) -> RawTable:
        return next(raw_tables(self.path)) if self.groups is None else parquet_part(self.path, self.groups)


def files_of(given: Sequence[str]) -> list[str]:
    """List the files of folders, patterns and file names, sorted within a folder or pattern.

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
            expected = "data files in a folder, or a pattern that matches files"
            raise DataFileError(name, None, "no files", expected)
        found += inside
    return found


def parts_of(paths: Sequence[str], budget: float) -> list[FilePart]:
    """Split files into partitions: Parquet files by row groups, others one per file.

    budget: megabytes of rows per worker.
    """
    parts: list[FilePart] = []
    for path in paths:
        is_parquet = table_kind(path) == "parquet"
        groups = parquet_parts(path, _SHARE * budget) if is_parquet else [None]
        parts += [FilePart(path, group) for group in groups]
    if not parts:
        raise DataFileError(paths[0], None, "no rows", "at least one row")
    return parts


@checked
def read_files(
    data: str | PathLike[str] | Sequence[str | PathLike[str]], format: str = "auto", **options: Any
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Read data files on the workers, one partition per file, when a fit or prediction needs the rows.

    Svmlight files and those of the Extreme Classification Repository are scanned first, to find all labels,
    unless ``n_labels``, ``label_names`` or ``all_labels`` define them.  Svmlight files
    count features from zero if one of them has a feature 0, unless ``zero_based`` is set.

    Parameters
    ----------
    data : path-like or sequence of path-like
        Files, folders and patterns such as ``"train/*.txt"``, accessible to all workers under these names.
    format : {"auto", "mulan", "hierarchical_arff", "xmc", "svmlight"}, default="auto"
        Their format; ``"auto"`` detects it from the first file.
    **options
        Options of the reader of that format; see :func:`labelweave.datasets.read_any`.

    Returns
    -------
    X : list of Delayed
        The features of each file.
    y : list of Delayed
        Their labels.

    Raises
    ------
    DataFileError
        If there are no files, or the first one has no known format; a fit raises other errors.
    ValueError
        If the format or an option is unknown, or the files are tables, which Dask reads itself.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from distributed import Client
    >>> from labelweave import MaxMarginClassifier, datasets
    >>> from labelweave.dask import read_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> for seed in range(2):
    ...     rows = datasets.make_text_like(100, 150, 6, random_state=seed)
    ...     datasets.write_xmc(rows, folder / f"part-{seed}.txt")
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     X, y = read_files(folder)
    ...     model = MaxMarginClassifier(C=0.1).fit(X, y)
    >>> len(X), model.n_features_in_
    (2, 150)
    """
    given = [data] if isinstance(data, str | PathLike) else data
    paths = files_of([fspath(path) for path in given])
    if not paths:
        raise ValueError("data is an empty list; pass files, folders or patterns.")
    chosen = detect_format(paths[0]) if format == "auto" else format
    if chosen == "table":
        raise ValueError(
            f"{paths[0]} is a table; read it with dask.dataframe.read_parquet or read_csv for TableModel."
        )
    refuse_unknown_options(chosen, options)
    cluster, parts = connected(), [FilePart(path) for path in paths]
    options = counted_alike(cluster, parts, chosen, options)
    names = names_in(cluster, parts[0], chosen, options)[1] if chosen in WITH_NAMES else None
    pairs = matrix_pairs(cluster, parts, chosen, options, names)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


@dataclass(frozen=True)
class TablePlan:
    """How the parts of a table are read: columns, feature extraction, and labels."""

    columns: TableColumns
    vectorizer: TableVectorizer
    label_names: list[str]


def planned(
    client: Client, parts: Sequence[FilePart], columns: TableColumns, vectorizer: TableVectorizer, *,
    is_verbose: bool = False,
) -> TablePlan:  # fmt: skip
    """Scan all parts of a table for its labels and features.

    columns: with names for all feature columns.
    Raises DataFileError or ValueError if a part does not match them.
    """
    looks = client.map(_looked_at, parts, columns=columns, vectorizer=vectorizer, pure=False)
    found = gathered(client, looks, "partitions scanned" if is_verbose else "")
    marks = _common_marks(parts, [one[2] for one in found])
    counts, names = reduce(add, [one[0] for one in found]), [one[1] for one in found]
    is_listed = isinstance(columns.labels, str)
    labels = in_order(set().union(*names), columns) if is_listed else [str(name) for name in names[0]]
    fitted = counts.fitted(vectorizer)
    fitted.decimal_marks_ = marks
    return TablePlan(replace(columns, decimal_marks=marks), fitted, labels)


def _common_marks(parts: Sequence[FilePart], found: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return the decimal marks of all parts; raise if a part uses points differently."""
    marks: dict[str, str] = {}
    for part, own in zip(parts, found, strict=True):
        other = next((name for name, mark in own.items() if marks.setdefault(name, mark) != mark), None)
        if other is not None:
            what = f"{own[other]!r} as the decimal mark in column {other!r}"
            expected = f"{marks[other]!r}, as in the files before it"
            raise DataFileError(part.path, None, what, expected)
    return marks


@returning_refusals
def _looked_at(
    part: FilePart, columns: TableColumns, vectorizer: TableVectorizer
) -> tuple[TableCounts, list[str], dict[str, str]]:
    table = part.table()
    table.columns.expect_decimal_marks(columns.decimal_marks)
    Y = table_labels(table, columns.resolved(table), (None, "error"), set())
    names = [] if free_labels(Y).names is None else Y.words
    return TableCounts.of(vectorizer, table), names, table.columns.decimal_marks(vectorizer.numeric)


def table_pairs(client: Client, parts: Sequence[FilePart], plan: TablePlan) -> list[Any]:
    """Return features and labels of every part of a table, as delayed pairs."""
    return _pairs(client, _table_pair, parts, dask.delayed(plan))


def _pairs(client: Client, read: Any, parts: Sequence[Any], *given: Any) -> list[Any]:
    """Let each worker read neighbors, which are then joined."""
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
    tables = [part.table()]
    data = table_features(lambda: tables, plan.columns, plan.vectorizer, (plan.label_names, "error"))
    return data.X, data.Y


def matrix_pairs(
    client: Client, parts: Sequence[FilePart], format: str, options: dict[str, Any], names: Array | None
) -> list[Any]:
    """Return features and labels of files of other formats, as delayed pairs.

    names: the names of the features, if the format has any.
    """
    return _pairs(client, _matrix_pair, [part.path for part in parts], format, options, names)


def counted_alike(
    client: Client, parts: Sequence[FilePart], format: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Make options that read numbered labels consistently in all files.

    Svmlight files count features from zero if one of them has a feature 0.
    """
    has_labels = bool({"n_labels", "label_names", "all_labels"} & options.keys())
    counts_features = format == "svmlight" and options.get("zero_based", "auto") == "auto"
    if format not in NUMBERED or (has_labels and not counts_features):
        return options
    looks = client.map(_numbers_in, [part.path for part in parts], format=format, options=options, pure=False)
    found = gathered(client, looks)
    alike: dict[str, Any] = {"zero_based": 0 in [first for first, _ in found]} if counts_features else {}
    if not has_labels:
        names = set().union(*(words for _, words in found))
        alike["label_names"] = sorted(names, key=int)
    return options | alike


@returning_refusals
def _numbers_in(path: str, format: str, options: dict[str, Any]) -> tuple[int | None, list[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # other files may decide
        try:
            data = read_any(path, format, **options)
        except DataFileError:  # raised again when the rows are read
            if format == "svmlight":
                raise
            return None, []
    return data.first_feature, data.Y.words


def with_classes(pairs: Sequence[Any], *, keeps_unknown: bool) -> list[Any]:
    """Convert labels to classes, of which each row has at most one.

    keeps_unknown: whether to keep rows without a class.
    """
    made = dask.delayed(_with_classes, pure=False)
    return [made(pair, keeps_unknown) for pair in pairs]


def _with_classes(pair: tuple[Any, LabelMatrix | ValueError], keeps_unknown: bool) -> tuple[Any, Any]:
    X, Y = pair
    if isinstance(Y, ValueError):  # an error of the file
        return pair
    try:
        classes = classes_of_labels(Y, Y.words, None)
    except ValueError as error:  # raised again when the rows are read, with the partition
        return X, error
    if keeps_unknown:
        return X, classes
    known = np.flatnonzero(classes != None)  # noqa: E711
    return X[known], classes[known]


def names_in(
    client: Client, part: FilePart, format: str, options: dict[str, Any]
) -> tuple[list[str], Array | None]:
    """Return the label names of a file of another format, or numbers, and its feature names."""
    asked = client.submit(_names_in, part.path, format, options, pure=False)
    found: tuple[list[str], Array | None] = gathered(client, [asked])[0]
    return found


@returning_refusals
def _names_in(path: str, format: str, options: dict[str, Any]) -> tuple[list[str], Array | None]:
    data = read_any(path, format, **options)
    return list(data.Y.words), None if data.feature_names is None else np.asarray(data.feature_names, np.str_)


def _matrix_pair(path: str, format: str, options: dict[str, Any], names: Array | None) -> tuple[Any, Any]:
    try:
        data = read_any(path, format, **options)
    except ValueError as error:  # the message names the file
        return np.empty((1, 0)), error
    own = data.feature_names
    if data.weights is not None:
        said = f"{path} has row weights, which workers do not read; fit it in memory, or remove them."
        return data.X, ValueError(said)
    if names is None or own is None or np.array_equal(np.asarray(own, np.str_), names):
        return data.X, data.Y
    # raised again when the rows are read, with the partition
    return data.X, ValueError(f"{path} has other features than the first file, or in another order.")
