"""What a model holds about its labels: which vary together, lie close together, or are joined in a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelweave.array_types import Array
from labelweave.decisions.layers import innermost
from labelweave.display.common_share import beyond_common_share, is_mostly_common
from labelweave.labels import CliqueGraph, LabelCovariance

__all__ = ["Edge", "LabelStructure", "Tie"]


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


class Edge(NamedTuple):
    """Labels that are scored together.

    weight: how strong the edge is, NaN where unknown.
    effect: whether its labels like to be on together.
    """

    labels: list[str]
    weight: float
    effect: str


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
        """The prior covariance of the labels; None where they are independent or there is none."""
        found = getattr(self.inner, "label_covariance_", None)
        if hasattr(self.inner, "prior_"):
            found = _summed([term.covariance for term in self.inner.prior_.terms])
        if not isinstance(found, LabelCovariance) or found.is_diagonal:
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
        return getattr(self.inner, "label_graph_", None)

    def edges(self) -> list[Edge]:
        """List the cliques of the label graph, the strongest first."""
        graph = self.graph
        if graph is None:
            return []
        weights = np.full(graph.n_cliques, np.nan) if graph.weights is None else graph.weights
        signs = np.zeros(graph.n_cliques) if graph.signs is None else graph.signs
        words = {1: "attract", -1: "exclude", 0: ""}
        return [
            Edge([self.names[label] for label in graph.cliques[k]], float(weights[k]), words[int(signs[k])])
            for k in np.argsort(-weights, kind="stable")[:_MOST_EDGES]
        ]

    @cached_property
    def _vectors(self) -> Array | None:
        """Give every label a vector whose angles to others are those of the columns of ``Z = W H^T``."""
        if not hasattr(self.inner, "label_factors_"):
            return None
        factors = self.inner.label_factors_.astype(np.float64)
        root = np.eye(factors.shape[1])
        if not hasattr(self.inner, "support_"):
            weights = self.inner.feature_factors_.astype(np.float64)
            values, vectors = np.linalg.eigh(weights.T @ weights)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
        found = factors @ root
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0))

    @property
    def has_factors(self) -> bool:
        """Whether labels have factors."""
        return self._vectors is not None

    def neighbors(self, label: int) -> list[Tie]:
        """Find the labels whose weights point most nearly the same way, in a model of two factors.

        label: the label's number in the model.
        Returns five at most, with cosines; none in other models.
        """
        vectors = self._vectors
        if vectors is None or len(vectors) != len(self.names):
            return []
        cosines = np.round(vectors @ vectors[label], _DECIMALS)
        order = [k for k in np.argsort(-cosines, kind="stable") if k != label and cosines[k] > 0]
        return [Tie(self.names[label], self.names[k], float(cosines[k])) for k in order[:_MOST_NEIGHBORS]]


def _summed(covariances: list[LabelCovariance]) -> LabelCovariance | None:
    """Give the covariance of the labels' scores at a row where all kernels are one."""
    first, *others = covariances
    if not others:
        return first
    if first.n_labels > _MOST_LABELS or all(term.is_diagonal for term in covariances):
        return None
    return LabelCovariance.dense(sum((term.to_dense() for term in others), first.to_dense()))
