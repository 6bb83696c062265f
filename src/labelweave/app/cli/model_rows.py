"""Open a model, read rows as it takes them, and compute scores, probabilities and classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import click
import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

import labelweave
from labelweave import datasets
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import note
from labelweave.app.cli.pipeline_rows import PipelineColumns, as_taken, pipeline_in, takes_table
from labelweave.datasets import DataFileError, LabeledData, TableColumns
from labelweave.datasets.any_file import NUMBERED
from labelweave.datasets.arff_header import read_header
from labelweave.datasets.csr_parts import label_numbers
from labelweave.datasets.data_file import PathLike, numbered_lines
from labelweave.datasets.table_reading import column_names, completed_blocks, has_column, labeled_frame
from labelweave.datasets.vector_files import TableWithVectors, is_vector_file, read_vectors
from labelweave.decisions import layers
from labelweave.decisions.base import DecisionClassifier
from labelweave.decisions.label_text import with_unobserved
from labelweave.decisions.layers import taxonomy_of
from labelweave.estimators import TableModel
from labelweave.estimators.base import LabelClassifier
from labelweave.foundation.arguments import ParameterMessage
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import has_columns, listed_counts

Classifier = LabelClassifier | DecisionClassifier
Model: TypeAlias = Any
"""A TableModel, a classifier, or a pipeline of scikit-learn that ends in one."""

_SCORES_AT_ONCE = 4_000_000
_MOST_ROWS_AT_ONCE = 10_000


def open_model(path: str, key: bytes | None) -> Model:
    """Load a model file, signed with the key if there is one; raise ValueError if it holds something else."""
    model = labelweave.load(path, key=key)
    if not isinstance(model[-1] if isinstance(model, Pipeline) else model, TableModel | Classifier):
        raise ValueError(f"{path} holds a {type(model).__name__}; use the file of a classifier.")
    return model


def classifier_of(model: Model) -> Classifier:
    """Return the outermost classifier in a model, which makes decisions."""
    last = model[-1] if isinstance(model, Pipeline) else model
    found: Classifier = last.classifier_ if isinstance(last, TableModel) else last
    return found


def scorer_of(model: Model) -> LabelClassifier:
    """Return the innermost classifier in a model, which computes scores."""
    found = layers.innermost(classifier_of(model))
    scorer: LabelClassifier = layers.innermost(found[-1]) if isinstance(found, Pipeline) else found
    return scorer


def names_of(model: Model) -> list[str]:
    return [str(name) for name in classifier_of(model).label_names_]


@dataclass(frozen=True)
class RowBlock:
    """Some rows, as the classifier takes them, and their names."""

    X: Any
    ids: list[Any]


def row_blocks(model: Model, path: str, source: DataFlags) -> Iterator[RowBlock]:
    """Read rows to predict, tables in blocks; rows without names are numbered from zero.

    Errors in the file do not name flags about columns, which predict lacks.
    """
    size, first = max(1, min(_MOST_ROWS_AT_ONCE, _SCORES_AT_ONCE // len(names_of(model)))), 0
    try:
        for X, names in _features(model, path, source, size):
            ids = range(first, first + X.shape[0]) if names is None else names.tolist()
            first += X.shape[0]
            yield RowBlock(X, list(ids))
    except DataFileError as error:
        if not isinstance(error.expected, ParameterMessage):
            raise
        expected = ParameterMessage(error.expected.template.partition("; ")[0])
        raise DataFileError(error.path, error.line, error.found, expected) from None


def _features(model: Model, path: str, source: DataFlags, size: int) -> Iterator[tuple[Any, Any]]:
    """Yield features of rows as the classifier takes them, and names of rows, in blocks."""
    table = _Table.of(model, path, source)
    if table is None:
        data = _read_matrix(model, path, source, has_labels=False)
        for rows in (slice(start, start + size) for start in range(0, len(data), size)):
            yield features_of(model, data.X[rows]), None if data.row_ids is None else data.row_ids[rows]
        return
    columns = replace(table.columns, labels=None)
    for block in completed_blocks(table.path, columns, size):
        if table.piped is None:
            block.columns.expect_decimal_marks(columns.decimal_marks)
            yield model.vectorizer_.transform(block), block.names(columns.id)
        else:
            data = table.rows(labeled_frame(block, columns, (None, "error")))
            yield features_of(model, data.X), data.row_ids


@dataclass(frozen=True)
class _Table:
    """The columns of a table for a model, and for the pipeline that it is or contains.

    path: of the table, which a file of vectors may accompany.
    """

    path: PathLike
    columns: TableColumns
    piped: PipelineColumns | None = None

    @classmethod
    def of(cls, model: Model, path: str, source: DataFlags) -> Self | None:
        """Return the columns of the model, unless flags override them; None if it takes a matrix."""
        pipeline, is_file = pipeline_in(model), is_vector_file(path)
        format = "vectors" if is_file else source.format_of(path)
        is_piped = pipeline is not None and takes_table(pipeline)
        is_piped &= format == "table" or not hasattr(pipeline, "feature_names_in_")
        if not is_piped and not isinstance(model, TableModel):
            return None
        if format not in ("table", "mulan", "vectors"):  # of which one may have been read as a table
            raise ValueError(f"The model was fitted to a table but {path} is read as {format}; use a table.")
        given = source.columns()
        if is_piped:
            piped = PipelineColumns.of(pipeline, path, given)
            return cls(path, piped.roles, piped)
        if given.text:
            said = "--text is for pipelines of texts, and this model has columns; leave it out."
            raise click.UsageError(said)
        known, no_header = model.columns_, model.columns_.no_header or given.no_header
        id = known.id or ("id" if is_file else None)
        place = _vectors_alone(path, known, given.id or id) if is_file else path
        columns = replace(
            known,
            drop=None,
            labels=given.labels or known.labels,
            label_separator=given.label_separator or known.label_separator,
            empty_labels=source.empty_labels or known.empty_labels,
            id=given.id or (id if id is not None and has_column(place, id, no_header) else None),
            no_header=no_header,
        )
        return cls(_with_vectors(place, columns, source.vectors), columns)

    def rows(self, data: LabeledData) -> LabeledData:
        """Convert rows that were read with these columns to the input of the model."""
        return data if self.piped is None else replace(data, X=self.piped.rows(data.X))


def _vectors_alone(path: str, known: TableColumns, id: str | None) -> PathLike:
    """Return a file of vectors as a table; raise if the model needs more than one column of vectors."""
    needed = known.features
    if needed != tuple(known.vectors or ())[:1]:
        said = f"{path} has only vectors, but the model needs other columns too, such as {needed[0]!r}"
        raise click.UsageError(f"{said}; pass a table, and the vectors as --vectors {path}.")
    return TableWithVectors(path, path, id, needed[0])


def _with_vectors(path: PathLike, columns: TableColumns, files: Sequence[str] | None) -> PathLike:
    """Add a file of vectors to a table that lacks the model's column of vectors."""
    known = columns.vectors or ()
    absent = [name for name in known if not has_column(path, name, columns.no_header)]
    if absent and not files:
        said = f"{path} has no column {absent[0]!r} of vectors; add a file of vectors with --vectors FILE."
        raise click.UsageError(said)
    if not files:
        return path
    if not absent:
        why = f"{path} has the vectors of the model" if known else "the model was fitted without vectors"
        raise click.UsageError(f"--vectors {files[0]} is not needed: {why}; leave it out.")
    return TableWithVectors(path, files[0], columns.id, absent[0])


