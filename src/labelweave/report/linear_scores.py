"""What each feature of a row adds to the score of a label, for models whose scores are sums over features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.decisions.layers import innermost
from labelweave.features import FeatureMatrix

__all__ = ["Contribution", "Explanation", "LinearScores"]


_ROUNDING = 1e-5  # of models that keep weights in single precision


@dataclass(frozen=True)
class Contribution:
    """What one feature adds to a score.

    value: its value in the row, as the kernel takes it.
    amount: the value times the weight.
    """

    feature: int
    value: float
    amount: float


@dataclass(frozen=True)
class Explanation:
    """A score as a sum: ``score = intercept - threshold + sum of contributions + others``.

    intercept, threshold: what is the same for all rows.
    contributions: of all features that the row has, the largest absolute amounts first.
    others: what comes from other labels, in a model that scores them together; otherwise 0.
    """

    score: float
    intercept: float
    threshold: float
    contributions: list[Contribution]
    others: float


class LinearScores:
    """The scores of a fitted model, taken apart.

    classifier: the model; of a wrapper the classifier in it is looked at.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = innermost(classifier)
        self.is_wrapped = self.classifier is not classifier

    @property
    def why_not(self) -> str | None:
        """Why scores cannot be taken apart, in a sentence; None if they can."""
        inner, kind = self.classifier, type(self.classifier).__name__
        if hasattr(inner, "support_") or hasattr(inner, "expansion_"):
            return (
                f"The scores of this {kind} are sums of kernels between a row and training rows, so single "
                "features have no contributions that add up to a score."
            )
        if not (hasattr(inner, "coef_") or hasattr(inner, "feature_factors_")):
            return f"A {kind} keeps no weights of features, so their contributions are not available."
        return None

    def explain(self, row: Any, label: int) -> Explanation:
        """Take the score of a label of one row apart.

        label: the number of the label in the model.
        Shapes: row (1, d).
        """
        column, sign = self._column(label)
        places, values = self._features(row)
        amounts = sign * values * self._weights(column, places)
        intercept, threshold = (
            sign * float(self.classifier.intercept_[column]),
            sign * self._threshold(column),
        )
        own = intercept - threshold + float(amounts.sum())
        others = self._score(row, column, sign) - own
        others = others if abs(others) > _ROUNDING * (1 + np.abs(amounts).sum()) else 0.0
        order = np.argsort(-np.abs(amounts), kind="stable")
        parts = [Contribution(int(places[k]), float(values[k]), float(amounts[k])) for k in order]
        return Explanation(own + others, intercept, threshold, parts, others)

    def _column(self, label: int) -> tuple[int, float]:
        """Give the weights' row of a label; of two classes the first has the second's, its sign turned."""
        if self.classifier._form.kind == "binary":
            return 0, 1.0 if label == 1 else -1.0
        return label, 1.0

    def _features(self, row: Any) -> tuple[Array, Array]:
        """Give the numbers and values of the features that a row has."""
        features = FeatureMatrix(row).astype(np.float64)
        kernel = getattr(self.classifier, "kernel_", None)
        explicit = features if kernel is None else kernel.explicit_features(features)
        _, places, values = (features if explicit is None else explicit).sparse_rows(np.float64)
        present = values != 0
        return places[present], values[present]

    def _weights(self, column: int, places: Array) -> Array:
        if hasattr(self.classifier, "coef_"):
            return np.asarray(self.classifier.coef_[column, places], np.float64)
        factor = self.classifier.label_factors_[column].astype(np.float64)
        return np.asarray(self.classifier.feature_factors_[places] @ factor)

    def _threshold(self, column: int) -> float:
        found: Any = getattr(self.classifier, "thresholds_", getattr(self.classifier, "threshold_", 0.0))
        return float(found if np.ndim(found) == 0 else found[column])

    def _score(self, row: Any, column: int, sign: float) -> float:
        scores = np.asarray(self.classifier.decision_function(row)).reshape(1, -1)
        return sign * float(scores[0, column])
