"""The training rows of attributes, their weights, and scores of attributes by any estimator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from labelweave.estimators.base import given_weights, refuse_no_weight
from labelweave.foundation.array_types import Array
from labelweave.foundation.sklearn_compat import _check_sample_weight, _num_samples, _safe_indexing
from labelweave.labels import LabelMatrix


class TrainingRows(NamedTuple):
    """Training rows as the estimator takes them; weights (n,) or None."""

    X: Any
    y: Any
    weights: Array | None

    def part(self, rows: Array) -> TrainingRows:
        """Keep some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return TrainingRows(take_rows(self.X, rows), take_rows(self.y, rows), weights)


def weighted_rows(
    estimator: Any, X: Any, y: Any, groups: Any, sample_weight: Any
) -> tuple[Any, Any, Any, Array | None]:
    """Leave rows of weight 0 out of what ``fit`` was given; without weights give all of it.

    Raises ValueError if the estimator takes no weights, or they are not one non-negative number a row.
    """
    if sample_weight is None:
        return X, y, groups, None
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight is given, but {type(estimator).__name__} takes none in fit; leave it out."
        )
    n_rows, n_targets = _num_samples(X), _num_samples(y)
    if n_rows != n_targets:
        raise ValueError(f"X has {n_rows} rows but y has {n_targets}; they must agree.")
    given = given_weights(sample_weight)
    weights = _check_sample_weight(given, np.zeros((n_rows, 1)), dtype=np.float64, ensure_non_negative=True)
    refuse_no_weight(weights)
    kept = np.flatnonzero(weights)
    if len(kept) < n_rows:
        X, y, groups = (None if part is None else take_rows(part, kept) for part in (X, y, groups))
    return X, y, groups, weights[kept]


def take_rows(table: Any, rows: Array) -> Any:
    """Take rows of a table of any kind."""
    return table[rows] if isinstance(table, LabelMatrix) else _safe_indexing(table, rows)


def attribute_scores(estimator: Any, X: Any) -> Array:
    """Score the attributes of rows: shape (n, L)."""
    score = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    return np.asarray(score(X), dtype=np.float64).reshape(_num_samples(X), -1)


def covariance_parameter(estimator: Any) -> str:
    """Name the parameter ``label_covariance`` of an estimator, or of a step of a pipeline."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "label_covariance"]
    if len(names) != 1:
        raise ValueError(
            f"couple_attributes is True but {type(estimator).__name__} has {len(names)} parameters named "
            "label_covariance; one is needed."
        )
    return names[0]
