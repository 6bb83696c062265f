"""``labelweave evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table

from labelweave.cli.class_metrics import class_metrics
from labelweave.cli.data_options import file_options, label_column_options
from labelweave.cli.graph_words import has_graph
from labelweave.cli.messages import console, note, print_json
from labelweave.cli.model_outputs import (
    has_one_class_a_row,
    has_probabilities,
    probabilities_of,
    proven_share,
    ranking_offsets,
    scores_of,
)
from labelweave.cli.model_rows import Model, classifier_of, open_model, read_labeled_rows
from labelweave.datasets import LabeledData
from labelweave.labels import LabelMatrix
from labelweave.metrics import log_loss, score_table

__all__ = ["evaluate", "metric_table"]

Array = npt.NDArray[Any]


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--ignore-unknown-labels", is_flag=True, help="Pass over labels that the model does not know.")
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
    loaded = open_model(model)
    rows = read_labeled_rows(loaded, data, options)
    ignore = options["ignore_unknown_labels"]
    measure = class_metrics if has_one_class_a_row(loaded) else _label_metrics
    counts, metrics = measure(loaded, rows, ignore)
    if as_json:
        print_json(counts | metrics)
        return
    console().print(", ".join(f"{count} {what}" for what, count in counts.items()))
    console().print(metric_table({"value": metrics}))


def _label_metrics(model: Model, rows: LabeledData, ignore: bool) -> tuple[dict[str, int], dict[str, float]]:
    """Measure a model of many labels a row."""
    Y, columns = _matched(rows.Y, model.label_names_, ignore)
    scores = scores_of(model, rows.X)
    metrics = score_table(Y, (scores + ranking_offsets(model))[:, columns], scores[:, columns] > 0)
    if has_probabilities(model):
        metrics |= {"log_loss": log_loss(Y, probabilities_of(model, rows.X)[:, columns])}
    if has_graph(classifier_of(model)):
        metrics |= {"proven_optimal": proven_share(model, rows.X)}
    return {"rows": len(Y), "labels": Y.n_labels}, metrics


def _matched(Y: LabelMatrix, names: Array, ignore: bool) -> tuple[LabelMatrix, Array]:
    """Keep the labels that data and model share; give their columns in the model."""
    given = [str(label) for label in (range(Y.n_labels) if Y.names is None else Y.names)]
    numbered = Y.names is None and Y.n_labels <= len(names)
    place = {str(name): column for column, name in enumerate(names)}
    columns = np.array([k if numbered else place.get(label, -1) for k, label in enumerate(given)], np.intp)
    unknown = np.flatnonzero(columns < 0)
    if len(unknown) and not ignore:
        raise ValueError(
            f"The label {given[unknown[0]]!r} is unknown to the model ({len(unknown)} of {len(given)} are); "
            "pass over such labels with --ignore-unknown-labels."
        )
    known = np.flatnonzero(columns >= 0)
    if not len(known):
        raise ValueError("No label of the data is known to the model, so there is nothing to compare.")
    if len(known) < len(names):
        note(f"{len(names) - len(known)} of the model's {len(names)} labels are not in the data.")
    return Y.select_labels(known), columns[known]


def metric_table(metrics: dict[str, dict[str, float]]) -> Table:
    """Lay out metrics, one row each.

    Parameters
    ----------
    metrics : dict of str to dict
        A column for each key.

    Returns
    -------
    rich.table.Table
        The table.
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
