"""``labelweave evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from rich import box
from rich.table import Table

from labelweave.cli.flags import DataFlags, file_options, label_column_options, unknown_label_option
from labelweave.cli.messages import console, note, print_json, with_flags
from labelweave.cli.model_rows import classifier_of, open_model, read_labeled_rows, truth_of, unknown_labels
from labelweave.decisions.layers import guarantee_words
from labelweave.estimators import LabelGraphClassifier
from labelweave.report.measured import Measured, measure
from labelweave.report.reported_rows import ReportedRows, read_rows

__all__ = ["evaluate", "metric_table"]


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@unknown_label_option
@label_column_options
@file_options
def evaluate(model: str, data: str, as_json: bool, **options: Any) -> None:
    """Compare a model's predictions with the labels of a data file.

    Labels are matched by name, or by number where a file has no names.  Labels
    and classes that are missing in DATA are not counted.  A table has its labels
    where the training table had them, unless flags say else.

    \b
    Examples:
      labelweave evaluate tags.lw test.jsonl
      labelweave evaluate bibtex.lw bibtex-test.arff --json
      labelweave evaluate animals.lw test.csv
    """
    loaded, source = open_model(model), DataFlags.of(options)
    data_rows = read_labeled_rows(loaded, data, source)
    rows = read_rows(loaded, data_rows.X, None)
    try:
        measured = measure(rows, truth_of(loaded, data_rows), unknown_labels(source), lambda words: None)
    except ValueError as error:
        raise ValueError(with_flags(error)) from None
    counts, metrics = _counts(rows, measured), measured.metrics | _proven_share(rows)
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


def _counts(rows: ReportedRows, measured: Measured) -> dict[str, int]:
    if measured.true_nodes is not None:
        return {"rows": len(measured.true_nodes), "classes": len(rows.label_names)}
    return {"rows": len(rows), "labels": measured.outcomes.truth.n_labels}


def _proven_share(rows: ReportedRows) -> dict[str, float]:
    """Say for how many rows the predicted labels are proven to have the highest score."""
    if not isinstance(rows.classifier, LabelGraphClassifier):
        return {}
    return {"proven_optimal": float(rows.classifier.predict_map(rows.X).proven.mean())}


def metric_table(metrics: dict[str, dict[str, float]]) -> Table:
    """Lay out metrics, one row each.

    metrics: A column for each key.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric")
    for name in metrics:
        table.add_column(name, justify="right")
    for metric in next(iter(metrics.values())):
        table.add_row(metric, *(_number(column[metric]) for column in metrics.values()))
    return table


def _number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.4f}"
