"""The base of the opponents: two factors of the weights, and a threshold on the scores."""

from typing import Any, ClassVar, Self

from labelweave.estimators.base import LabelClassifier, fit_method
from labelweave.estimators.scorers import FactorScorer
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import check_lengths, read_targets
from labelweave.model_files.schema import Field, Made, Number


class FactorOpponent(LabelClassifier):
    """Base of models with weights Z = W H^T, which predict a label if its score is above ``threshold_``.

    ``decision_function`` returns scores minus the threshold.
    """

    scorer_: FactorScorer
    threshold_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _stored: ClassVar[dict[str, Field]] = {
        "scorer_": Made(FactorScorer, {"L": "n_labels"}),
        "threshold_": Number(),
    }

    @fit_method
    def fit(self, X: Any, y: Any) -> Self:
        features = self._read_features(X, reset=True)
        labels, self._form = read_targets(y)
        check_lengths(len(features), len(labels))
        self.classes_, self.trace_, self.status_ = self._form.classes, [], "complete"
        self._learn(features, labels)
        return self

    def _learn(self, features: FeatureMatrix, labels: LabelMatrix) -> None:
        """Set ``scorer_`` and ``threshold_``."""
        raise NotImplementedError

    @property
    def _lowest_threshold(self) -> float:
        return self.threshold_

    def _wide_scores(self, features: FeatureMatrix) -> Array:
        return self.scorer_.products(features, self.intercept_ - self.threshold_)
