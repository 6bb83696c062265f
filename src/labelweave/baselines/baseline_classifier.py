"""What the baselines share: reading data with weights, scores less a threshold, factors."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from labelweave.array_types import Array, PerRow
from labelweave.estimators.base import CALLER, LabelClassifier
from labelweave.estimators.targets import read_targets
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix
from labelweave.sklearn_compat import _check_sample_weight

__all__ = ["BaselineClassifier", "FactorClassifier", "TrainingData", "with_constant"]


_GOOD = ("converged", "complete")


class TrainingData(NamedTuple):
    """The rows of positive weight.

    Shapes: features (n, d), labels (n, L).
    """

    features: FeatureMatrix
    labels: LabelMatrix
    weights: PerRow


class BaselineClassifier(LabelClassifier):
    """Base of the baselines: a label is predicted where its score is above ``threshold_``.

    ``decision_function`` gives scores less the threshold.
    """

    threshold_: float
    intercept_: Array
    coef_: Array

    def _read_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        features = self._read_features(X, reset=True)
        labels, self._form = read_targets(y)
        self._check_lengths(features, labels)
        self._check_labels(labels)
        self.classes_ = self._form.classes
        self.trace_ = []
        weights = _check_sample_weight(
            sample_weight, features.data, dtype=np.float64, ensure_non_negative=True
        )
        kept = np.flatnonzero(weights)
        features = features.astype(np.float64)
        if len(kept) == len(weights):
            return TrainingData(features, labels, weights)
        return TrainingData(features.rows(kept), labels[kept], weights[kept])

    def _check_labels(self, labels: LabelMatrix) -> None:
        """Refuse labels that the method cannot learn from."""

    def _keep_status(self, status: str, advice: str) -> None:
        """Keep why the fit ended; a status other than a good one is a warning that says what to do."""
        self.status_ = status
        if status not in _GOOD:
            warnings.warn(advice, ConvergenceWarning, stacklevel=CALLER)

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        return super()._wide_scores(features) - self.threshold_


class FactorClassifier(BaselineClassifier):
    """Base of the baselines whose weights are a product of two factors, Z = W H^T."""

    rank: Any
    feature_factors_: Array
    label_factors_: Array

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        scores = features.matmul(self.feature_factors_) @ self.label_factors_.T
        return np.asarray(scores + (self.intercept_ - self.threshold_))


def with_constant(features: FeatureMatrix) -> FeatureMatrix:
    """Append a feature that is 1 in every row.

    Returns (n, d + 1): the same with the constant.
    Shapes: features (n, d).
    """
    ones = np.ones((len(features), 1), features.data.dtype)
    if features.is_sparse:
        return FeatureMatrix(sp.hstack([features.data, sp.csr_array(ones)], format="csr"))
    return FeatureMatrix(np.hstack([features.data, ones]))
