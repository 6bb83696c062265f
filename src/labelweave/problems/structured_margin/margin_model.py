"""Weights of labels and cliques as multiples of z, their penalty, the labelings that are worst, and the loss.

A problem does not change; where a solve stands is a *point*, a record of arrays in which passes work.

The weights of cliques are penalised beside half the squared weights of labels.  With z the image of the dual
point in the features' space, and w the weights:

- ridge, for a given graph: ``1/2 sum_c ||w_c||^2``, so w = z;
- by rounds, for a graph that is learned r cliques at a time (Tan et al. 2015, equation 10):
  ``1/2 (sum_k ||w_k||)^2`` over the groups of cliques chosen in the same round.

The second is ``min over shares d >= 0, sum d = 1, of 1/2 sum_k ||w_k||^2 / d_k``, which for given shares is a
ridge penalty again with w_k = d_k z_k, and for given weights has the shares ``||w_k|| / sum ||w_k||``; its
conjugate is ``1/2 max_k ||z_k||^2``.  So the constraints of the dual stay exact, and so does the gap.

The shares belong to the point; penalties do not change.  ``squares`` (cliques,) are squared norms of z.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from labelweave.foundation.array_types import Array, Floats, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.loops.structured.arrays import CLIQUE, COMPONENT, DualPoint, Layout
from labelweave.inference.map import MapInference
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.rows import MarginData
from labelweave.solvers.frame import TraceRecord

LABEL_SCALE = 2.0
_ROWS_IN_MEMORY = 4096


@dataclass(frozen=True, kw_only=True)
class MarginPoint:
    """Weights, and what they were learned for.

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
    """What maximises cost plus score, upper bounds of the hinge losses, and how far these may be off."""

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
        labels = np.asarray(clique, np.int64)
        states, true = np.arange(1 << len(labels)), _states(self.targets[:, labels])
        moments = np.full((self.data.n_rows, len(states)), -1.0)
        for bits in self._parts(labels):
            moments *= self._marginal(labels, bits)[:, states & bits]
        moments[np.arange(len(moments)), true] += 1.0
        return self._sums(moments)

    def _parts(self, labels: Array) -> list[int]:
        """Group the bits of a clique's state by components, which are independent."""
        homes = self.homes[labels].tolist()
        keys = [home if home >= 0 else -1 - bit for bit, home in enumerate(homes)]
        return [
            sum(1 << bit for bit, other in enumerate(keys) if other == key) for key in dict.fromkeys(keys)
        ]

    def _marginal(self, labels: Array, bits: int) -> Floats:
        """Give the distribution of the states (n, states) of some of a clique's labels, of one component."""
        n_rows, first = self.data.n_rows, labels[(bits & -bits).bit_length() - 1]
        marginal = np.zeros((n_rows, 1 << len(labels)))
        if self.homes[first] < 0:
            mean = self.dual.means[:, first]
            marginal[:, 0], marginal[:, bits] = 1.0 - mean, mean
            return marginal
        shares, rows = self.dual.shares[:, :, self.homes[first]], np.arange(n_rows)
        for vertex in range(shares.shape[1]):
            state = _states(self.dual.vertices[:, vertex, labels]) & bits
            marginal[rows, state] += shares[:, vertex]
        return marginal

    def pair_sums(self, label: int, others: Array) -> Array:
        """Compute the columns (d, p) of the products of a label's sign and those of p others."""
        from labelweave.foundation.loops.structured.rows import pair_moments

        moments = np.empty((self.data.n_rows, len(others)))
        pair_moments(label, others, self.homes, self.targets, self.dual, moments)
        return self._sums(moments)

    def _sums(self, moments: Array) -> Array:
        return self.data.transposed_product(moments) / self.regularization


@dataclass
class MarginModel:
    """A graph over the labels of some rows, and the penalty of its weights."""

    data: MarginData
    graph: CliqueGraph
    penalty: CliquePenalty
    regularization: float
    inference: dict[str, Any]
    workers: Workers

    def __post_init__(self) -> None:
        self.map = MapInference(self.graph, **self.inference)
        self.layout, self.homes = graph_layout(self.graph)
        self.n_rows = self.data.n_rows

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
        from labelweave.foundation.loops.structured.rows import add_costs

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

    def record(self, primal: float, dual: float) -> TraceRecord:
        """Write down the objective and its bound."""
        return TraceRecord.of(primal, dual, n_cliques=self.graph.n_cliques)

    def complete(self, point: Any) -> bool:
        """Put the best labels, given those observed, where nothing was observed.

        Returns whether a target changed; if so, solve again.
        """
        if not self.data.has_missing:
            return False
        labels = self.best_targets(point)
        changed = bool((point.targets != labels).any())
        point.targets[:] = labels
        return changed

    def best_targets(self, point: MarginPoint) -> RowsByLabels:
        """Find the best labels (n, L), given those observed."""
        n_labels, clamp = self.data.n_labels, self.data.clamp()
        labels = np.empty((self.data.n_rows, n_labels), np.int8)
        for part in panels(self.data.n_rows, _ROWS_IN_MEMORY):
            scores = self.data.multiply(_numbers(part), point.sums) * point.scales
            unary, tables = scores[:, :n_labels].copy(), scores[:, n_labels:].copy()
            labels[part] = self.map.solve(unary, tables, clamp=clamp[part], workers=self.workers).labels
        return labels