def _read_matrix(
    model: Pipeline | Classifier, path: str, source: DataFlags, *, has_labels: bool = True
) -> LabeledData:
    """Read rows of other formats than tables, with labels if the format has them."""
    if is_vector_file(path) and not has_labels:
        X, ids = read_vectors(path)
        return LabeledData(X, LabelMatrix(sp.csr_array((len(X), 0), dtype=np.int8)), row_ids=ids)
    format, keywords = source.format_of(path), source.matrix_keywords()
    names = getattr(model, "feature_names_in_", None)
    if format == "table":
        raise ValueError(f"{path} is a table, but the model was not fitted to one; fit a model to one first.")
    if format in NUMBERED:
        keywords.pop("n_labels", None)  # the model determines it
        keywords |= _numbers_of_model(model) if has_labels else {}
    if format == "svmlight":  # the file does not store its width
        keywords.setdefault("n_features", model.n_features_in_)
        first = getattr(scorer_of(model), "first_feature_", None)
        keywords |= {} if first is None or "zero_based" in keywords else {"zero_based": first == 0}
    if format in ("mulan", "hierarchical_arff") and names is not None:
        keywords["feature_names"] = list(map(str, names))
        if format == "mulan" and not has_labels:
            keywords = {"feature_names": keywords["feature_names"], "labels": "none"}
    data = datasets.read_any(path, format, **keywords)
    if data.X.shape[1] != model.n_features_in_:
        wanted = f"the {model.n_features_in_} of the model"
        raise DataFileError(path, None, f"{data.X.shape[1]} features", wanted)
    if isinstance(keywords.get("label_names"), range) and data.Y.names is not None:
        names = names_of(model)  # names stand for column numbers
        named = LabelMatrix.from_any(data.Y, [*names, *data.Y.names[len(names) :]])
        return replace(data, Y=named)
    return data


