"""Weights of labels and cliques as multiples of z, the labelings that are worst for them, and the loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave._loops.structured.rows import add_costs
from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.inference.map import MapInference
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.layout import graph_layout
from labelweave.problems.structured_margin.rows import MarginData

__all__ = ["LABEL_SCALE", "MarginModel", "Objectives", "WorstLabelings"]


LABEL_SCALE = 2.0
_ROWS_IN_MEMORY = 4096


class Objectives(NamedTuple):
    """What is known at a point.

    primal: an upper bound of the optimum: the objective at the weights.
    dual: A lower bound of the optimum; NaN where there is none.
    loss: the mean hinge loss in the primal.
    missed: by how much inexact inference may have raised the primal.
    """

    primal: float
    dual: float
    loss: float
    missed: float

    @property
    def gap(self) -> float:
        """(primal - dual) / max(1, abs(primal))."""
        return (self.primal - self.dual) / max(1.0, abs(self.primal))


class WorstLabelings(NamedTuple):
    """What maximises cost plus score, for some rows.

    losses (rows,): upper bounds of the hinge losses.
    missed (rows,): how far the bounds may be off.
    Shapes: labels (rows, L).
    """

    labels: Array
    losses: Array
    missed: Array


class MarginModel:
    """A graph, and weights for its labels and cliques.

    sums (d, L + states): z, a column for every label and for every state of every clique.
    scales (L + states,): what z is multiplied by to give the weights.
    """

    def __init__(
        self,
        data: MarginData,
        graph: CliqueGraph,
        regularization: float,
        inference: dict[str, Any],
        workers: Workers,
    ) -> None:
        self.data, self.regularization, self.workers = data, regularization, workers
        self.inference = inference
        self._take_graph(graph)

    def _take_graph(self, graph: CliqueGraph) -> None:
        self.graph = graph
        self.map = MapInference(graph, **self.inference)
        self.layout, self.homes = graph_layout(graph)
        columns = self.data.n_labels + int(graph.table_starts[-1])
        self.sums = np.zeros((self.data.n_features, columns))
        self.scales = np.full(columns, LABEL_SCALE)

    def weights(self) -> Array:
        """Give the weights of labels and states.

        Shapes: result (d, L + states).
        """
        return np.asarray(self.sums * self.scales)

    def squares(self) -> tuple[float, Array]:
        """Compute the squared norms of z.

        labels: of all labels' columns together.
        cliques (cliques,): of the columns of every clique.
        """
        columns = np.einsum("ij,ij->j", self.sums, self.sums)
        n_labels, starts = self.data.n_labels, self.graph.table_starts
        if self.graph.n_cliques == 0:
            return float(columns.sum()), np.zeros(0)
        return float(columns[:n_labels].sum()), np.add.reduceat(columns[n_labels:], starts[:-1])

    def worst_labelings(self, rows: Array, products: Array | None = None) -> WorstLabelings:
        """Find what maximises cost plus score.

        products (rows, L + states): their products with z, if known.
        Returns labelings, losses and what inference may have missed.
        """
        products = self.data.multiply(rows, self.sums) if products is None else products
        scores, n_labels = products * self.scales, self.data.n_labels
        unary, rest = np.empty((len(rows), n_labels)), np.empty(len(rows))
        add_costs(rows, self.data.arrays, self.layout, scores, unary, rest)
        result = self.map.solve(unary, scores[:, n_labels:].copy(), workers=self.workers)
        losses = np.maximum(0.0, result.bounds + rest)
        return WorstLabelings(result.labels, losses, result.bounds - result.values)

    def hinge_loss(self) -> tuple[float, float]:
        """Compute the mean loss over all rows.

        loss: an upper bound of the weighted sum of the hinge losses.
        missed: how far it may be off.
        """
        loss = missed = 0.0
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            worst, weights = self.worst_labelings(_numbers(part)), self.data.arrays.weights[part]
            loss += float(weights @ worst.losses)
            missed += float(weights @ worst.missed)
        return loss, missed

    def complete(self) -> bool:
        """Put the best labels, given those observed, where nothing was observed.

        Returns whether a target changed; if so, solve again.
        """
        if not self.data.has_missing:
            return False
        n_labels, clamp = self.data.n_labels, self.data.clamp()
        labels = np.empty((self.data.n_rows, n_labels), np.int8)
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            scores = self.data.multiply(_numbers(part), self.sums) * self.scales
            unary, tables = scores[:, :n_labels].copy(), scores[:, n_labels:].copy()
            labels[part] = self.map.solve(unary, tables, clamp=clamp[part], workers=self.workers).labels
        return self.data.complete(labels)


def _numbers(part: slice) -> Array:
    return np.arange(part.start, part.stop, dtype=np.int64)
