"""What a model holds about its labels a priori: a covariance, or a tree."""

from __future__ import annotations

import copy
from functools import singledispatch
from typing import Any

from labelweave.decisions.layers import innermost
from labelweave.estimators import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.labels import LabelCovariance, Taxonomy

_MOST_LABELS = 2000  # of which all pairs are looked at


@singledispatch
def prior_covariances(model: Any) -> list[LabelCovariance]:
    """Give the covariance of every term of a prior."""
    return []


@prior_covariances.register
def _(model: MaxMarginClassifier) -> list[LabelCovariance]:
    found = model.label_covariance_
    return found if isinstance(found, list) else [found]


@prior_covariances.register
def _(model: KernelLogisticClassifier) -> list[LabelCovariance]:
    return [term.covariance for term in model.prior_.terms]


def covariance_of(classifier: Any) -> LabelCovariance:
    """Give the named prior covariance of the labels, of several kernels their sum; ValueError if none."""
    inner = innermost(classifier)
    found = prior_covariances(inner)
    if not found:
        raise ValueError(f"The model is a {type(inner).__name__}, which has no label covariance.")
    covariance, names = _summed(found), inner.label_names_
    if covariance.label_names is not None or len(names) != covariance.n_labels:  # two classes are one label
        return covariance
    named = copy.copy(covariance)
    named.label_names = names
    return named


def _summed(covariances: list[LabelCovariance]) -> LabelCovariance:
    first, *others = covariances
    if not others:
        return first
    if first.n_labels > _MOST_LABELS:
        raise ValueError(
            f"The model has {len(others) + 1} kernels over {first.n_labels} labels; their covariances "
            f"are put together for at most {_MOST_LABELS} labels."
        )
    return LabelCovariance.dense(sum((term.to_dense() for term in others), first.to_dense()))


@singledispatch
def _taxonomy(model: Any) -> Any:
    return None


@_taxonomy.register
def _(model: MaxMarginClassifier) -> Any:
    return model.label_covariance


@_taxonomy.register
def _(model: KernelLogisticClassifier) -> Any:
    return model.taxonomy_ or model.label_covariance


def taxonomy_of(classifier: Any) -> Taxonomy | None:
    """Give the taxonomy of a model, which it predicts by or takes its label covariance from."""
    found = _taxonomy(innermost(classifier))
    return found if isinstance(found, Taxonomy) else None
