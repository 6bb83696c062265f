"""``labelweave decide``: put a fitted model into classifiers that decide on its scores."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from sklearn.pipeline import Pipeline

import labelweave
from labelweave.app.cli import model_rows
from labelweave.app.cli.decision_flags import DECISIONS, decided, decision_class, refused_decisions
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import print_lines, refuse, require_writable, size_of
from labelweave.app.facts import decision_lines, model_facts
from labelweave.datasets import LabeledData
from labelweave.decisions.layers import guarantee_words, taxonomy_of
from labelweave.estimators import TableModel
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import known_classes, known_labels


def run(model: str, data: str, out: str, quiet: bool, key: bytes | None, **options: Any) -> None:
    """Put a fitted model into classifiers that decide on its scores."""
    require_writable(out, data, options["xml"])  # the model may go where it was, inside of what decides
    given = {name: options[name] for name in DECISIONS if options[name] is not None}
    if not given:
        raise click.UsageError("Give --enforce, --tune-threshold, --calibrate or --conformal.")
    refuse(refused_decisions(given, prefit=True))
    loaded, source = model_rows.open_model(model, key), DataFlags.of(options)
    has_classes = model_rows.has_one_class_a_row(loaded)
    if has_classes and "tune_threshold" in given:
        raise ValueError(f"{model} has one class a row, but --tune-threshold is for many labels a row.")
    if guarantee_words(model_rows.classifier_of(loaded)) is not None:
        raise ValueError(
            f"{model} holds label sets with a guarantee, which another decision would undo; give the file of "
            "the model without --conformal."
        )
    rows = model_rows.read_labeled_rows(loaded, data, source)
    found: Any = model_rows.classifier_of(loaded)
    X = model_rows.features_of(loaded, rows.X)
    truth = (_classes if has_classes else _truth)(loaded, rows, source)
    for name, settings in given.items():
        kind = decision_class(name)
        found = decided(kind, found, settings, rows.taxonomy, cv="prefit").fit(X, truth)
    whole = found
    if isinstance(loaded, TableModel):
        whole = TableModel.of_fitted(loaded.vectorizer_, found, loaded.columns_)
    elif isinstance(loaded, Pipeline):
        whole = Pipeline([*loaded.steps[:-1], (loaded.steps[-1][0], found)])
    labelweave.save(whole, out, key=key)
    if not quiet:
        lines = {"rows": str(len(rows)), **decision_lines(model_facts(found))}
        print_lines(lines | {"model": f"{out} ({size_of(out)})"}, 10, err=True)


def _classes(model: model_rows.Model, rows: LabeledData, source: DataFlags) -> Array:
    """Give the class of every row as the model calls it; None where it is not known."""
    classifier = model_rows.classifier_of(model)
    names, truth = [str(name) for name in classifier.classes_], model_rows.truth_of(model, rows)
    found = known_classes(truth, names, taxonomy_of(classifier), source.unknown_labels)
    own = dict(zip(names, classifier.classes_, strict=True))
    return np.array([*(own.get(name, name) for name in found), None], object)[:-1]


def _truth(model: model_rows.Model, rows: LabeledData, source: DataFlags) -> LabelMatrix:
    """Give the labels of the data in the order of the model, which must all be there."""
    names = model_rows.names_of(model)
    truth, columns = known_labels(rows.Y, names, source.unknown_labels)
    absent = sorted(set(range(len(names))) - set(columns.tolist()))
    if absent:
        raise ValueError(
            f"{len(absent)} of the model's {len(names)} labels are not in the data, such as "
            f"{names[absent[0]]!r}; give data with all of them."
        )
    return truth.select_labels(np.argsort(columns))
