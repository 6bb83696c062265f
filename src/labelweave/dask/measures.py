"""How good a model is on partitions: sums over rows, which come to the client, where scores do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import Client

import dask
from labelweave.dask.partitions import NO_ROWS, row_partitions
from labelweave.dask.rows import count_rows, is_empty
from labelweave.dask.waiting import gathered, returning_refusals
from labelweave.estimators.targets import unknown_entries
from labelweave.foundation.array_types import Floats
from labelweave.foundation.arrays import numbers_of, panels
from labelweave.labels import LabelMatrix
from labelweave.metrics._classes import right_rows
from labelweave.metrics.known_labels import truth_for
from labelweave.metrics.summary import TableSums
from labelweave.problems.travelling_margins import in_tree_order

_ENTRIES = 2**22  # scores that a worker makes at a time


def summed(client: Client, model: Any, of_rows: Any, X: Any, y: Any, sample_weight: Any, *more: Any) -> Any:
    """Add what a function gives of the rows of each partition, in the order of the partitions.

    of_rows: gets the model, features, targets, weights, and more.
    Raises ValueError if a partition makes no sense, which is named, or none has rows.
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
        raise ValueError(f"sample_weight is not one number from 0 on for each of {n_rows} rows.")
    return of_rows(model, X, y, own, *more)


def table_sums(model: Any, X: Any, y: Any, weights: Floats, k: Sequence[int] | None) -> TableSums:
    """Count in the rows of a partition, some at a time.

    k: for metrics at k; None for those of label sets alone.
    """
    truth = LabelMatrix.from_any(truth_for(y, model))
    if len(truth) != count_rows(X):
        raise ValueError(f"X has {count_rows(X)} rows but y has {len(truth)}.")
    parts = []
    for some in panels(len(truth), max(1, _ENTRIES // max(1, truth.n_labels))):
        rows = X.iloc[some] if hasattr(X, "iloc") else X[some]
        scores = None if k is None else model.decision_function(rows)
        parts.append(TableSums.of(truth[some], scores, model.predict(rows), k or (), weights[some]))
    found: TableSums = in_tree_order(parts)
    return found


def right_classes(model: Any, X: Any, y: Any, weights: Floats) -> Floats:
    """Weigh the rows whose class is right, or in the set of the row, and all of known class: (2,)."""
    predicted = np.asarray(model.predict(X))
    if predicted.ndim == 2:
        weight = weights[~unknown_entries(np.ravel(y))].sum()
        return np.array([model.score(X, y, weights) * weight if weight else 0.0, weight])
    right, is_known = right_rows(y, predicted, model.classes_, None)
    return np.array([(weights * is_known) @ right, weights @ is_known])