def _numbers_of_model(model: Model) -> dict[str, Any]:
    """Return the model's labels, for the reader of a file that numbers labels, or else their positions."""
    names = names_of(model)
    are_numbers = label_numbers(names) is not None or set(names) <= {"-1", "1"}
    return {"label_names": names if are_numbers else range(len(names))}


def read_labeled_rows(model: Model, path: str, source: DataFlags) -> LabeledData:
    """Read rows with their labels, for an evaluation; print which labels are ignored."""
    table = _Table.of(model, path, source)
    if table is None:
        rows = _read_matrix(model, path, source)
    elif table.columns.labels is None:
        raise click.UsageError("The table needs --labels or --label-column, the columns of its labels.")
    else:
        rows = table.rows(_read_labeled_table(model, table.path, table.columns, source))
    counts = _unknown_counts(model, rows) if source.unknown_labels == "ignore" else {}
    if counts:
        note(
            f"ignored {_counted(len(counts), 'label')} that the model lacks, with "
            f"{_counted(sum(counts.values()), 'positive')}: {listed_counts(counts)}."
        )
    return rows


def read_pool_rows(model: Model, path: str, source: DataFlags) -> LabeledData:
    """Read rows with their known labels; all are unknown without label columns."""
    table = _Table.of(model, path, source)
    if table is not None:
        columns, there = table.columns, column_names(table.path, table.columns.no_header)
        wanted = [columns.labels] if isinstance(columns.labels, str) else list(columns.labels or ())
        if any(name in there for name in wanted):
            rows = table.rows(_read_labeled_table(model, table.path, columns, source))
            return replace(rows, Y=rows.Y.select_labels(np.arange(len(names_of(model)))))
        columns = replace(columns, labels=None)
        return table.rows(datasets.read_table_columns(table.path, columns, label_names=names_of(model)))
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
    """Count the rows of each label, or class, that the model lacks."""
    known, tree = set(names_of(model)), taxonomy_of(scorer_of(model))
    truth = truth_of(model, rows)
    if isinstance(truth, LabelMatrix):
        names = [] if truth.names is None else truth.names.tolist()
        found = dict(zip(map(str, names), truth.positive_counts().tolist(), strict=False))
    else:
        found = Counter(str(entry) for entry in truth if entry is not None)
        known |= {str(node) for node in tree.nodes} if tree is not None else set()
    return {name: count for name, count in found.items() if name not in known}


def _read_labeled_table(
    model: Model, path: PathLike, columns: TableColumns, source: DataFlags
) -> LabeledData:
    if has_one_class_a_row(model) or has_columns(classifier_of(model)):  # classes may be inner nodes
        return datasets.read_table_columns(path, columns)
    names = names_of(model)
    unknown: Any = "error" if source.unknown_labels == "raise" else "add"  # the evaluation handles them
    if columns.labels is None or isinstance(columns.labels, str):
        return datasets.read_table_columns(path, columns, label_names=names, unknown_labels=unknown)
    return _read_label_columns(model, path, columns, names, unknown)


def _read_label_columns(
    model: Model, path: PathLike, columns: TableColumns, names: list[str], unknown: Any
) -> LabeledData:
    """Read one column per label; labels that the training table had no column for may be missing."""
    there, listed = column_names(path, columns.no_header), columns.labels or ()
    classifier = classifier_of(model)
    untold = {str(classifier.classes_[label]) for label in classifier._form.unobserved}
    told = model.columns_.labels if isinstance(model, TableModel) else None
    if told is not None and not isinstance(told, str):  # other labels come from answers
        untold |= set(names_of(model)) - set(told)
    needed = [name for name in names if name not in untold or name in there]
    late = [name for name in needed if name in untold and name not in listed]
    read = (*(name for name in listed if name not in untold or name in there), *late)
    rows = datasets.read_table_columns(
        path, replace(columns, labels=read), label_names=needed, unknown_labels=unknown
    )
    every = [*rows.Y.words, *(name for name in names if name not in needed)]
    Y = with_unobserved(rows.Y, np.array(every)) if len(every) > rows.Y.n_labels else rows.Y
    order = [*names, *rows.Y.words[len(needed) :]]
    return replace(rows, Y=Y.select_labels([every.index(name) for name in order]))


def truth_of(model: Model, rows: LabeledData) -> Any:
    """Return the true labels, or the classes if the data hold a taxonomy and the model has one per row."""
    return rows.classes if has_one_class_a_row(model) and rows.parents is not None else rows.Y


def has_one_class_a_row(model: Model) -> bool:
    return classifier_of(model)._form.has_one_class


def features_of(model: Model, X: Any) -> Any:
    """Convert rows as the model takes them to features of its classifier."""
    X = as_taken(model, X)
    if isinstance(model, Pipeline):
        return model[:-1].transform(X) if len(model) > 1 else X
    return model.vectorizer_.transform(X) if isinstance(model, TableModel) else X
