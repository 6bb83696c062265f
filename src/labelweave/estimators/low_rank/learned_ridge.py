"""What low-rank classifiers share: learning the kernel and lambda of kernel ridge regression."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave.estimators.base import CALLER
from labelweave.estimators.kernel_classifier import KernelClassifier
from labelweave.estimators.low_rank.fit import LowRankData, LowRankSettings
from labelweave.estimators.low_rank.ridge_learning import RidgeLearning, labels_to_split
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram.sources import KernelSource
from labelweave.hyperparameters import LearnedParameters, SearchRecord
from labelweave.sklearn_compat import Interval, StrOptions

__all__ = ["RidgeLearningClassifier"]


class RidgeLearningClassifier(KernelClassifier):
    """Base of classifiers whose kernel may be learned by ridge regression."""

    hyperparameters: str
    cv: Any
    learning_rows: int | None
    max_learning_iter: int

    _learning_constraints: ClassVar[dict[str, list[Any]]] = {
        "hyperparameters": [StrOptions({"fixed", "learn"})],
        "cv": ["cv_object"],
        "learning_rows": [Interval(Integral, 2, None, closed="left"), None],
        "max_learning_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def _learn(
        self, features: FeatureMatrix, data: LowRankData, settings: LowRankSettings, cv: Any
    ) -> tuple[LowRankData, LowRankSettings]:
        """Learn the kernel and lambda, if asked."""
        kernel = None if self.kernel == "precomputed" else self.kernel_
        learned = None
        if self.hyperparameters == "learn":
            targets = labels_to_split(data.labels, self._form.kind, cv)
            learning = self._learning(settings, cv)
            found = learning.learn(features, data.labels, data.weights, kernel, targets)
            kernel, learned = found.kernel, found.learned
            settings = replace(settings, regularization=found.regularization)
        if learned is not None and kernel is not None:
            self.kernel_ = kernel
            source, explicit = KernelSource(kernel, features), kernel.explicit_features(features)
            data = LowRankData(data.labels, data.weights, explicit, source)
        self.hyperparameters_ = _values(kernel, settings.regularization)
        self._keep_learned(learned)
        return data, settings

    def _learning(self, settings: LowRankSettings, cv: Any) -> RidgeLearning:
        progress: Any = settings.on_round
        return RidgeLearning(
            cv=cv,
            rows=self.learning_rows,
            max_iter=self.max_learning_iter,
            regularization=settings.regularization,
            constant=settings.constant,
            negative_weight=settings.negative_weight,
            memory_budget=settings.memory_budget,
            workers=settings.workers,
            seed=settings.seed,
            on_search=progress.on_search,
        )

    def _keep_learned(self, learned: LearnedParameters | None) -> None:
        self.cross_validation_loss_ = np.nan if learned is None else learned.value
        self.learning_status_ = "fixed" if learned is None else learned.status
        self.learning_trace_ = [] if learned is None else learned.trace
        if self.learning_status_ == "interrupted":
            message = (
                "The search for hyper-parameters was interrupted; the model has the best ones that were met."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=CALLER + 1)

    def _storable_parameters(self) -> dict[str, Any]:
        parameters = super()._storable_parameters()
        if not (self.cv is None or isinstance(self.cv, Integral)):
            parameters["cv"] = None  # a splitter has no use after the fit
        return parameters

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.estimators.base.LabelClassifier.to_state`."""
        state = super().to_state()
        state["fitted"]["learning_trace_"] = [list(record) for record in self.learning_trace_]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> RidgeLearningClassifier:
        """Make the fitted model again; see :meth:`labelweave.estimators.base.LabelClassifier.from_state`."""
        model: Any = super().from_state(state)
        model.learning_trace_ = [SearchRecord(*record) for record in model.learning_trace_]
        return model


def _values(kernel: Kernel | None, regularization: float) -> dict[str, float]:
    """Give lambda and the kernel's continuous parameters by name."""
    if kernel is None:
        return {"regularization": regularization}
    shape = np.exp(kernel.log_parameters()).tolist()
    return {"regularization": regularization, **dict(zip(kernel.parameter_names(), shape, strict=True))}