def _states(values: Array) -> Array:
    """Number the states (n,) of labels (n, m)."""
    return np.asarray((values != 0) @ (1 << np.arange(values.shape[1])))


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
        components=np.array([*zip(_starts(wide), _starts(own), strict=True)], COMPONENT),
        labels=np.concatenate([_integers(wide), np.flatnonzero(homes < 0)]),
        cliques=np.array([*zip(_starts(members), [*columns, 0], strict=True)], CLIQUE),
        members=_integers(members),
    )
    return layout, homes


def component_labels(layout: Layout) -> list[Array]:
    """List the labels of every component."""
    starts = layout.components["labels"]
    return [layout.labels[first:end] for first, end in pairwise(starts)]


def _integers(parts: Any) -> Array:
    return np.asarray([number for part in parts for number in part], np.int64)


def _starts(parts: Any) -> Array:
    return np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)


_SMALLEST_SHARE = 1e-12


class RidgePenalty:
    """Half the squared weights."""

    rounds, n_rounds = np.zeros(0, np.int64), 0

    def __init__(self, n_cliques: int) -> None:
        self.n_cliques = n_cliques

    def first_shares(self) -> Array:
        """Give none."""
        return np.zeros(0)

    def scales(self, shares: Array) -> Array:
        """Give ones."""
        return np.ones(self.n_cliques)

    def primal(self, squares: Array, shares: Array | None = None) -> float:
        """Compute the penalty."""
        return 0.5 * float(squares.sum())

    dual = primal  # its conjugate

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Do nothing."""


class RoundPenalty:
    """Half the square of the summed norms of rounds, whose weights a smoothing may make smaller.

    rounds (cliques,): the round of every clique, from 0.
    smoothness: weights minimise the penalty and their squares over twice that (Tan et al. 2015, equation 11,
        where it is lambda / sigma), which makes them a smooth function of z.
    """

    def __init__(self, rounds: Any = (), smoothness: float = np.inf) -> None:
        self.rounds, self.smoothness = np.asarray(rounds, np.int64), smoothness
        self.n_rounds = int(self.rounds.max(initial=-1)) + 1

    def first_shares(self) -> Array:
        """Give equal shares."""
        return np.full(self.n_rounds, 1.0 / max(1, self.n_rounds))

    def scales(self, shares: Array) -> Array:
        """Give the multiple of every clique's round: its share, of which smoothing takes some."""
        return self._multiples(shares)[self.rounds]

    def _multiples(self, shares: Array) -> Array:
        return shares / (1.0 + shares / self.smoothness)

    def round_squares(self, squares: Array) -> Array:
        """Sum over the cliques of rounds."""
        return np.bincount(self.rounds, squares, minlength=self.n_rounds)

    def primal(self, squares: Array, shares: Array) -> float:
        """Compute the penalty of the weights."""
        return 0.5 * float(self._norms(squares, shares).sum()) ** 2

    def dual(self, squares: Array) -> float:
        """Compute the conjugate: half the largest squared norm of a round."""
        return 0.5 * float(self.round_squares(squares).max(initial=0.0))

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Write the best shares for the weights."""
        norms = self._norms(squares, shares)
        if norms.sum() > 0:
            shares[:] = np.maximum(norms / norms.sum(), _SMALLEST_SHARE)

    def _norms(self, squares: Array, shares: Array) -> Array:
        return np.asarray(self._multiples(shares) * np.sqrt(self.round_squares(squares)))


CliquePenalty = RidgePenalty | RoundPenalty


def grown_shares(shares: Array) -> Array:
    """Give the shares with one more round, which takes an equal one."""
    return np.append(shares * (len(shares) / (len(shares) + 1.0)), 1.0 / (len(shares) + 1.0))
