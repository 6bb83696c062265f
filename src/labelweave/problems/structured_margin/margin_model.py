"""Weights of labels and cliques as multiples of z, their penalty, worst labelings, and the loss.

A problem is immutable; the state of a solve is a *point*, a record of arrays that passes change in place.

The weights of cliques are penalized in addition to half the squared weights of labels.  With z the image of
the dual point in the feature space, and w the weights:

- ridge, for a given graph: ``1/2 sum_c ||w_c||^2``, so w = z;
- by rounds, for a graph that is learned r cliques at a time (Tan et al. 2015, equation 10):
  ``1/2 (sum_k ||w_k||)^2`` over the groups of cliques chosen in the same round.

The second is ``min over shares d >= 0, sum d = 1, of 1/2 sum_k ||w_k||^2 / d_k``, which for given shares is a
ridge penalty again with w_k = d_k z_k, and for given weights has the shares ``||w_k|| / sum ||w_k||``; its
conjugate is ``1/2 max_k ||z_k||^2``.  So the constraints of the dual stay exact, and so does the gap.  A
clique that several rounds chose has weights of its own in each (the latent group lasso); its scores add
up, so it is scored once, with the sum of its rounds' shares.

The shares belong to the point; penalties are immutable.  ``squares`` (cliques,) are squared norms of z.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, Floats, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.loops.structured import CLIQUE, COMPONENT, DualPoint, Layout, MarginRows
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import clique_features
from labelweave.problems.structured_margin.clique_features import Blocks
from labelweave.problems.structured_margin.label_sets import SET_LOSSES

LABEL_SCALE = 2.0
_SMALLEST_SHARE = 1e-12


class StructuredRows:
    """Features, labels, costs and weights.

    weights (n,): weights of the rows, some of them positive.
    costs (n, L): of errors; those of unobserved labels are ignored.
    loss: a name in ``SET_LOSSES``, whose position is its code; costs apply to "hamming" only.
    arrays: input of the passes, with targets of 0 where unobserved.
    products (n, d): the features in a form for products; not created for rows of other processes.
    blocks: the features of labels and of each clique, where they are not the same.
    Shapes: features (n, d), labels (n, L).
    Raises ValueError if the squared norm of a row is too large for a float.
    """

    blocks: Blocks | None = None

    def __init__(
        self,
        features: FeatureMatrix,
        labels: LabelMatrix,
        weights: Array,
        costs: Array,
        loss: str = "hamming",
        blocks: Blocks | None = None,
    ) -> None:
        signs = labels.to_signs()
        squares = features.squared_norms()
        if not np.isfinite(squares).all():
            raise ValueError("A row of X has a squared norm above 1.8e308; scale the features down.")
        arrays = MarginRows(
            targets=np.ascontiguousarray(signs > 0, np.int8),
            observed=np.ascontiguousarray(signs != 0, np.int8),
            costs=np.ascontiguousarray(np.where((signs == 0) | (loss != "hamming"), 0.0, costs)),
            weights=np.asarray(weights, np.float64) / np.sum(weights, dtype=np.float64),
            squares=squares,
        )
        self.blocks = blocks
        self._set(features, arrays, loss)

    @classmethod
    def part(cls, features: FeatureMatrix, arrays: MarginRows, loss: str = "hamming") -> StructuredRows:
        """Create an instance for some of the rows, with their weights among all."""
        made = cls.__new__(cls)
        made._set(features, arrays, loss)
        return made

    def _set(self, features: FeatureMatrix, arrays: MarginRows, loss: str) -> None:
        self.loss = loss
        is_sparse = not features.is_distributed and features.is_sparse
        self.arrays, self.products = arrays, features.astype(np.float64)
        self._sparse = features.sparse_rows(np.float64) if is_sparse else None
        (self.n_rows, self.n_labels), self.n_features = arrays.targets.shape, features.shape[1]
        self.has_missing = bool((arrays.observed == 0).any())

    def arrays_of(self, rows: slice | Array) -> MarginRows:
        return MarginRows._make(part[rows] for part in self.arrays)

    def clamp(self) -> npt.NDArray[np.int8]:
        """Return the observed labels (n, L), -1 where unobserved."""
        return np.where(self.arrays.observed == 1, self.arrays.targets, -1).astype(np.int8)

    def multiply(self, rows: Array, sums: Array) -> Array:
        from labelweave.foundation.loops.structured import multiply_rows

        if self._sparse is None:
            return np.asarray(self.products.data[rows] @ sums)
        products = np.empty((len(rows), sums.shape[1]))
        multiply_rows(rows, *self._sparse, sums, products)
        return products

    def gram(self, rows: Array) -> Array:
        part = self.products.data[rows]
        product = part @ part.T
        return np.asarray(product if self._sparse is None else product.toarray())

    def add(self, rows: Array, changes: Array, sums: Array) -> None:
        from labelweave.foundation.loops.structured import add_rows

        if self._sparse is None:
            sums += self.products.data[rows].T @ changes
        else:
            add_rows(rows, *self._sparse, changes, sums)


class WorstLabelings(NamedTuple):
    """Maximizers of cost plus score, upper bounds of the hinge losses, and the errors of these bounds."""

    labels: Array
    losses: PerRow
    missed: PerRow


class DualMoments(NamedTuple):
    """A distribution over labelings for every row, and the corresponding columns of z.

    targets (n, L): the true labels.
    homes: the component of every label, -1 for an isolated one.
    dual: the distributions; independent between components.
    """

    data: StructuredRows
    targets: RowsByLabels
    homes: PerLabel
    dual: DualPoint
    alpha: float

    def label_sums(self) -> Array:
        return self._sums(self.targets - self.dual.means)

    def clique_sums(self, clique: tuple[int, ...]) -> Array:
        """Compute a clique's columns (d, states), whether it is in the graph or not."""
        labels = np.asarray(clique, np.int64)
        states, true = np.arange(1 << len(labels)), _states(self.targets[:, labels])
        moments = np.full((self.data.n_rows, len(states)), -1.0)
        for bits in self._parts(labels):
            moments *= self._marginal(labels, bits)[:, states & bits]
        moments[np.arange(len(moments)), true] += 1.0
        return self._sums(moments, clique)

    def _parts(self, labels: Array) -> list[int]:
        """Group the bits of a clique's state by components, which are independent."""
        homes = self.homes[labels].tolist()
        keys = [home if home >= 0 else -1 - bit for bit, home in enumerate(homes)]
        return [
            sum(1 << bit for bit, other in enumerate(keys) if other == key) for key in dict.fromkeys(keys)
        ]

    def _marginal(self, labels: Array, bits: int) -> Floats:
        """Return the distribution (n, states) of the states of a clique's labels in one component."""
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

    def sign_sums(self, sets: Array) -> Array:
        """Compute the columns (d, K) of the products of the signs of K label sets (K, m)."""
        from labelweave.foundation.loops.structured import sign_moments

        moments = np.empty((self.data.n_rows, len(sets)))
        sign_moments(sets, self.homes, self.targets, self.dual, moments)
        return self._sums(moments)

    def _sums(self, moments: Array, part: tuple[int, ...] = ()) -> Array:
        moments *= self.data.arrays.weights[:, None]
        sums = np.asarray(self.data.products.data.T @ moments) / self.alpha
        if self.data.blocks is not None:
            sums *= clique_features.column_masks(len(sums), self.data.blocks, [part])
        return np.asarray(sums)


