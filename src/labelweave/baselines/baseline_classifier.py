"""What the baselines share: reading data with weights, scores less a threshold, factors."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from labelweave.array_types import Array, PerRow
from labelweave.estimators.base import LabelClassifier, fit_method, warn_of_end
from labelweave.estimators.progress import FitArguments, FitProgress
from labelweave.estimators.scorers import FactorScorer
from labelweave.estimators.targets import check_lengths, read_targets
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix
from labelweave.model_files.schema import Field, Made, Number

_GOOD = ("converged", "complete")


class TrainingData(NamedTuple):
    """The rows of positive weight."""

    features: FeatureMatrix
    labels: LabelMatrix
    weights: PerRow


class BaselineClassifier(LabelClassifier):
    """Base of the baselines: a label is predicted where its score is above ``threshold_``.

    ``decision_function`` gives scores less the threshold.
    """

    threshold_: float

    _stored: ClassVar[dict[str, Field]] = {"threshold_": Number()}

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n, d)
            The training rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            Labels 0/1 or -1/1 with NaN where unobserved, or one class a row.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows' losses; rows of weight 0 are left out.

        Returns
        -------
        Self
            The fitted model itself.

        Raises
        ------
        ValueError
            If the data make no sense, or leave the method nothing to learn from; the row, column or
            label is named. PLST and CPLST need every label of every row.
        """
        data = self._read_data(X, y, sample_weight)
        progress = FitProgress(self, FitArguments(X, y, sample_weight), self._n_subtasks)
        self.status_, advice = self._learn(data, progress)
        progress.close()
        if self.status_ not in _GOOD:
            warn_of_end(advice)
        return self

    @property
    def _n_subtasks(self) -> int:
        return 0

    def _learn(self, data: TrainingData, progress: FitProgress) -> tuple[str, str]:
        """Fit; give how that ended, and what to do where it ended badly."""
        raise NotImplementedError

    def _read_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        features = self._read_features(X, reset=True)
        labels, self._form = read_targets(y)
        check_lengths(len(features), len(labels))
        labels = labels.likelier()
        self._check_labels(labels)
        self.classes_ = self._form.classes
        self.trace_ = []
        weights = self._class_weighted(labels, self._row_weights(sample_weight, features))
        kept = np.flatnonzero(weights)
        features = features.astype(np.float64)
        if len(kept) == len(weights):
            return TrainingData(features, labels, weights)
        return TrainingData(features.rows(kept), labels[kept], weights[kept])

    def _class_weighted(self, labels: LabelMatrix, weights: PerRow) -> PerRow:
        """Multiply weights of rows by those of their classes, where this is all that classes' weights do."""
        return weights

    def _check_labels(self, labels: LabelMatrix) -> None:
        """Refuse labels that the method cannot learn from."""

    @property
    def _lowest_threshold(self) -> float:
        return float(self.threshold_)

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        return super()._wide_scores(features) - self.threshold_


class FactorClassifier(BaselineClassifier):
    """Base of the baselines whose weights are a product of two factors, Z = W H^T."""

    scorer_: FactorScorer

    _stored: ClassVar[dict[str, Field]] = {"scorer_": Made(FactorScorer, {"L": "n_labels"})}

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        return self.scorer_.products(features, self.intercept_ - self.threshold_)
