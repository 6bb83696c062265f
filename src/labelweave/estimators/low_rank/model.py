"""What stands behind a low-rank classifier: settings of its fits, two factors, thresholds and scores."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.estimators.base import CALLER
from labelweave.estimators.folds import reusable_splits
from labelweave.estimators.journal import Journal
from labelweave.estimators.low_rank.fit import (
    FittedFactors,
    LowRankData,
    LowRankSettings,
    ReadyRows,
    Start,
    columns_for_rank,
    fit_factors,
    largest_rank,
)
from labelweave.estimators.low_rank.ridge_learning import RidgeLearning, labels_to_split
from labelweave.estimators.progress import FitProgress
from labelweave.estimators.thresholded_classifier import ThresholdedClassifier
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram.sources import KernelSource
from labelweave.hyperparameters import LearnedParameters, SearchRecord
from labelweave.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.low_rank_factors import Penalty
from labelweave.sklearn_compat import Interval, StrOptions
from labelweave.solvers import Status

__all__ = ["LowRankModel"]

_ENDINGS = {
    Status.ITERATION_LIMIT: (
        "The iteration limit was reached while rounds still lowered the objective by more than tol; raise "
        "max_iter, or tol."
    ),
    Status.INTERRUPTED: "The fit was interrupted; the model is the best one so far.",
}


class LowRankModel(ThresholdedClassifier):
    """Base of low-rank classifiers: scores are ``phi(x) W H^T`` plus intercepts, less thresholds.

    A fit sets ``feature_factors_``, ``label_factors_``, ``intercept_`` and ``thresholds_``, and of a kernel
    ``support_`` and ``support_vectors_``.
    """

    loss: str
    penalty: Penalty
    fit_intercept: bool
    intercept_scaling: float
    negative_weight: float
    start: str
    tol: float
    max_iter: int
    precision: str
    low_rank: int | None
    memory_budget: float
    hyperparameters: str
    cv: Any
    learning_rows: int | None
    max_learning_iter: int
    feature_factors_: Array
    label_factors_: Array

    _learning_constraints: ClassVar[dict[str, list[Any]]] = {
        "hyperparameters": [StrOptions({"fixed", "learn"})],
        "cv": ["cv_object"],
        "learning_rows": [Interval(Integral, 2, None, closed="left"), None],
        "max_learning_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def _columns(self, wanted: Any, data: LowRankData) -> int:
        """Turn a rank or a share of the labels to columns that a product can have."""
        n_rows, n_labels = data.labels.shape
        width = None if data.explicit is None else data.explicit.shape[1]
        if width is None and self.low_rank is not None:
            width = min(self.low_rank, n_rows)
        most = largest_rank(n_rows, width, n_labels, self.fit_intercept)
        return min(columns_for_rank(wanted, n_labels), most)

    def _first_choice(self, data: LowRankData) -> tuple[int, float]:
        """Give the rank and lambda to begin with."""
        raise NotImplementedError

    def _settings(
        self, data: LowRankData, workers: Workers, seed: int, progress: FitProgress
    ) -> LowRankSettings:
        rank, regularization = self._first_choice(data)
        return LowRankSettings(
            rank=rank,
            loss=self.loss,
            penalty=self.penalty,
            regularization=regularization,
            constant=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            negative_weight=float(self.negative_weight),
            start=self.start,
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=np.dtype(self.precision),
            low_rank=self.low_rank,
            memory_budget=self.memory_budget,
            workers=workers,
            seed=seed,
            on_round=progress,
            journal=Journal(),
        )

    @property
    def _level(self) -> float:
        is_given = not isinstance(self.threshold, str)
        return super()._level if is_given else ENTRY_LOSSES[self.loss]().threshold

    def _choose_thresholds(
        self, features: FeatureMatrix, data: LowRankData, settings: LowRankSettings, start: Start | None
    ) -> FittedFactors | None:
        """Keep the thresholds; give the model of a part of the rows if they were chosen on the others."""

        def fit_part(kept: Array) -> FittedFactors:
            ready = ReadyRows(data.rows(kept), settings, is_kept=False)
            part = fit_factors(ready, settings, start, "part").spread(kept, len(data.labels))
            self._keep_factors(part, features)
            return part

        return self._set_thresholds(features, lambda: data.labels, data.weights, settings.seed, fit_part)

    def _keep(self, fitted: FittedFactors, features: FeatureMatrix) -> None:
        self._keep_factors(fitted, features)
        self.status_ = fitted.status.name.lower()
        self.converged_ = fitted.status is Status.CONVERGED
        self.n_iter_ = len(fitted.trace)
        self.trace_ = fitted.trace
        self.objective_ = fitted.objective
        gap = (fitted.objective - fitted.lower_bound) / max(1.0, abs(fitted.objective))
        self.duality_gap_ = float(gap) if np.isfinite(gap) else float("nan")
        if not self.converged_:
            warnings.warn(_ENDINGS[fitted.status], ConvergenceWarning, stacklevel=CALLER)

    def _keep_factors(self, fitted: FittedFactors, features: FeatureMatrix) -> None:
        self.feature_factors_, self.label_factors_ = fitted.feature_factor, fitted.label_factor
        self.intercept_ = fitted.intercepts
        if fitted.support is not None:
            self.support_ = fitted.support
            if self.kernel != "precomputed":
                self.support_vectors_ = features.rows(fitted.support).data

    def _forget_expansion(self) -> None:
        super()._forget_expansion()
        if hasattr(self, "feature_factors_"):
            del self.feature_factors_

    def _raw_scores(self, features: FeatureMatrix) -> Array:
        return np.asarray(self._latent(features) @ self.label_factors_.T + self.intercept_)

    def _latent(self, features: FeatureMatrix) -> Array:
        """Map rows into the space of the factors: shape (n, k)."""
        if not hasattr(self, "support_"):
            explicit = self.kernel_.explicit_features(features)
            assert explicit is not None, "weights are only kept for explicit features"
            return explicit.matmul(self.feature_factors_)
        return self._times_kernel(features, self.feature_factors_)

    def _learn(
        self, features: FeatureMatrix, data: LowRankData, settings: LowRankSettings, cv: Any
    ) -> tuple[LowRankData, LowRankSettings]:
        """Learn the kernel and lambda, if asked."""
        kernel = None if self.kernel == "precomputed" else self.kernel_
        learned = None
        if self.hyperparameters == "learn":
            cv = reusable_splits(cv)
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
    def from_state(cls, state: dict[str, Any]) -> LowRankModel:
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
