"""One table of scores, a column a label, from any fitted scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from labelweave.array_types import Array, RowsByLabels
from labelweave.arrays import panels
from labelweave.sklearn_compat import _num_samples, _safe_indexing

__all__ = ["decision_level", "label_probabilities", "label_scores", "rows_of", "score_blocks", "take_rows"]


_SCORES_AT_ONCE = 16_000_000


def label_scores(estimator: Any, X: Any, n_labels: int, response: str = "auto") -> RowsByLabels:
    """Score every label by ``decision_function`` or, for want of it, by ``predict_proba``.

    response: which of the two; "auto" prefers the first.
    Raises ValueError if the estimator has no such method, or gives something of another shape.
    """
    if response == "predict_proba" or not hasattr(estimator, "decision_function"):
        return label_probabilities(estimator, X, n_labels)
    return _as_table(np.asarray(estimator.decision_function(X)), estimator, n_labels)


def label_probabilities(estimator: Any, X: Any, n_labels: int) -> RowsByLabels:
    """Ask for the probability of every label, in one table.

    Raises ValueError if the estimator has no probabilities, or gives something of another shape.
    """
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has neither the method that is asked for nor predict_proba; "
            "give an estimator with decision_function or predict_proba."
        )
    found = estimator.predict_proba(X)
    if isinstance(found, list):  # forests, neighbours and trees give one table a label
        classes = getattr(estimator, "classes_", [np.arange(2)] * len(found))
        columns = [_positive_column(table, values) for table, values in zip(found, classes, strict=True)]
        return _as_table(np.column_stack(columns), estimator, n_labels)
    table = np.asarray(found)
    if n_labels == 1 and table.ndim == 2 and table.shape[1] == 2:
        table = table[:, 1]
    return _as_table(table, estimator, n_labels)


def _positive_column(table: Array, classes: Any) -> Array:
    """Take the column of the label's class 1; a label that was never seen, or always, has one class only."""
    if len(classes) == 2:
        return np.asarray(table[:, 1])
    return np.full(len(table), float(classes[0] == 1))


def _as_table(scores: Array, estimator: Any, n_labels: int) -> Array:
    table = scores.reshape(-1, 1) if scores.ndim == 1 and n_labels == 1 else scores
    if table.ndim != 2 or table.shape[1] != n_labels:
        raise ValueError(
            f"{type(estimator).__name__} gives scores of shape {scores.shape} for {n_labels} labels; one "
            "column a label is needed."
        )
    return table


def decision_level(estimator: Any, response: str = "auto") -> float:
    """Say above which score an estimator itself predicts a label.

    Returns 1/2 for probabilities, 0 for other scores.
    """
    is_score = response != "predict_proba" and hasattr(estimator, "decision_function")
    return 0.0 if is_score else 0.5


def take_rows(table: Any, rows: Any) -> Any:
    """Take rows of what users hold.

    Returns these rows, of the same kind.
    """
    from labelweave.labels import LabelMatrix

    if isinstance(table, LabelMatrix):
        return table[rows]
    return _safe_indexing(table, rows)


def rows_of(table: Any) -> int:
    """Count the rows of what users hold."""
    return int(_num_samples(table))


def score_blocks(estimator: Any, X: Any, n_labels: int, response: str = "auto") -> Iterator[Array]:
    """Score rows, some at a time.

    Returns (b, L): scores of the next rows.
    """
    n_rows, size = rows_of(X), max(1, _SCORES_AT_ONCE // max(1, n_labels))
    if n_rows <= size or get_tags(estimator).input_tags.pairwise:
        yield label_scores(estimator, X, n_labels, response)
        return
    for rows in panels(n_rows, size):
        yield label_scores(estimator, take_rows(X, np.arange(rows.start, rows.stop)), n_labels, response)
