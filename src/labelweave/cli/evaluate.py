"""``labelweave evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

from typing import Any

import click

from labelweave.cli.flags import DataFlags
from labelweave.cli.messages import console, metric_table, note, print_json
from labelweave.cli.model_rows import classifier_of, open_model, read_labeled_rows, truth_of
from labelweave.decisions.layers import guarantee_words
from labelweave.estimators import LabelGraphClassifier
from labelweave.report.measured import measure
from labelweave.report.reported_rows import read_rows


def run(model: str, data: str, as_json: bool, key: bytes | None, **options: Any) -> None:
    """Print the metrics of a model on labelled rows."""
    loaded, source = open_model(model, key), DataFlags.of(options)
    data_rows = read_labeled_rows(loaded, data, source)
    rows = read_rows(loaded, data_rows.X, None)
    measured = measure(rows, truth_of(loaded, data_rows), source.unknown_labels, lambda words: None)
    metrics = measured.metrics
    counts = {"rows": len(rows), "labels": measured.outcomes.truth.n_labels}
    if measured.true_nodes is not None:
        counts = {"rows": len(measured.true_nodes), "classes": len(rows.label_names)}
    if isinstance(rows.classifier, LabelGraphClassifier):
        metrics |= {"proven_optimal": float(rows.classifier.predict_map(rows.X).proven.mean())}
    for words in measured.notes:
        note(words)
    if as_json:
        print_json(counts | metrics)
        return
    console().print(", ".join(f"{count} {what}" for what, count in counts.items()))
    console().print(metric_table({"value": metrics}))
    promise = guarantee_words(classifier_of(loaded))
    if promise is not None:
        click.echo(click.wrap_text(f"Guaranteed: {promise}.", 79))
