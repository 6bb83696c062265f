"""One table of scores, a column a label, from any fitted classifier of many labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.metrics.known_labels import fitted_inside


def label_scores(estimator: Any, X: Any, n_labels: int, response: str = "auto") -> RowsByLabels:
    """Score every label by ``decision_function`` or, for want of it, by ``predict_proba``."""
    if response == "predict_proba" or not hasattr(estimator, "decision_function"):
        return label_probabilities(estimator, X, n_labels)
    return as_score_table(estimator.decision_function(X), estimator, n_labels)


def label_probabilities(estimator: Any, X: Any, n_labels: int) -> RowsByLabels:
    """Ask for the probability of every label, in one table."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has neither the method that is asked for nor predict_proba; "
            "give an estimator with decision_function or predict_proba."
        )
    found = estimator.predict_proba(X)
    if isinstance(found, list):  # forests, neighbours and trees give one table a label
        classes = getattr(estimator, "classes_", [np.arange(2)] * len(found))
        columns = [_positive_column(table, values) for table, values in zip(found, classes, strict=True)]
        return as_score_table(np.column_stack(columns), estimator, n_labels)
    table = np.asarray(found)
    classes = _classes_of_one_label(estimator)
    if n_labels == 1 and table.ndim == 2 and table.shape[1] == len(classes):
        table = _positive_column(table, classes)
    return as_score_table(table, estimator, n_labels)


def _classes_of_one_label(estimator: Any) -> Any:
    """Give the values that the label had in training, where an estimator tells them; else no and yes."""
    classes = getattr(estimator, "classes_", None)
    names_labels = hasattr(fitted_inside(estimator), "label_names_")
    return (0, 1) if classes is None or names_labels or np.ndim(classes) != 1 else classes


def _positive_column(table: Array, classes: Any) -> Array:
    """Take the column of the label's class 1; a label that was never seen, or always, has one class only."""
    if len(classes) == 2:
        return np.asarray(table[:, 1])
    return np.full(len(table), float(classes[0] == 1))


def as_score_table(found: Any, estimator: Any, n_labels: int) -> RowsByLabels:
    """Check that scores have a column a label; of one label they may be a vector."""
    scores = np.asarray(found)
    table = scores.reshape(-1, 1) if scores.ndim == 1 and n_labels == 1 else scores
    if table.ndim != 2 or table.shape[1] != n_labels:
        raise ValueError(
            f"{type(estimator).__name__} gives scores of shape {scores.shape} for {n_labels} labels; one "
            "column a label is needed."
        )
    return table
