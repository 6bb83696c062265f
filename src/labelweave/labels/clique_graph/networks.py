"""Clique graphs to and from networkx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelweave.array_types import Array
from labelweave.labels.clique_graph.checks import is_index, numbers_are_names

__all__ = ["graph_of_network", "is_network", "network_of_graph"]


def is_network(edges: Any) -> bool:
    """Say whether an object is a graph of networkx.

    Returns whether it has networkx's nodes and edges.
    """
    return hasattr(edges, "nodes") and hasattr(edges, "is_directed") and callable(edges.edges)


def graph_of_network(network: Any, label_names: Any | None, n_labels: int | None) -> dict[str, Any]:
    """Read a graph of networkx as the arguments of ``CliqueGraph``.

    network: labels as nodes; a node with ``kind="clique"`` stands for a clique of its neighbors.
    label_names: the labels; by default the nodes in order.
    n_labels: the number of labels, for nodes that are numbers.
    Returns number of labels, cliques, names, weights and signs.
    Raises ValueError if a node is no label, or the graph is directed.
    """
    if network.is_directed() or network.is_multigraph():
        raise ValueError("The graph is directed or has parallel edges; give a plain networkx.Graph.")
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
    """Give the names of the labels, and each node's index."""
    if label_names is None and n_labels is None:
        if set(nodes) == set(range(len(nodes))):
            return None, {node: node for node in nodes}
        return [str(node) for node in nodes], {node: place for place, node in enumerate(nodes)}
    names = None if label_names is None else [str(name) for name in label_names]
    known: dict[Any, int] = {name: place for place, name in enumerate(names or ())}
    by_name = numbers_are_names(nodes, known)
    place = {node: known.get(str(node) if by_name else node, node) for node in nodes}
    count = n_labels if names is None else len(names)
    for node, label in place.items():
        if not is_index(label, count or 0):
            raise ValueError(
                f"The node {node!r} of the graph is no label; name its nodes like the {count} labels, or "
                "number them from 0."
            )
    return names, place


def _collected(found: list[tuple[list[Any], dict[str, Any]]], key: str) -> list[Any] | None:
    """Give an attribute of all cliques; None unless all have it."""
    values = [data.get(key) for _, data in found]
    return values if values and all(value is not None for value in values) else None


def network_of_graph(
    cliques: Sequence[tuple[int, ...]], labels: list[Any], weights: Array | None, signs: Array | None
) -> Any:
    """Make a graph of networkx.

    labels: the node of every label.
    Raises ImportError if networkx is not installed.
    """
    try:
        import networkx
    except ImportError:
        raise ImportError("to_networkx needs networkx; install labelweave[graph].") from None
    graph = networkx.Graph()
    graph.add_nodes_from(labels)
    for place, clique in enumerate(cliques):
        data = {} if weights is None else {"weight": float(weights[place])}
        if signs is not None:
            data["sign"] = int(signs[place])
        nodes = tuple(labels[label] for label in clique)
        if len(nodes) == 2:
            graph.add_edge(*nodes, **data)
        else:
            graph.add_node(nodes, kind="clique", **data)
            graph.add_edges_from((nodes, node) for node in nodes)
    return graph
