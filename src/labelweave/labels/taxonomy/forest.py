"""Names hung in trees: what stands above a name, and what below.

Pairs of parent and child names are checked and put in order, depth first, so that the nodes below a node
follow it without a gap.  Siblings, and roots, stand in the order in which their names were first given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

Names = Iterable[str] | npt.NDArray[Any]
# not Sequence: a text is a sequence of texts, and one name
Several = list[str] | tuple[str, ...] | npt.NDArray[Any]
_SHOWN = 5


class Forest:
    """Trees over names, and questions about one name or several.

    pairs: one (parent, child) pair an edge.
    root: the node above all others, if there must be one.
    nodes: all names, every parent before its children.
    parent: the parent of each node that has one.
    """

    def __init__(self, pairs: Iterable[Any], nodes: Iterable[Any] = (), root: Any | None = None) -> None:
        self.nodes, self.parent = ordered_forest(pairs, nodes, root)
        self._number = {name: k for k, name in enumerate(self.nodes)}
        above = [self._number.get(self.parent.get(name, ""), -1) for name in self.nodes]
        self._above = np.array(above, np.int64)
        self._depths = np.zeros(len(self.nodes), np.int64)
        # the nodes below node k are k + 1, ..., end[k] - 1, since the order is depth first
        self._ends = np.arange(1, len(self.nodes) + 1)
        for k, up in enumerate(above):
            self._depths[k] = 0 if up < 0 else self._depths[up] + 1
        for k, up in reversed([*enumerate(above)]):
            if up >= 0:
                self._ends[up] = max(self._ends[up], self._ends[k])

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return str(name) in self._number

    @property
    def roots(self) -> list[str]:
        """The nodes without a parent."""
        return [name for name in self.nodes if name not in self.parent]

    @property
    def leaves(self) -> list[str]:
        """The nodes without children, in the order of ``nodes``."""
        return [self.nodes[k] for k in np.flatnonzero(self._is_leaf())]

    def pairs(self) -> list[tuple[str, str]]:
        """List the edges.

        Returns
        -------
        list of (str, str)
            The (parent, child) pairs.
        """
        return [(above, below) for below, above in self.parent.items()]

    def path(self, name: str) -> list[str]:
        """List a node and its ancestors, from the root down.

        Parameters
        ----------
        name : str
            A node.

        Returns
        -------
        list of str
            The path, ending with the node itself.
        """
        above = [self.nodes[self._numbers([name])[0]]]
        while above[-1] in self.parent:
            above.append(self.parent[above[-1]])
        return above[::-1]

    def children(self, name: str) -> list[str]:
        """List the nodes right below a node, none for a leaf; see :meth:`path`."""
        number = int(self._numbers([name])[0])
        below = slice(number, self._ends[number])
        return [self.nodes[number + k] for k in np.flatnonzero(self._above[below] == number)]

    def leaves_below(self, name: str) -> list[str]:
        """List the leaves of the subtree of a node; a leaf gives itself; see :meth:`path`."""
        number = int(self._numbers([name])[0])
        below = slice(number, self._ends[number])
        return [self.nodes[number + k] for k in np.flatnonzero(self._is_leaf()[below])]

    @overload
    def depth(self, names: str) -> int: ...
    @overload
    def depth(self, names: Several) -> npt.NDArray[np.int64]: ...
    def depth(self, names: Any) -> Any:
        """Count the steps from the root down to nodes.

        Parameters
        ----------
        names : str or sequence of str
            One node, or several.

        Returns
        -------
        int or ndarray of int64, shape (k,)
            The depths; 0 for a root.
        """
        depths = self._depths[self._numbers(names)]
        return int(depths[0]) if _is_one(names) else depths

    @overload
    def is_leaf(self, names: str) -> bool: ...
    @overload
    def is_leaf(self, names: Several) -> npt.NDArray[np.bool_]: ...
    def is_leaf(self, names: Any) -> Any:
        """Say whether one node has no children, or which of several; see :meth:`depth`."""
        leaf = self._is_leaf()[self._numbers(names)]
        return bool(leaf[0]) if _is_one(names) else leaf

    @overload
    def top(self, names: str) -> str: ...
    @overload
    def top(self, names: Several) -> list[str]: ...
    def top(self, names: Any) -> Any:
        """Find the root above one node, or above each of several; see :meth:`depth`."""
        tops = [self.nodes[k] for k in self._ancestors_at(0)[self._numbers(names)]]
        return tops[0] if _is_one(names) else tops

    def parents_of(self, names: Names) -> list[str | None]:
        """Name the parents of nodes.

        Parameters
        ----------
        names : sequence of str
            Nodes.

        Returns
        -------
        list of str or None
            The parent of each node, None for a root.
        """
        return [self.parent.get(self.nodes[k]) for k in self._numbers(names)]

    def common_ancestor(self, first: str, second: str) -> str | None:
        """Find the deepest node that is above two nodes or one of them.

        Parameters
        ----------
        first, second : str
            Nodes.

        Returns
        -------
        str or None
            The lowest common ancestor; None if the nodes are in different trees.
        """
        above, below = self._numbers([first, second]).tolist()
        while above >= 0 and not above <= below < self._ends[above]:
            above = int(self._above[above])
        return self.nodes[above] if above >= 0 else None

    def _numbers(self, names: Any, what: str = "name") -> npt.NDArray[np.int64]:
        """Find the places of names in ``nodes``."""
        asked = [str(name) for name in ([names] if _is_one(names) else names)]
        absent = [name for name in asked if name not in self._number]
        if absent:
            raise ValueError(
                f"The {what} {absent[0]!r} is not in the taxonomy ({len(absent)} of {len(asked)} are not); "
                f"every {what} must be one of its nodes."
            )
        return np.array([self._number[name] for name in asked], np.int64)

    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._ends == np.arange(1, len(self.nodes) + 1))

    def _ancestors_at(self, depth: int) -> npt.NDArray[np.int64]:
        """Give each node's ancestor at a depth; the node itself where it is less deep."""
        heads = np.arange(len(self.nodes))
        for k in range(len(self.nodes)):
            if self._depths[k] > depth:
                heads[k] = heads[self._above[k]]
        return heads


