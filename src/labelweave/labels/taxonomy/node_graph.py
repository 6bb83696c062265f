"""A directed acyclic graph over names.

A node may have several parents, and there may be several roots.  Pairs of parent and child names are checked
and sorted topologically: a walk down from the roots lists a node once the last of its parents is listed.  In
a tree this is depth first, so that the nodes below a node directly follow it.  Siblings, and roots, are in
the order in which their names first appear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.label_names import as_text

Names = Iterable[str] | npt.NDArray[Any]
# not Sequence: a text is a sequence of texts, but a single name
Several = list[str] | tuple[str, ...] | npt.NDArray[Any]
Edge = tuple[str, str]

_NUMBERS = {2: "two", 3: "three"}
_SHOWN = 5
_LONGEST_CYCLE = 12
_OF_ONTOLOGY = re.compile(r"(?:\w+://.*[/#])?([A-Za-z]\w*?)[_:](\d+)")  # GO:1, or a URI that ends in GO_1


class NodeGraph:
    """A graph over names, with queries for one name or several.

    pairs: one (parent, child) pair per edge.
    root: the required root above all other nodes, if any. nodes: all names, every parent before its children.
    aliases: further names of nodes, such as alternative identifiers and full URIs.
    """

    aliases: Mapping[str, str] = MappingProxyType({})

    def __init__(self, pairs: Iterable[Any], nodes: Iterable[Any] = (), root: Any | None = None) -> None:
        self.nodes, self._edges = ordered_nodes(pairs, nodes, root)
        self._number = {name: k for k, name in enumerate(self.nodes)}
        # the only parent of a node, or the last of several, from which the ordering walk reached it
        above = [-1] * len(self.nodes)
        depths = [0] * len(self.nodes)
        for up, k in self._edges.tolist():
            above[k] = up
            if depths[up] >= depths[k]:
                depths[k] = depths[up] + 1
        # in a tree the nodes below node k are k + 1, ..., end[k] - 1, since the order is depth first
        ends = [*range(1, len(above) + 1)]
        for k in range(len(above) - 1, -1, -1):
            if above[k] >= 0 and ends[above[k]] < ends[k]:
                ends[above[k]] = ends[k]
        self._above = np.array(above, np.int64)
        self._depths, self._ends = np.array(depths, np.int64), np.array(ends, np.int64)

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return self._node_of(name) is not None

    def _node_of(self, name: Any) -> str | None:
        """Return the node with this name, alias, or other spelling of either; None if there is none.

        URIs may have angle brackets and begin with http or https; GO_1 is GO:1; see :meth:`path`.
        """
        written = str(name)
        if written in self._number:
            return written
        bare = written[1:-1] if written.startswith("<") and written.endswith(">") else written
        ways = [written, bare, bare.replace("https:", "http:"), bare.replace("http:", "https:")]
        of_ontology = _OF_ONTOLOGY.fullmatch(bare)
        ways += [f"{of_ontology[1]}{mark}{of_ontology[2]}" for mark in ":_"] if of_ontology else []
        found = (way if way in self._number else self.aliases.get(way) for way in ways)
        return next((node for node in found if node is not None), None)

    def _with_aliases(self, aliases: Mapping[str, str]) -> Self:
        """Add further names of nodes, by which labels match; return the taxonomy; see :meth:`path`."""
        known = self._number
        self.aliases = {name: node for name, node in aliases.items() if node in known and name not in known}
        return self

    @property
    def is_tree(self) -> bool:
        """Whether no node has several parents; there may be several roots."""
        return len(self._edges) == int(np.count_nonzero(self._above >= 0))

    def require_tree(self, what: str) -> None:
        """Raise ValueError for a graph in which a node has several parents.

        Parameters
        ----------
        what : str
            What needs a tree, as the beginning of the message.

        Raises
        ------
        ValueError
            If a node has several parents; they are named.
        """
        if self.is_tree:
            return
        counts = np.bincount(self._edges[:, 1], minlength=len(self))
        several = np.flatnonzero(counts > 1)
        name = self.nodes[several[0]]
        number = int(counts[several[0]])
        others = f", and {len(several) - 1} other nodes have several" if len(several) > 1 else ""
        raise ValueError(
            f"{what} needs a tree, but node {name!r} has {_NUMBERS.get(number, str(number))} parents, "
            f"{listed(self.parents[name])}{others}."
        )

    @property
    def roots(self) -> list[str]:
        """The nodes without a parent."""
        return [self.nodes[k] for k in np.flatnonzero(self._above < 0)]

    @property
    def leaves(self) -> list[str]:
        """The nodes without children, in the order of ``nodes``."""
        return [self.nodes[k] for k in np.flatnonzero(self._is_leaf())]

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each node that has one, in the order of ``nodes``."""
        found: dict[str, list[str]] = {}
        for above, below in self.pairs():
            found.setdefault(below, []).append(above)
        return {below: tuple(above) for below, above in found.items()}

    @cached_property
    def parent(self) -> dict[str, str]:
        """The parent of each node that has one; for trees."""
        self.require_tree("One parent per node")
        return {below: above for above, below in self.pairs()}

    def pairs(self) -> list[tuple[str, str]]:
        """Return the (parent, child) pairs of the edges; see :meth:`path`."""
        return [(self.nodes[above], self.nodes[below]) for above, below in self._edges.tolist()]

    def path(self, name: str) -> list[str]:
        """Return the path from the root down to a node; for trees.

        Parameters
        ----------
        name : str
            A node.

        Returns
        -------
        list of str
            The path, ending with the node itself.

        Raises
        ------
        ValueError
            If the name is no node, or a node has several parents.
        """
        self.require_tree("A path from the root")
        above = [int(self._numbers([name])[0])]
        while self._above[above[-1]] >= 0:
            above.append(int(self._above[above[-1]]))
        return [self.nodes[k] for k in above[::-1]]

    def ancestors(self, name: str) -> list[str]:
        """Return the ancestors of a node, in the order of ``nodes``.

        Parameters
        ----------
        name : str
            A node.

        Returns
        -------
        list of str
            Its ancestors, without the node itself.
        """
        return self._reached(name, self._rows_of_parents)

    def descendants(self, name: str) -> list[str]:
        """Return the descendants of a node; see :meth:`ancestors`."""
        return self._reached(name, self._rows_of_children)

    def children(self, name: str) -> list[str]:
        """Return the children of a node, none for a leaf; see :meth:`ancestors`."""
        starts, places = self._rows_of_children
        number = int(self._numbers([name])[0])
        return [self.nodes[k] for k in places[starts[number] : starts[number + 1]]]

    def leaves_below(self, name: str) -> list[str]:
        """Return the leaves below a node; for a leaf, itself; see :meth:`ancestors`."""
        below = [name, *self.descendants(name)] if name in self else [name]
        is_leaf = self._is_leaf()
        return [self.nodes[k] for k in self._numbers(below) if is_leaf[k]]

    def _reached(self, name: str, rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> list[str]:
        starts, places = rows
        waiting, found = [int(self._numbers([name])[0])], set[int]()
        while waiting:
            number = waiting.pop()
            new = set(places[starts[number] : starts[number + 1]].tolist()) - found
            found |= new
            waiting.extend(new)
        return [self.nodes[k] for k in sorted(found)]

    @cached_property
    def _rows_of_parents(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the offset of each node's parents in a list, and the list."""
        return np.searchsorted(self._edges[:, 1], np.arange(len(self) + 1)), self._edges[:, 0]

    @cached_property
    def _rows_of_children(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the offset of each node's children in a list, and the list."""
        order = np.argsort(self._edges[:, 0], kind="stable")
        return np.searchsorted(self._edges[order, 0], np.arange(len(self) + 1)), self._edges[order, 1]

    @overload
    def depth(self, names: str) -> int: ...
    @overload
    def depth(self, names: Several) -> npt.NDArray[np.int64]: ...
    def depth(self, names: Any) -> Any:
        """Return the depths of nodes, along the longest path from the root if there are several.

        Parameters
        ----------
        names : str or sequence of str
            One or several nodes.

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
        """Return whether one node, or each of several, has no children; see :meth:`depth`."""
        leaf = self._is_leaf()[self._numbers(names)]
        return bool(leaf[0]) if _is_one(names) else leaf

    @overload
    def top(self, names: str) -> str: ...
    @overload
    def top(self, names: Several) -> list[str]: ...
    def top(self, names: Any) -> Any:
        """Return the root above one node, or above each of several, in trees; see :meth:`depth`."""
        self.require_tree("The root above a node")
        tops = [self.nodes[k] for k in self._ancestors_at(0)[self._numbers(names)]]
        return tops[0] if _is_one(names) else tops

    def parents_of(self, names: Names) -> list[str | None]:
        """Return the parents of nodes in a tree; for other graphs use ``parents``.

        Parameters
        ----------
        names : sequence of str
            Nodes.

        Returns
        -------
        list of str or None
            The parent of each node, None for a root.
        """
        parent = self.parent
        return [parent.get(self.nodes[k]) for k in self._numbers(names)]

    def common_ancestor(self, first: str, second: str) -> str | None:
        """Return the lowest common ancestor of two nodes, or one of them, in trees.

        Parameters
        ----------
        first, second : str
            Nodes.

        Returns
        -------
        str or None
            The lowest common ancestor; None if the nodes are in different trees.
        """
        self.require_tree("The lowest common ancestor")
        above, below = self._numbers([first, second]).tolist()
        while above >= 0 and not above <= below < self._ends[above]:
            above = int(self._above[above])
        return self.nodes[above] if above >= 0 else None

    def _numbers(self, names: Any, what: str = "name") -> npt.NDArray[np.int64]:
        asked = [str(name) for name in ([names] if _is_one(names) else names)]
        nodes = [name if name in self._number else self._node_of(name) for name in asked]
        absent = [name for name, node in zip(asked, nodes, strict=True) if node is None]
        if absent:
            raise ValueError(
                f"The {what} {absent[0]!r} is not in the taxonomy ({len(absent)} of {len(asked)} are not); "
                f"use its nodes, such as {self.nodes[-1]!r}."
            )
        return np.array([self._number[str(node)] for node in nodes], np.int64)

    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        return np.asarray(np.bincount(self._edges[:, 0], minlength=len(self)) == 0)

    def _ancestors_at(self, depth: int) -> npt.NDArray[np.int64]:
        """Return each node's ancestor at a depth; the node itself if its depth is smaller."""
        heads = np.arange(len(self.nodes))
        for k in range(len(self.nodes)):
            if self._depths[k] > depth:
                heads[k] = heads[self._above[k]]
        return heads


def _is_one(names: Any) -> bool:
    return isinstance(names, str) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) == 0


def ordered_nodes(
    pairs: Iterable[Any], nodes: Iterable[Any] = (), root: Any | None = None
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Check the edges of an acyclic graph, and sort its nodes topologically.

    nodes: further nodes; they come first when siblings are ordered.
    root: the node above all others, if there must be one.
    Returns the names, and the indices (m, 2) of each edge's parent and child, sorted by child, then parent.
    """
    for what, given in (("pairs", pairs), ("nodes", nodes)):
        if not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
            raise ValueError(f"{what} is {given!r}; pass a list of {what}.")
    edges = list(dict.fromkeys([_checked_pair(position, pair) for position, pair in enumerate(pairs)]))
    names = list(dict.fromkeys([*_distinct(nodes), *(name for pair in edges for name in pair)]))
    if not names:
        raise ValueError("The taxonomy is empty; pass at least one (parent, child) pair, or one node.")
    parents: dict[str, list[str]] = {}
    for above, below in edges:
        parents.setdefault(below, []).append(above)
    order = _from_the_roots(names, parents)
    place = {name: position for position, name in enumerate(order)}
    if len(order) < len(names):
        _refuse_cycle(next(name for name in names if name not in place), parents, place)
    if root is not None:
        _refuse_orphans(order, parents, node_name(root, "root"))
    table = np.array([(place[above], place[below]) for above, below in edges], np.int64).reshape(-1, 2)
    return order, table[np.lexsort((table[:, 0], table[:, 1]))]


def node_name(name: Any, where: str) -> str:
    """Convert a name to text, 1.0 to 1; ``where`` is its position in the message."""
    # a table has NaN for the parent of a root
    text = "" if not isinstance(name, str) and is_missing(name) else as_text(name)
    if not text.strip():
        raise ValueError(f"The name at {where} is empty ({name!r}); every node needs a name.")
    return text


def _checked_pair(position: int, pair: Any) -> Edge:
    parts = () if isinstance(pair, (str, Mapping)) or not isinstance(pair, Iterable) else tuple(pair)
    if len(parts) != 2:
        raise ValueError(
            f"The edge at position {position} is {' '.join(repr(pair).split())}; pass a pair (parent, "
            "child), and list nodes without edges in nodes=."
        )
    where = f"pair {position}, {pair!r}"
    return node_name(parts[0], where), node_name(parts[1], where)


def _distinct(nodes: Iterable[Any]) -> list[str]:
    names, seen = list[str](), set[str]()
    for position, given in enumerate(nodes):
        names.append(node_name(given, f"position {position} of nodes"))
        if names[-1] in seen:
            raise ValueError(f"The name {names[-1]!r} occurs twice in nodes; list it once.")
        seen.add(names[-1])
    return names


def _from_the_roots(names: Sequence[str], parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Walk down from the roots; nodes on a cycle, and those below one, are not reached."""
    children: dict[str, list[str]] = {}
    for name in reversed(names):
        for above in parents.get(name, ()):
            children.setdefault(above, []).append(name)
    open_parents = {name: len(above) for name, above in parents.items()}
    order, waiting = list[str](), [name for name in reversed(names) if name not in parents]
    while waiting:
        order.append(waiting.pop())
        for child in children.get(order[-1], ()):
            open_parents[child] -= 1
            if not open_parents[child]:
                waiting.append(child)
    return order


def _refuse_cycle(start: str, parents: Mapping[str, Sequence[str]], reached: Mapping[str, int]) -> None:
    """Walk up from an unreached node into a cycle, and raise ValueError with that cycle."""
    path = {start: 0}
    while True:
        last = next(reversed(path))
        above = next(name for name in parents[last] if name not in reached)
        if above in path:
            break
        path[above] = len(path)
    cycle = [above, *reversed([*path][path[above] :])]
    if len(cycle) > _LONGEST_CYCLE:
        cycle = [*cycle[:_SHOWN], "...", *cycle[-_SHOWN:]]
    raise ValueError(f"The taxonomy has a cycle: {' -> '.join(cycle)}; remove one of these edges.")


def _refuse_orphans(order: Sequence[str], parents: Mapping[str, Sequence[str]], root: str) -> None:
    tops = [name for name in order if name not in parents]
    if root not in tops:
        found = f"hangs under {parents[root][0]!r}" if root in parents else "is not among the nodes"
        raise ValueError(f"The root {root!r} {found}; pass the name of the top node.")
    if len(tops) > 1:
        orphans = [name for name in tops if name != root]
        raise ValueError(
            f"Not all nodes are below the root {root!r}: {listed(orphans)} "
            f"{'has' if len(orphans) == 1 else 'have'} no parent; add one, or leave root out for several "
            "roots."
        )


def listed(names: Sequence[str]) -> str:
    """Join a few names for a sentence."""
    shown = [repr(name) for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
