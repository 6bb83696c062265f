"""What stands behind a low-rank classifier: settings of its fits, two factors, thresholds and scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.added_labels import AddsLabels, widened_covariance
from labelweave.estimators.base import warn_of_end
from labelweave.estimators.class_weights import SignFactors
from labelweave.estimators.folds import reusable_splits
from labelweave.estimators.journal import Journal
from labelweave.estimators.kernel_classifier import LearningClassifier
from labelweave.estimators.low_rank.fit import (
    FittedFactors,
    LowRankData,
    LowRankSettings,
    columns_for_rank,
    largest_rank,
)
from labelweave.estimators.low_rank.ridge_learning import RidgeSearch, labels_to_split
from labelweave.estimators.low_rank.starts import Start, continued
from labelweave.estimators.progress import FitProgress
from labelweave.estimators.scorers import FactorScorer
from labelweave.estimators.seen_rows import SeenRows, carried_columns
from labelweave.estimators.targets import TargetForm, costs_by_label
from labelweave.features import FeatureMatrix
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.covariance.base import read_covariance
from labelweave.labels.covariance.dense import DenseCovariance
from labelweave.problems.label_entries import EntryWeights
from labelweave.problems.low_rank_factors import make_entry_loss
from labelweave.solvers import Status
from labelweave.solvers.frame import relative_gap

_ROUNDING = 1e-9
_ENDINGS = {
    Status.ITERATION_LIMIT: (
        "The iteration limit was reached while rounds still lowered the objective by more than `tol`; "
        "raise `max_iter`, or `tol`."
    ),
    Status.INTERRUPTED: "The fit was interrupted; the model is the best one so far.",
}


@dataclass(frozen=True)
class End:
    """Where the last fit ended, for another one to go on from.

    rows: how many had coefficients; None where factors are of features.
    """

    start: Start
    form: TargetForm
    rows: int | None

    def spread(self, kept: Array, n_rows: int) -> End:
        """Say which of more rows these were."""
        if self.rows is None:
            return self
        return replace(self, start=self.start.spread(kept, n_rows), rows=n_rows)

    def carried(self, data: LowRankData, form: TargetForm, settings: LowRankSettings) -> Start | None:
        """Give the start of a fit to other data; None if these have other labels.

        New labels begin with a factor of 0, and coefficients of new rows too.
        """
        columns, labels = carried_columns(self.form, form), self.start.labels
        size = data.labels.n_labels if data.root is None else data.root.shape[1]
        fits = len(labels) == size or (data.root is None and len(labels) < size)
        if columns is None or not fits:
            return None
        wider = np.zeros((size, labels.shape[1]), labels.dtype)
        wider[columns if data.root is None else slice(None)] = labels
        features = self.start.features
        if features is not None and (self.rows is not None) == data.has_row_coefficients:
            width = len(data.labels) if data.explicit is None else data.explicit.shape[1]
            width += settings.constant != 0 and data.explicit is not None
            missing = width - len(features)
            if missing == 0 or (missing > 0 and self.rows is not None):
                more = np.zeros((missing, features.shape[1]), features.dtype)
                return Start(wider, np.vstack([features, more]) if missing else features)
        first = data.first_factor(settings.rank, settings.start, settings.seed)
        return Start(continued(wider, first, settings.rank))


class LowRankModel(AddsLabels, LearningClassifier):
    """Base of low-rank classifiers: a :class:`FactorScorer` less thresholds.

    _end: where the last fit ended; kept with a copy of the model only if it is to be gone on from.
    _seen: the rows of all calls to ``partial_fit``, or of a fit with ``warm_start``.
    """

    label_covariance_: LabelCovariance | None
    _end: End | None = None
    _seen: SeenRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if not self.warm_start and self._seen is None:
            state.pop("_end", None)
        return state

    def _columns(self, wanted: Any, data: LowRankData) -> int:
        """Turn a rank or a share of the labels to columns that a product can have."""
        n_rows, n_labels = data.labels.shape
        n_labels = n_labels if data.root is None else min(n_labels, data.root.shape[1])
        width = None if data.explicit is None else data.explicit.shape[1]
        if width is None and self.kernel_rank is not None:
            width = min(self.kernel_rank, n_rows)
        most = largest_rank(n_rows, width, n_labels, self.fit_intercept)
        return min(columns_for_rank(wanted, data.labels.n_labels), most)

    def _covariance(self, n_labels: int) -> LabelCovariance | None:
        """Read the covariance of the labels' factor; None where it is the identity."""
        if self.label_covariance is None:
            return None
        names = [str(name) for name in self.classes_]
        covariance = read_covariance(self.label_covariance, n_labels, names)
        covariance.check_variances(names)
        if isinstance(covariance, DenseCovariance):
            return None if np.array_equal(covariance.matrix, np.eye(n_labels)) else covariance
        return covariance if covariance.ties_labels or (covariance.diagonal() != 1).any() else None

    def _keep_wider(self, n_new: int, covariance: LabelCovariance | None) -> None:
        before = self.label_covariance_
        if covariance is None and before is not None:
            covariance = widened_covariance(before, n_new)
        self.label_covariance_ = covariance

    def _factors(self, labels: LabelMatrix, entries: Any, by_sign: SignFactors | None) -> EntryWeights | None:
        """Join costs, weights of classes and weights of entries; None where all are 1."""
        costs = {name: getattr(self, name) for name in ("false_negative_cost", "false_positive_cost")}
        if (
            entries is None
            and by_sign is None
            and all(np.isscalar(cost) and cost == 1 for cost in costs.values())
        ):
            return None
        names = self.classes_[-labels.n_labels :]
        missed, false = (costs_by_label(name, cost, names)[None, :] for name, cost in costs.items())
        if by_sign is not None:
            missed, false = missed * by_sign[0], false * by_sign[1]
        if sp.issparse(entries):
            entries = sp.csr_array(entries)
            entries.data = entries.data - 1
        return EntryWeights(missed, false, entries)

    def _settings(
        self, data: LowRankData, workers: Workers, seed: int, progress: FitProgress, journal: Journal
    ) -> LowRankSettings:
        rank, regularization = self._first_choice(data)
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return LowRankSettings(
            rank=rank, loss=self.loss, penalty=self.penalty, regularization=regularization, constant=constant,
            negative_weight=float(self.negative_weight), start=self.start, tol=self.tol,
            max_iter=self.max_iter, dtype=np.dtype(self.precision), kernel_rank=self.kernel_rank,
            memory_budget=self.memory_budget, workers=workers, seed=seed, on_round=progress, journal=journal,
        )  # fmt: skip

    @property
    def _level(self) -> float:
        is_given = not isinstance(self.threshold, str)
        return super()._level if is_given else make_entry_loss(self.loss).threshold

    def _keep(self, fitted: FittedFactors, features: FeatureMatrix) -> None:
        self._keep_factors(fitted, features)
        self.status_ = fitted.status.name.lower()
        self.converged_ = fitted.status is Status.CONVERGED
        self.n_iter_ = len(fitted.trace)
        self.trace_ = fitted.trace
        self.objective_ = fitted.objective
        gap = relative_gap(fitted.objective, fitted.lower_bound)
        is_known = np.isfinite(gap) and gap >= -_ROUNDING  # a bound above the objective is one of rounding
        self.duality_gap_ = float(gap) if is_known else float("nan")
        if not self.converged_:
            where = f"after {self.n_iter_} rounds at an objective of {self.objective_:.6g}"
            warn_of_end(f"{_ENDINGS[fitted.status]} It ended {where}.")

    def _keep_factors(self, fitted: FittedFactors, features: FeatureMatrix) -> None:
        kernel, support = None if self._is_precomputed else self.kernel_, fitted.support
        vectors = None if support is None or kernel is None else features.here(support).data
        factors = fitted.feature_factor, fitted.label_factor
        self.scorer_ = FactorScorer(fitted.intercepts, *factors, kernel, support, vectors)

    def _learn(
        self, features: FeatureMatrix, data: LowRankData, settings: LowRankSettings, cv: Any
    ) -> tuple[LowRankData, LowRankSettings]:
        """Learn the kernel and lambda, if asked."""
        kernel = None if self._is_precomputed else self.kernel_
        learned = None
        if self.hyperparameters == "learn":
            progress: Any = settings.on_round
            cv = reusable_splits(cv)
            search = RidgeSearch(cv, self.learning_rows, self.max_learning_iter, settings, progress.on_search)
            targets = labels_to_split(data.labels, self._form.kind, cv)
            kernel, regularization, learned = search.run(features, data, kernel, targets)
            settings = replace(settings, regularization=regularization)
        if learned is not None and kernel is not None:
            self.kernel_ = kernel
            source, explicit = KernelSource(kernel, features), kernel.explicit_features(features)
            data = replace(data, explicit=explicit, source=source)
        self.hyperparameters_ = {"regularization": settings.regularization}
        if kernel is not None:
            shape = np.exp(kernel.log_parameters()).tolist()
            self.hyperparameters_ |= zip(kernel.parameter_names(), shape, strict=True)
        self._keep_learned(learned)
        if self.learning_status_ == "interrupted":
            settings = replace(settings, journal=Journal())  # what follows is not for going on
        return data, settings