def _states(values: Array) -> Array:
    """Number the states (n,) of labels (n, m)."""
    return np.asarray((values != 0) @ (1 << np.arange(values.shape[1])))


def numbers_of(part: slice) -> Array:
    return np.arange(part.start, part.stop, dtype=np.int64)


def graph_layout(graph: CliqueGraph, loss: str = "hamming") -> tuple[Layout, Array]:
    """List the components of two or more labels, and the component of every label, -1 for an isolated one.

    A loss of label sets makes all labels one component.
    """
    homes = np.full(graph.n_labels, -1, np.int64)
    wide = [labels for labels in graph.components if len(labels) > 1]
    if loss != "hamming":
        wide = [tuple(range(graph.n_labels))]
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
        loss=SET_LOSSES.index(loss),
    )
    return layout, homes


def component_labels(layout: Layout) -> list[Array]:
    starts = layout.components["labels"]
    return [layout.labels[first:end] for first, end in pairwise(starts)]


def _integers(parts: Any) -> Array:
    return np.asarray([number for part in parts for number in part], np.int64)


def _starts(parts: Any) -> Array:
    return np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)


class RidgePenalty:
    """Half the squared weights."""

    def __init__(self, n_cliques: int) -> None:
        self.n_cliques = n_cliques

    def first_shares(self) -> Array:
        return np.zeros(0)

    def scales(self, shares: Array) -> Array:
        return np.ones(self.n_cliques)

    def primal(self, squares: Array, shares: Array | None = None) -> float:
        return 0.5 * float(squares.sum())

    dual = primal  # its conjugate

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Do nothing."""


class RoundPenalty:
    """Half the square of the summed norms of rounds, whose weights smoothing may reduce.

    rounds (entries,): the round of every entry, from 0.
    members (entries,): the clique of every entry; None if every clique has one, in their order.
    smoothness: weights minimize the penalty plus their squares over twice that (Tan et al. 2015, equation 11,
        where it is lambda / sigma), which makes them a smooth function of z.
    """

    def __init__(self, rounds: Any = (), smoothness: float = np.inf, members: Any = None) -> None:
        self.rounds, self.smoothness = np.asarray(rounds, np.int64), smoothness
        self.members = np.asarray(range(len(self.rounds)) if members is None else members, np.int64)
        self.n_rounds = int(self.rounds.max(initial=-1)) + 1

    def first_shares(self) -> Array:
        return np.full(self.n_rounds, 1.0 / max(1, self.n_rounds))

    def scales(self, shares: Array) -> Array:
        return np.bincount(self.members, self._multiples(shares)[self.rounds])

    def _multiples(self, shares: Array) -> Array:
        return shares / (1.0 + shares / self.smoothness)

    def round_squares(self, squares: Array) -> Array:
        return np.bincount(self.rounds, squares[self.members], minlength=self.n_rounds)

    def primal(self, squares: Array, shares: Array) -> float:
        return 0.5 * float(self._norms(squares, shares).sum()) ** 2

    def dual(self, squares: Array) -> float:
        """Compute the conjugate: half the largest squared norm of a round."""
        return 0.5 * float(self.round_squares(squares).max(initial=0.0))

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Compute the optimal shares for the weights, in place."""
        norms = self._norms(squares, shares)
        if norms.sum() > 0:
            shares[:] = np.maximum(norms / norms.sum(), _SMALLEST_SHARE)

    def _norms(self, squares: Array, shares: Array) -> Array:
        return np.asarray(self._multiples(shares) * np.sqrt(self.round_squares(squares)))


CliquePenalty = RidgePenalty | RoundPenalty


def grown_shares(shares: Array) -> Array:
    """Return the shares with one more round, which gets an equal one."""
    return np.append(shares * (len(shares) / (len(shares) + 1.0)), 1.0 / (len(shares) + 1.0))
