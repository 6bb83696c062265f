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

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from labelweave._loops.structured.arrays import DualPoint, RowBlock
from labelweave.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.arrays import panels
from labelweave.problems.structured_margin.margin_model import (
    LABEL_SCALE,
    DualMoments,
    MarginModel,
    MarginPoint,
    RoundPenalty,
)
from labelweave.solvers.frame import State, TraceRecord

_ROWS_AT_ONCE = 16
_LEAST_BLOCKS = 20
_ACCURACY = 0.005  # the paper's epsilon
_FLOOR = 1e-6  # nu of the paper: the least curvature of a step


@dataclass(frozen=True, kw_only=True)
class ProximalPoint(MarginPoint):
    """Weights, and the last steps that were added to them.

    round_squares (rounds,): squared norms of the rounds' parts of z; none with a ridge penalty.
    steps, totals (n,): the rows' last dual variables, and all of them together.
    labelings (n, L): what the last steps moved to.
    cost (1,): the cost of all steps; NaN once z is no more that of dual variables.
    """

    round_squares: Floats
    steps: PerRow
    totals: PerRow
    labelings: RowsByLabels
    cost: Floats

    _limits: ClassVar[dict[str, tuple[int, int]]] = {"labelings": (0, 1)}
    _varies: ClassVar[tuple[str, ...]] = ("cost",)


State.plain_with(ProximalPoint)


