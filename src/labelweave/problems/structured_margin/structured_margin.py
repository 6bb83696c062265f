r"""The structured support vector machine over a clique graph.

    minimize over w   lambda penalty(w) + sum_i p_i max over y of [cost(y, y_i) + F(y, x_i) - F(y_i, x_i)]

with ``F(y, x) = sum_k h_k(x) y_k + sum_c v_c(state of c in y)^T x`` and row weights p that sum to one (Tan
et al. 2015, equation 3; Tsochantaridis et al. 2005).  The paper's one-hot features of a label have two
vectors whose optimum is u_1 = -u_0; with h = u_1 - u_0 their penalty ``1/2 ||u||^2`` is
``1/4 ||h||^2``, so that h is twice the label's z.

**Dual.**  With a distribution alpha_i over labelings for every row, m_i the true minus the expected
statistics, and ``z = 1 / lambda sum_i p_i m_i x_i^T``,

    dual(alpha) = sum_i p_i E[cost] - lambda (||z_labels||^2 + penalty*(z_cliques))

where the labels' term is 1/2 of two columns.  Distributions are products over connected
components, without loss of generality: cost and F are sums over components.  Primal minus dual at w(z) bounds
the distance to the optimum for any inference method, as its upper bound enters the primal.

**Unobserved labels** have no cost, and both maxima run over them (the latent structural SVM of Yu and
Joachims, ICML 2009).  The target's maximum makes that a difference of convex functions; ``complete`` fixes it
at its current labels, and the remaining convex problem bounds the objective from above and touches it, so
solving it never raises the objective.  An isolated unobserved label has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np

from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.loops.structured import DualPoint, Layout, RowBlock
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.postprocessing.map import MapInference
from labelweave.problems.structured_margin import clique_features, margin_model
from labelweave.problems.structured_margin.label_sets import set_losses, set_steps, worst_label_sets
from labelweave.problems.structured_margin.margin_model import (
    CliquePenalty,
    DualMoments,
    StructuredRows,
    WorstLabelings,
)
from labelweave.solvers.frame import State, TraceRecord

_ROUNDING = 16 * float(np.finfo(np.float64).eps)
_ALL = slice(None)
_SETTLED = 0.5  # the gap among cached labelings, as a share of the pass's, where sweeps without inference end
_LIVE = 0.3  # the least gap of a row, as a share of the mean, for a visit in these sweeps
_ROWS_AT_ONCE, _ROWS_IN_MEMORY = 64, 4096
_LEAST_BLOCKS = 20
_ROWS_TO_MERGE = 2048


@dataclass(frozen=True, kw_only=True)
class DualMarginPoint:
    """Weights, the targets they were learned for, and the distributions over labelings that determine them.

    targets (n, L): the true labels, completed where unobserved.
    sums (d, L + states): z, one column per label and per state of every clique.
    scales (L + states,): factors from z to the weights.
    round_shares (rounds,): those of the penalty.
    means (n, L), vertices (n, capacity, L), shares (n, capacity, components): see ``DualPoint``.
    gaps (n,): the gap of every row at its last visit.
    """

    cliques: tuple[tuple[int, ...], ...]
    targets: RowsByLabels
    sums: Floats
    scales: Floats
    round_shares: Floats
    means: RowsByLabels
    vertices: Array
    shares: Array
    gaps: PerRow

    _limits: ClassVar[dict[str, tuple[int, int]]] = {"vertices": (0, 1)}

    @property
    def dual(self) -> DualPoint:
        return DualPoint(self.means, self.vertices, self.shares)

    def weights(self) -> Floats:
        return np.asarray(self.sums * self.scales)


State.plain_with(DualMarginPoint)


@dataclass
class StructuredMargin:
    """A graph over the labels of some rows, and the penalty of its weights; passes improve its dual point.

    capacity: the number of labelings stored per row and component, two or more.
    """

    data: StructuredRows
    graph: CliqueGraph
    penalty: CliquePenalty
    alpha: float
    inference: dict[str, Any]
    workers: Workers

    capacity = 16

    def __post_init__(self) -> None:
        self.map = MapInference(self.graph, **self.inference)
        self.layout, self.homes = margin_model.graph_layout(self.graph, self.data.loss)
        if self.layout.loss:
            self.steps = set_steps(self.graph)
        self.n_rows = self.data.n_rows
        if (blocks := self.data.blocks) is not None:
            own = [clique for clique in self.graph.cliques for _ in range(1 << len(clique))]
            parts = [()] * self.data.n_labels + own  # the clique of each column, none for those of labels
            self.masks = clique_features.column_masks(self.data.n_features, blocks, parts)
            self.shares = clique_features.column_squares(self.data.products, blocks, parts)

    def _first_arrays(self) -> dict[str, Any]:
        """Return the arrays of weights of zero."""
        n_columns = self.data.n_labels + int(self.graph.table_starts[-1])
        return {
            "cliques": self.graph.cliques,
            "targets": self.data.arrays.targets.copy(),
            "sums": np.zeros((self.data.n_features, n_columns)),
            "scales": np.full(n_columns, margin_model.LABEL_SCALE),
        }

    def squares(self, point: DualMarginPoint) -> tuple[float, Array]:
        """Compute the squared norms of z: of all labels' columns together, and of every clique's."""
        columns = np.einsum("ij,ij->j", point.sums, point.sums)
        n_labels, starts = self.data.n_labels, self.graph.table_starts
        if self.graph.n_cliques == 0:
            return float(columns.sum()), np.zeros(0)
        return float(columns[:n_labels].sum()), np.add.reduceat(columns[n_labels:], starts[:-1])

    def worst_labelings(self, point: DualMarginPoint, rows: Array, products: Array) -> WorstLabelings:
        """Maximize cost plus score, from the products (rows, L + states) of the rows with z."""
        from labelweave.foundation.loops.structured import add_costs

        scores, n_labels = products * point.scales, self.data.n_labels
        unary, rest = np.empty((len(rows), n_labels)), np.empty(len(rows))
        add_costs(rows, self.data.arrays._replace(targets=point.targets), self.layout, scores, unary, rest)
        if self.layout.loss:
            labels, values = worst_label_sets(self.steps, self.data.loss, rows, self.data.arrays, scores)
            return WorstLabelings(labels, np.maximum(0.0, values + rest), np.zeros(len(rows)))
        result = self.map.solve(unary, scores[:, n_labels:].copy(), workers=self.workers)
        losses = np.maximum(0.0, result.bounds + rest)
        return WorstLabelings(result.labels, losses, result.bounds - result.values)

    def hinge_loss(self, point: DualMarginPoint) -> tuple[float, float]:
        """Compute an upper bound of the weighted sum of the hinge losses, and its largest error."""
        loss = missed = 0.0
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            rows, weights = margin_model.numbers_of(part), self.data.arrays.weights[part]
            worst = self.worst_labelings(point, rows, self.data.multiply(rows, point.sums))
            loss += float(weights @ worst.losses)
            missed += float(weights @ worst.missed)
        return loss, missed

    def best_targets(self, point: DualMarginPoint) -> RowsByLabels:
        """Find the best labels (n, L), given those observed."""
        n_labels, clamp = self.data.n_labels, self.data.clamp()
        labels = np.empty((self.data.n_rows, n_labels), np.int8)
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            scores = self.data.multiply(margin_model.numbers_of(part), point.sums) * point.scales
            unary, tables = scores[:, :n_labels].copy(), scores[:, n_labels:].copy()
            labels[part] = self.map.solve(unary, tables, clamp=clamp[part], workers=self.workers).labels
        return labels

    @cached_property
    def rounding_level(self) -> float:
        """The rounding error of the objective, whose losses are differences of costs and scores."""
        rows = self.data.arrays
        return _ROUNDING * (1.0 if self.layout.loss else float(rows.weights @ rows.costs.sum(axis=1)))

    def first_point(self) -> DualMarginPoint:
        alone, targets = CliqueGraph.empty(self.data.n_labels), self.data.arrays.targets
        point = DualMarginPoint(
            **{**self._first_arrays(), "cliques": ()},
            round_shares=self.penalty.first_shares(),
            means=targets.astype(np.float64),
            vertices=np.zeros((self.n_rows, self.capacity, self.data.n_labels), np.int8),
            shares=np.zeros((self.n_rows, self.capacity, 0)),
            gaps=np.zeros(self.n_rows),
        )
        return self._merged(point, margin_model.graph_layout(alone), point.round_shares)

    def point_at(self, sums: Floats, round_shares: Floats, **of_rows: Array) -> DualMarginPoint:
        point = DualMarginPoint(
            cliques=self.graph.cliques, sums=sums, scales=np.full(sums.shape[1], margin_model.LABEL_SCALE),
            round_shares=round_shares, **of_rows,
        )  # fmt: skip
        self.rescale(point)
        return point

    def continued(self, point: DualMarginPoint) -> DualMarginPoint | None:
        """Start from the distributions of an earlier fit, maybe to other data; None if they do not match."""
        shapes = (self.n_rows, self.capacity, self.data.n_labels), self.penalty.first_shares().shape
        own_shapes = point.vertices.shape, point.round_shares.shape
        if point.cliques != self.graph.cliques or own_shapes != shapes:
            return None
        fresh = self._first_arrays()
        means = np.where(self._free_of_loss, fresh["targets"], point.means)
        point = replace(point, **fresh, means=means, gaps=np.zeros(self.n_rows))
        self.mend(point)
        return point

    def grown_from(self, earlier: StructuredMargin, point: DualMarginPoint) -> DualMarginPoint:
        """Return a point with the same expected costs, from one of a graph with one round less."""
        return self._merged(
            point, (earlier.layout, earlier.homes), margin_model.grown_shares(point.round_shares)
        )

    def _merged(
        self, point: DualMarginPoint, old: tuple[Layout, Array], round_shares: Array
    ) -> DualMarginPoint:
        dual = _merged_dual(point.dual, old, self.layout)
        fresh = self._first_arrays() | {"targets": point.targets, "round_shares": round_shares}
        point = replace(point, **fresh, **dual._asdict())
        self.recompute(point)
        self.rescale(point)
        return point

    def moments(self, point: DualMarginPoint) -> DualMoments:
        self._write_means(point)
        return DualMoments(self.data, point.targets, self.homes, point.dual, self.alpha)

    def _write_means(self, point: DualMarginPoint) -> None:
        for component, labels in enumerate(margin_model.component_labels(self.layout)):
            means = np.zeros((self.n_rows, len(labels)))
            for vertex in range(self.capacity):
                means += point.shares[:, vertex, component, None] * point.vertices[:, vertex, labels]
            point.means[:, labels] = means

    def recompute(self, point: DualMarginPoint) -> None:
        """Recompute z from the distributions, which removes accumulated rounding errors."""
        moments = self.moments(point)
        point.sums[:, : self.data.n_labels] = moments.label_sums()
        for number, clique in enumerate(self.graph.cliques):
            start, end = self.data.n_labels + self.graph.table_starts[number : number + 2]
            point.sums[:, start:end] = moments.clique_sums(clique)

    def rescale(self, point: DualMarginPoint) -> None:
        scales = self.penalty.scales(point.round_shares)
        point.scales[self.data.n_labels :] = np.repeat(scales, np.diff(self.graph.table_starts))

    def rebalance(self, point: DualMarginPoint) -> None:
        self.penalty.rebalance(self.squares(point)[1], point.round_shares)
        self.rescale(point)

    def mend(self, point: DualMarginPoint) -> None:
        """Recompute weights: an interrupted step may be in the distributions but not yet in the weights."""
        self.recompute(point)
        self.rebalance(point)

    def passed(
        self, point: DualMarginPoint, random: np.random.RandomState, most_sweeps: int,
        some: Array | None = None,
    ) -> float:  # fmt: skip
        """Visit rows, all or some; see :meth:`~labelweave.solvers.passes.PassProblem.passed`."""
        rows, own = (np.arange(self.n_rows), _ALL) if some is None else (some, some)
        estimate = self.sweep(point, random.permutation(rows), among=own)
        self.rebalance(point)
        for _ in range(most_sweeps):
            gaps = point.gaps[own]
            live = random.permutation(rows[gaps > _LIVE * gaps.mean()])
            settled = self.sweep(point, live, search=False, among=own)
            self.rebalance(point)
            if settled <= _SETTLED * estimate:
                break
        return estimate

    def sweep(
        self, point: DualMarginPoint, order: Array, search: bool = True, among: Array | slice = _ALL
    ) -> float:
        """Improve the dual point row by row, with ``search`` by labelings that are not yet stored.

        Returns the gaps of some rows at their last visits, an estimate of primal minus dual.
        """
        # the worst labelings of this many rows are found together, before any of them takes its step
        block = max(1, min(_ROWS_AT_ONCE, self.n_rows // _LEAST_BLOCKS))
        block = block if self.data.blocks is None else 1  # a matrix of products of rows is of equal features
        for part in panels(len(order), block):
            self._sweep_block(point, order[part], search)
        return float(self.data.arrays.weights[among] @ point.gaps[among])

    def _sweep_block(self, point: DualMarginPoint, rows: Array, search: bool) -> None:
        from labelweave.foundation.loops.structured import ascend_rows

        data, products = self.data, self.data.multiply(rows, point.sums)
        labelings, missed = np.empty((0, data.n_labels), np.int8), np.zeros(len(rows))
        if search and (self.graph.n_cliques or self.layout.loss):
            worst = self.worst_labelings(point, rows, products)
            labelings, missed = worst.labels, worst.missed
        scales = point.scales
        if data.blocks is not None:  # so that products times scales stay, with a curvature for each column
            (share,) = self.shares[rows]
            scales = scales * share
            products = np.divide(products, share, out=np.zeros_like(products), where=share > 0.0)
        block = RowBlock(rows, labelings, products, data.gram(rows), np.zeros_like(products))
        arrays = data.arrays._replace(targets=point.targets)
        ascend_rows(block, arrays, self.layout, point.dual, scales, self.alpha, point.gaps)
        point.gaps[rows] += missed
        data.add(rows, block.changes, point.sums)
        if data.blocks is not None:
            np.multiply(point.sums, self.masks, out=point.sums)

    def evaluate(self, point: DualMarginPoint) -> TraceRecord:
        """Compute both objectives; inexact inference enters the primal with its bound."""
        loss, _ = self.hinge_loss(point)
        label_square, squares = self.squares(point)
        self._write_means(point)
        labels = 0.5 * margin_model.LABEL_SCALE * label_square
        primal = self.alpha * (labels + self.penalty.primal(squares, point.round_shares)) + loss
        cost = float(self.data.arrays.weights @ self._expected_costs(point))
        dual = cost - self.alpha * (labels + self.penalty.dual(squares))
        return TraceRecord.of(primal, dual, n_cliques=self.graph.n_cliques)

    def _expected_costs(self, point: DualMarginPoint) -> PerRow:
        if not self.layout.loss:
            wrong = np.where(point.targets == 1, 1.0 - point.means, point.means)
            return np.asarray((wrong * self.data.arrays.costs).sum(axis=1))
        costs, arrays = np.zeros(self.n_rows), self.data.arrays
        for labels, shares in zip(point.vertices.swapaxes(0, 1), point.shares[:, :, 0].T, strict=True):
            costs += shares * set_losses(self.data.loss, labels, arrays.targets, arrays.observed)
        return costs

    def complete(self, point: DualMarginPoint) -> bool:
        """Impute unobserved labels by the best ones; return whether one changed, to solve again."""
        if not self.data.has_missing:
            return False
        labels = self.best_targets(point)
        changed = bool((point.targets != labels).any())
        point.targets[:] = labels
        if changed:
            point.means[self._free_of_loss] = point.targets[self._free_of_loss]  # those alone
            self.recompute(point)
        return changed

    @cached_property
    def _free_of_loss(self) -> Array:
        """Return which entries (n, L) are unobserved and isolated: their means are their targets."""
        return np.asarray((self.homes < 0)[None, :] & (self.data.arrays.observed == 0))


def _merged_dual(dual: DualPoint, old: tuple[Layout, Array], layout: Layout) -> DualPoint:
    """Return a dual point with the same means for a graph whose components are unions of the ``old`` ones."""
    old_labels, homes = margin_model.component_labels(old[0]), old[1]
    n, capacity, n_labels = dual.vertices.shape
    wide = margin_model.component_labels(layout)
    shares = np.zeros((n, capacity, len(wide)))
    vertices = np.zeros((n, capacity, n_labels), np.int8)
    for component, labels in enumerate(wide):
        parts = [([label], _lone(dual, label)) for label in labels[homes[labels] < 0]]
        for home in np.unique(homes[labels][homes[labels] >= 0]):
            own = old_labels[home]
            parts.append((own.tolist(), (dual.shares[:, :, home], dual.vertices[:, :, own])))
        order = [label for own, _ in parts for label in own]
        for rows in panels(n, _ROWS_TO_MERGE):
            merged = reduce(
                lambda one, other: joined(one, other, capacity),
                [(own_shares[rows], own_vertices[rows]) for _, (own_shares, own_vertices) in parts],
            )
            shares[rows, : merged[0].shape[1], component] = merged[0]
            for place, label in enumerate(order):
                vertices[rows, : merged[0].shape[1], label] = merged[1][:, :, place]
    return DualPoint(dual.means, vertices, shares)


def _lone(dual: DualPoint, label: int) -> tuple[Array, Array]:
    """Return the distribution of an isolated label: its shares (n, 2) and vertices (n, 2, 1)."""
    mean = dual.means[:, label]
    values = np.broadcast_to(np.array([0, 1], np.int8)[None, :, None], (len(mean), 2, 1))
    return np.stack([1.0 - mean, mean], axis=1), values


def joined(one: tuple[Array, Array], other: tuple[Array, Array], capacity: int) -> tuple[Array, Array]:
    """Couple two distributions per row, each of shares (n, a) and vertices (n, a, p).

    Independent if there is room for all pairs; else the shares of both are aligned on one line, which makes
    fewer pairs with the same marginals, and those of smallest share are dropped.
    """
    (first, left), (second, right) = one, other
    n, a, b = len(first), first.shape[1], second.shape[1]
    table = (first[:, :, None] * second[:, None, :]).reshape(n, a * b)
    tight = np.flatnonzero((first > 0).sum(axis=1) * (second > 0).sum(axis=1) > capacity)
    if len(tight):
        ends, others = np.cumsum(first[tight], axis=1), np.cumsum(second[tight], axis=1)
        cuts = np.sort(np.concatenate([ends, others], axis=1), axis=1)
        widths = np.diff(cuts, axis=1, prepend=0.0)
        middles = (cuts - 0.5 * widths)[:, :, None]
        row = np.minimum((ends[:, None] < middles).sum(axis=2), a - 1)
        column = np.minimum((others[:, None] < middles).sum(axis=2), b - 1)
        lines = np.zeros((len(tight), a * b))
        np.add.at(lines, (np.arange(len(tight))[:, None], row * b + column), widths)
        table[tight] = lines
    used = min(capacity, int((table > 0).sum(axis=1).max(initial=1)))
    places = np.argsort(-table, axis=1, kind="stable")[:, :used]
    shares = np.take_along_axis(table, places, axis=1)
    parts = [
        np.take_along_axis(vertices, number[:, :, None], axis=1)
        for vertices, number in ((left, places // b), (right, places % b))
    ]
    return shares / shares.sum(axis=1, keepdims=True), np.concatenate(parts, axis=2)
