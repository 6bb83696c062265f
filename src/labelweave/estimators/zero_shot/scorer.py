"""The scorer of classes: log priors plus the evidence of attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.estimators.label_predictions import LabelPredictions
from labelweave.estimators.scorers import Scorer
from labelweave.estimators.zero_shot.training_rows import attribute_scores
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.model_files import storable
from labelweave.model_files.schema import Made, Number, Numbers


@storable(
    "SignatureScorer",
    {
        "intercept_": Numbers("c", infinite=True),
        "estimator_": Made(LabelPredictions),
        "mean_scores_": Numbers("a"),
        "signs": Numbers("c a", "fi"),
        "temperature_": Number(),
    },
    {"some class is possible": lambda state: np.isfinite(state["intercept_"].max())},
)
@dataclass(frozen=True)
class SignatureScorer(Scorer):
    """Scores of classes, up to a constant that all share: log prior plus evidence of attributes.

    estimator_: scores attributes.
    mean_scores_ (L,): m.
    signs (classes, L): the signatures, 0 where unknown; for vectors, the map from scores to evidence.
    temperature_: t.
    """

    estimator_: Any
    mean_scores_: Array
    signs: Array
    temperature_: float

    def takes(self, n_features: int) -> bool:
        form = self.estimator_._form
        columns = 1 if form.kind == "binary" else len(form.classes)
        return bool(self.estimator_.n_features_in_ == n_features and columns == len(self.mean_scores_))

    def scores(self, features: Any) -> Array:
        """Score each class of every row; the rows (n, d) are the estimator's input."""
        with Workers().running():
            evidence = (attribute_scores(self.estimator_, features) - self.mean_scores_) @ self.signs.T
        with np.errstate(over="ignore"):  # infinite scores have undefined differences
            return np.asarray(self.intercept_ + np.nan_to_num(self.temperature_ * evidence))
