"""What a model holds about its labels: which vary together, lie close together, or are joined in a graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelweave.app.display.label_order import beyond_common_share, is_mostly_common
from labelweave.app.facts import FactorGeometry, Section, covariance_of, model_facts, prior_covariances
from labelweave.decisions.layers import innermost
from labelweave.estimators import LabelGraphClassifier
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelCovariance

_MOST_LABELS = 2000  # of which all pairs are looked at
_FEW_LABELS = 12  # whose correlations are shown as they are
_MOST_TIES = 12  # of each sign
_MOST_EDGES = 40
_MOST_NEIGHBORS = 5
_WEAKEST = 0.005
_DECIMALS = 9  # rounding must not choose among equal pairs


class Tie(NamedTuple):
    """Two labels, and the correlation or cosine that ties them."""

    first: str
    second: str
    value: float


class LabelStructure:
    """What a model, perhaps in a wrapper, holds about its labels."""

    def __init__(self, classifier: Any) -> None:
        self.inner, facts = innermost(classifier), model_facts(classifier)
        self.graph = self.inner.label_graph_ if isinstance(self.inner, LabelGraphClassifier) else None
        self.edges: list[Section] = [] if facts.graph is None else facts.graph.cliques[:_MOST_EDGES]
        self.geometry = None if facts.factors is None else FactorGeometry(self.inner)

    @cached_property
    def names(self) -> list[str]:  # which classifiers that are not ours do not have
        return [str(name) for name in self.inner.label_names_]

    @cached_property
    def covariance(self) -> LabelCovariance | None:
        """The prior covariance of the labels; None where they are independent, too many, or there is none."""
        if all(term.is_diagonal for term in prior_covariances(self.inner)):
            return None
        try:
            found = covariance_of(self.inner)
        except ValueError:
            return None
        return found if found.n_labels == len(self.names) else None  # two classes are one label

    @cached_property
    def _correlations(self) -> tuple[Array | None, bool]:
        if self.covariance is None or self.covariance.n_labels > _MOST_LABELS:
            return None, False
        found = self.covariance.correlations()
        is_centered = len(found) > _FEW_LABELS and is_mostly_common(found)
        return np.round(beyond_common_share(found) if is_centered else found, _DECIMALS), is_centered

    @property
    def correlations(self) -> Array | None:
        """The correlations of the labels, where there are any and not too many."""
        return self._correlations[0]

    @property
    def is_centered(self) -> bool:
        """Whether what all labels share is taken out of the correlations, which would say nothing with it."""
        return self._correlations[1]

    def ties(self) -> list[Tie]:
        """List the strongest correlations of each sign, from the highest to the lowest."""
        if self.correlations is None:
            return []
        rows, columns = np.triu_indices(len(self.correlations), 1)
        values = self.correlations[rows, columns]
        order = np.argsort(-values, kind="stable")
        high = [k for k in order[:_MOST_TIES] if values[k] > _WEAKEST]
        low = [k for k in order[::-1][:_MOST_TIES][::-1] if values[k] < -_WEAKEST]
        return [Tie(self.names[rows[k]], self.names[columns[k]], float(values[k])) for k in [*high, *low]]

    def neighbors(self, label: int) -> list[Tie]:
        """Find at most five labels whose weights in a model of two factors point most nearly the same way."""
        if self.geometry is None or len(self.geometry.factors) != len(self.names):
            return []
        found = self.geometry.similar(label, _MOST_NEIGHBORS)
        return [Tie(self.names[label], name, cosine) for name, cosine in found if cosine > 0]
