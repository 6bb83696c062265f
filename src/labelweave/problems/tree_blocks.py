"""The max-margin duals at the nodes of a tree over labels, solved by blocks of columns.

A column of a node predicts whether a row has a label below it.  It learns from the rows that have a label
below the node, the root from all rows: those that an always correct parent would send there (Prabhu et al.
2018, Parabel, section 4.2).  A row is positive for a column if it has a label below, negative if it is
observed to have none, and else unobserved.  With entry weights, a positive column has the greatest of the
row's labels below, a negative one the least of all below.  Columns are independent, so primal and dual
values of all nodes add up, and the relative gap is one of the whole tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops import WIDTH
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.label_tree import LabelTree
from labelweave.problems.margin_blocks import KeptBlock, MarginBlock, cost_of_blocks
from labelweave.problems.margin_dual import MarginData, MarginPoint, OrderedRows

_SAMPLED_NODES = 64  # for estimates
_NODES_AT_ONCE = 4  # whose rows are kept for their next block; threads work on neighbors


@dataclass(frozen=True)
class TreeWeights:
    """The weights of all columns, by node, and within a node by feature.

    pair_ends (nodes + 1,): the ends of the features of each node.
    features (pairs,): the feature numbers.
    starts (pairs + 1,): the start of the weights of each of them.
    columns, values (nnz,): the column within the node, and the value, in units of its scale.
    scales, intercepts (columns of the tree,): of the columns.
    """

    pair_ends: Array
    features: Array
    starts: Array
    columns: Array
    values: Array
    scales: Array
    intercepts: Array


def column_type(widest: int) -> npt.DTypeLike:
    """Return the type for the numbers of columns within a node, of which there are at most ``widest``."""
    return np.uint8 if widest <= 2**8 else np.uint16 if widest <= 2**16 else np.int32


def margin_data(
    features: FeatureMatrix, labels: LabelMatrix, upper: Array, *, intercept: bool, squared: bool = False
) -> MarginData:
    """State the dual of independent labels with margins of 1."""
    covariance: LabelCovariance = LabelCovariance.identity(labels.n_labels)
    margins = np.ones((2, labels.n_labels))
    return MarginData(features, labels, covariance, upper, margins, intercept, squared=squared)


class NodeBlock(MarginBlock):
    """Some columns of one node, with their numbers in the tree."""

    def __init__(self, data: OrderedRows, labels: Array, of_tree: Array, used: Array | None) -> None:
        super().__init__(data, labels, data.dtype)
        self.of_tree, self.used = of_tree, used

    def kept(
        self, point: MarginPoint, weights: Array, intercepts: Array, before: Any, *, is_short: bool
    ) -> KeptBlock:
        """Evaluate weights as :meth:`MarginBlock.kept`; features are those of the data."""
        block = super().kept(point, weights, intercepts, before, is_short=is_short)
        features = block.features if self.used is None else self.used[block.features].astype(np.int32)
        return replace(block, labels=self.of_tree[block.labels], features=features)


class TreeOutline:
    """The description of the blocks of a tree, without their rows.

    zero_losses (blocks,): the losses of each block where all weights are 0.
    is_short: whether weights are stored in two bytes, where the tolerance allows for their rounding.
    """

    def __init__(self, tree: LabelTree, zero_losses: Array, *, is_short: bool) -> None:
        self.tree, self.zero_losses, self.is_short = tree, zero_losses, is_short
        self.n_blocks = len(zero_losses)

    def outline(self) -> TreeOutline:
        return TreeOutline(self.tree, self.zero_losses, is_short=self.is_short)

    def values(self, blocks: Sequence[KeptBlock]) -> tuple[float, float]:
        left = float(self.zero_losses[len(blocks) :].sum())
        primal = sum(block.primal for block in blocks) + left
        return primal, sum(block.values_before[1] for block in blocks)

    def solution(self, blocks: Sequence[KeptBlock]) -> TreeWeights:
        tree = self.tree
        scales, intercepts = np.ones(len(tree.targets)), np.zeros(len(tree.targets))
        of_node: list[list[KeptBlock]] = [[] for _ in range(tree.n_nodes)]
        for block in blocks:
            scales[block.labels], intercepts[block.labels] = block.scales, block.intercepts
            of_node[int(tree.owners[block.labels[0]])].append(block)
        kind = column_type(int(np.diff(tree.ends).max()))
        number = np.result_type(np.int16, *{block.values.dtype for block in blocks})
        ends = _ends([sum(len(block.values) for block in some) for some in of_node])
        columns, values = np.empty(ends[-1], kind), np.empty(ends[-1], number)
        features, counts = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for node, some in enumerate(of_node):
            own, n_weights, *weights = _by_feature(some, int(tree.ends[node]), kind, number)
            columns[ends[node] : ends[node + 1]], values[ends[node] : ends[node + 1]] = weights
            features.append(own)
            counts.append(n_weights)
        return TreeWeights(
            pair_ends=_ends([len(own) for own in features[1:]]),
            features=np.concatenate(features),
            starts=_ends(np.concatenate(counts)),
            columns=columns,
            values=values,
            scales=scales,
            intercepts=intercepts,
        )


class TreeBlocks(TreeOutline):
    """All blocks of columns of a tree, each created on demand.

    data: all rows and labels, with weights of rows.
    entries (n, L): weights of entries, multiplied by those of rows; sparse where others are 1.
    sees_all: whether labels learn from all rows instead of those that reach their node.
    """

    def __init__(
        self, tree: LabelTree, data: MarginData, workers: Workers, *, dtype: npt.DTypeLike, is_short: bool,
        sees_all: bool = False, entries: Any = None,
    ) -> None:  # fmt: skip
        self.tree, self.data, self.workers, self.dtype = tree, data, workers, dtype
        self.features, self.labels, self.upper = data.features, data.labels, data.upper
        self.sees_all = sees_all
        self._entries = None if entries is None else _weights_by_sign(data.labels, entries)
        positives = data.labels.positives.tocsc() if self._entries is None else self._entries[0]
        self.rows_below = tree.gathered(
            lambda label: np.sort(positives.indices[slice(*positives.indptr[label : label + 2])]),
            lambda parts: np.unique(np.concatenate(parts)),
        )
        counts = np.array([len(rows) for rows in self.rows_below])
        self.groups = [group for node in range(tree.n_nodes) for group in self._groups(node, counts)]
        super().__init__(tree, self._zero_losses(), is_short=is_short)
        self._lock = Lock()
        self._rows_of_node = lru_cache(maxsize=_NODES_AT_ONCE)(self._node_rows)
        self._all_rows = lru_cache(maxsize=1)(lambda: OrderedRows(data, dtype))
        if sees_all:
            _ = self._all_rows().exact_rows  # computed before threads need them

    def _groups(self, node: int, counts: Array) -> list[Array]:
        """Split the columns of a node into blocks, frequent ones first, labels apart if they use more rows.

        A node that no row reaches has no blocks.
        """
        if node and not self.sees_all and not counts[self.tree.columns_above[node]]:
            return []
        columns = np.arange(self.tree.ends[node], self.tree.ends[node + 1])
        columns = columns[np.argsort(-counts[columns], kind="stable")]
        are_labels = self.tree.targets[columns] >= 0
        is_reached = node == 0 or counts[self.tree.columns_above[node]] > 0
        parts = [columns[~are_labels & is_reached], columns[are_labels]] if self.sees_all else [columns]
        return [part[start : start + WIDTH] for part in parts for start in range(0, len(part), WIDTH)]

    def _is_of_all(self, columns: Array) -> bool:
        return self.sees_all and bool(self.tree.targets[columns[0]] >= 0)

    def rows_of(self, columns: Array) -> Array | None:
        """Return the rows that columns of a node learn from; None for all."""
        return None if self._is_of_all(columns) else self._rows_above(int(self.tree.owners[columns[0]]))

    def _rows_above(self, node: int) -> Array | None:
        return self.rows_below[int(self.tree.columns_above[node])] if node else None

    def block(self, number: int) -> NodeBlock:
        columns = self.groups[number]
        if self._is_of_all(columns):
            return self._block_of_all(columns)
        node = int(self.tree.owners[columns[0]])
        with self._lock:  # or every thread would compute the rows of the next node
            ordered, used = self._rows_of_node(node)
        first, end = self.tree.ends[node : node + 2]
        return NodeBlock(ordered, columns - first, np.arange(first, end), used)

    def _block_of_all(self, columns: Array) -> NodeBlock:
        ordered, labels = self._all_rows(), self.tree.targets[columns]
        if self._entries is None:
            return NodeBlock(ordered, labels, self.tree.columns_of_labels, None)
        some = ordered.some_labels(labels)
        some.data = replace(some.data, upper=self._upper_of(columns, some.order))
        return NodeBlock(some, np.arange(len(columns)), columns, None)

    def _node_rows(self, node: int) -> tuple[OrderedRows, Array | None]:
        """Return the rows that reach a node, one label per column, and their features; None for all."""
        columns = np.arange(self.tree.ends[node], self.tree.ends[node + 1])
        rows, features, used = self._rows_above(node), self.features, None
        upper = self._upper_of(columns, rows)
        if rows is not None:
            features, used = _narrowed(features.rows(rows))
        intercept, squared = self.data.intercept, self.data.squared
        data = margin_data(
            features, self._targets(columns, rows), upper, intercept=intercept, squared=squared
        )
        ordered = OrderedRows(data, self.dtype)
        _ = ordered.exact_rows  # computed before blocks share it
        return ordered, used

    def possible_weights(self) -> float:
        """Estimate the sum over columns of the number of features in the rows of their node, by a sample."""
        widths, n_others = np.diff(self.tree.ends), self.tree.n_nodes - 1
        nodes = np.unique(np.linspace(1, n_others, min(n_others, _SAMPLED_NODES)).astype(int))
        some = [widths[node] * self._n_used(self._rows_above(node)) for node in nodes]
        return float(widths[0] * self._n_used(None) + n_others * (np.mean(some) if some else 0.0))

    def _n_used(self, rows: Array | None) -> int:
        own, d = self.features, self.features.shape[1]
        if rows is None or not own.is_sparse:
            return d
        return len(np.unique(own.rows(rows).data.indices))

    def _upper_of(self, columns: Array, rows: Array | None) -> Array:
        """Return the weights of rows (r,), all where None, or of entries (r, columns) with entry weights."""
        upper = self.upper if rows is None else self.upper[rows]
        if self._entries is None:
            return upper
        weights = np.empty((len(upper), len(columns)))
        for place, column in enumerate(columns):
            below = [table[:, self.tree.labels_below[column]].tocsr() for table in self._entries]
            parts = [table if rows is None else table[rows] for table in below]
            own, less = (np.ravel(part.max(axis=1).toarray()) for part in parts)
            weights[:, place] = np.where(own > 0, own, 1.0 - less)
        return np.asarray(upper[:, None] * weights)

    def _targets(self, columns: Array, rows: Array | None) -> LabelMatrix:
        """Return the labels of the rows that reach a node: whether they have a label below some columns."""
        n_rows = len(self.features) if rows is None else len(rows)
        below = [self.rows_below[column] for column in columns]
        found = below if rows is None else [np.searchsorted(rows, some) for some in below]
        ends = np.concatenate([[0], np.cumsum([len(some) for some in found])])
        parts = (np.ones(ends[-1], np.int8), np.concatenate(found), ends)
        positives = sp.csc_array(parts, shape=(n_rows, len(columns))).tocsr()
        seen = self.labels.observed
        if seen is None:
            return LabelMatrix(positives)
        members = _members(self.tree, columns, self.labels.n_labels)
        some = abs(seen if rows is None else seen[rows]).astype(np.int64)
        are_seen = (some @ members).toarray() == np.asarray(members.sum(axis=0)).ravel()
        return LabelMatrix(positives, sp.csr_array(are_seen | (positives.toarray() > 0)))

    def _zero_losses(self) -> Array:
        found = []
        for columns in self.groups:
            rows = self.rows_of(columns)
            upper = self._upper_of(columns, rows)
            if self.labels.observed is None:
                found.append(float(upper.sum()) * (len(columns) if upper.ndim == 1 else 1))
                continue
            known: Any = self._targets(columns, rows).observed
            seen = abs(known)
            of_rows = seen.sum(axis=1) if upper.ndim == 1 else seen.multiply(upper).sum(axis=1)
            found.append(float(upper @ of_rows) if upper.ndim == 1 else float(of_rows.sum()))
        return np.array(found)


class ForestBlocks:
    """The blocks of several trees over the same rows, one tree after another.

    parts: the trees; only outlines where another process creates the blocks.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts: list[TreeBlocks] = list(parts)
        self.is_short = self.parts[0].is_short
        self.ends = np.cumsum([0, *(part.n_blocks for part in parts)])
        self.n_blocks = int(self.ends[-1])

    @property
    def trees(self) -> list[LabelTree]:
        return [part.tree for part in self.parts]

    def block(self, number: int) -> NodeBlock:
        part = int(np.searchsorted(self.ends, number, side="right")) - 1
        return self.parts[part].block(number - int(self.ends[part]))

    def each_block(self, of_block: Callable[[Any, int], Any], blocks: Iterable[int]) -> list[Any]:
        return self.parts[0].workers.map(partial(of_block, self), list(blocks))

    def values(self, blocks: Sequence[KeptBlock]) -> tuple[float, float]:
        primals, duals = zip(*(part.values(some) for part, some in self._by_tree(blocks)), strict=True)
        return sum(primals), sum(duals)

    def cost(self, blocks: Sequence[KeptBlock]) -> dict[str, float]:
        return cost_of_blocks(blocks, *self.values(blocks))

    def solution(self, blocks: Sequence[KeptBlock]) -> list[TreeWeights]:
        return [part.solution(some) for part, some in self._by_tree(blocks)]

    def possible_weights(self) -> float:
        """Estimate the maximum number of weights, see :meth:`TreeBlocks.possible_weights`."""
        return len(self.parts) * self.parts[0].possible_weights()

    def _by_tree(self, blocks: Sequence[KeptBlock]) -> list[tuple[TreeOutline, Sequence[KeptBlock]]]:
        ends = pairwise(self.ends)
        return [(part, blocks[a:b]) for part, (a, b) in zip(self.parts, ends, strict=True)]


