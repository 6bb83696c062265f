"""Model comparison on Dask collections: only sums over rows come to the client, folds are shared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client

import dask
from labelweave.dask.client import connected, unfitted
from labelweave.dask.data import ReadData, gathered_labels
from labelweave.dask.models import fit_to, read_for, refuse_in_memory
from labelweave.dask.partitions import NO_ROWS, row_partitions
from labelweave.dask.parts import Parts
from labelweave.dask.rows import ReadRows, count_rows, is_empty, rows_of
from labelweave.dask.waiting import gathered, returning_refusals
from labelweave.decisions import comparison
from labelweave.decisions.comparison import Comparison, RowsToCompare, Split
from labelweave.estimators import TableModel
from labelweave.foundation.array_types import Floats
from labelweave.foundation.arrays import numbers_of, panels
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import unknown_entries
from labelweave.metrics import class_summary
from labelweave.metrics._classes import right_rows
from labelweave.metrics.known_labels import truth_for
from labelweave.metrics.summary import TableSums
from labelweave.problems.traveling_margins import in_tree_order

_K = (1, 3, 5)
_OF_CLASSES = ("accuracy", "mean_reciprocal_rank", "log_loss")  # means over rows
_OF_SETS = ("coverage", "set_size")
_ENTRIES = 2**22  # scores computed at a time


def compare(
    estimators: Any, X: Any, y: Any = None, cv: Any = 5, *, reference: str | None = None,
    random_state: int | None = 0, on_fit: Callable[[str, int], None] | None = None,
) -> Comparison:  # fmt: skip
    """Compare models like :func:`labelweave.compare`, one after the other, each on the whole cluster.

    Labels come to the client, which draws the folds from them; held-out rows only send sums.
    """
    models = comparison.named_models(estimators, reference)
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
    return comparison.compared(values, splits, reference)


def _refuse(name: str, model: Any) -> None:
    if isinstance(model, TableModel):
        raise ValueError(
            f"{name} is a TableModel, which learns words from all its rows and must be "
            "outermost; compare models on features from a TableVectorizer."
        )
    model._validate_params()
    refuse_in_memory(model)
    if getattr(model, "checkpoint", None) is not None:
        raise ValueError(f"checkpoint stores one fit, but {name} is fitted to each fold; omit it.")


def _folds(client: Client, data: ReadData, cv: Any, random_state: int | None) -> list[Split]:
    labels = gathered_labels(client, data)[0]
    y: Any = labels
    if data.form.has_one_class:
        if (data.counts.observed < data.n_rows).any():
            raise ValueError("A row of y has no class; remove such rows.")
        y = data.form.decide(labels.to_signs())
    rows = RowsToCompare(np.empty((len(labels), 0)), y, labels if y is labels else None)
    return [(np.sort(train), np.sort(test)) for train, test in comparison.splits_of(rows, cv, random_state)]


def _measure(model: Any, client: Client, data: ReadData, split: Split) -> dict[str, float]:
    train, test = (data.some_rows(client, rows) for rows in split)
    begin = time.perf_counter()
    fitted_model = fit_to(unfitted(model), client, train)
    fitted = time.perf_counter()
    of_rows = _class_sums if data.form.has_one_class else _label_sums
    held = Parts(client, test.rows, [facts.n_rows for facts in test.facts])
    sums = in_tree_order(held.each(of_rows, fitted_model))
    if isinstance(sums, TableSums):
        metrics = sums.table()
    else:
        names = _OF_SETS if len(sums) == 1 + len(_OF_SETS) else _OF_CLASSES
        metrics = dict(zip(names, (sums[1:] / sums[0]).tolist(), strict=False))
    seconds = {"fit_seconds": fitted - begin, "predict_seconds": time.perf_counter() - fitted}
    return metrics | seconds | {"megabytes": comparison.size_of(fitted_model) / 1e6}


def _label_sums(rows: ReadRows, model: Any) -> TableSums:
    k = _K if hasattr(model, "decision_function") else None
    return table_sums(model, rows_of(rows.features), rows.targets, np.ones(len(rows.targets)), k)


def _class_sums(rows: ReadRows, model: Any) -> Floats:
    """Count rows, and sum the metrics of classes: (2,), (3,) for sets, (4,) with probabilities."""
    X, truth = rows_of(rows.features), np.asarray(rows.targets)
    predicted = model.predict(X)
    if np.ndim(predicted) == 2:
        found = comparison.metrics_of_class_sets(model, X, truth, predicted)
    elif hasattr(model, "predict_proba"):
        found = class_summary(truth, model.predict_proba(X), model.classes_, y_pred=predicted)
    else:
        found = {"accuracy": np.mean(predicted == truth)}
    return np.array([1.0, *(found[name] for name in (*_OF_CLASSES, *_OF_SETS) if name in found)]) * len(truth)


def summed(client: Client, model: Any, of_rows: Any, X: Any, y: Any, sample_weight: Any, *more: Any) -> Any:
    """Sum a function over the rows of each partition, in the order of the partitions.

    of_rows: gets the model, features, targets, weights, and further arguments.
    Raises ValueError if a partition is invalid, with its number, or none has rows.
    """
    kept, one = dask.delayed(model), dask.delayed(_of_partition, pure=False)
    parts = row_partitions(X, y, sample_weight)
    tasks = [one(of_rows, kept, *part[:3], *more) for part in parts]
    found = [one for one in gathered(client, client.compute(tasks), part="Partition") if one is not None]
    if not found:
        raise ValueError(NO_ROWS)
    return in_tree_order(found)


@returning_refusals
def _of_partition(of_rows: Any, model: Any, X: Any, y: Any, weights: Any, *more: Any) -> Any:
    if is_empty(X, y):
        return None
    n_rows = count_rows(X)
    own = np.ones(n_rows) if weights is None else numbers_of(weights, "sample_weight")
    if own.shape != (n_rows,) or not np.isfinite(own).all() or (own < 0).any():
        raise ValueError(f"sample_weight is invalid; pass a number >= 0 for each of {n_rows} rows.")
    return of_rows(model, X, y, own, *more)


def table_sums(model: Any, X: Any, y: Any, weights: Floats, k: Sequence[int] | None) -> TableSums:
    """Compute the sums of a partition, in blocks of rows.

    k: for metrics at k; None for label set metrics only.
    """
    truth = LabelMatrix.from_any(truth_for(y, model))
    if len(truth) != count_rows(X):
        raise ValueError(f"X has {count_rows(X)} rows but y has {len(truth)}; pass as many.")
    parts = []
    for some in panels(len(truth), max(1, _ENTRIES // max(1, truth.n_labels))):
        rows = X.iloc[some] if hasattr(X, "iloc") else X[some]
        scores = None if k is None else model.decision_function(rows)
        parts.append(TableSums.of(truth[some], scores, model.predict(rows), k or (), weights[some]))
    found: TableSums = in_tree_order(parts)
    return found


def right_classes(model: Any, X: Any, y: Any, weights: Floats) -> Floats:
    """Sum the weights of correctly predicted rows (or sets with the class), and of all labeled rows: (2,)."""
    predicted = np.asarray(model.predict(X))
    if predicted.ndim == 2:
        weight = weights[~unknown_entries(np.ravel(y))].sum()
        return np.array([model.score(X, y, weights) * weight if weight else 0.0, weight])
    right, is_known = right_rows(y, predicted, model.classes_, None)
    return np.array([(weights * is_known) @ right, weights @ is_known])
