"""From a request to a model file: read rows, compare, fit, save, and print a summary."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp

from labelweave.app.active.answers import with_answers
from labelweave.app.cli import label_relations as relations
from labelweave.app.cli.comparing import compared, models_to_compare, name_of
from labelweave.app.cli.decision_flags import DECIDING
from labelweave.app.cli.fit_request import RELATIONS, FitRequest
from labelweave.app.cli.fit_words import End, ReadLines, endings, save_fit, show_progress
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import console, hint, metric_table, note, print_json, print_lines, say
from labelweave.app.cli.model_flags import class_of
from labelweave.app.cli.table_roles import (
    ColumnWords,
    are_lists,
    column_words,
    cut_where_listed,
    require_labels,
)
from labelweave.datasets import LabeledData, TableColumns, read_any
from labelweave.datasets.columns import says_missing
from labelweave.datasets.csr_parts import row_of
from labelweave.datasets.data_file import is_gzip
from labelweave.datasets.table_columns import with_usual_labels
from labelweave.datasets.table_files import written_as
from labelweave.datasets.table_labels import Known, has_pairs
from labelweave.datasets.table_reading import completed, first_rows, resolved_tables, table_features
from labelweave.decisions.automatic import LARGEST_TABLE
from labelweave.decisions.comparison import COSTS
from labelweave.estimators import UnobservedLabelWarning
from labelweave.estimators.table_model import with_encoder_weight
from labelweave.features.feature_matrix import column_means, filled
from labelweave.foundation.array_types import Floats
from labelweave.foundation.config import config_context
from labelweave.labels import LabelMatrix
from labelweave.labels.label_matrix import words_on_no_negative
from labelweave.labels.label_names import words_on_alike
from labelweave.labels.written_labels import PLACES

_LARGEST_AT_ONCE = 2**26  # bytes larger tables are read in blocks
_PACKED = 4  # ratio of cells to file size of compressed files
_BLOCK_ROWS = 20_000
_INDENT, _MOST_LISTED, _FIRST_ROWS = 14, 20, 3


class Prepared(NamedTuple):
    """The input of a fit: rows, targets, means of features with missing values, model, columns of a table.

    request: with a model that suits the data.
    """

    request: FitRequest
    rows: LabeledData
    means: Floats | None
    has_gaps: bool
    targets: relations.Targets
    model: Any
    columns: TableColumns | None
    words: ColumnWords | None


class TrainingRows(NamedTuple):
    """Training rows, and the columns of a table, also in words; None for other formats.

    is_listed: whether the format lists any number of labels per row.
    """

    data: LabeledData
    columns: TableColumns | None = None
    words: ColumnWords | None = None
    is_listed: bool = True


def prepared(request: FitRequest) -> Prepared:
    has_one = bool(request.one_class or request.flags.class_paths)
    read = read_training_rows(request.data, request.flags, has_one)
    request = _with_classes(request, read)
    rows, columns, words, _ = read
    if columns is None and (said := words_on_no_negative(rows.Y)) is not None:
        hint(f"warning: {request.data}: {said}; write 0 where a row is known to be without a label.")
    if (alike := words_on_alike(rows.Y.words)) is not None:
        hint(f"warning: {alike}")
    if request.flags.answers is not None:
        rows = _answered(rows, request.flags.answers)
    rows, words = _with_encoder(rows, words)
    rows, means, has_gaps = _with_means(rows)
    request, rows = relations.in_taxonomy(request, rows)
    targets = relations.training_targets(rows, request)
    request = _suited(request, targets)
    if request.why_this_model is not None:
        hint(request.why_this_model)
    request = relations.with_obedience(request, targets)
    relations.hint_at_classes(targets, request)
    if (flips := rows.Y.flip_probabilities) is not None:
        hint(f"{flips.nnz} entries of the label columns are neither 0 nor 1, and are read as probabilities.")
    if targets.are_classes and len(targets.names) > 2 and "tune_threshold" in request.decisions:
        raise click.UsageError(
            "--tune-threshold is for many labels per row, but rows have one of several classes here; leave "
            "it out, or add --many-labels."
        )
    model = relations.model_of_targets(request, targets, columns)
    return Prepared(request, rows, means, has_gaps, targets, model, columns, words)


def _with_classes(request: FitRequest, read: TrainingRows) -> FitRequest:
    """Read labels as classes if every row has just one, in a cell that is no list, and no flag decides."""
    source, Y = request.flags, read.data.Y
    is_told = request.one_class is not None or source.graph or any(getattr(source, n) for n in RELATIONS)
    says_labels = source.answers or source.empty_labels or request.decisions or "threshold" in request.given
    if read.is_listed or is_told or says_labels:
        return request
    is_single = Y.observed is None and bool((np.diff(Y.positives.indptr) == 1).all())
    if not is_single or not 2 <= Y.n_labels <= len(Y) / 2:
        return request
    hint(
        f"every row has one of {np.count_nonzero(Y.positive_counts())} labels, so they are its classes; "
        "--many-labels reads them as labels, of which later rows may have several or none."
    )
    return replace(request, one_class=True)


def _answered(rows: LabeledData, path: str) -> LabeledData:
    """Add answers to the labels, and print which labels the data lack."""
    found = with_answers(rows.Y, rows.row_ids, path)
    added = [] if found.names is None else [str(name) for name in found.names[rows.Y.n_labels :]]
    if not found.n_labels:
        raise ValueError(f"{path} has no answers and the data have no labels, so there is nothing to learn.")
    if added and rows.Y.n_labels:
        hint(f"{path} names labels that the data lack: {', '.join(map(repr, added[:10]))}.")
    return replace(rows, Y=found)


def _suited(request: FitRequest, targets: relations.Targets) -> FitRequest:
    """Replace the default model where the data are too large for it, or too few."""
    n_rows, n_entries = len(targets.y), len(targets.y) * len(targets.names)
    if request.model == "auto" and n_rows < 2:
        return request.otherwise(f"{request.data} has {n_rows} row(s) with labels but auto needs 2")
    if request.model == "auto" and n_entries > LARGEST_TABLE:
        said = (
            f"{n_rows} rows of {len(targets.names)} labels exceed auto's limit, {LARGEST_TABLE:.0e} entries"
        )
        return request.otherwise(said)
    return request


def show_data(request: FitRequest) -> int:
    """Print how the data are read: format, columns, labels with their counts, the first rows."""
    ready = prepared(request)
    rows, names, counts = ready.rows, ready.rows.Y.words, ready.rows.Y.positive_counts()
    columns, features, X = ready.columns, rows.written_feature_names, sp.csr_array(rows.X[:_FIRST_ROWS])
    lines = {
        "format": request.flags.format_of(request.data) if columns is None else written_as(request.data),
        "rows": f"{len(rows)} of {len(features)} features",
        "weights": "" if rows.weights is None else f"of {np.count_nonzero(rows.weights != 1)} rows",
        "each has": _what_each_has(ready.targets),
        **({} if ready.words is None else ready.words.roles),
        "separator": repr(columns.label_separator) if columns and columns.label_separator else "",
        "model": name_of(ready.request),
    }
    print_lines({name: line for name, line in lines.items() if line}, _INDENT)
    for label in np.argsort(-counts, kind="stable")[:_MOST_LISTED]:
        print_lines({"label": f"{names[label]}, {counts[label]} of {len(rows)} rows"}, _INDENT)
    say(f"{'':{_INDENT}}{len(names)} labels")
    for row in range(min(_FIRST_ROWS, len(rows))):
        (labels, _), (places, values) = row_of(rows.Y.positives, row), row_of(X, row)
        largest = sorted(zip(places, values, strict=True), key=lambda pair: -abs(pair[1]))[:_MOST_LISTED]
        without = "no labels" if rows.Y.observed is None or rows.Y.observed[[row]].nnz else "unknown labels"
        shown = {f"row {row}": ", ".join(names[label] for label in labels) or without}
        print_lines(shown | {"": ", ".join(f"{features[j]} {value:.3g}" for j, value in largest)}, _INDENT)
    return 0


def _what_each_has(targets: relations.Targets) -> str:
    if targets.rows.Y.class_columns is not None:
        return "one class in each label column"
    return "one class" if targets.are_classes else "any number of labels"


def run_fit(request: FitRequest) -> int:
    """Fit a model and save it; return the exit status."""
    request, rows, means, has_gaps, targets, model, columns, words = prepared(request)
    if words is not None:
        words.show()
    others = models_to_compare(request.flags.compare, request.model, targets.are_classes)
    if others:
        models = {name_of(request): model} | {name: class_of(name)() for name in others}
        say(repr(compared(request, targets, models)))
    watched = model if request.flags.quiet else show_progress(model, len(targets.y))
    started = time.perf_counter()
    fits = {*DECIDING} & {*request.decisions}  # meta-classifiers need all of their fits
    with endings() as said, config_context(on_interrupt="raise" if fits else "keep"):
        warnings.simplefilter("error", UnobservedLabelWarning)
        groups = {} if targets.rows.groups is None else {"groups": targets.rows.groups}
        watched.fit(targets.rows.X, targets.y, sample_weight=targets.rows.weights, **groups)
    end = End(len(targets.y), time.perf_counter() - started, said, has_gaps)
    known = {"feature_means_": means, "first_feature_": rows.first_feature}
    return save_fit(model, request, end, rows.vectorizer, columns, rows.feature_names, known)


def run_cross_validation(request: FitRequest, as_json: bool) -> None:
    if request.flags.dask is not None:
        from labelweave.app.cli.cluster import cross_validated_on_cluster

        found, n_rows = cross_validated_on_cluster(request)
    else:
        ready = prepared(request)
        request, n_rows = ready.request, len(ready.targets.rows)
        found = compared(request, ready.targets, {name_of(request): ready.model})
    name, folds = name_of(request), len(next(iter(found.values[found.reference].values())))
    means = {metric: found.interval(name, metric) for metric in found.metrics}
    if as_json:
        values = {m: asdict(one) | {"folds": found.values[name][m].tolist()} for m, one in means.items()}
        print_json({"model": name, "rows": n_rows, "folds": folds, "metrics": values})
        return
    shown = {
        "mean": {metric: f"{one.mean:.4g}" for metric, one in means.items()},
        "95 % interval": {
            metric: "" if metric in COSTS else f"{one.low:.4g} to {one.high:.4g}"
            for metric, one in means.items()
        },
    }
    console().print(f"{name}, {n_rows} rows, {folds} folds")
    console().print(metric_table(shown, "intervals are of the mean over folds, which share training rows"))


def read_training_rows(path: str, source: DataFlags, has_one: bool) -> TrainingRows:
    """Read the rows to train on.

    has_one: whether flags set one class per row.
    A large table is read twice in blocks, so that its cells are never in memory together.
    """
    format = source.format_of(path)
    if format != "table":
        data = read_any(path, format, **source.matrix_keywords())
        return TrainingRows(data, is_listed=format != "svmlight")
    place, source = source.beside(path)
    given, block_rows = source.columns(), _BLOCK_ROWS if _is_large(path) else None
    table = first_rows(place, given, block_rows)
    given = with_usual_labels(given, table)
    if source.answers is None:
        require_labels(table, given)
    if not has_one:
        given = cut_where_listed(table, given)
    if block_rows is not None and has_pairs(table, given):  # pairs may be in any row
        block_rows, table = None, first_rows(place, given, None)
    columns, tables = resolved_tables(place, table, given, block_rows)
    table = next(iter(tables())) if block_rows is None else completed(table, columns)
    known: Known = ([] if columns.labels is None else _label_names(source, columns), "error")
    on_rows = () if block_rows is None else (ReadLines(path),)
    data = table_features(tables, columns, source.vectorizer(columns), known, *on_rows)
    if source.groups:
        names = [part.names(source.groups, "the group of the row") for part in tables()]
        data = replace(data, groups=np.concatenate(names))
    is_listed = True
    if isinstance(columns.labels, str):
        _note_words_for_missing(columns.labels, data.Y)
        if not has_one:
            has_lists = columns.label_separator == PLACES or are_lists(table.columns.given(columns.labels))
            is_listed = columns.label_separator is not None or has_lists
            if source.empty_labels is None and (not has_lists or "" in table.columns[columns.labels]):
                _note_blank_cells(columns.labels, data.Y)
    words = column_words(table, given, columns, source.groups)
    columns = replace(columns, holds_classes=data.Y.class_columns is not None)
    return TrainingRows(data, columns, words, is_listed)


def _label_names(source: DataFlags, columns: TableColumns) -> list[str] | None:
    if source.label_names is None:
        return None
    if columns.label_separator != PLACES:
        raise click.UsageError("--label-names is for a column of --labels with 0 or 1 for each label.")
    names = [*map(str.strip, source.label_names.split(","))]
    if "" in names:
        raise click.UsageError("--label-names has an empty name; use names with a comma between them.")
    return names


def _is_large(path: str) -> bool:
    """Whether a file's cells exceed the memory limit; the reader reports a missing file."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    return size * (_PACKED if is_gzip(path) else 1) > _LARGEST_AT_ONCE


