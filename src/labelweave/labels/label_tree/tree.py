"""A tree whose nodes have columns, each of which leads to another node or is a label.

Columns are what a classifier at a node tells apart.  A node may have both kinds: in a hierarchy some labels
have others below them, and such a label is a column beside those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array
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
    """A tree over labels; node 0 is the root, and parents have lower numbers than their children.

    ends (nodes + 1,): node v has the columns from ``ends[v]`` to ``ends[v + 1]``.
    targets (columns,): the label of a column, or less than 0: minus the number of the node that it leads to.
    """

    ends: Array
    targets: Array

    @classmethod
    def from_nested(cls, root: Sequence[Any]) -> LabelTree:
        """Make a tree of nested lists: numbers are labels, lists are nodes."""
        nodes: list[Any] = [root]
        targets: list[int] = []
        counts: list[int] = []
        for node in nodes:  # which grows meanwhile
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
        """Nodes with columns, the root among them."""
        return len(self.ends) - 1

    @property
    def n_labels(self) -> int:
        """Labels, the columns that lead to no node."""
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
        """How many nodes are above each, shape (nodes,)."""
        depths = np.zeros(self.n_nodes, np.int64)
        for node in range(1, self.n_nodes):
            depths[node] = depths[self.owners[self.columns_above[node]]] + 1
        return depths

    def columns(self, node: int) -> slice:
        """Give the columns of a node."""
        return slice(int(self.ends[node]), int(self.ends[node + 1]))

    @cached_property
    def labels_below(self) -> list[Array]:
        """List the labels below every column, in the order of the columns; a label's own is itself."""
        found: list[Array] = [np.empty(0, np.int64)] * len(self.targets)
        for node in range(self.n_nodes - 1, -1, -1):
            for column in range(self.ends[node], self.ends[node + 1]):
                target = int(self.targets[column])
                if target >= 0:
                    found[column] = np.array([target], np.int64)
                else:
                    found[column] = np.concatenate(found[self.columns(-target)])
        return found
