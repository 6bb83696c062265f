"""Weights of labels and cliques as multiples of z, the labelings that are worst for them, and the loss.

A problem does not change; where a solve stands is a *point*, a record of arrays in which passes work.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from labelweave._loops.structured.arrays import LABELS, DualPoint, Layout
from labelweave._loops.structured.moments import clique_moments, pair_moments
from labelweave._loops.structured.rows import add_costs
from labelweave.array_types import Array, Floats, PerLabel, PerRow, RowsByLabels
from labelweave.arrays import Workers, panels
from labelweave.inference.map import MapInference
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.penalties import CliquePenalty
from labelweave.problems.structured_margin.rows import MarginData
from labelweave.solvers.passes import PassRecord

__all__ = [
    "LABEL_SCALE",
    "DualMoments",
    "MarginModel",
    "MarginPoint",
    "WorstLabelings",
    "component_labels",
    "graph_layout",
]


LABEL_SCALE = 2.0
_ROWS_IN_MEMORY = 4096


@dataclass(frozen=True, kw_only=True)
class MarginPoint:
    """Weights, and what they were learned for.

    cliques: those of the graph.
    targets (n, L): the true labels, completed where nothing was observed.
    sums (d, L + states): z, a column for every label and for every state of every clique.
    scales (L + states,): what z is multiplied by to give the weights.
    """

    cliques: tuple[tuple[int, ...], ...]
    targets: RowsByLabels
    sums: Floats
    scales: Floats

    def weights(self) -> Floats:
        """Give the weights of labels and states (d, L + states)."""
        return np.asarray(self.sums * self.scales)


class WorstLabelings(NamedTuple):
    """What maximises cost plus score, for some rows.

    losses (rows,): upper bounds of the hinge losses.
    missed (rows,): how far the bounds may be off.
    Shapes: labels (rows, L).
    """

    labels: Array
    losses: PerRow
    missed: PerRow


class DualMoments(NamedTuple):
    """A distribution over labelings for every row, and the columns of z that it stands for.

    targets (n, L): the true labels.
    homes: the component of every label, -1 where it is alone.
    dual: the distributions; independent between components.
    """

    data: MarginData
    targets: RowsByLabels
    homes: PerLabel
    dual: DualPoint
    regularization: float

    def label_sums(self) -> Array:
        """Compute the labels' columns (d, L)."""
        return self._sums(self.targets - self.dual.means)

    def clique_sums(self, clique: tuple[int, ...]) -> Array:
        """Compute a clique's columns (d, states), whether it is in the graph or not."""
        labels, size = np.asarray(clique, np.int64), 1 << len(clique)
        moments = np.empty((self.data.n_rows, size))
        clique_moments(labels, self.homes[labels], self.targets, self.dual, np.empty(size), moments)
        return self._sums(moments)

    def pair_sums(self, label: int, others: Array) -> Array:
        """Compute the columns (d, p) of the products of a label's sign and those of p others."""
        moments = np.empty((self.data.n_rows, len(others)))
        pair_moments(label, others, self.homes, self.targets, self.dual, moments)
        return self._sums(moments)

    def _sums(self, moments: Array) -> Array:
        return self.data.transposed_product(moments) / self.regularization


