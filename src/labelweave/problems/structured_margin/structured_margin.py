r"""The structured support vector machine over a clique graph.

    minimise over w   lambda penalty(w) + sum_i p_i max over y of [cost(y, y_i) + F(y, x_i) - F(y_i, x_i)]

with ``F(y, x) = sum_k h_k(x) y_k + sum_c v_c(state of c in y)^T x`` and row weights p that sum to one (Tan
et al. 2015, equation 3; Tsochantaridis et al. 2005).  The paper's one-hot features of a label have two
vectors whose optimum is u_1 = -u_0; with h = u_1 - u_0 their penalty ``1/2 ||u||^2`` is
``1/4 ||h||^2``, so that h is twice the label's z.

**Dual.**  With a distribution alpha_i over labelings for every row, m_i the true statistics less the expected
ones, and ``z = 1 / lambda sum_i p_i m_i x_i^T``,

    dual(alpha) = sum_i p_i E[cost] - lambda (||z_labels||^2 + penalty*(z_cliques))

where the labels' term is 1/2 of two columns.  Distributions are products over connected
components, which changes nothing: cost and F are sums over components.  Primal minus dual at w(z) bounds the
distance to the optimum, whatever inference returns, as its upper bound enters the primal.

**Unobserved labels** have no cost, and both maxima run over them (the latent structural SVM of Yu and
Joachims, ICML 2009).  The target's maximum makes that a difference of convex functions; ``complete`` fixes it
at its present labels, the convex problem that is left bounds the objective from above and touches it, so
that solving it never raises the objective.  An unobserved label alone drops out altogether.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave._loops.structured.arrays import DualPoint, Layout, RowScores
from labelweave._loops.structured.ascent import ascend_rows
from labelweave._loops.structured.moments import (
    clique_moments,
    component_means,
    expected_costs,
    merge_components,
)
from labelweave._loops.structured.rows import add_costs, score_targets
from labelweave.arrays import Workers, panels
from labelweave.inference.map import MapInference
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.penalties import CliquePenalty
from labelweave.problems.structured_margin.rows import MarginData

__all__ = ["Objectives", "StructuredMargin"]

Array = npt.NDArray[Any]

LABEL_SCALE = 2.0
_ROWS_AT_ONCE = 64
_LEAST_BLOCKS = 20
_ROWS_IN_MEMORY = 4096


class Objectives(NamedTuple):
    """What is known at a point.

    Parameters
    ----------
    primal : float
        An upper bound of the optimum: the objective at the weights.
    dual : float
        A lower bound of the optimum.
    loss : float
        The mean hinge loss in the primal.
    missed : float
        By how much inexact inference may have raised the primal.
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

    Parameters
    ----------
    labels : ndarray of int8, shape (rows, L)
        The labelings found.
    losses : ndarray of float64, shape (rows,)
        Upper bounds of the hinge losses.
    missed : ndarray of float64, shape (rows,)
        How far the bounds may be off.
    """

    labels: Array
    losses: Array
    missed: Array


class StructuredMargin:
    """The problem at one dual point, which passes over the rows improve.

    Parameters
    ----------
    data : MarginData
        The rows.
    graph : CliqueGraph
        The cliques.
    penalty : CliquePenalty
        What their weights are penalised by.
    regularization : float
        lambda.
    inference : dict
        Options of :class:`labelweave.inference.map.MapInference`.
    capacity : int
        Labelings that are kept for a row and component.
    workers : Workers
        Threads for evaluation.
    """

    def __init__(
        self,
        data: MarginData,
        graph: CliqueGraph,
        penalty: CliquePenalty,
        regularization: float,
        inference: dict[str, Any],
        capacity: int,
        workers: Workers,
    ) -> None:
        self.data, self.regularization, self.workers = data, regularization, workers
        self.inference, self.capacity = inference, max(2, capacity)
        self.penalty = penalty
        self._begin(graph)

    def _begin(self, graph: CliqueGraph) -> None:
        n, n_labels = self.data.n_rows, self.data.n_labels
        empty = CliqueGraph.empty(n_labels)
        self._lay_out(empty)
        self.dual = DualPoint(
            self.data.arrays.targets.astype(np.float64),
            np.zeros((n, self.capacity, n_labels), np.uint8),
            np.zeros((n, self.capacity, 0)),
        )
        self.regraph(graph, self.penalty)

    def _lay_out(self, graph: CliqueGraph) -> None:
        self.graph = graph
        self.map = MapInference(graph, **self.inference)
        self.layout, self.homes = _layout(graph)

    def regraph(self, graph: CliqueGraph, penalty: CliquePenalty) -> None:
        """Go on with a graph that has more cliques, at a dual point with the same expected costs.

        Parameters
        ----------
        graph : CliqueGraph
            The graph; components of the present one must not fall apart.
        penalty : CliquePenalty
            Its penalty.
        """
        old_homes, old_parts = self.homes, self._parts()
        self._lay_out(graph)
        self.penalty = penalty
        self._merge(old_homes, old_parts)
        columns = self.data.n_labels + int(graph.table_starts[-1])
        self.model = RowScores(
            sums=np.zeros((self.data.n_features, columns)),
            scales=np.full(columns, LABEL_SCALE),
            scores=np.zeros(columns),
            change=np.zeros(columns),
        )
        self.recompute()
        self._rescale()

    def _parts(self) -> list[Array]:
        starts = self.layout.label_starts
        return [self.layout.labels[starts[c] : starts[c + 1]] for c in range(len(starts) - 1)]

    def _merge(self, old_homes: Array, old_parts: list[Array]) -> None:
        n, capacity, n_labels = self.dual.vertices.shape
        shares = np.zeros((n, capacity, len(self.layout.label_starts) - 1))
        vertices = np.zeros((n, capacity, n_labels), np.uint8)
        for component, labels in enumerate(self._parts()):
            parts, homes = [], []
            for label in labels:
                if old_homes[label] < 0:
                    parts.append(np.asarray([label]))
                    homes.append(-1)
            for home in np.unique(old_homes[labels][old_homes[labels] >= 0]):
                parts.append(old_parts[home])
                homes.append(home)
            starts = np.cumsum([0] + [len(part) for part in parts])
            merge_components(
                starts, np.concatenate(parts), np.asarray(homes, np.int64), self.dual, component, shares, vertices
            )  # fmt: skip
        self.dual = DualPoint(self.dual.means, vertices, shares)

    def recompute(self) -> None:
        """Compute z anew from the dual point, and with it what rounding has added."""
        component_means(self.layout, self.dual)
        moments = self.data.arrays.targets - self.dual.means
        free = (self.homes < 0)[None, :] & (self.data.arrays.observed == 0)
        moments[free] = 0.0
        sums, n_labels = self.model.sums, self.data.n_labels
        sums[:, :n_labels] = self.data.transposed_product(moments)
        for number, clique in enumerate(self.graph.cliques):
            start, end = n_labels + self.graph.table_starts[number : number + 2]
            sums[:, start:end] = self.data.transposed_product(self.clique_moments(clique))
        sums /= self.regularization

    def clique_moments(self, clique: tuple[int, ...]) -> Array:
        """Give the true states of a clique less the expected ones, also of one that is not in the graph.

        Parameters
        ----------
        clique : tuple of int
            Ascending labels.

        Returns
        -------
        ndarray of float64, shape (n, states)
            The moments.
        """
        labels, size = np.asarray(clique, np.int64), 1 << len(clique)
        moments = np.empty((self.data.n_rows, size))
        clique_moments(
            labels, self.homes[labels], self.data.arrays.targets, self.dual, np.empty(size), moments
        )  # fmt: skip
        return moments

    def squares(self) -> tuple[float, Array]:
        """Compute the squared norms of z.

        Returns
        -------
        labels : float
            Of all labels' columns together.
        cliques : ndarray of float64, shape (cliques,)
            Of the columns of every clique.
        """
        columns = np.einsum("ij,ij->j", self.model.sums, self.model.sums)
        n_labels, starts = self.data.n_labels, self.graph.table_starts
        if self.graph.n_cliques == 0:
            return float(columns.sum()), np.zeros(0)
        return float(columns[:n_labels].sum()), np.add.reduceat(columns[n_labels:], starts[:-1])

    def _rescale(self) -> None:
        sizes = np.diff(self.graph.table_starts)
        self.model.scales[self.data.n_labels :] = np.repeat(self.penalty.scales(), sizes)

    def rebalance(self) -> None:
        """Choose the penalty's best shares for the present weights."""
        self.penalty.rebalance(self.squares()[1])
        self._rescale()

    def sweep(self, order: Array) -> float:
        """Improve the dual point row by row.

        Parameters
        ----------
        order : ndarray of int64
            The rows to visit.

        Returns
        -------
        float
            The rows' gaps when they were visited, an estimate of primal minus dual.
        """
        if len(self.layout.columns) == 0:
            return self._ascend(order, np.zeros((len(order), 0), np.int8), np.zeros(len(order)))
        return sum(self._sweep_block(order[part]) for part in panels(len(order), self._block))

    @property
    def _block(self) -> int:
        """The rows whose worst labelings are found together, before any of them takes its step."""
        return max(1, min(_ROWS_AT_ONCE, self.data.n_rows // _LEAST_BLOCKS))

    def _sweep_block(self, rows: Array) -> float:
        worst = self.worst_labelings(rows)
        return self._ascend(rows, worst.labels, worst.missed)

    def _ascend(self, rows: Array, labelings: Array, missed: Array) -> float:
        return float(
            ascend_rows(
                rows, labelings, missed, self.data.arrays, self.layout, self.dual, self.model, self.regularization
            )
        )  # fmt: skip

    def worst_labelings(self, rows: Array) -> WorstLabelings:
        """Find what maximises cost plus score.

        Parameters
        ----------
        rows : ndarray of int64
            The rows.

        Returns
        -------
        WorstLabelings
            Labelings, losses and what inference may have missed.
        """
        scores = self.data.products.rows(rows).matmul(self.weights())
        n_labels = self.data.n_labels
        unary, constants, targets = scores[:, :n_labels].copy(), np.empty(len(rows)), np.empty(len(rows))
        add_costs(rows, self.data.arrays, unary, constants)
        result = self.map.solve(unary, np.ascontiguousarray(scores[:, n_labels:]), workers=self.workers)
        score_targets(rows, self.data.arrays, self.layout, scores, targets)
        losses = np.maximum(0.0, result.bounds + constants - targets)
        return WorstLabelings(result.labels, losses, result.bounds - result.values)

    def evaluate(self) -> Objectives:
        """Compute both objectives at the present point."""
        hinges, gaps = self._hinges()
        label_square, squares = self.squares()
        weights = self.data.arrays.weights
        loss, missed = float(weights @ hinges), float(weights @ gaps)
        component_means(self.layout, self.dual)
        labels = 0.5 * LABEL_SCALE * label_square
        primal = self.regularization * (labels + self.penalty.primal(squares)) + loss
        cost = float(expected_costs(self.data.arrays, self.dual))
        dual = cost - self.regularization * (labels + self.penalty.dual(squares))
        return Objectives(primal, dual, loss, missed)

    def _hinges(self) -> tuple[Array, Array]:
        parts = [
            self.worst_labelings(np.arange(part.start, part.stop))
            for part in panels(self.data.n_rows, _ROWS_IN_MEMORY)
        ]
        return np.concatenate([part.losses for part in parts]), np.concatenate([part.missed for part in parts])

    def complete(self) -> bool:
        """Put the best labels, given those observed, where nothing was observed.

        Returns
        -------
        bool
            Whether a target changed; if so, solve again.
        """
        if not self.data.has_missing:
            return False
        weights, n_labels = self.weights(), self.data.n_labels
        clamp, labels = self.data.clamp(), np.empty((self.data.n_rows, n_labels), np.int8)
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            scores = self.data.products.rows(part).matmul(weights)
            unary, tables = (
                np.ascontiguousarray(scores[:, :n_labels]),
                np.ascontiguousarray(scores[:, n_labels:]),
            )
            labels[part] = self.map.solve(unary, tables, clamp=clamp[part], workers=self.workers).labels
        changed = self.data.complete(labels)
        if changed:
            lone = (self.homes < 0)[None, :] & (self.data.arrays.observed == 0)
            self.dual.means[lone] = self.data.arrays.targets[lone]
            self.recompute()
        return changed

    def weights(self) -> Array:
        """Give the weights of labels and states, shape (d, L + states)."""
        return self.model.sums * self.model.scales


def _layout(graph: CliqueGraph) -> tuple[Layout, Array]:
    """List the components of two labels or more; say where every label is."""
    homes = np.full(graph.n_labels, -1, np.int64)
    wide = [labels for labels in graph.components if len(labels) > 1]
    for number, labels in enumerate(wide):
        homes[list(labels)] = number
    cliques: list[list[int]] = [[] for _ in wide]
    for number, clique in enumerate(graph.cliques):
        cliques[homes[clique[0]]].append(number)
    layout = Layout(
        lone=np.flatnonzero(homes < 0),
        label_starts=_starts(wide),
        labels=_integers(wide),
        clique_starts=_starts(cliques),
        cliques=_integers(cliques),
        member_starts=_starts(graph.cliques),
        members=_integers(graph.cliques),
        columns=graph.n_labels + np.asarray(graph.table_starts[:-1], np.int64),
    )
    return layout, homes


def _integers(parts: Any) -> Array:
    return np.asarray([number for part in parts for number in part], np.int64)


def _starts(parts: Any) -> Array:
    return np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)