def _is_one(names: Any) -> bool:
    return isinstance(names, str) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) == 0


def ordered_forest(
    pairs: Iterable[Any], nodes: Iterable[Any] = (), root: Any | None = None
) -> tuple[list[str], dict[str, str]]:
    """Check the edges of a forest and order its nodes; give each node's parent too.

    nodes: further nodes; they come first when siblings are ordered.
    root: the node above all others, if there must be one.
    """
    for what, given in (("pairs", pairs), ("nodes", nodes)):
        if not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
            raise ValueError(f"{what} is {given!r}; give a list of {what}.")
    edges = [_checked_pair(position, pair) for position, pair in enumerate(pairs)]
    names = list(dict.fromkeys([*_distinct(nodes), *(name for pair in edges for name in pair)]))
    if not names:
        raise ValueError("The taxonomy is empty; give at least one (parent, child) pair, or one node.")
    parent = _single_parents(edges)
    order = _depth_first(names, parent)
    if len(order) < len(names):
        reached = set(order)
        _refuse_cycle(next(name for name in names if name not in reached), parent)
    if root is not None:
        _refuse_orphans(order, parent, node_name(root, "root"))
    return order, {name: parent[name] for name in order if name in parent}


def node_name(name: Any, where: str) -> str:
    """Write a name as text; ``where`` it stands is for the message."""
    # a table writes NaN where a root has no parent
    is_missing = name is None or (isinstance(name, float) and math.isnan(name))
    text = "" if is_missing else str(name)
    if not text.strip():
        raise ValueError(
            f"An empty name ({name!r}) stands at {where}; every node of a taxonomy needs a name."
        )
    return text


def _checked_pair(position: int, pair: Any) -> tuple[str, str]:
    parts = () if isinstance(pair, (str, Mapping)) or not isinstance(pair, Iterable) else tuple(pair)
    if len(parts) != 2:
        raise ValueError(
            f"The edge at position {position} is {' '.join(repr(pair).split())}; give a pair (parent, "
            "child), and list nodes without edges in nodes=."
        )
    where = f"pair {position}, {pair!r}"
    return node_name(parts[0], where), node_name(parts[1], where)


def _distinct(nodes: Iterable[Any]) -> list[str]:
    names = [node_name(name, f"position {position} of nodes") for position, name in enumerate(nodes)]
    if len(set(names)) < len(names):
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise ValueError(f"The name {twice!r} is listed twice in nodes; names must be distinct.")
    return names


def _single_parents(edges: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Give each child its parent, and refuse children with several."""
    above: dict[str, list[str]] = {}
    for parent, child in dict.fromkeys(edges):
        above.setdefault(child, []).append(parent)
    bad = {child: parents for child, parents in above.items() if len(parents) > 1}
    if bad:
        child, parents = next(iter(bad.items()))
        number = {2: "two", 3: "three"}.get(len(parents), str(len(parents)))
        others = f"; so have {len(bad) - 1} other nodes" if len(bad) > 1 else ""
        raise ValueError(
            f"The node {child!r} has {number} parents, {_listed(parents)}{others}; a taxonomy is a tree "
            "for now, so keep one parent of each node, or give each place of the node a name of its own."
        )
    return {child: parents[0] for child, parents in above.items()}


def _depth_first(names: Sequence[str], parent: Mapping[str, str]) -> list[str]:
    """Walk down from the roots; nodes on a cycle, and those below one, are not reached."""
    children: dict[str | None, list[str]] = {}
    for name in reversed(names):
        children.setdefault(parent.get(name), []).append(name)
    order, waiting = list[str](), children.get(None, [])
    while waiting:
        order.append(waiting.pop())
        waiting.extend(children.get(order[-1], ()))
    return order


def _refuse_cycle(start: str, parent: Mapping[str, str]) -> None:
    path = [start]
    while parent[path[-1]] not in path:
        path.append(parent[path[-1]])
    closing = parent[path[-1]]
    cycle = [closing, *reversed(path[path.index(closing) :])]
    raise ValueError(f"The taxonomy has a cycle: {' -> '.join(cycle)}; remove one of these edges.")


def _refuse_orphans(order: Sequence[str], parent: Mapping[str, str], root: str) -> None:
    tops = [name for name in order if name not in parent]
    if root not in tops:
        found = f"hangs under {parent[root]!r}" if root in parent else "is not among the nodes"
        raise ValueError(f"The root {root!r} {found}; give the name of the node above all others.")
    if len(tops) > 1:
        orphans = [name for name in tops if name != root]
        raise ValueError(
            f"Not all nodes are below the root {root!r}: {_listed(orphans)} "
            f"{'has' if len(orphans) == 1 else 'have'} no parent; give one, or leave root out for a forest."
        )


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
