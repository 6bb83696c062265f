"""Open a model, read rows in the form it takes, and ask it for scores, probabilities and classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import click
import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

import labelweave
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import note
from labelweave.app.cli.pipeline_rows import PipelineColumns, as_taken, pipeline_in, takes_table
from labelweave.datasets import (
    DataFileError,
    LabeledData,
    TableColumns,
    iterate_table,
    read_any,
    read_table_columns,
)
from labelweave.datasets.arff_header import read_header
from labelweave.datasets.data_file import numbered_lines
from labelweave.datasets.table_blocks import column_names, has_column
from labelweave.decisions import layers
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_text import with_unobserved
from labelweave.decisions.layers import taxonomy_of
from labelweave.estimators import TableModel
from labelweave.estimators.base import LabelClassifier
from labelweave.labels import LabelMatrix

Classifier = LabelClassifier | DecisionClassifier
Model: TypeAlias = Any
"""A TableModel, a classifier, or a pipeline of scikit-learn that ends in one."""

_SCORES_AT_ONCE = 4_000_000
_MOST_ROWS_AT_ONCE = 10_000
_MOST_NAMED = 10  # labels that are passed over


def open_model(path: str, key: bytes | None) -> Model:
    """Load a model file, signed with the key if one is given; ValueError if it holds something else."""
    model = labelweave.load(path, key=key)
    if not isinstance(model[-1] if isinstance(model, Pipeline) else model, TableModel | Classifier):
        raise ValueError(f"{path} holds a {type(model).__name__}; give the file of a classifier.")
    return model


def classifier_of(model: Model) -> Classifier:
    """Give the classifier in a model, which decides."""
    last = model[-1] if isinstance(model, Pipeline) else model
    found: Classifier = last.classifier_ if isinstance(last, TableModel) else last
    return found


def scorer_of(model: Model) -> LabelClassifier:
    """Give the classifier in a model that scores, inside those that decide."""
    found = layers.innermost(classifier_of(model))
    scorer: LabelClassifier = layers.innermost(found[-1]) if isinstance(found, Pipeline) else found
    return scorer


def names_of(model: Model) -> list[str]:
    """Name the labels or classes of a model."""
    return [str(name) for name in classifier_of(model).label_names_]


@dataclass(frozen=True)
class RowBlock:
    """Some rows, in the form the classifier takes, and what they are called."""

    X: Any
    ids: list[Any]


def row_blocks(model: Model, path: str, source: DataFlags) -> Iterator[RowBlock]:
    """Read rows to predict, a table in chunks; those without names are numbered from zero."""
    size = max(1, min(_MOST_ROWS_AT_ONCE, _SCORES_AT_ONCE // len(names_of(model))))
    first = 0
    for data in _chunks(model, path, source, size):
        ids = range(first, first + len(data)) if data.row_ids is None else data.row_ids.tolist()
        first += len(data)
        for start in range(0, len(data), size):
            rows = slice(start, start + size)
            yield RowBlock(features_of(model, data.X[rows]), list(ids[rows]))


def _chunks(model: Model, path: str, source: DataFlags, size: int) -> Iterable[LabeledData]:
    piped = _piped_columns(model, path, source)
    if piped is not None:
        chunks = iterate_table(path, replace(piped.roles, labels=None), size)
        return (replace(chunk, X=piped.rows(chunk.X)) for chunk in chunks)
    if not isinstance(model, TableModel):
        return [_read_matrix(model, path, source, has_labels=False)]
    columns = _with_known_ids(model, _columns(model, path, source), path)
    return iterate_table(path, replace(columns, labels=None), size)


def _piped_columns(model: Model, path: str, source: DataFlags) -> PipelineColumns | None:
    """Say what the columns of a table are to a pipeline; None where rows are those of a matrix."""
    pipeline = pipeline_in(model)
    is_matrix = pipeline is None or not takes_table(pipeline)
    if is_matrix or (source.format_of(path) != "table" and hasattr(pipeline, "feature_names_in_")):
        return None
    return PipelineColumns.of(pipeline, path, _columns_given(path, source))


def _with_known_ids(model: TableModel, columns: TableColumns, path: str) -> TableColumns:
    """Name rows as in the training table, unless a flag says else or this table lacks the column."""
    known = model.columns_.id
    if columns.id is None and known is not None and has_column(path, known):
        return replace(columns, id=known)
    return columns


def _columns(model: TableModel, path: str, source: DataFlags) -> TableColumns:
    """Take what the model knows of its columns, unless flags say else."""
    given = _columns_given(path, source)
    if given.text:
        raise click.UsageError("--text is for pipelines of texts, and this model knows its columns.")
    return replace(
        model.columns_,
        drop=None,
        labels=given.labels or model.columns_.labels,
        label_separator=given.label_separator or model.columns_.label_separator,
        empty_labels=source.empty_labels or model.columns_.empty_labels,
        id=given.id,
    )


def _columns_given(path: str, source: DataFlags) -> TableColumns:
    format = source.format_of(path)
    if format != "table":
        raise ValueError(f"The model was fitted to a table and {path} is read as {format}; give a table.")
    return source.columns()


def _read_matrix(
    model: Pipeline | Classifier, path: str, source: DataFlags, *, has_labels: bool = True
) -> LabeledData:
    """Read rows of another format than tables, with their labels if they are said to have any."""
    format, keywords = source.format_of(path), source.matrix_keywords()
    names = getattr(model, "feature_names_in_", None)
    if format == "table":
        raise ValueError(f"{path} is a table, but the model was not fitted to one; fit it to a table first.")
    if format == "svmlight":  # such a file does not say how wide it is
        keywords.setdefault("n_features", model.n_features_in_)
        first = getattr(scorer_of(model), "first_feature_", None)
        keywords |= {} if first is None or "zero_based" in keywords else {"zero_based": first == 0}
    if format in ("mulan", "hierarchical_arff") and names is not None:
        keywords["feature_names"] = list(map(str, names))
        if format == "mulan" and not has_labels:
            keywords = {"feature_names": keywords["feature_names"], "labels": "none"}
    data = read_any(path, format, **keywords)
    if data.X.shape[1] != model.n_features_in_:
        wanted = f"the {model.n_features_in_} of the model"
        raise DataFileError(path, None, f"{data.X.shape[1]} features", wanted)
    if format != "svmlight":
        return data
    return replace(data, Y=with_last_labels(data.Y, len(names_of(model))))


def with_last_labels(Y: LabelMatrix, n_labels: int) -> LabelMatrix:
    """Add the last labels of an svmlight file, which does not mention those that no row has."""
    positives = Y.positives.copy()
    positives.resize(len(Y), max(n_labels, Y.n_labels))
    return LabelMatrix(positives)


def read_labeled_rows(model: Model, path: str, source: DataFlags) -> LabeledData:
    """Read rows with their labels, for a comparison with the model; say which labels are passed over."""
    rows = _read_labeled_rows(model, path, source)
    passed_over = _unknown_counts(model, rows) if source.ignore_unknown_labels else {}
    if passed_over:
        order = sorted(passed_over, key=lambda name: (-passed_over[name], name))
        words = [f"{name!r} ({passed_over[name]})" for name in order[:_MOST_NAMED]]
        more = [] if len(order) <= _MOST_NAMED else [f"and {len(order) - _MOST_NAMED} more"]
        note(
            f"passed over {_counted(len(order), 'label')} that the model does not know, with "
            f"{_counted(sum(passed_over.values()), 'positive')}: {', '.join(words + more)}."
        )
    return rows


def read_pool_rows(model: Model, path: str, source: DataFlags) -> LabeledData:
    """Read rows with what is known of their labels: nothing where a table has no column of labels."""
    piped = _piped_columns(model, path, source)
    columns = piped.roles if piped is not None else None
    if isinstance(model, TableModel):
        columns = _with_known_ids(model, _columns(model, path, source), path)
    if columns is None:
        return _read_matrix_pool(model, path, source)
    there = column_names(path)
    wanted = [columns.labels] if isinstance(columns.labels, str) else list(columns.labels or ())
    if not any(name in there for name in wanted):
        columns = replace(columns, labels=None)
    if columns.labels is None:
        rows = read_table_columns(path, columns, label_names=names_of(model))
    else:
        rows = _read_labeled_table(model, path, columns, source)
    return rows if piped is None else replace(rows, X=piped.rows(rows.X))


def _read_matrix_pool(model: Pipeline | Classifier, path: str, source: DataFlags) -> LabeledData:
    """Read rows of another format than tables; nothing is known of an ARFF file without columns of labels."""
    if source.format_of(path) == "mulan":
        attributes = read_header(path, numbered_lines(path)).attributes
        if {attribute.name for attribute in attributes}.isdisjoint(names_of(model)):
            rows = _read_matrix(model, path, source, has_labels=False)
            nothing = sp.csr_array((len(rows), len(names_of(model))), dtype=np.int8)
            return replace(rows, Y=LabelMatrix(nothing, nothing, names_of(model)))
    return _read_matrix(model, path, source)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _unknown_counts(model: Model, rows: LabeledData) -> dict[str, int]:
    """Count the rows that have each label, or class, that the model does not know."""
    known, tree = set(names_of(model)), taxonomy_of(scorer_of(model))
    truth = truth_of(model, rows)
    if isinstance(truth, LabelMatrix):
        names = [] if truth.names is None else truth.names.tolist()
        found = dict(zip(map(str, names), truth.positive_counts().tolist(), strict=False))
    else:
        found = Counter(str(entry) for entry in truth if entry is not None)
        known |= {str(node) for node in tree.nodes} if tree is not None else set()
    return {name: count for name, count in found.items() if name not in known}


def _read_labeled_rows(model: Model, path: str, source: DataFlags) -> LabeledData:
    piped = _piped_columns(model, path, source)
    if piped is not None:
        columns = piped.roles
    elif isinstance(model, TableModel):
        columns = _columns(model, path, source)
    else:
        return _read_matrix(model, path, source)
    if columns.labels is None:
        raise click.UsageError("Name the column of the labels with --labels or --label-column.")
    rows = _read_labeled_table(model, path, columns, source)
    return rows if piped is None else replace(rows, X=piped.rows(rows.X))


def _read_labeled_table(model: Model, path: str, columns: TableColumns, source: DataFlags) -> LabeledData:
    if isinstance(model, TableModel):
        columns = _with_known_ids(model, columns, path)
    if has_one_class_a_row(model):  # classes may be inner nodes, which are no labels
        return read_table_columns(path, columns)
    names = names_of(model)
    if source.ignore_unknown_labels:  # these are read to be named, and dropped by whoever compares
        found = read_table_columns(path, columns).Y.names
        names += sorted(set([] if found is None else found.tolist()) - set(names))
    if columns.labels is None or isinstance(columns.labels, str):
        return read_table_columns(path, columns, label_names=names)
    return _read_label_columns(model, path, columns, names)


def _read_label_columns(model: Model, path: str, columns: TableColumns, names: list[str]) -> LabeledData:
    """Read a column a label; labels that no column of the training table told of may have one or not."""
    there, listed, untold = column_names(path), columns.labels or (), _untold(model)
    needed = [name for name in names if name not in untold or name in there]
    late = [name for name in needed if name in untold and name not in listed]
    read = (*(name for name in listed if name not in untold or name in there), *late)
    rows = read_table_columns(path, replace(columns, labels=read), label_names=needed)
    every = [*needed, *(name for name in names if name not in needed)]
    Y = with_unobserved(rows.Y, np.array(every)) if len(every) > len(needed) else rows.Y
    return replace(rows, Y=Y.select_labels([every.index(name) for name in names]))


def _untold(model: Model) -> set[str]:
    """Name the labels that are described alone, or known by answers."""
    classifier = classifier_of(model)
    found = {str(classifier.classes_[label]) for label in classifier._form.unobserved}
    told = model.columns_.labels if isinstance(model, TableModel) else None
    return found if told is None or isinstance(told, str) else found | (set(names_of(model)) - set(told))


def truth_of(model: Model, rows: LabeledData) -> Any:
    """Give the true labels; or the classes, where the data hold a taxonomy and the model has one a row."""
    return rows.classes if has_one_class_a_row(model) and rows.parents is not None else rows.Y


def has_one_class_a_row(model: Model) -> bool:
    """Say whether the model picks one class a row."""
    return classifier_of(model)._form.kind != "labels"


def features_of(model: Model, X: Any) -> Any:
    """Turn rows in the form the model takes into features of its classifier."""
    X = as_taken(model, X)
    if isinstance(model, Pipeline):
        return model[:-1].transform(X) if len(model) > 1 else X
    return model.vectorizer_.transform(X) if isinstance(model, TableModel) else X