def _with_encoder(rows: LabeledData, words: ColumnWords | None) -> tuple[LabeledData, ColumnWords | None]:
    """Choose the weight of an encoder's vectors, and print it."""
    vectorizer = rows.vectorizer
    if words is None or vectorizer is None or vectorizer.encoder is None:
        return rows, words
    size = vectorizer.encoder_.size
    X = with_encoder_weight(vectorizer, rows.X, rows.Y, rows.weights, rows.groups)
    weight = vectorizer.encoder_weight
    said = f"{size} numbers per text, weight {weight:g} to 1 of words" if weight else "words alone are better"
    words = words._replace(roles=words.roles | {"encoder": f"{vectorizer.encoder} ({said})"})
    return replace(rows, X=X, feature_names=vectorizer.get_feature_names_out()), words


def _with_means(rows: LabeledData) -> tuple[LabeledData, Floats | None, bool]:
    """Impute the missing features of an ARFF file; return the means, for later missing values.

    Also returns whether any are missing.
    """
    if rows.vectorizer is not None or rows.feature_names is None:
        return rows, None, False
    means, X = column_means(rows.X), rows.X
    is_missing = np.isnan(X.data if sp.issparse(X) else X)
    if is_missing.any():
        columns = np.unique(X.indices[is_missing] if sp.issparse(X) else np.nonzero(is_missing)[1])
        hint(
            f"{is_missing.sum()} values of {len(columns)} features are missing (?), such as of "
            f"{str(rows.feature_names[columns[0]])!r}; they are imputed with the mean of the training rows."
        )
        rows = replace(rows, X=filled(X, means))
    return rows, means, bool(is_missing.any())


def _note_blank_cells(column: str, Y: LabelMatrix) -> None:
    """Warn of rows that count as rows without labels because their cells are blank."""
    is_blank = np.diff(Y.positives.indptr) == 0
    if Y.observed is not None:
        is_blank &= np.diff(Y.observed.indptr) > 0
    if is_blank.any():
        note(
            f"warning: {is_blank.sum()} of {len(Y)} cells of column {column!r} are blank and count as rows "
            "without labels; if their labels are unknown, use --empty-labels unknown (none silences this)."
        )


def _note_words_for_missing(column: str, Y: LabelMatrix) -> None:
    """Warn of labels such as NA and NULL, which may mark unknown labels."""
    counts = dict(zip(Y.words, Y.positive_counts().tolist(), strict=True))
    found = [f"{name!r} ({count} of {len(Y)} rows)" for name, count in counts.items() if says_missing(name)]
    if found:
        note(
            f"warning: column {column!r} has labels that look like missing values but are read as names: "
            f"{', '.join(found)}; where labels are unknown, replace them by ?."
        )
