"""Models on Dask's collections, compared on the same folds: labels come to the client, rows stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Client
from sklearn.base import clone

from labelweave.dask.data import ReadData, gathered_labels, read
from labelweave.dask.decisions import innermost
from labelweave.dask.measures import table_sums
from labelweave.dask.partitions import row_partitions
from labelweave.dask.parts import Parts
from labelweave.dask.predictions import PartitionedPredictions
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
from labelweave.foundation.arguments import checked, shown
from labelweave.foundation.array_types import Floats
from labelweave.metrics import class_summary
from labelweave.metrics.summary import TableSums
from labelweave.problems.travelling_margins import in_tree_order

_K = (1, 3, 5)
_OF_CLASSES = ("accuracy", "mean_reciprocal_rank", "log_loss")  # means over rows
_OF_SETS = ("coverage", "set_size")


@checked
def compare(
    estimators: Any, X: Any, y: Any = None, cv: Any = 5, *, reference: str | None = None,
    random_state: int | None = 0, on_fit: Callable[[str, int], None] | None = None,
) -> Comparison:  # fmt: skip
    """Compare models of this package on the same folds, as :func:`labelweave.compare` does in memory.

    Models are fitted one after the other, each on the whole cluster.  Labels come to the client, which draws
    the folds from them; of the rows that are held out, sums do.  Each model reads the partitions once.

    Parameters
    ----------
    estimators : dict of str to classifier, list of classifier, list of (str, classifier), or classifier
        The models, of labelweave.dask, without ``checkpoint``; they stay as they are.
    X : dask array or DataFrame of shape (n, d), or list of delayed values or futures
        The rows.
    y : dask array or DataFrame of shape (n, L) or (n,), list as X, or None, default=None
        Labels or classes, as the models take them.  None for a list of pairs (X, y).
    cv : int, splitter or iterable of (train, test), default=5
        The folds, as in memory; splitters see the number of rows and the labels.
    reference : str or None, default=None
        The model with which others are compared; the first by default.
    random_state : int or None, default=0
        Draws the folds of a number.
    on_fit : callable or None, default=None
        Called with the model's name and the fold before every fit.

    Returns
    -------
    Comparison
        As in memory, up to the tolerance of fits, but for "auc_label", which needs all scores in one place.
        Of classes "accuracy", and with probabilities "mean_reciprocal_rank" and "log_loss"; of sets of
        classes "coverage" and "set_size".
        "predict_seconds" has the measuring too.

    Raises
    ------
    ValueError
        If there is no model, one is not of labelweave.dask or has a checkpoint, names are given twice, a row
        has no class, cv makes no folds, or data make no sense; the partition is named.
    RuntimeError
        If workers die again and again, or lost what cannot be made again.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelweave import datasets
    >>> from labelweave.dask import MaxMarginClassifier, compare
    >>> data = datasets.make_text_like(200, 150, 6)
    >>> X = da.from_array(data.X.toarray(), chunks=(100, 150))
    >>> Y = da.from_array(data.Y.positives.toarray(), chunks=(100, 6))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     models = {f"C={C}": MaxMarginClassifier(client, C=C) for C in (0.1, 1.0)}
    ...     found = compare(models, X, Y, cv=2)
    >>> found.models
    ['C=0.1', 'C=1.0']
    """
    models = named_models(estimators, reference)
    for name, model in models.items():
        _refuse(name, model)
    parts = row_partitions(X, y)
    splits: list[Split] = []
    values: dict[str, list[dict[str, float]]] = {}
    for name, model in models.items():
        client, reader = model._connected(), innermost(model._reader())
        data = read(client, clone(reader), parts, is_verbose=bool(reader.verbose))
        splits = splits or _folds(client, data, cv, random_state)
        values[name] = []
        for fold, split in enumerate(splits):
            if on_fit is not None:
                on_fit(name, fold)
            values[name].append(_measure(model, client, data, split))
    return compared(values, splits, reference)


def _refuse(name: str, model: Any) -> None:
    if not isinstance(model, PartitionedPredictions):
        raise ValueError(
            f"{name} is {shown(model)}, for data in memory; give models of labelweave.dask, or call "
            "labelweave.compare."
        )
    if getattr(model, "checkpoint", None) is not None:
        raise ValueError(
            f"checkpoint keeps one fit, but {name} is fitted to the rows of each fold; leave it out."
        )
    model._validate_params()


def _folds(client: Client, data: ReadData, cv: Any, random_state: int | None) -> list[Split]:
    labels = gathered_labels(client, data)[0]
    y: Any = labels
    if data.form.kind != "labels":
        if (data.counts.observed < data.n_rows).any():
            raise ValueError("A row of y has no class; leave such rows out of a comparison.")
        y = data.form.decide(labels.to_signs())
    rows = RowsToCompare(np.empty((len(labels), 0)), y, labels if y is labels else None)
    return [(np.sort(train), np.sort(test)) for train, test in splits_of(rows, cv, random_state)]


def _measure(model: PartitionedPredictions, client: Client, data: ReadData, split: Split) -> dict[str, float]:
    train, test = (data.some_rows(client, rows) for rows in split)
    begin = time.perf_counter()
    local = model._fitted_to(client, train)
    fitted = time.perf_counter()
    of_rows = _label_sums if data.form.kind == "labels" else _class_sums
    held = Parts(client, test.rows, [facts.n_rows for facts in test.facts])
    sums = in_tree_order(held.each(of_rows, local))
    if isinstance(sums, TableSums):
        metrics = sums.table()
    else:
        names = _OF_SETS if len(sums) == 1 + len(_OF_SETS) else _OF_CLASSES
        metrics = dict(zip(names, (sums[1:] / sums[0]).tolist(), strict=False))
    seconds = {"fit_seconds": fitted - begin, "predict_seconds": time.perf_counter() - fitted}
    return metrics | seconds | {"megabytes": size_of(local) / 1e6}


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