def _ends(counts: Any) -> Array:
    """Return the ends of parts of some lengths, in eight bytes, as sums may exceed 2^31."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64), dtype=np.int64)])


def _by_feature(blocks: Sequence[KeptBlock], first: int, kind: Any, number: Any) -> tuple[Array, ...]:
    """Sort the weights of a node by feature: features, weights per feature, columns and weights."""
    if not blocks:
        return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, kind), np.empty(0, number)
    labels = np.concatenate([block.labels for block in blocks]) - first
    features = np.concatenate([block.features for block in blocks])
    values = np.concatenate([block.values for block in blocks])
    ends = _ends(np.concatenate([block.counts for block in blocks]))
    order = np.argsort(labels)
    shape = len(labels), int(features.max(initial=0)) + 1
    turned = sp.csr_array((values, features, ends), shape=shape)[order].tocsc()
    counts = np.diff(turned.indptr)
    used = np.flatnonzero(counts)
    columns = labels[order].astype(kind)[turned.indices]
    return used.astype(np.int32), counts[used].astype(np.int64), columns, turned.data


def _weights_by_sign(labels: LabelMatrix, entries: Any) -> tuple[sp.csc_array, sp.csc_array]:
    """Return weights of positive entries, without zeros, and 1 minus those of others, or 0."""
    if sp.issparse(entries):
        above = sp.csr_array(entries)
        above.data = above.data - 1.0
    else:
        above = sp.csr_array(entries - 1.0)
    own = sp.csr_array(labels.positives + labels.positives.multiply(above))
    own.eliminate_zeros()
    return sp.csc_array(own), sp.csc_array(above.multiply(own > 0) - above)


def _members(tree: LabelTree, columns: Array, n_labels: int) -> sp.csr_array:
    """Return which labels are below some columns of one node, as an array (L, columns) of ones."""
    below = tree.labels_below
    parts = [below[column] for column in columns]
    places = np.repeat(np.arange(len(columns)), [len(part) for part in parts])
    entries = (np.ones(len(places), np.int64), (np.concatenate(parts), places))
    return sp.csr_array(entries, shape=(n_labels, len(columns)))


def _narrowed(features: FeatureMatrix) -> tuple[FeatureMatrix, Array | None]:
    """Drop the features that no row has, if they are sparse; also return the remaining ones."""
    if not features.is_sparse:
        return features, None
    own, d = features.data, features.shape[1]
    is_used = np.zeros(d, bool)
    is_used[own.indices] = True
    used = np.flatnonzero(is_used)
    places = np.empty(d, np.int32)
    places[used] = np.arange(len(used))
    parts = own.data, places[own.indices], own.indptr
    return FeatureMatrix._unchecked(sp.csr_array(parts, shape=(own.shape[0], len(used)))), used
