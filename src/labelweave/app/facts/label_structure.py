"""The covariance that a model holds of its labels a priori."""

from __future__ import annotations

import copy
from typing import Any

from labelweave.app.facts.words import class_words
from labelweave.decisions.layers import innermost
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.labels import LabelCovariance

_MOST_LABELS = 2000  # of which all pairs are looked at


def prior_covariances(model: Any) -> list[LabelCovariance]:
    """Give the covariance of every term of a prior."""
    if isinstance(model, KernelLogisticClassifier):
        return [term.covariance for term in model.prior_.terms]
    found = model.label_covariance_ if isinstance(model, MaxMarginClassifier) else []
    return found if isinstance(found, list) else [found]


def covariance_of(classifier: Any) -> LabelCovariance:
    """Give the named prior covariance of the labels, of several kernels their sum; ValueError if none."""
    inner = innermost(classifier)
    found = prior_covariances(inner)
    if not found:
        raise ValueError(f"The model is {class_words(inner)}, which has no label covariance.")
    covariance, names = found[0], inner.label_names_
    if len(found) > 1:
        if covariance.n_labels > _MOST_LABELS:
            raise ValueError(
                f"The model has {len(found)} kernels over {covariance.n_labels} labels; their covariances "
                f"are put together for at most {_MOST_LABELS} labels."
            )
        covariance = LabelCovariance.dense(sum(term.to_dense() for term in found))
    if covariance.label_names is not None or len(names) != covariance.n_labels:  # two classes are one label
        return covariance
    named = copy.copy(covariance)
    named.label_names = names
    return named
