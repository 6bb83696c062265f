"""Learning a kernel's parameters and lambda from the cross-validated loss of kernel ridge regression.

The ridge penalty at full rank is a Gaussian process prior of variance 1 / lambda, so the search of
:mod:`labelweave.problems.hyperparameters` applies unchanged.  It ignores the rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from labelweave.estimators.held_out import LearningBlock, drawn_blocks, held_out_rows, reusable_splits
from labelweave.estimators.kernel_classifier import HyperparameterSearch
from labelweave.estimators.kernel_logistic.fit import FitSettings, LikelihoodData, LikelihoodFit
from labelweave.estimators.low_rank.fit import LowRankData, LowRankSettings
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import Gram, choose_gram
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import TargetForm
from labelweave.problems.hyperparameters.priors import PriorFamily
from labelweave.problems.hyperparameters.ridge_cross_validation import (
    FoldedRidge,
    RidgeCrossValidation,
    RidgePriors,
)
from labelweave.problems.hyperparameters.search import LearnedParameters, SearchRecord

_MOST_FACTORISED = 6000  # rows; with more, a factorization is slower than conjugate gradients


@dataclass(frozen=True)
class _ClosedForm:
    """The criterion of a search in closed form."""

    data: LikelihoodData
    settings: LowRankSettings

    def __call__(self, family: PriorFamily, block: LearningBlock) -> RidgeCrossValidation:
        part, settings = self.data.rows(block.rows), self.settings
        assert isinstance(family, RidgePriors), "the priors are those of ridge regression"
        assert part.signs is not None, "rows have labels"

        def make_gram(kernel: Kernel | None) -> Gram:
            explicit = None if kernel is None else kernel.explicit_features(part.features)
            budget = settings.memory_budget * 1e6
            return choose_gram(part.source(kernel), explicit, part.n_labels, budget, settings.workers)

        targets = 0.5 * (1.0 + part.signs)
        least = 0.5 * (targets * (1.0 - targets)).sum(axis=1)  # of q (s - 1)^2 / 2 + (1 - q) s^2 / 2
        if part.known is not None:
            targets -= part.known
        folded = FoldedRidge(part.features, targets, part.weights, block.held_out, make_gram, least)
        return RidgeCrossValidation(family, folded, settings.workers)


@dataclass(frozen=True)
class RidgeSearch:
    """How to learn.

    settings: of the fit; the search starts at its lambda, or at 1 for 0.
    on_search: receives every record of the search; returning true ends it.
    """

    search: HyperparameterSearch
    settings: LowRankSettings
    on_search: Callable[[SearchRecord], bool]

    def run(
        self, features: FeatureMatrix, rows: LowRankData, kernel: Kernel | None, form: TargetForm
    ) -> tuple[Kernel | None, float, LearnedParameters | None]:
        """Return the kernel, lambda and the status of the search; None if there were too few rows for one.

        features: the rows; or a precomputed kernel matrix.
        kernel: the initial kernel; None for a precomputed kernel matrix.
        """
        settings, n_labels = self.settings, rows.labels.n_labels
        data, held_out = self._drawn(features, rows, kernel, form)
        if data is None:
            return kernel, settings.alpha, None
        assert data.signs is not None, "rows have labels"
        is_shared = data.entry_weights is None and bool(data.signs.all())
        start = settings.alpha or 1.0
        family = RidgePriors(kernel, start, settings.constant, n_labels, ties_labels=is_shared)
        how = FitSettings(
            learning_iterations=self.search.max_learning_iter, memory_budget=settings.memory_budget,
            journal=settings.journal, workers=settings.workers, seed=settings.seed, on_search=self.on_search,
        )  # fmt: skip
        is_small = is_shared and len(held_out) <= _MOST_FACTORISED
        fit = LikelihoodFit(family, data, how, _ClosedForm(data, settings) if is_small else None)
        learned, theta, _ = fit.learn([LearningBlock(np.arange(len(held_out)), held_out)])
        return family.kernel_at(theta), family.values(theta)["alpha"], learned

    def _drawn(
        self, features: FeatureMatrix, rows: LowRankData, kernel: Kernel | None, form: TargetForm
    ) -> tuple[LikelihoodData | None, Array]:
        labels, seed, cv = rows.labels, self.settings.seed, reusable_splits(self.search.cv)
        n_observed = np.diff(labels.observed.indptr) if labels.observed is not None else np.ones(len(labels))
        candidates = np.flatnonzero((rows.weights > 0) & (n_observed > 0))
        if len(candidates) < 2:
            return None, np.empty((0, 0), bool)
        chosen = drawn_blocks(candidates, self.search.learning_rows, 1, seed)[0]
        held_out = held_out_rows(cv, chosen, labels_to_split(labels, form, cv), seed)
        part = features.rows(chosen)
        if kernel is None:
            table = part.data.toarray() if part.is_sparse else part.data
            part = FeatureMatrix(np.ascontiguousarray(table[:, chosen]))
        known = rows.rows(chosen).known
        data = LikelihoodData(
            part, rows.weights[chosen], labels[chosen].to_soft_signs(), None, labels.n_labels,
            is_precomputed=kernel is None, entry_weights=self._entry_weights(rows.rows(chosen)),
            entry_loss="squared_error", known=None if known is None else known[0] @ known[1].T,
        )  # fmt: skip
        return data, held_out

    def _entry_weights(self, rows: LowRankData) -> Array | None:
        negative = self.settings.negative_weight
        if negative == 1 and rows.factors is None:
            return None
        is_positive = rows.labels.to_signs() > 0
        weights = np.where(is_positive, 1.0, negative)
        return weights if rows.factors is None else weights * rows.factors.of_table(is_positive)


def labels_to_split(labels: LabelMatrix, form: TargetForm, cv: Any) -> Array | LabelMatrix:
    """Return what rows may be stratified by; given splits need no labels.

    Returns (n,): the labels as they are, for a number of folds; else classes, or labels with NaN where
        unobserved.
    """
    if not form.has_one_class and (cv is None or isinstance(cv, Integral)):
        return labels
    if not hasattr(cv, "split"):
        return np.zeros(len(labels))
    table = labels.positives.toarray()
    if form.one_of is not None:
        return np.asarray(table.argmax(axis=1))
    if labels.n_labels == 1:
        return np.asarray(table[:, 0])
    return np.where(labels.to_signs() == 0, np.nan, table) if labels.has_missing else np.asarray(table)
