"""Open a model, and read rows in the form it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

import labelweave
from labelweave.cli.data_options import Options, given_options, table_columns
from labelweave.cli.messages import with_flags
from labelweave.cli.training_rows import with_last_labels
from labelweave.datasets import (
    DataFileError,
    LabeledData,
    TableColumns,
    detect_format,
    iterate_table,
    read_any,
    read_table_columns,
)
from labelweave.datasets.table import UnknownLabels
from labelweave.datasets.table_files import raw_tables
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.layers import innermost
from labelweave.estimators import TableModel
from labelweave.estimators.base import LabelClassifier

__all__ = [
    "Classifier",
    "Model",
    "RowBlock",
    "classifier_of",
    "open_model",
    "read_labeled_rows",
    "row_blocks",
    "scorer_of",
    "truth_of",
    "unknown_labels",
]

Classifier = LabelClassifier | DecisionClassifier
Model = TableModel | Classifier

_SCORES_AT_ONCE = 4_000_000
_MOST_ROWS_AT_ONCE = 10_000


def open_model(path: str) -> Model:
    """Load a model file.

    Raises ValueError if the file holds something else.
    """
    model = labelweave.load(path)
    if not isinstance(model, Model):
        raise ValueError(f"{path} holds a {type(model).__name__}; give the file of a classifier.")
    return model


def classifier_of(model: Model) -> Classifier:
    """Give the classifier in a model, which decides."""
    return model.classifier if isinstance(model, TableModel) else model


def scorer_of(model: Model) -> LabelClassifier:
    """Give the classifier in a model that scores, inside those that decide."""
    found: LabelClassifier = innermost(classifier_of(model))
    return found


@dataclass(frozen=True)
class RowBlock:
    """Some rows, and what they are called.

    X: the rows, in the form the model takes.
    """

    X: Any
    ids: list[Any]


def row_blocks(model: Model, path: str, options: Options) -> Iterator[RowBlock]:
    """Read rows to predict, a block at a time.

    path: the data file; a table is read in chunks, another file as a whole.
    options: the values of the command's flags.
    Returns rows; those without names are numbered from zero.
    """
    size = max(1, min(_MOST_ROWS_AT_ONCE, _SCORES_AT_ONCE // len(model.label_names_)))
    for data, first in _chunks(model, path, options, size):
        for start in range(0, len(data), size):
            rows = slice(start, min(start + size, len(data)))
            yield RowBlock(data.X[rows], _ids(data, rows, first))


def _chunks(model: Model, path: str, options: Options, size: int) -> Iterator[tuple[LabeledData, int]]:
    first = 0
    if not isinstance(model, TableModel):
        yield _read_matrix(model, path, options), 0
        return
    _require_table(path, options)
    columns = replace(_columns(model, options), labels=None, id=options.get("id") or _known_id(model, path))
    for data in iterate_table(path, columns, size):
        yield data, first
        first += len(data)


def _ids(data: LabeledData, rows: slice, first: int) -> list[Any]:
    if data.row_ids is None:
        return list(range(first + rows.start, first + rows.stop))
    return list(data.row_ids[rows].tolist())


def _known_id(model: TableModel, path: str) -> str | None:
    """Give the column that named the rows of the training table, if this table has it."""
    name = model.columns.id
    return name if name is not None and name in next(raw_tables(path, 1)).columns else None


def _columns(model: TableModel, options: Options) -> TableColumns:
    """Take what the model knows of its columns, unless flags say else."""
    given = table_columns(options)
    return replace(
        model.columns,
        drop=None,
        labels=given.labels or model.columns.labels,
        label_separator=given.label_separator or model.columns.label_separator,
        id=given.id,
    )


def _require_table(path: str, options: Options) -> None:
    format = _format(path, options)
    if format != "table":
        raise ValueError(f"The model was fitted to a table and {path} is read as {format}; give a table.")


def _format(path: str, options: Options) -> str:
    return detect_format(path) if options["format"] == "auto" else str(options["format"])


def _read_matrix(model: Classifier, path: str, options: Options) -> LabeledData:
    format, keywords = _format(path, options), given_options(options)
    if format == "table":
        raise ValueError(f"{path} is a table, but the model was not fitted to one; fit it to a table first.")
    if format == "svmlight":  # such a file does not say how wide it is
        keywords.setdefault("n_features", model.n_features_in_)
    data = read_any(path, format, **keywords)
    _require_same_features(model, data, path)
    if format != "svmlight":
        return data
    return replace(data, Y=with_last_labels(data.Y, len(model.label_names_)))


def _require_same_features(model: Classifier, data: LabeledData, path: str) -> None:
    if data.X.shape[1] != model.n_features_in_:
        wanted = f"the {model.n_features_in_} of the model"
        raise DataFileError(path, None, f"{data.X.shape[1]} features", wanted)
    expected = getattr(model, "feature_names_in_", None)
    if expected is None or data.feature_names is None:
        return
    different = np.flatnonzero(np.asarray(expected, str) != np.asarray(data.feature_names, str))
    if different.size:
        place = int(different[0])
        found = f"the feature {str(data.feature_names[place])!r} at place {place}"
        raise DataFileError(path, None, found, f"{str(expected[place])!r}, as in the training data")


def read_labeled_rows(model: Model, path: str, options: Options) -> LabeledData:
    """Read rows with their labels, for a comparison with the model.

    options: the values of the command's flags.
    Returns the rows; X is what the model takes.
    """
    if not isinstance(model, TableModel):
        return _read_matrix(model, path, options)
    _require_table(path, options)
    columns = _columns(model, options)
    if columns.labels is None:
        raise click.UsageError("Name the column of the labels with --labels or --label-column.")
    if classifier_of(model)._form.kind != "labels":  # classes may be inner nodes, which are no labels
        return read_table_columns(path, columns)
    names, unknown = [str(name) for name in model.label_names_], unknown_labels(options)
    try:
        return read_table_columns(path, columns, label_names=names, unknown_labels=unknown)
    except DataFileError as error:
        raise DataFileError(error.path, error.line, error.found, with_flags(error.expected)) from None


def unknown_labels(options: Options) -> UnknownLabels:
    """Say what to do with labels that the model does not know.

    options: the values of the command's flags.
    Returns in the words of the library.
    """
    return "ignore" if options["ignore_unknown_labels"] else "error"


def truth_of(model: Model, rows: LabeledData) -> Any:
    """Give what the model's predictions are compared with.

    Returns (n, L): the labels; or the classes where the data hold them in a taxonomy and the model has one a
        row.
    """
    has_classes = classifier_of(model)._form.kind != "labels"
    return rows.classes if has_classes and rows.parents is not None else rows.Y
