"""Models whose ordinary solver runs on the client, and has what it sums over rows made where these are."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Client

from labelweave.dask.client import budget_of, in_fit, refuse_large_tables
from labelweave.dask.data import ReadData, gathered_entries, gathered_labels
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.graph_margin import PartitionedGraphData
from labelweave.dask.rows import ReadRows, weights_of
from labelweave.dask.waiting import gathered
from labelweave.estimators import KernelLogisticClassifier, LabelGraphClassifier, LowRankClassifier
from labelweave.estimators.progress import FitArguments
from labelweave.estimators.seen_rows import SeenRows
from labelweave.estimators.targets import read_entry_weights

_NONE = FitArguments(None, None, None)
_BYTES_AN_ENTRY = 64  # of Y in label graphs: costs, distributions, and copies while they are sent
_TABLES = 15  # of rows x labels, which a kernel logistic fit holds
_LEARNING_ROWS = 3000  # which it learns from on the client, where no other number is given


def low_rank(model: LowRankClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any) -> None:
    """Fit to partitions that were read; the client holds the labels, and tables of features times rank."""
    labels, weights = gathered_labels(client, data)
    features, entries = _features(model, client, data), gathered_entries(client, data)
    rows = SeenRows(features, labels, weights, data.form, entries=entries)
    before = None if start is None else start._end
    in_fit(model, lambda: model._fit(rows, before, _NONE))


def label_graph(
    model: LabelGraphClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
) -> None:
    """Fit to partitions that were read; small ones are brought together first."""
    n_labels = len(data.counts.positives)
    refuse_large_tables(model, data.n_rows, n_labels, _BYTES_AN_ENTRY, "or give fewer rows or labels")
    labels, weights = gathered_labels(client, data)
    features = PartitionedFeatures(client, data.joined(client, budget_of(model)))
    entries = read_entry_weights(gathered_entries(client, data), labels)
    rows = SeenRows(features, labels, weights, data.form, entries=entries)
    in_fit(model, lambda: model._fit(rows, None, _NONE, PartitionedGraphData))


def kernel_logistic(
    model: KernelLogisticClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
) -> None:
    """Fit to partitions that were read; the client holds some fifteen tables of rows times labels."""
    n_labels = len(data.form.classes)
    instead = "give fewer rows, or use MaxMarginClassifier, which leaves them on the workers"
    refuse_large_tables(model, data.n_rows, n_labels, 8 * _TABLES, instead)
    y, weights = _gathered_targets(client, data)
    features, entries = _features(model, client, data), gathered_entries(client, data)
    asked = model.learning_rows
    model.learning_rows = _LEARNING_ROWS if asked is None else asked
    try:
        in_fit(model, lambda: model._fit(model._read_rows(features, y, weights, entries), None, _NONE))
    finally:
        model.learning_rows = asked
    if data.form.kind == "labels":
        model._form = data.form


def _features(model: Any, client: Client, data: ReadData) -> PartitionedFeatures:
    return PartitionedFeatures(client, data, is_verbose=bool(model.verbose))


def _gathered_targets(client: Client, data: ReadData) -> tuple[Any, Any]:
    """Bring labels, or the class of each row, and weights to the client."""
    if data.form.kind == "labels":
        return gathered_labels(client, data)
    classes = gathered(client, client.map(_targets_of, data.rows, pure=False))
    weights = gathered(client, client.map(weights_of, data.rows, pure=False))
    return np.concatenate(classes), np.concatenate(weights)


def _targets_of(rows: ReadRows) -> Any:
    return rows.targets