class MarginModel:
    """A graph over the labels of some rows, and the penalty of its weights."""

    def __init__(
        self,
        data: MarginData,
        graph: CliqueGraph,
        penalty: CliquePenalty,
        regularization: float,
        inference: dict[str, Any],
        workers: Workers,
    ) -> None:
        self.data, self.graph, self.penalty = data, graph, penalty
        self.regularization, self.inference, self.workers = regularization, inference, workers
        self.map = MapInference(graph, **inference)
        self.layout, self.homes = graph_layout(graph)
        self.n_rows = data.n_rows

    def _first_arrays(self) -> dict[str, Any]:
        """Give the arrays of weights of zero."""
        n_columns = self.data.n_labels + int(self.graph.table_starts[-1])
        return {
            "cliques": self.graph.cliques,
            "targets": self.data.arrays.targets.copy(),
            "sums": np.zeros((self.data.n_features, n_columns)),
            "scales": np.full(n_columns, LABEL_SCALE),
        }

    def squares(self, point: MarginPoint) -> tuple[float, Array]:
        """Compute the squared norms of z: of all labels' columns together, and of every clique's."""
        columns = np.einsum("ij,ij->j", point.sums, point.sums)
        n_labels, starts = self.data.n_labels, self.graph.table_starts
        if self.graph.n_cliques == 0:
            return float(columns.sum()), np.zeros(0)
        return float(columns[:n_labels].sum()), np.add.reduceat(columns[n_labels:], starts[:-1])

    def worst_labelings(self, point: MarginPoint, rows: Array, products: Array) -> WorstLabelings:
        """Find what maximises cost plus score.

        products (rows, L + states): the rows' with z.
        """
        scores, n_labels = products * point.scales, self.data.n_labels
        unary, rest = np.empty((len(rows), n_labels)), np.empty(len(rows))
        add_costs(rows, self.data.arrays_with(point.targets), self.layout, scores, unary, rest)
        result = self.map.solve(unary, scores[:, n_labels:].copy(), workers=self.workers)
        losses = np.maximum(0.0, result.bounds + rest)
        return WorstLabelings(result.labels, losses, result.bounds - result.values)

    def hinge_loss(self, point: MarginPoint) -> tuple[float, float]:
        """Compute an upper bound of the weighted sum of the hinge losses, and how far it may be off."""
        loss = missed = 0.0
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            rows, weights = _numbers(part), self.data.arrays.weights[part]
            worst = self.worst_labelings(point, rows, self.data.multiply(rows, point.sums))
            loss += float(weights @ worst.losses)
            missed += float(weights @ worst.missed)
        return loss, missed

    def record(self, primal: float, dual: float) -> PassRecord:
        """Write down the objective and its bound."""
        return PassRecord(0, 0.0, primal, dual, (primal - dual) / max(1.0, abs(primal)), self.graph.n_cliques)

    def complete(self, point: Any) -> bool:
        """Put the best labels, given those observed, where nothing was observed.

        Returns whether a target changed; if so, solve again.
        """
        if not self.data.has_missing:
            return False
        n_labels, clamp = self.data.n_labels, self.data.clamp()
        labels = np.empty((self.data.n_rows, n_labels), np.int8)
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            scores = self.data.multiply(_numbers(part), point.sums) * point.scales
            unary, tables = scores[:, :n_labels].copy(), scores[:, n_labels:].copy()
            labels[part] = self.map.solve(unary, tables, clamp=clamp[part], workers=self.workers).labels
        changed = bool((point.targets != labels).any())
        point.targets[:] = labels
        return changed


def _numbers(part: slice) -> Array:
    return np.arange(part.start, part.stop, dtype=np.int64)


def graph_layout(graph: CliqueGraph) -> tuple[Layout, Array]:
    """List the components of two labels or more; say where every label is.

    homes (L,): the component of every label, -1 where it is alone.
    """
    homes = np.full(graph.n_labels, -1, np.int64)
    wide = [labels for labels in graph.components if len(labels) > 1]
    for number, labels in enumerate(wide):
        homes[list(labels)] = number
    own: list[list[int]] = [[] for _ in wide]
    for number, clique in enumerate(graph.cliques):
        own[homes[clique[0]]].append(number)
    order = [number for part in own for number in part]
    members = [graph.cliques[number] for number in order]
    columns = [graph.n_labels + int(graph.table_starts[number]) for number in order]
    layout = Layout(
        components=np.stack([_starts(wide), _starts(own)]),
        labels=np.concatenate([_integers(wide), np.flatnonzero(homes < 0)]),
        cliques=np.stack([_starts(members), np.asarray([*columns, 0], np.int64)]),
        members=_integers(members),
    )
    return layout, homes


def component_labels(layout: Layout) -> list[Array]:
    """List the labels of every component."""
    starts = layout.components[LABELS]
    return [layout.labels[first:end] for first, end in pairwise(starts)]


def _integers(parts: Any) -> Array:
    return np.asarray([number for part in parts for number in part], np.int64)


def _starts(parts: Any) -> Array:
    return np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)