class ProximalMargin(MarginModel):
    """The problem to whose z the passes over the rows add.

    The smoothing may raise the objective by a share ``_ACCURACY`` of that at weights of zero.
    """

    smoothness = 2.0 / _ACCURACY

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds = self.penalty.rounds
        states = np.repeat(rounds, np.diff(self.graph.table_starts)[: len(rounds)])
        others = self.data.n_labels + int(self.graph.table_starts[-1]) - len(states)
        self._groups = np.concatenate([np.full(others, -1), states]).astype(np.int64)

    def first_point(self) -> ProximalPoint:
        """Give the point of weights of zero."""
        point = ProximalPoint(
            **self._first_arrays(),
            round_squares=np.zeros(self.penalty.n_rounds),
            steps=np.zeros(self.n_rows),
            totals=np.zeros(self.n_rows),
            labelings=self.data.arrays.targets.copy(),
            cost=np.zeros(1),
        )
        self.rebalance(point)
        return point

    def continued(self, point: ProximalPoint) -> ProximalPoint | None:
        """Take up the weights of an earlier fit, maybe to other data; None if they do not fit."""
        first = self.first_point()
        if point.cliques != first.cliques or point.sums.shape != first.sums.shape:
            return None
        point = replace(first, sums=point.sums, cost=np.full(1, np.nan))
        self.rebalance(point)
        return point

    def grown_from(self, earlier: ProximalMargin, point: ProximalPoint) -> ProximalPoint:
        """Give a point with the same weights, from one of a graph with a round less."""
        fresh = self._first_arrays() | {"targets": point.targets}
        squares, none = np.zeros(self.penalty.n_rounds), np.full(1, np.nan)  # z is of no dual variables now
        grown = replace(point, **fresh, round_squares=squares, cost=none)
        grown.sums[:, : point.sums.shape[1]] = point.sums
        self.rebalance(grown)
        return grown

    def rebalance(self, point: ProximalPoint) -> None:
        """Compute the weights of rounds anew."""
        point.scales[self.data.n_labels :] = 1.0
        if isinstance(self.penalty, RoundPenalty) and len(point.round_squares):
            point.round_squares[:] = self.penalty.round_squares(self.squares(point)[1])
            own = self._groups >= 0
            point.scales[own] = self._multipliers(point)[self._groups[own]]

    mend = rebalance

    def _multipliers(self, point: ProximalPoint) -> Array:
        from labelweave._loops.structured.proximal import group_multipliers

        multipliers = np.empty(len(point.round_squares))
        group_multipliers(point.round_squares, self.smoothness, multipliers)
        return multipliers

    def sweep(self, point: ProximalPoint, order: Array, damping: float) -> float:
        """Take a step for every row, divided by the damping (theta in the paper).

        Returns the smoothed objective: losses from when rows were visited, the penalty after the pass.
        """
        size = max(1, min(_ROWS_AT_ONCE, self.n_rows // _LEAST_BLOCKS))
        loss = sum(self._sweep_block(point, order[part], damping) for part in panels(len(order), size))
        self.rebalance(point)
        return loss + self._penalty(point, is_smoothed=True)

    def _sweep_block(self, point: ProximalPoint, rows: Array, damping: float) -> float:
        from labelweave._loops.structured.proximal import ascend_proximally

        data, products = self.data, self.data.multiply(rows, point.sums)
        # an unobserved label alone has its target
        free = (self.homes < 0)[None, :] & (data.arrays.observed[rows] == 0)
        worst = self.worst_labelings(point, rows, products).labels
        labelings = np.where(free, point.targets[rows], worst)
        block = RowBlock(rows, labelings, products, data.gram(rows), np.zeros_like(products))
        loss = ascend_proximally(
            block, data.arrays_with(point.targets), self.layout, point.scales, self._groups,
            point.round_squares, self.smoothness, self.regularization, damping, _FLOOR, point.steps,
        )  # fmt: skip
        data.add(rows, block.changes, point.sums)
        point.labelings[rows] = labelings
        point.totals[rows] += point.steps[rows]
        costs = self._costs(rows, point.targets[rows], labelings)
        point.cost[0] += float((data.arrays.weights[rows] * point.steps[rows]) @ costs)
        return float(loss)

    def ceiling(self, point: ProximalPoint) -> float:
        """Give the objective of weights of zero, whose worst labelings have all observed labels wrong."""
        costs = self._costs(np.arange(self.n_rows), point.targets, 1 - point.targets)
        return float(self.data.arrays.weights @ costs)

    def _costs(self, rows: Array, targets: Array, labelings: Array) -> Array:
        return np.asarray(((targets != labelings) * self.data.arrays.costs[rows]).sum(axis=1))

    def _penalty(self, point: ProximalPoint, is_smoothed: bool) -> float:
        labels, squares = self.squares(point)
        total = 0.5 * LABEL_SCALE * labels
        if len(point.round_squares):
            norms = self._multipliers(point) * np.sqrt(point.round_squares)
            smoothing = float(norms @ norms) / self.smoothness if is_smoothed else 0.0
            return self.regularization * (total + 0.5 * float(norms.sum()) ** 2 + 0.5 * smoothing)
        return self.regularization * (total + 0.5 * float(squares.sum()))

    def evaluate(self, point: ProximalPoint) -> TraceRecord:
        """Compute the objective, not smoothed, and a lower bound of the optimum.

        All dual variables are scaled by one number, which makes the largest sum of a row's one at most.
        That is a feasible point, if a loose one; there is none, NaN, once a clique or a completed label has
        come in, after which z is not that of any dual variables.
        """
        loss, _ = self.hinge_loss(point)
        return self.record(self._penalty(point, is_smoothed=False) + loss, self._bound(point))

    def _bound(self, point: ProximalPoint) -> float:
        labels, squares = self.squares(point)
        bend = self.regularization * (0.5 * LABEL_SCALE * labels + self.penalty.dual(squares))
        largest, cost = point.totals.max(), float(point.cost[0])
        scale = 1.0 / largest if largest > 0.0 else 0.0
        if bend > 0.0:
            scale = min(0.5 * cost / bend, scale)
        return float(scale * cost - scale**2 * bend)

    def moments(self, point: ProximalPoint) -> DualMoments:
        """Give the dual variables of the last pass, as if all labels were of one component.

        Those of a row may sum to more than one.
        """
        targets, steps = point.targets, point.steps
        shares = np.stack([1.0 - steps, steps], axis=1)[:, :, None]
        vertices = np.stack([targets, point.labelings], axis=1)
        means = targets.astype(np.float64) + steps[:, None] * (point.labelings - targets)
        homes = np.zeros(self.data.n_labels, np.int64)
        return DualMoments(self.data, targets, homes, DualPoint(means, vertices, shares), self.regularization)

    def complete(self, point: ProximalPoint) -> bool:
        """Complete targets as :meth:`MarginModel.complete` does; then no bound is known."""
        changed = super().complete(point)
        if changed:
            point.cost[0] = np.nan
        return changed
