"""Trees over labels, which shortlist the few candidate labels of a row.

A node has columns, the outputs of its classifier; each leads to another node or is a label.  A node may have
both kinds: in a hierarchy some labels have others below them, and such a label is a column next to those.

A balanced tree is built from vectors of labels.  As in Parabel (Prabhu et al. 2018, section 4.1) labels are
split in two until the parts are small enough; each split alternates between updating the two mean directions
and assigning half of the labels to the nearer one (spherical 2-means with halves of equal size).  Splits are
merged into nodes with more branches, for the accuracy of a shallow tree (Khandagale et al. 2020, Bonsai; Yu
et al. 2022, PECOS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels.taxonomy import Taxonomy
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Numbers, places


def _are_ends(state: dict[str, Any]) -> bool:
    ends, targets = state["ends"], state["targets"]
    starts = len(ends) > 1 and ends[0] == 0 and ends[-1] == len(targets)
    return bool(starts and (np.diff(ends.astype(np.int64)) > 0).all())


def _is_a_tree(state: dict[str, Any]) -> bool:
    ends, targets = state["ends"].astype(np.int64), state["targets"].astype(np.int64)
    below = -targets[targets < 0]
    owners = np.searchsorted(ends, np.flatnonzero(targets < 0), side="right") - 1
    is_each_once = np.array_equal(np.sort(below), np.arange(1, len(ends) - 1))
    return bool(is_each_once and (below > owners).all())


def _has_labels(state: dict[str, Any]) -> bool:
    labels = state["targets"][state["targets"] >= 0]
    return len(labels) > 0 and np.array_equal(np.sort(labels), np.arange(len(labels)))


@storable(
    "LabelTree",
    {"ends": places("e"), "targets": Numbers("c", "i", -(2.0**62), 2.0**62)},
    {
        "ends are places in targets": _are_ends,
        "every node but the first is below one before it": _is_a_tree,
        "every label is there once": _has_labels,
    },
)
@dataclass(frozen=True)
class LabelTree(StoredParameters):
    """A tree over labels; node 0 is the root, and parents have smaller indices than their children.

    ends (nodes + 1,): node v has the columns ``ends[v]`` to ``ends[v + 1] - 1``.
    targets (columns,): the label of a column, or, if negative, minus the index of the node that it leads to.
    """

    ends: Array
    targets: Array

    @classmethod
    def from_nested(cls, root: Sequence[Any]) -> LabelTree:
        """Make a tree from nested lists: numbers are labels, lists are nodes."""
        nodes: list[Any] = [root]
        targets: list[int] = []
        counts: list[int] = []
        for node in nodes:  # which grows during the loop
            counts.append(len(node))
            for one in node:
                if isinstance(one, list | tuple | np.ndarray):
                    targets.append(-len(nodes))
                    nodes.append(one)
                else:
                    targets.append(int(one))
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.array(targets, np.int64))

    @property
    def n_nodes(self) -> int:
        """The number of nodes with columns, including the root."""
        return len(self.ends) - 1

    @property
    def n_labels(self) -> int:
        return len(self.targets) - self.n_nodes + 1

    @cached_property
    def columns_of_labels(self) -> Array:
        """The column of each label, shape (L,)."""
        columns = np.flatnonzero(self.targets >= 0)
        found = np.empty(len(columns), np.int64)
        found[self.targets[columns]] = columns
        return found

    @cached_property
    def owners(self) -> Array:
        """The node that has each column, shape (columns,)."""
        return np.repeat(np.arange(self.n_nodes), np.diff(self.ends))

    @cached_property
    def columns_above(self) -> Array:
        """The column that leads to each node, shape (nodes,); -1 for the root."""
        columns = np.flatnonzero(self.targets < 0)
        found = np.full(self.n_nodes, -1)
        found[-self.targets[columns]] = columns
        return found

    @cached_property
    def depths(self) -> Array:
        """The number of ancestors of each node, shape (nodes,)."""
        depths = np.zeros(self.n_nodes, np.int64)
        for node in range(1, self.n_nodes):
            depths[node] = depths[self.owners[self.columns_above[node]]] + 1
        return depths

    def columns(self, node: int) -> slice:
        return slice(int(self.ends[node]), int(self.ends[node + 1]))

    @cached_property
    def labels_below(self) -> list[Array]:
        """The labels below every column, in the order of the columns; for a label's column, itself."""
        return self.gathered(lambda label: np.array([label], np.int64), np.concatenate)

    def gathered(
        self, of_label: Callable[[int], Array], joined: Callable[[list[Array]], Array]
    ) -> list[Array]:
        """Return what belongs to every column: that of its label, or of the columns of its node, joined."""
        found: list[Array] = [np.empty(0)] * len(self.targets)
        for node in range(self.n_nodes - 1, -1, -1):
            for column in range(self.ends[node], self.ends[node + 1]):
                target = int(self.targets[column])
                found[column] = of_label(target) if target >= 0 else joined(found[self.columns(-target)])
        return found


_ROUNDS = 20
_LEAST_GAIN = 1e-4  # increase of the mean cosine below which a split has converged


