"""``labelweave evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from labelweave.app.cli.answer_files import label_rows, print_table
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import console, metric_table, note, print_json, say
from labelweave.app.cli.model_rows import classifier_of, open_model, read_labeled_rows, truth_of
from labelweave.app.cli.pipeline_rows import as_taken
from labelweave.app.report.label_numbers import label_numbers
from labelweave.app.report.measured import Measured, measure
from labelweave.app.report.reported_rows import SEARCHED, read_rows
from labelweave.decisions.layers import guarantee_words
from labelweave.estimators import LabelGraphClassifier


def run(
    model: str, data: str, as_json: bool, as_csv: bool, key: bytes | None, dask: str | None, **options: Any
) -> None:
    """Print the metrics of a model on labelled rows."""
    if as_json and as_csv:
        raise click.UsageError("--json and --csv are two forms; give one of them.")
    loaded, source = open_model(model, key), DataFlags.of(options)
    if dask is not None:
        from labelweave.app.cli.cluster_evaluate import measured_on_cluster

        found = measured_on_cluster(loaded, data, source, dask)
        for words in found.notes():
            note(words)
        _show(found.counts(), found.table(), found.label_rows, as_json, as_csv)
        return
    data_rows = read_labeled_rows(loaded, data, source)
    rows = read_rows(loaded, as_taken(loaded, data_rows.X), None)
    measured = measure(rows, truth_of(loaded, data_rows), source.unknown_labels, lambda words: None)
    metrics = measured.metrics
    counts = {"rows": len(rows), "labels": measured.outcomes.truth.n_labels}
    if measured.true_nodes is not None:
        counts = {"rows": len(measured.true_nodes), "classes": len(rows.label_names)}
    if measured.outcomes.is_searched:
        counts |= {"searched_labels": SEARCHED}
    if isinstance(rows.classifier, LabelGraphClassifier):
        metrics |= {"proven_optimal": float(rows.classifier.predict_map(rows.X).proven.mean())}
    for words in measured.notes:
        note(words)
    _show(counts, metrics, lambda: _label_rows(measured), as_json, as_csv)
    promise = None if as_json or as_csv else guarantee_words(classifier_of(loaded))
    if promise is not None:
        say(click.wrap_text(f"Guaranteed: {promise}.", 79))


def _show(
    counts: dict[str, int], metrics: dict[str, float], of_labels: Callable[[], list[dict[str, Any]]],
    as_json: bool, as_csv: bool,
) -> None:  # fmt: skip
    if as_json:
        print_json(counts | metrics | {"per_label": of_labels()})
    elif as_csv:
        lines = of_labels()
        print_table(list(lines[0]), ([*line.values()] for line in lines))
    else:
        console().print(", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items()))
        console().print(metric_table({"value": metrics}))


def _label_rows(measured: Measured) -> list[dict[str, Any]]:
    """Give the counts and shares of every label."""
    numbers = label_numbers(measured.outcomes, measured.probabilities)
    more = {"auc": numbers.auc}
    if numbers.calibration is not None:
        more["calibration_error"] = numbers.calibration
    return label_rows(measured.outcomes.names, numbers.observed, numbers, more)
