"""Models on Dask's collections, compared on the same folds: labels come to the client, rows stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Client

from labelweave.dask.client import connected, unfitted
from labelweave.dask.data import ReadData, gathered_labels
from labelweave.dask.measures import table_sums
from labelweave.dask.models import fit_to, read_for, refuse_in_memory
from labelweave.dask.partitions import row_partitions
from labelweave.dask.parts import Parts
from labelweave.dask.rows import ReadRows, rows_of
from labelweave.decisions.comparison.compare import (
    RowsToCompare,
    Split,
    compared,
    metrics_of_class_sets,
    named_models,
    size_of,
    splits_of,
)
from labelweave.decisions.comparison.outcome import Comparison
from labelweave.estimators import TableModel
from labelweave.foundation.array_types import Floats
from labelweave.metrics import class_summary
from labelweave.metrics.summary import TableSums
from labelweave.problems.travelling_margins import in_tree_order

_K = (1, 3, 5)
_OF_CLASSES = ("accuracy", "mean_reciprocal_rank", "log_loss")  # means over rows
_OF_SETS = ("coverage", "set_size")


def compare(
    estimators: Any, X: Any, y: Any = None, cv: Any = 5, *, reference: str | None = None,
    random_state: int | None = 0, on_fit: Callable[[str, int], None] | None = None,
) -> Comparison:  # fmt: skip
    """Compare models as :func:`labelweave.compare` does, one after the other, each on the whole cluster.

    Labels come to the client, which draws the folds from them; of the rows that are held out, sums do.
    """
    models = named_models(estimators, reference)
    for name, model in models.items():
        _refuse(name, model)
    client, parts = connected(), row_partitions(X, y)
    splits: list[Split] = []
    values: dict[str, list[dict[str, float]]] = {}
    for name, model in models.items():
        data = read_for(model, client, parts)
        splits = splits or _folds(client, data, cv, random_state)
        values[name] = []
        for fold, split in enumerate(splits):
            if on_fit is not None:
                on_fit(name, fold)
            values[name].append(_measure(model, client, data, split))
    return compared(values, splits, reference)


def _refuse(name: str, model: Any) -> None:
    if isinstance(model, TableModel):
        raise ValueError(
            f"{name} is a TableModel, which learns words from all rows that it is fitted to, and stands "
            "outermost; compare models on features that a TableVectorizer has made."
        )
    model._validate_params()
    refuse_in_memory(model)
    if getattr(model, "checkpoint", None) is not None:
        raise ValueError(
            f"checkpoint keeps one fit, but {name} is fitted to the rows of each fold; leave it out."
        )


def _folds(client: Client, data: ReadData, cv: Any, random_state: int | None) -> list[Split]:
    labels = gathered_labels(client, data)[0]
    y: Any = labels
    if data.form.kind != "labels":
        if (data.counts.observed < data.n_rows).any():
            raise ValueError("A row of y has no class; leave such rows out of a comparison.")
        y = data.form.decide(labels.to_signs())
    rows = RowsToCompare(np.empty((len(labels), 0)), y, labels if y is labels else None)
    return [(np.sort(train), np.sort(test)) for train, test in splits_of(rows, cv, random_state)]


def _measure(model: Any, client: Client, data: ReadData, split: Split) -> dict[str, float]:
    train, test = (data.some_rows(client, rows) for rows in split)
    begin = time.perf_counter()
    fitted_model = fit_to(unfitted(model), client, train)
    fitted = time.perf_counter()
    of_rows = _label_sums if data.form.kind == "labels" else _class_sums
    held = Parts(client, test.rows, [facts.n_rows for facts in test.facts])
    sums = in_tree_order(held.each(of_rows, fitted_model))
    if isinstance(sums, TableSums):
        metrics = sums.table()
    else:
        names = _OF_SETS if len(sums) == 1 + len(_OF_SETS) else _OF_CLASSES
        metrics = dict(zip(names, (sums[1:] / sums[0]).tolist(), strict=False))
    seconds = {"fit_seconds": fitted - begin, "predict_seconds": time.perf_counter() - fitted}
    return metrics | seconds | {"megabytes": size_of(fitted_model) / 1e6}


def _label_sums(rows: ReadRows, model: Any) -> TableSums:
    k = _K if hasattr(model, "decision_function") else None
    return table_sums(model, rows_of(rows.features), rows.targets, np.ones(len(rows.targets)), k)


def _class_sums(rows: ReadRows, model: Any) -> Floats:
    """Count the rows, and add up the metrics of classes: (2,), (3,) of sets, (4,) with probabilities."""
    X, truth = rows_of(rows.features), np.asarray(rows.targets)
    predicted = model.predict(X)
    if np.ndim(predicted) == 2:
        found = metrics_of_class_sets(model, X, truth, predicted)
    elif hasattr(model, "predict_proba"):
        found = class_summary(truth, model.predict_proba(X), model.classes_, y_pred=predicted)
    else:
        found = {"accuracy": np.mean(predicted == truth)}
    return np.array([1.0, *(found[name] for name in (*_OF_CLASSES, *_OF_SETS) if name in found)]) * len(truth)