def cluster_labels(vectors: Any, leaf_size: int, branching: int, seed: int, workers: Workers) -> LabelTree:
    """Build a tree with at most ``leaf_size`` labels per leaf and ``branching`` branches per other node.

    vectors (L, d): one row per label, CSR or dense; only directions matter.
    branching: rounded down to a power of two.
    """
    rows = normalize(_single_directions(sp.csr_array(vectors)))
    n_labels, parts = rows.shape[0], [np.arange(rows.shape[0])]
    while -(-n_labels // len(parts)) > leaf_size:
        level = len(parts)

        def halved(number: int, level: int = level, now: Any = parts) -> tuple[Array, Array]:
            return _halves(rows, now[number], np.random.default_rng((seed, level, number)))

        parts = [half for pair in workers.map(halved, list(range(level))) for half in pair]
    nested: list[Any] = [np.sort(part) for part in parts]
    width = 2 ** int(np.log2(branching))
    while len(nested) > 1:
        # levels near the root are full, the lowest has the remainder
        step = len(nested) // width ** _levels_above(len(nested), width)
        nested = [_node(nested[start : start + step]) for start in range(0, len(nested), step)]
    return LabelTree.from_nested(nested[0])


def single_rows(vectors: Any) -> sp.csr_array:
    """Return the rows in single precision, all scaled by a power of 2 so that squares stay in range."""
    rows = sp.csr_array(vectors)
    return _divided(rows, np.full(rows.nnz, np.frexp(np.abs(rows.data).max(initial=0.0))[1]))


def _single_directions(rows: sp.csr_array) -> sp.csr_array:
    """Return the rows in single precision, each divided by a power of 2 near its own largest entry."""
    largest = abs(rows).max(axis=1).toarray().ravel() if rows.nnz else np.zeros(rows.shape[0])
    return _divided(rows, np.repeat(np.frexp(largest)[1], np.diff(rows.indptr)))


def _divided(rows: sp.csr_array, powers: Array) -> sp.csr_array:
    data = np.ldexp(rows.data if rows.dtype.kind == "f" else rows.data.astype(np.float64), -powers)
    return sp.csr_array((data.astype(np.float32), rows.indices, rows.indptr), rows.shape)


def _node(parts: list[Any]) -> Any:
    found = [part for part in parts if len(part)]
    return found[0] if len(found) == 1 else found


def _levels_above(n_parts: int, width: int) -> int:
    levels = 0
    while width ** (levels + 1) < n_parts:
        levels += 1
    return levels


def _halves(rows: sp.csr_array, members: Array, random: np.random.Generator) -> tuple[Array, Array]:
    if len(members) < 2:
        return members, members[:0]
    own, size = rows[members], (len(members) + 1) // 2
    if own.nnz < own.shape[1]:  # most features are absent
        used, places = np.unique(own.indices, return_inverse=True)
        own = sp.csr_array((own.data, places, own.indptr), shape=(len(members), len(used)))
    first, second = random.choice(len(members), 2, replace=False)
    centers = own[[first, second]].toarray().astype(np.float64)
    before, is_left = -np.inf, np.zeros(len(members), bool)
    for _ in range(_ROUNDS):
        nearness = own @ centers.T
        order = np.argsort(nearness[:, 1] - nearness[:, 0], kind="stable")
        is_left[:] = False
        is_left[order[:size]] = True
        now = float(np.where(is_left, nearness[:, 0], nearness[:, 1]).mean())
        if now - before <= _LEAST_GAIN:
            break
        before = now
        centers = (own.T @ np.stack([is_left, ~is_left], axis=1).astype(np.float64)).T
        lengths = np.linalg.norm(centers, axis=1, keepdims=True)
        centers = centers / np.where(lengths > 0, lengths, 1)
    return members[is_left], members[~is_left]


def tree_of_taxonomy(taxonomy: Taxonomy, names: list[str], leaf_size: int) -> LabelTree:
    """Make the tree of a taxonomy over labels that are its nodes.

    Parts with at most ``leaf_size`` labels become leaves.  A label with others below it is a column next to
    them.  Nodes without labels below, and nodes with a single branch, are omitted.

    Raises ValueError if a node has several parents, or a label is no node.
    """
    taxonomy.require_tree("A label tree")
    unknown = [name for name in names if name not in taxonomy]
    if unknown:
        raise ValueError(
            f"tree has no node {unknown[0]!r}, which is a label ({len(unknown)} are missing); pass a "
            "taxonomy with one node per label, or tree=None."
        )
    place = {name: label for label, name in enumerate(names)}
    below: dict[str | None, list[Any]] = {}
    for name in reversed(taxonomy.nodes):  # children before their parents
        parts = [place[name]] if name in place else []
        parts += reversed(below.pop(name, []))
        if parts:
            below.setdefault(taxonomy.parent.get(name), []).append(_joined(parts, leaf_size))
    whole = _joined([*reversed(below[None])], leaf_size)
    return LabelTree.from_nested(whole if isinstance(whole, list) else [whole])


def _joined(parts: list[Any], leaf_size: int) -> Any:
    """Make a node from some labels and nodes, or merge them into a leaf if small enough."""
    if len(parts) == 1:
        return parts[0]
    if sum(map(_size, parts)) <= leaf_size:
        return [label for part in parts for label in (part if isinstance(part, list) else [part])]
    return parts


def _size(part: Any) -> float:
    """Count the labels of a part; infinite for a node with nodes below it."""
    if not isinstance(part, list):
        return 1
    return np.inf if any(isinstance(one, list) for one in part) else len(part)
