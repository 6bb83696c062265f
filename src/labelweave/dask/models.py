"""Fits of estimators to Dask collections: the fit of each class, and the limits compared with memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from distributed import Client
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from labelweave.dask import automatic, label_tree, max_margin
from labelweave.dask.client import budget_of, connected, in_fit, innermost, refuse_large_tables
from labelweave.dask.data import ReadData, gathered_entries, gathered_labels, read
from labelweave.dask.decisions import fit_decider
from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.graph_margin import PartitionedGraphData
from labelweave.dask.partitions import row_partitions
from labelweave.dask.table_model import fit_frames
from labelweave.dask.waiting import gathered
from labelweave.decisions import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    HierarchicalClassifier,
    TunedThresholdClassifier,
)
from labelweave.decisions.automatic import AutoLabelClassifier
from labelweave.decisions.base import DecisionClassifier
from labelweave.estimators import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    TableModel,
)
from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.journal import FitArguments
from labelweave.estimators.parameters import refuse_together
from labelweave.estimators.seen_rows import SeenRows
from labelweave.foundation.sklearn_compat import callbacks_of
from labelweave.labels.label_names import read_entry_weights

Model = TypeVar("Model")
_NONE = FitArguments(None, None, None)
_BYTES_AN_ENTRY = 64  # per entry of Y in label graphs: costs, distributions, and copies in transfer
_TABLES = 15  # of rows x labels in a kernel logistic fit
_LEARNING_ROWS = 3000  # for learning parameters on the client, by default


def low_rank(model: LowRankClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any) -> None:
    """Fit to partitions that workers have read; the client has the labels, and tables of features x rank."""
    labels, weights = gathered_labels(client, data)
    features, entries = _features(model, client, data), gathered_entries(client, data)
    rows = SeenRows(features, labels, weights, data.form, entries=entries)
    before = None if start is None else start._end
    in_fit(model, lambda: model._fit(rows, before, _NONE))


def label_graph(
    model: LabelGraphClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
) -> None:
    """Fit to partitions that workers have read, after joining small ones."""
    n_labels = len(data.counts.positives)
    refuse_large_tables(model, data.n_rows, n_labels, _BYTES_AN_ENTRY, "or pass fewer rows or labels")
    labels, weights = gathered_labels(client, data)
    features = PartitionedFeatures(client, data.joined(client, budget_of(model)))
    entries = read_entry_weights(gathered_entries(client, data), labels)
    rows = SeenRows(features, labels, weights, data.form, entries=entries)
    in_fit(model, lambda: model._fit(rows, None, _NONE, PartitionedGraphData))


def kernel_logistic(
    model: KernelLogisticClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
) -> None:
    """Fit to partitions that workers have read; the client has about fifteen tables of rows x labels."""
    n_labels = len(data.form.classes)
    instead = "pass fewer rows, or use MaxMarginClassifier, which leaves them on the workers"
    refuse_large_tables(model, data.n_rows, n_labels, 8 * _TABLES, instead)
    y, weights = _gathered_targets(client, data)
    features, entries = _features(model, client, data), gathered_entries(client, data)
    asked, search = model.hyperparameters, model._search
    if search is not None and search.learning_rows is None:
        model.hyperparameters = clone(search).set_params(learning_rows=_LEARNING_ROWS)
    try:
        in_fit(model, lambda: model._fit(model._read_rows(features, y, weights, entries), None, _NONE))
    finally:
        model.hyperparameters = asked
    if not data.form.has_one_class:
        model._form = data.form


def _features(model: Any, client: Client, data: ReadData) -> PartitionedFeatures:
    return PartitionedFeatures(client, data, is_verbose=bool(model.verbose))


def _gathered_targets(client: Client, data: ReadData) -> tuple[Any, Any]:
    """Bring labels, or the class of each row, and weights to the client."""
    if not data.form.has_one_class:
        return gathered_labels(client, data)
    classes = gathered(client, client.map(attrgetter("targets"), data.rows, pure=False))
    weights = gathered(client, client.map(attrgetter("weights"), data.rows, pure=False))
    return np.concatenate(classes), np.concatenate(weights)


FAMILIES: dict[type, Callable[..., None]] = {
    AutoLabelClassifier: automatic.fit_to,
    KernelLogisticClassifier: kernel_logistic,
    LabelGraphClassifier: label_graph,
    LabelTreeClassifier: label_tree.fit_to,
    LowRankClassifier: low_rank,
    MaxMarginClassifier: max_margin.fit_to,
}
"""The fits of classes of models to partitions."""
_DECIDERS = (
    CalibratedLabelClassifier, ConformalLabelClassifier, HierarchicalClassifier, TunedThresholdClassifier,
)  # fmt: skip


def fit(
    model: Model, X: Any, y: Any = None, sample_weight: Any = None, entry_weight: Any = None,
    groups: Any = None,
) -> Model:  # fmt: skip
    """Fit a model on the cluster of the current client.

    X: a collection of rows, or a list with those of each partition; pairs (X, y) if ``y`` is None.
    """
    if entry_weight is not None and not has_fit_parameter(model, "entry_weight"):
        raise TypeError(f"{type(model).__name__}.fit does not take entry_weight; omit it.")
    if groups is not None:
        raise ValueError("groups are for data in memory; omit them for Dask collections.")
    fit_partitions(model, row_partitions(X, y, sample_weight, entry_weight))
    return model


def fit_partitions(model: Any, parts: Sequence[tuple[Any, Any, Any, Any]]) -> int:
    """Fit a model to partitions, each with features, targets and weights; return the number of rows.

    An error leaves the model unchanged.
    """
    model._validate_params()
    refuse_in_memory(model)
    client, own = connected(), model.get_params(deep=False)
    fitted = type(model)(**own)
    try:
        n_rows = _fit_new(fitted, client, parts)
    except KeyboardInterrupt:
        if hasattr(fitted, "status_"):
            vars(model).update(vars(fitted))
        raise
    vars(model).clear()
    vars(model).update(vars(fitted) | own)
    return n_rows


def _fit_new(model: Any, client: Client, parts: Sequence[tuple[Any, Any, Any, Any]]) -> int:
    if isinstance(model, TableModel):
        return fit_frames(model, client, parts, fit_partitions)
    if isinstance(model, AutoLabelClassifier):
        return automatic.fit_as_given(model, client, parts)
    data = read_for(model, client, parts)
    fit_to(model, client, data)
    return data.n_rows


def read_for(model: Any, client: Client, parts: Sequence[tuple[Any, Any, Any, Any]]) -> ReadData:
    """Read partitions as a model reads rows; listed labels unknown to a fitted inner model are ignored."""
    reader, known = innermost(model), getattr(model, "_known", None)
    form = model.estimator._form if known is not None and known.dtype.kind in "OU" else None
    return read(client, clone(reader), parts, is_verbose=bool(reader.verbose), known_tags=form)


def fit_to(model: Any, client: Client, data: ReadData, *, is_part: bool = False, start: Any = None) -> Any:
    """Fit an unfitted model in place to partitions that workers have read, which may be released after it.

    is_part: whether these are some of the rows, so that decisions can be chosen on the others.
    start: a model fitted to some of the rows, for a warm start.
    Returns the model.
    """
    if isinstance(model, DecisionClassifier):
        return fit_decider(model, client, data, fit_to)
    model.scaling_, model.n_features_in_ = None, data.n_features
    names = data.facts[0].names
    if names is not None:
        model.feature_names_in_ = names.astype(object)
    FAMILIES[type(model)](model, client, data, is_part=is_part, start=start)
    return model


def refuse_in_memory(model: Any) -> None:
    """Raise for models, and parameter values, that need data in memory, by the table above."""
    kind = type(model)
    if kind is TableModel:
        if isinstance(model.classifier, TableModel):
            raise ValueError("classifier is a TableModel; pass a classifier of its features.")
        refuse_in_memory(model.classifier)
    elif kind in _DECIDERS:
        _refuse_decider(model)
    elif kind not in FAMILIES:
        _refuse_kind(kind)
    if callbacks_of(model):
        raise ValueError("callbacks are for data in memory; remove them for Dask collections.")
    if kind in FAMILIES:
        refuse_together(model, {"partitions": ""})


def _refuse_kind(kind: type) -> None:
    raise ValueError(
        f"{kind.__name__} needs data in memory; pass arrays, or for Dask collections use "
        f"{', '.join(one.__name__ for one in FAMILIES)}."
    )


def _refuse_decider(model: Any) -> None:
    inner, reader = model.estimator, innermost(model)
    if isinstance(inner, DecisionClassifier) and type(inner) not in _DECIDERS:
        _refuse_kind(type(inner))
    reads = isinstance(reader, LabelClassifier) if model._is_prefit else type(reader) in FAMILIES
    if not reads:
        raise ValueError(
            f"estimator is a {type(reader).__name__}, which cannot read partitions; use one of "
            f"{', '.join(one.__name__ for one in FAMILIES)} (with TableModel outermost)."
        )
    if model._is_prefit:
        check_is_fitted(inner)
        return
    if getattr(inner, "checkpoint", None) is not None:
        raise ValueError(
            f"checkpoint stores one fit, but {type(model).__name__} fits several times; omit it, or "
            "fit the estimator first, and pass it with cv='prefit'."
        )
    refuse_in_memory(inner)
