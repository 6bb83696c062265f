"""Hyperparameters of the max-margin model, learned on a surrogate of the hinge loss.

The hinge has no curvature, so its cross-validated loss has no useful gradient.  Kernel logistic
classification has the same prior K ⊗ R and a loss near the hinge, so the kernel's parameters, the scale v of
the scores and the label covariance are learned for it (Seeger 2008, section 4) and used here:

    sum of losses + 1/2 |u|^2 / v     is, times v, the max-margin objective with 2 C = v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.estimators.journal import Journal
from labelweave.estimators.kernel_classifier import HyperparameterSearch, is_learned
from labelweave.estimators.kernel_logistic import KernelLogisticClassifier
from labelweave.features import FeatureMatrix, Kernel
from labelweave.labels import LabelCovariance, LabelMatrix

_TOL = 1e-3


@dataclass(frozen=True)
class LearnedMargins:
    """The learned hyperparameters.

    kernel: with its learned parameters; None for a precomputed matrix.
    covariance: R, of mean variance 1.
    C: half the scale.
    """

    kernel: Kernel | None
    covariance: LabelCovariance
    C: float


def learn_margins(
    model: Any,
    search: HyperparameterSearch,
    features: FeatureMatrix,
    labels: LabelMatrix,
    weights: tuple[Any, Any],
    journal: Journal,
) -> LearnedMargins:
    """Learn from all rows, by the parameters of a max-margin classifier.

    weights: of rows, and of entries, None without entry weights.

    Raises ValueError if there is more than one kernel.
    """
    if isinstance(model.kernel, list | tuple):
        raise ValueError("hyperparameters='learn' needs one kernel, but kernel is a list; pass their sum.")
    kind: Any = KernelLogisticClassifier
    surrogate = kind(
        kernel=model.kernel,
        gamma=model.gamma,
        scale=2.0 * model.C,
        intercept_variance=1.0 if model.fit_intercept else 0.0,
        label_covariance=model.label_covariance,
        label_mean=model.label_mean,
        hyperparameters=search,
        tol=_TOL,
        n_jobs=model.n_jobs,
        random_state=model.random_state,
    )
    surrogate._outer_journal = journal.part("surrogate")
    names = labels.names
    if model._form.kind != "labels":
        names = np.array([str(name) for name in model.classes_[-labels.n_labels :]])
    # the weights of entries include the flip probabilities
    surrogate.fit(features.data, LabelMatrix(labels.positives, labels.observed, names), *weights)
    (term,) = surrogate.prior_.terms
    variance = float(np.mean(term.covariance.diagonal()))
    covariance: LabelCovariance = LabelCovariance.identity(labels.n_labels)
    given = model.label_covariance
    if term.covariance.ties_labels or not (given is None or is_learned(given)):
        covariance = LabelCovariance.dense(term.covariance.to_dense() / variance)
    return LearnedMargins(term.kernel, covariance, variance / 2)
