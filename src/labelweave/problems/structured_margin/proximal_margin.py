r"""The problem of the clique generating machine as its own inner solver sees it.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, equation 11: the objective has ``sigma/2 ||w_cliques||^2`` more, so that the weights are a smooth
function of z (Algorithm 3).  Proposition 2 asks for ``sigma <= lambda epsilon / (2 P(0))``; with epsilon as a
share of P(0) the smoothness is ``lambda / sigma = 2 / epsilon``.  A graph that is given has ridge weights,
which are z itself.

The passes only add to z: a row's dual variables sum to what they will (section A.2), and those of the last
pass alone are kept, as the paper does, to score cliques (section 4.4).  Here rows are visited in a random
order, each once a pass, and z, not the weights, is what steps are added to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave._loops.structured.arrays import DualPoint, RowBlock
from labelweave._loops.structured.proximal import ascend_proximally, group_multipliers
from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.margin_model import LABEL_SCALE, MarginModel, Objectives
from labelweave.problems.structured_margin.moments import DualMoments
from labelweave.problems.structured_margin.penalties import CliquePenalty, RoundPenalty
from labelweave.problems.structured_margin.rows import MarginData

__all__ = ["ProximalMargin"]


_ROWS_AT_ONCE = 16
_LEAST_BLOCKS = 20
_FLOOR = 1e-6  # nu of the paper: the least curvature of a step


class ProximalMargin(MarginModel):
    """The problem at one z, which passes over the rows add to.

    penalty: what their weights are penalised by.
    accuracy: by how much the smoothing may raise the objective, as a share of that at weights of zero.
    """

    def __init__(
        self,
        data: MarginData,
        graph: CliqueGraph,
        penalty: CliquePenalty,
        regularization: float,
        inference: dict[str, Any],
        accuracy: float,
        workers: Workers,
    ) -> None:
        super().__init__(data, graph, regularization, inference, workers)
        self.smoothness = 2.0 / accuracy
        self._steps, self._totals = np.zeros(data.n_rows), np.zeros(data.n_rows)
        self._labelings = data.arrays.targets.copy()
        self._cost = 0.0
        self._take_penalty(penalty)

    def regraph(self, graph: CliqueGraph, penalty: CliquePenalty) -> None:
        """Go on with a graph that has more cliques, whose weights are zero at first.

        graph: the graph; its first cliques are those of the present one.
        """
        old = self.sums
        self._take_graph(graph)
        self.sums[:, : old.shape[1]] = old
        self._cost = np.nan  # z is no more that of the dual variables
        self._take_penalty(penalty)

    def _take_penalty(self, penalty: CliquePenalty) -> None:
        self.penalty = penalty
        rounds = penalty.rounds if isinstance(penalty, RoundPenalty) else np.zeros(0, np.int64)
        states = np.repeat(rounds, np.diff(self.graph.table_starts)[: len(rounds)])
        others = np.full(len(self.scales) - len(states), -1)
        self._groups = np.concatenate([others, states]).astype(np.int64)
        self.rebalance()

    def rebalance(self) -> None:
        """Compute the weights of rounds anew."""
        self.scales[self.data.n_labels :] = 1.0
        self._round_squares = np.zeros(0)
        if isinstance(self.penalty, RoundPenalty) and self.penalty.n_rounds:
            self._round_squares = self.penalty.round_squares(self.squares()[1])
            own = self._groups >= 0
            self.scales[own] = self._multipliers()[self._groups[own]]

    def _multipliers(self) -> Array:
        multipliers = np.empty(len(self._round_squares))
        group_multipliers(self._round_squares, self.smoothness, multipliers)
        return multipliers

    def sweep(self, order: Array, damping: float) -> float:
        """Take a step for every row, and give the smoothed objective.

        damping: what the steps are divided by (theta in the paper).
        Returns the losses that rows had when they were visited, and the smoothed penalty after the pass.
        """
        size = max(1, min(_ROWS_AT_ONCE, self.data.n_rows // _LEAST_BLOCKS))
        loss = sum(self._sweep_block(order[part], damping) for part in panels(len(order), size))
        self.rebalance()
        return loss + self._penalty(is_smoothed=True)

    def _sweep_block(self, rows: Array, damping: float) -> float:
        data, products = self.data, self.data.multiply(rows, self.sums)
        labelings = self._worst(rows, products)
        block = RowBlock(rows, labelings, products, data.gram(rows), np.zeros_like(products))
        loss = ascend_proximally(
            block, data.arrays, self.layout, self.scales, self._groups, self._round_squares,
            self.smoothness, self.regularization, damping, _FLOOR, self._steps,
        )  # fmt: skip
        data.add(rows, block.changes, self.sums)
        self._labelings[rows] = labelings
        self._totals[rows] += self._steps[rows]
        self._cost += float((data.arrays.weights[rows] * self._steps[rows]) @ self._costs(rows, labelings))
        return float(loss)

    def _worst(self, rows: Array, products: Array) -> Array:
        """Find the worst labelings; an unobserved label alone has its target."""
        arrays = self.data.arrays
        free = (self.homes < 0)[None, :] & (arrays.observed[rows] == 0)
        return np.where(free, arrays.targets[rows], self.worst_labelings(rows, products).labels)

    @property
    def ceiling(self) -> float:
        """The objective of weights of zero, whose worst labelings have all observed labels wrong."""
        every = np.arange(self.data.n_rows)
        return float(self.data.arrays.weights @ self._costs(every, 1 - self.data.arrays.targets))

    def _costs(self, rows: Array, labelings: Array) -> Array:
        targets, costs = self.data.arrays.targets[rows], self.data.arrays.costs
        wrong = (targets != labelings) & (self.data.arrays.observed[rows] == 1)
        return np.asarray((wrong * np.where(targets == 1, costs[1], costs[0])).sum(axis=1))

    def _penalty(self, is_smoothed: bool) -> float:
        labels, squares = self.squares()
        total = 0.5 * LABEL_SCALE * labels
        if len(self._round_squares):
            norms = self._multipliers() * np.sqrt(self._round_squares)
            smoothing = float(norms @ norms) / self.smoothness if is_smoothed else 0.0
            return self.regularization * (total + 0.5 * float(norms.sum()) ** 2 + 0.5 * smoothing)
        return self.regularization * (total + 0.5 * float(squares.sum()))

    def evaluate(self) -> Objectives:
        """Compute the objective, not smoothed, and a lower bound of the optimum.

        All dual variables are scaled by one number, which makes the largest sum of a row's one at most.
        That is a feasible point, if a loose one; there is none once a clique or a completed label has come
        in, after which z is not that of any dual variables.

        Returns both; NaN where there is no bound.
        """
        loss, missed = self.hinge_loss()
        return Objectives(self._penalty(is_smoothed=False) + loss, self._bound(), loss, missed)

    def _bound(self) -> float:
        labels, squares = self.squares()
        bend = self.regularization * (0.5 * LABEL_SCALE * labels + self.penalty.dual(squares))
        largest = self._totals.max()
        scale = 1.0 / largest if largest > 0.0 else 0.0
        if bend > 0.0:
            scale = min(0.5 * self._cost / bend, scale)
        return float(scale * self._cost - scale**2 * bend)

    def moments(self) -> DualMoments:
        """Give the dual variables of the last pass, as if all labels were of one component.

        Returns the variables; those of a row may sum to more than one.
        """
        targets, steps = self.data.arrays.targets, self._steps
        shares = np.stack([1.0 - steps, steps], axis=1)[:, :, None]
        vertices = np.stack([targets, self._labelings], axis=1)
        means = targets.astype(np.float64) + steps[:, None] * (self._labelings - targets)
        homes = np.zeros(self.data.n_labels, np.int64)
        return DualMoments(self.data, homes, DualPoint(means, vertices, shares), self.regularization)

    def complete(self) -> bool:
        """Put the best labels, given those observed, where nothing was observed.

        Returns whether a target changed; if so, solve again.
        """
        changed = super().complete()
        if changed:
            self._cost = np.nan
        return changed
