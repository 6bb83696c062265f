"""A graph over labels whose cliques have scores."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.labels.clique_graph import checks
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable
from labelweave.model_files.schema import MOST_LABELS, Maybe, Names, Numbers, count, places


@storable(
    "CliqueGraph",
    {
        "n_labels": count("L", 1, MOST_LABELS),
        "sizes": Numbers("c", "iu", 2, 30),
        "members": places("m"),
        "label_names": Maybe(Names("L")),
        "weights": Maybe(Numbers("c")),
        "signs": Maybe(Numbers("c", "i", -1, 1)),
    },
    {"the cliques have as many members as their sizes say": lambda s: s["sizes"].sum() == len(s["members"])},
)
class CliqueGraph:
    """Labels, and the cliques that a structured model scores jointly.

    Every label also has its own score, so a graph without cliques represents independent labels.  A graph is
    immutable.  It stores its parameters under their names: ``cliques`` as a tuple in the given order, labels
    ascending, ``weights`` and ``signs`` as read-only arrays.

    Parameters
    ----------
    n_labels : int
        The number of labels L.
    cliques : iterable of tuple of int
        Two or more distinct label indices each, without duplicate cliques.
    label_names : sequence of str or None, default=None
        One name per label.
    weights : array-like of shape (n_cliques,) or None, default=None
        The strength of each clique, in the measure that the graph was built with.
    signs : array-like of shape (n_cliques,) or None, default=None
        1 where the labels of a clique co-occur, -1 where they exclude each other, 0 for neither.

    Examples
    --------
    >>> from labelweave.labels.clique_graph import CliqueGraph
    >>> graph = CliqueGraph.from_edges([("beach", "sea"), ("sea", "boat")], ["beach", "boat", "sea", "urban"])
    >>> graph
    CliqueGraph(4 labels, 2 cliques: 2 pairs)
    >>> graph.components
    ((0, 1, 2), (3,))
    """

    def __init__(
        self,
        n_labels: int,
        cliques: Iterable[Sequence[int]],
        label_names: Sequence[Any] | Array | None = None,
        weights: Any | None = None,
        signs: Any | None = None,
    ) -> None:
        self.label_names = checked_names(label_names, n_labels)
        self.cliques = checks.checked_cliques(cliques, n_labels, self.label_names)
        self.n_labels = int(n_labels)
        self.weights = checks.checked_numbers("weights", weights, len(self.cliques))
        self.signs = checks.checked_numbers("signs", signs, len(self.cliques))

    @classmethod
    @checked
    def from_edges(
        cls, edges: Any, label_names: Sequence[Any] | Array | None = None, n_labels: int | None = None
    ) -> Self:
        """Make a graph from edges, or larger cliques, of label names or indices.

        Parameters
        ----------
        edges : iterable of tuple, or networkx.Graph
            Each tuple has two or more labels; text is a name, a whole number an index, unless all of the
            numbers, as text, are names.  The ``weight`` and ``sign`` of a network's edges are kept if all
            have them.
        label_names : sequence of str or None, default=None
            One name per label; by default the nodes of a network.
        n_labels : int or None, default=None
            The number of labels, if they have no names.

        Returns
        -------
        CliqueGraph
            The graph.

        Raises
        ------
        ValueError
            If an edge has an unknown label or a label twice, or is a duplicate.
        """
        if hasattr(edges, "nodes") and hasattr(edges, "is_directed") and callable(edges.edges):
            return cls(**graph_of_network(edges, label_names, n_labels))
        if label_names is None and n_labels is None:
            raise ValueError("label_names and n_labels are missing; pass one of them, to define the labels.")
        label_names = checked_names(label_names, n_labels)
        count = int(n_labels or 0) if label_names is None else len(label_names)
        names = label_names
        return cls(count, checks.named_cliques(edges, count, names), names)

    @classmethod
    @checked
    def complete(cls, n_labels: int, label_names: Sequence[Any] | Array | None = None) -> Self:
        """Make the complete graph, with every pair of labels.

        Parameters
        ----------
        n_labels : int
            The number of labels.
        label_names : sequence of str or None, default=None
            One name per label.

        Returns
        -------
        CliqueGraph
            The graph with all L (L - 1) / 2 pairs.
        """
        return cls(n_labels, combinations(range(n_labels), 2), label_names)

    @classmethod
    @checked
    def empty(cls, n_labels: int, label_names: Sequence[Any] | Array | None = None) -> Self:
        """Make a graph without cliques; see :meth:`complete`."""
        return cls(n_labels, (), label_names)

    @property
    def n_cliques(self) -> int:
        """The number of cliques."""
        return len(self.cliques)

    @property
    def edges(self) -> tuple[tuple[int, ...], ...]:
        """The cliques of two labels."""
        return tuple(clique for clique in self.cliques if len(clique) == 2)

    @cached_property
    def table_starts(self) -> npt.NDArray[np.int64]:
        """The offsets of the 2^m scores of each clique in a concatenated array, and its length.

        Bit b of the number of a clique's state is the value of its b-th label.
        """
        sizes = [1 << len(clique) for clique in self.cliques]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        starts.flags.writeable = False
        return starts

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The connected components of labels, ascending, in the order of their first labels."""
        ends = [pair for clique in self.cliques for pair in pairwise(clique)]
        one, other = np.array(ends, np.int64).reshape(-1, 2).T
        joins = sp.coo_array((np.ones(len(one)), (one, other)), (self.n_labels, self.n_labels))
        found: dict[int, list[int]] = {}
        for label, component in enumerate(connected_components(joins, directed=False)[1].tolist()):
            found.setdefault(component, []).append(label)
        return tuple(tuple(labels) for labels in found.values())

    def neighbors(self) -> list[set[int]]:
        """Return the labels that share a clique with each label.

        Returns
        -------
        list of set of int
            The neighbors of every label.
        """
        around: list[set[int]] = [set() for _ in range(self.n_labels)]
        for clique in self.cliques:
            for label in clique:
                around[label].update(clique)
                around[label].discard(label)
        return around

    @cached_property
    def width(self) -> int:
        """The width of a min-fill elimination order: 1 for a forest, L - 1 for the complete graph."""
        return max((len(around) for _, around in elimination_order(self.neighbors()) or ()), default=0)

    @checked
    def first(self, count: int) -> Self:
        """Return a graph of the first cliques.

        Parameters
        ----------
        count : int
            The number of cliques, 0 or more; all if there are fewer.

        Returns
        -------
        CliqueGraph
            The same labels with fewer cliques.

        Raises
        ------
        ValueError
            If ``count`` is negative.
        """
        if count < 0:
            raise ValueError(f"count is {count}; it must be >= 0.")
        weights = None if self.weights is None else self.weights[:count]
        signs = None if self.signs is None else self.signs[:count]
        return type(self)(self.n_labels, self.cliques[:count], self.label_names, weights, signs)

    def to_networkx(self) -> Any:
        """Convert to a networkx graph.

        Returns
        -------
        networkx.Graph
            Label names (or indices) as nodes, pairs as edges with ``weight`` and ``sign`` where they are
            known.  A larger clique is a separate node, the tuple of its labels with ``kind="clique"``,
            connected to each of them.

        Raises
        ------
        ImportError
            If networkx is not installed.
        """
        try:
            import networkx
        except ImportError:
            raise ImportError("to_networkx needs networkx; install labelweave[app].") from None
        graph, labels = networkx.Graph(), self.shown_labels()
        graph.add_nodes_from(labels)
        for place, clique in enumerate(self.cliques):
            data = {} if self.weights is None else {"weight": float(self.weights[place])}
            if self.signs is not None:
                data["sign"] = int(self.signs[place])
            nodes = tuple(labels[label] for label in clique)
            if len(nodes) == 2:
                graph.add_edge(*nodes, **data)
            else:
                graph.add_node(nodes, kind="clique", **data)
                graph.add_edges_from((nodes, node) for node in nodes)
        return graph

    def shown_labels(self) -> list[Any]:
        """Return the names of the labels, or their indices if they have no names.

        Returns
        -------
        list of str or int
            The names.
        """
        return list(range(self.n_labels)) if self.label_names is None else self.label_names.tolist()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CliqueGraph):
            return NotImplemented
        same = (self.n_labels, self.cliques) == (other.n_labels, other.cliques)
        parts = ("label_names", "weights", "signs")
        return same and all(np.array_equal(getattr(self, part), getattr(other, part)) for part in parts)

    def __hash__(self) -> int:
        return hash((self.n_labels, self.cliques))

    def __repr__(self) -> str:
        if not self.cliques:
            return f"CliqueGraph({self.n_labels} labels, no cliques)"
        sizes = np.bincount([len(clique) for clique in self.cliques])
        words = {2: "pairs", 3: "triples"}
        kinds = [f"{sizes[m]} {words.get(m, f'of {m} labels')}" for m in np.flatnonzero(sizes).tolist()]
        cliques = f"{self.n_cliques} cliques: {', '.join(kinds)}"
        return f"CliqueGraph({self.n_labels} labels, {cliques})"

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        return {
            "n_labels": self.n_labels,
            "sizes": np.array([len(clique) for clique in self.cliques], np.int64),
            "members": np.array([label for clique in self.cliques for label in clique], np.int64),
            "label_names": None if self.label_names is None else self.label_names.tolist(),
            "weights": self.weights,
            "signs": self.signs,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the object; see :meth:`labelweave.model_files.Storable.from_state`."""
        ends = np.cumsum(state["sizes"], dtype=np.int64)
        parts = np.split(np.asarray(state["members"]), ends[:-1]) if len(ends) else []
        cliques = [tuple(part.tolist()) for part in parts]
        return cls(state["n_labels"], cliques, state["label_names"], state["weights"], state["signs"])


def graph_of_network(network: Any, label_names: Any | None, n_labels: int | None) -> dict[str, Any]:
    """Convert a networkx graph, as for :meth:`CliqueGraph.from_edges`, to arguments of the class."""
    if network.is_directed() or network.is_multigraph():
        raise ValueError("The graph is directed or has parallel edges; pass a networkx.Graph.")
    nodes = [node for node, data in network.nodes(data=True) if data.get("kind") != "clique"]
    names, place = _places(nodes, label_names, n_labels)
    kept = set(nodes)
    found = [(pair, data) for *pair, data in network.edges(data=True) if kept.issuperset(pair)]
    found += [
        (list(network.neighbors(node)), data) for node, data in network.nodes(data=True) if node not in kept
    ]
    return {
        "n_labels": n_labels or (len(nodes) if names is None else len(names)),
        "cliques": [tuple(place[node] for node in pair) for pair, _ in found],
        "label_names": names,
        "weights": _collected(found, "weight"),
        "signs": _collected(found, "sign"),
    }


def _places(
    nodes: list[Any], label_names: Any | None, n_labels: int | None
) -> tuple[list[str] | None, dict[Any, int]]:
    if label_names is None and n_labels is None:
        if set(nodes) == set(range(len(nodes))):
            return None, {node: node for node in nodes}
        return [str(node) for node in nodes], {node: place for place, node in enumerate(nodes)}
    names = None if label_names is None else [str(name) for name in label_names]
    known: dict[Any, int] = {name: place for place, name in enumerate(names or ())}
    by_name = checks.numbers_are_names(nodes, known)
    place = {node: known.get(str(node) if by_name else node, node) for node in nodes}
    count = n_labels if names is None else len(names)
    for node, label in place.items():
        if not checks.is_index(label, count or 0):
            raise ValueError(
                f"The node {node!r} of the graph is not a label; name nodes like the {count} labels, or "
                "number them from 0."
            )
    return names, place


def _collected(found: list[tuple[list[Any], dict[str, Any]]], key: str) -> list[Any] | None:
    values = [data.get(key) for _, data in found]
    return values if values and all(value is not None for value in values) else None


def elimination_order(
    neighbors: Sequence[set[int]], limit: int | None = None
) -> list[tuple[int, list[int]]] | None:
    """Order the nodes of a graph by min-fill, each with its neighbors at that time, in ascending order.

    limit: return None if a node with more neighbors than this must be eliminated.
    """
    left = [set(around) for around in neighbors]
    order = _strip_leaves(left)
    gone = {node for node, _ in order}
    core = [node for node in range(len(left)) if node not in gone]
    place = {node: number for number, node in enumerate(core)}
    rest = _order_core([sum(1 << place[other] for other in left[node]) for node in core], limit)
    if rest is None or (limit is not None and any(len(around) > limit for _, around in order)):
        return None
    return order + [(core[node], [core[other] for other in around]) for node, around in rest]


def _strip_leaves(left: list[set[int]]) -> list[tuple[int, list[int]]]:
    """Eliminate nodes with at most one neighbor, which adds no edge."""
    order: list[tuple[int, list[int]]] = []
    waiting = [node for node in range(len(left) - 1, -1, -1) if len(left[node]) <= 1]
    gone = [False] * len(left)
    while waiting:
        node = waiting.pop()
        if gone[node]:
            continue
        gone[node] = True
        order.append((node, sorted(left[node])))
        for other in left[node]:
            left[other].discard(node)
            if len(left[other]) <= 1:
                waiting.append(other)
        left[node] = set()
    return order


def _order_core(neighbors: list[int], limit: int | None) -> list[tuple[int, list[int]]] | None:
    alive = (1 << len(neighbors)) - 1
    fills = [_fill(around, neighbors) for around in neighbors]
    heap = [(fills[node], around.bit_count(), node) for node, around in enumerate(neighbors)]
    heapq.heapify(heap)
    order: list[tuple[int, list[int]]] = []
    while heap:
        fill, degree, node = heapq.heappop(heap)
        if not alive >> node & 1 or (fill, degree) != (fills[node], neighbors[node].bit_count()):
            continue
        if limit is not None and degree > limit:
            return None
        alive ^= 1 << node
        order.append((node, _members(neighbors[node])))
        for other in _eliminate(node, neighbors, fill):
            fills[other] = _fill(neighbors[other], neighbors)
            heapq.heappush(heap, (fills[other], neighbors[other].bit_count(), other))
    return order


def _eliminate(node: int, neighbors: list[int], fill: int) -> list[int]:
    """Remove a node; return the nodes whose fill may have changed."""
    around = neighbors[node]
    changed = around
    for other in _members(around):
        if fill:
            changed |= neighbors[other]
        neighbors[other] = (neighbors[other] | around) & ~(1 << other) & ~(1 << node)
    return _members(changed & ~(1 << node))


def _fill(around: int, neighbors: list[int]) -> int:
    """Count the edges (twice) that eliminating a node with these neighbors adds."""
    return sum((around & ~neighbors[other]).bit_count() - 1 for other in _members(around))


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
