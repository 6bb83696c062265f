"""What a model holds about its labels: which vary together, lie close together, or are joined in a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelweave.app.display.label_order import beyond_common_share, is_mostly_common
from labelweave.app.facts import CliqueFacts, FactorGeometry, covariance_of, model_facts, prior_covariances
from labelweave.decisions.layers import innermost
from labelweave.estimators import LabelGraphClassifier
from labelweave.foundation.array_types import Array
from labelweave.labels import CliqueGraph, LabelCovariance

_MOST_LABELS = 2000  # of which all pairs are looked at
_FEW_LABELS = 12  # whose correlations are shown as they are
_MOST_TIES = 12  # of each sign
_MOST_EDGES = 40
_MOST_NEIGHBORS = 5
_WEAKEST = 0.005
_DECIMALS = 9  # rounding must not choose among equal pairs


class Tie(NamedTuple):
    """Two labels and how strongly they are tied.

    value: A correlation or a cosine.
    """

    first: str
    second: str
    value: float


@dataclass(frozen=True)
class LabelStructure:
    """What a model holds about its labels.

    classifier: the model, perhaps in a wrapper.
    """

    classifier: Any

    @cached_property
    def inner(self) -> Any:
        """The classifier that scores."""
        return innermost(self.classifier)

    @property
    def names(self) -> list[str]:
        """The names of the labels."""
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
    def _prior_correlations(self) -> Array | None:
        if self.covariance is None or self.covariance.n_labels > _MOST_LABELS:
            return None
        return self.covariance.correlations()

    @cached_property
    def is_centered(self) -> bool:
        """Whether what all labels share is taken out of the correlations, which would say nothing with it."""
        found = self._prior_correlations
        return found is not None and len(found) > _FEW_LABELS and is_mostly_common(found)

    @cached_property
    def correlations(self) -> Array | None:
        """The correlations of the labels, where there are any and not too many."""
        found = self._prior_correlations
        if found is None:
            return None
        return np.round(beyond_common_share(found) if self.is_centered else found, _DECIMALS)

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

    @property
    def graph(self) -> CliqueGraph | None:
        """The label graph, if the model has one."""
        return self.inner.label_graph_ if isinstance(self.inner, LabelGraphClassifier) else None

    def edges(self) -> list[CliqueFacts]:
        """List the cliques of the label graph, the strongest first."""
        graph = model_facts(self.classifier).graph
        return [] if graph is None else graph.cliques[:_MOST_EDGES]

    @cached_property
    def geometry(self) -> FactorGeometry | None:
        """The lengths and angles of labels, where they have factors."""
        return None if model_facts(self.classifier).factors is None else FactorGeometry(self.inner)

    def neighbors(self, label: int) -> list[Tie]:
        """Find at most five labels whose weights in a model of two factors point most nearly the same way."""
        if self.geometry is None or len(self.geometry.factors) != len(self.names):
            return []
        found = self.geometry.similar(label, _MOST_NEIGHBORS)
        return [Tie(self.names[label], name, cosine) for name, cosine in found if cosine > 0]
