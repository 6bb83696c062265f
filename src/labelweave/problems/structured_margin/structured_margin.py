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

from typing import Any

import numpy as np

from labelweave._loops.structured.arrays import DualPoint, RowBlock
from labelweave._loops.structured.ascent import ascend_rows
from labelweave._loops.structured.moments import component_means, expected_costs
from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.layout import merged_point
from labelweave.problems.structured_margin.margin_model import LABEL_SCALE, MarginModel, Objectives
from labelweave.problems.structured_margin.moments import DualMoments
from labelweave.problems.structured_margin.penalties import CliquePenalty
from labelweave.problems.structured_margin.rows import MarginData

__all__ = ["StructuredMargin"]


_ROWS_AT_ONCE = 64
_LEAST_BLOCKS = 20


class StructuredMargin(MarginModel):
    """The problem at one dual point, which passes over the rows improve.

    penalty: what their weights are penalised by.
    capacity: labelings that are kept for a row and component.
    gaps (n,): the gap of every row when it was last visited.
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
        super().__init__(data, CliqueGraph.empty(data.n_labels), regularization, inference, workers)
        self.gaps = np.zeros(data.n_rows)
        self.dual = DualPoint(
            data.arrays.targets.astype(np.float64),
            np.zeros((data.n_rows, max(2, capacity), data.n_labels), np.int8),
            np.zeros((data.n_rows, max(2, capacity), 0)),
        )
        self.regraph(graph, penalty)

    def regraph(self, graph: CliqueGraph, penalty: CliquePenalty) -> None:
        """Go on with a graph that has more cliques, at a dual point with the same expected costs.

        graph: the graph; components of the present one must not fall apart.
        """
        old = self.layout, self.homes
        self._take_graph(graph)
        self.penalty = penalty
        self.dual = merged_point(self.dual, old, self.layout)
        self.recompute()
        self._rescale()

    def moments(self) -> DualMoments:
        """Give the present distributions, with the means that they have."""
        component_means(self.layout, self.dual)
        return DualMoments(self.data, self.homes, self.dual, self.regularization)

    def recompute(self) -> None:
        """Compute z anew from the dual point, and with it what rounding has added."""
        moments = self.moments()
        self.sums[:, : self.data.n_labels] = moments.label_sums()
        for number, clique in enumerate(self.graph.cliques):
            start, end = self.data.n_labels + self.graph.table_starts[number : number + 2]
            self.sums[:, start:end] = moments.clique_sums(clique)

    def _rescale(self) -> None:
        sizes = np.diff(self.graph.table_starts)
        self.scales[self.data.n_labels :] = np.repeat(self.penalty.scales(), sizes)

    def rebalance(self) -> None:
        """Choose the penalty's best shares for the present weights."""
        self.penalty.rebalance(self.squares()[1])
        self._rescale()

    def sweep(self, order: Array, search: bool = True) -> float:
        """Improve the dual point row by row.

        search: whether to look for labelings that are not among those kept.
        Returns the rows' gaps when they were last visited, an estimate of primal minus dual.
        """
        for part in panels(len(order), self._block):
            self._sweep_block(order[part], search)
        return float(self.data.arrays.weights @ self.gaps)

    @property
    def _block(self) -> int:
        """The rows whose worst labelings are found together, before any of them takes its step."""
        return max(1, min(_ROWS_AT_ONCE, self.data.n_rows // _LEAST_BLOCKS))

    def _sweep_block(self, rows: Array, search: bool) -> None:
        data, products = self.data, self.data.multiply(rows, self.sums)
        labelings, missed = np.empty((0, data.n_labels), np.int8), np.zeros(len(rows))
        if search and self.graph.n_cliques:
            worst = self.worst_labelings(rows, products)
            labelings, missed = worst.labels, worst.missed
        block = RowBlock(rows, labelings, products, data.gram(rows), np.zeros_like(products))
        ascend_rows(block, data.arrays, self.layout, self.dual, self.scales, self.regularization, self.gaps)
        self.gaps[rows] += missed
        data.add(rows, block.changes, self.sums)

    def evaluate(self) -> Objectives:
        """Compute both objectives at the present point."""
        loss, missed = self.hinge_loss()
        label_square, squares = self.squares()
        component_means(self.layout, self.dual)
        labels = 0.5 * LABEL_SCALE * label_square
        primal = self.regularization * (labels + self.penalty.primal(squares)) + loss
        cost = float(expected_costs(self.data.arrays, self.dual))
        dual = cost - self.regularization * (labels + self.penalty.dual(squares))
        return Objectives(primal, dual, loss, missed)

    def complete(self) -> bool:
        """Put the best labels, given those observed, where nothing was observed.

        Returns whether a target changed; if so, solve again.
        """
        changed = super().complete()
        if changed:
            lone = (self.homes < 0)[None, :] & (self.data.arrays.observed == 0)
            self.dual.means[lone] = self.data.arrays.targets[lone]
            self.recompute()
        return changed
