"""``labelweave decide``: put a fitted model into classifiers that decide on its scores."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from labelweave.cli import model_rows
from labelweave.cli.decision_flags import DECISIONS, decision_class, refused_decisions
from labelweave.cli.flags import DataFlags
from labelweave.cli.messages import print_lines, refuse, require_writable, size_of
from labelweave.datasets import LabeledData
from labelweave.decisions.layers import guarantee_words
from labelweave.estimators import TableModel
from labelweave.facts import decision_lines, model_facts
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import known_labels


def run(model: str, data: str, out: str, quiet: bool, key: bytes | None, **options: Any) -> None:
    """Put a fitted model into classifiers that decide on its scores."""
    require_writable(out)
    given = {name: options[name] for name in DECISIONS if options[name] is not None}
    if not given:
        raise click.UsageError("Give --tune-threshold, --calibrate or --conformal.")
    refuse(refused_decisions(given, prefit=True))
    loaded, source = model_rows.open_model(model, key), DataFlags.of(options)
    if model_rows.has_one_class_a_row(loaded):
        raise ValueError(f"{model} has one class a row; decide takes models of many labels a row.")
    if guarantee_words(model_rows.classifier_of(loaded)) is not None:
        raise ValueError(
            f"{model} holds label sets with a guarantee, which another decision would undo; give the file of "
            "the model without --conformal."
        )
    rows = model_rows.read_labeled_rows(loaded, data, source)
    found: Any = model_rows.classifier_of(loaded)
    X, truth = model_rows.features_of(loaded, rows.X), _truth(loaded, rows, source)
    for name, settings in given.items():
        found = decision_class(name)(found, **settings, cv="prefit").fit(X, truth)
    whole = found
    if isinstance(loaded, TableModel):
        whole = TableModel.of_fitted(loaded.vectorizer_, found, loaded.columns_)
    whole.save(out, key=key)
    if not quiet:
        lines = {"rows": str(len(rows)), **decision_lines(model_facts(found))}
        print_lines(lines | {"model": f"{out} ({size_of(out)})"}, 10, err=True)


def _truth(model: model_rows.Model, rows: LabeledData, source: DataFlags) -> LabelMatrix:
    """Give the labels of the data in the order of the model, which must all be there."""
    names = [str(name) for name in model.label_names_]
    truth, columns = known_labels(rows.Y, names, source.unknown_labels)
    absent = sorted(set(range(len(names))) - set(columns.tolist()))
    if absent:
        raise ValueError(
            f"{len(absent)} of the model's {len(names)} labels are not in the data, such as "
            f"{names[absent[0]]!r}; give data with all of them."
        )
    return truth.select_labels(np.argsort(columns))
