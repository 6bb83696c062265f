"""Reading graphs and costs of errors, and describing the cliques of a fitted graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from labelweave.estimators.label_graph.fit import LARGEST_CANDIDATE, GraphData
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.foundation.costs import warn_of_memory, warn_of_time
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.clique_graph.chow_liu import chow_liu
from labelweave.postprocessing.map import component_orders, expected_seconds
from labelweave.solvers.clique_generation import Cliques

GRAPHS = ("learn", "chow-liu", "full", "none")
_AGREEMENT = np.array([1.0, -1.0, -1.0, 1.0])  # of states 00, 10, 01, 11: equal minus different values
_MOST = 2 / 3
_ROUNDING = 1e-9  # relative to the sizes of the states' weights
_VALUES_AT_ONCE = 16_000_000
_USUAL_SHARE = 1e-3
_BYTES_A_PAIR = 40.0  # bytes per pair of labels, when a tree is chosen
_PASSES, _COPIES = 20, 3  # of a fit, at least; of its weights, in memory at a time


def choose_graph(graph: Any, data: GraphData, names: Array | None) -> CliqueGraph:
    """Create the requested graph; raise if it is invalid or does not match the labels."""
    labels = data.labels
    if isinstance(graph, str) and graph in GRAPHS:
        if graph == "chow-liu":
            return _tree(data)
        make = CliqueGraph.complete if graph == "full" else CliqueGraph.empty
        return make(labels.n_labels)
    if isinstance(graph, CliqueGraph):
        return _fitting(graph, labels.n_labels, names)
    if isinstance(graph, Iterator):
        raise ValueError(
            f"graph is a {type(graph).__name__}, which can be read only once; pass a list of tuples of "
            "labels."
        )
    if isinstance(graph, str) or not (isinstance(graph, Iterable) or hasattr(graph, "edges")):
        raise ValueError(
            f"graph is {graph!r}; it must be one of {', '.join(map(repr, GRAPHS))}, a CliqueGraph, a "
            "networkx.Graph, or a list of tuples of labels."
        )
    return CliqueGraph.from_edges(graph, names, labels.n_labels)


def choose_candidates(candidates: Any, n_labels: int, names: Array | None) -> Cliques | None:
    """Read the cliques from which a graph is learned, tuples of label names or numbers; None for all."""
    if candidates is None:
        return None
    try:
        cliques = CliqueGraph.from_edges(candidates, names, n_labels).cliques
    except ValueError as error:
        raise ValueError(f"candidates are not cliques: {error}") from None
    if (largest := max(map(len, cliques), default=0)) > LARGEST_CANDIDATE:
        raise ValueError(
            f"candidates has a clique of {largest} labels; pass cliques of 2 to {LARGEST_CANDIDATE} labels."
        )
    return cliques


def _tree(data: GraphData) -> CliqueGraph:
    """Compute the Chow-Liu tree, with weights of mean 1: their scale does not matter in the fit either."""
    n_labels, weights = data.labels.n_labels, data.weights
    pairs = n_labels * (n_labels - 1) / 2
    warn_of_memory(f"A tree of {n_labels} labels", _BYTES_A_PAIR * pairs, "pass its pairs as graph.")
    return chow_liu(data.labels, sample_weight=weights / weights[weights > 0].mean())


def _fitting(graph: CliqueGraph, n_labels: int, names: Array | None) -> CliqueGraph:
    """Map a graph to the labels; by name where both have names."""
    if graph.label_names is not None and names is not None:
        known = [tuple(str(graph.label_names[label]) for label in clique) for clique in graph.cliques]
        return CliqueGraph.from_edges(known, names)
    if graph.n_labels != n_labels:
        raise ValueError(
            f"The graph has {graph.n_labels} labels but Y has {n_labels}; pass a graph over the labels of Y."
        )
    return graph


def warn_of_wide_graph(
    graph: CliqueGraph, data: GraphData, inference: dict[str, Any], n_threads: int
) -> None:
    """Warn of a graph whose best labelings take long to find, or whose weights do not fit into memory."""
    n_rows, n_features = data.features.shape
    of_row, labels = seconds_a_row(graph, inference)
    sparser = "use a sparser graph ('learn', 'chow-liu')"
    warn_of_time(
        f"A fit with {graph.n_cliques} cliques over {labels} of {graph.n_labels} labels needs at least "
        f"{_PASSES} passes over {n_rows} rows, which",
        _PASSES * n_rows * of_row / n_threads,
        f"{sparser}, fewer labels or rows, or a smaller `inference`, which does not prove label sets.",
    )
    n_weights = (graph.n_labels + int(graph.table_starts[-1])) * n_features
    warn_of_memory(f"A graph of {graph.n_cliques} cliques", _COPIES * 8.0 * n_weights, f"{sparser}.")


def seconds_a_row(graph: CliqueGraph, inference: dict[str, Any]) -> tuple[float, int]:
    """Estimate the seconds per row for the best labeling; also return the labels of the largest component."""
    is_searched = inference["method"] == "message_passing"
    orders = component_orders(graph, -1 if is_searched else inference["exact_width"])
    seconds = expected_seconds(graph, orders, 1 if is_searched else inference["max_nodes"])
    return seconds, max(len(part.labels) for part in orders)


def usual_alpha(data: GraphData) -> float:
    """Return a thousandth of the rows' mean squared norm; a thousandth without features or weights."""
    total = float(data.weights.sum())
    mean = float(data.weights @ data.features.squared_norms()) / total if total > 0 else 0.0
    return _USUAL_SHARE * (mean or 1.0)


def graph_with_strengths(
    graph: CliqueGraph, weights: Array, data: GraphData, names: Array | None
) -> CliqueGraph:
    """Return the graph with the norm of every clique's weights (d, states), and signs of pairs.

    A pair is judged by the rows that have one of its labels or both: it attracts (1) if equal values score
    higher than different ones in two thirds of them, and excludes (-1) if they score lower in as many.
    """
    starts = graph.table_starts
    tables = [weights[:, starts[k] : starts[k + 1]] for k in range(graph.n_cliques)]
    pairs = [k for k, clique in enumerate(graph.cliques) if len(clique) == 2]
    signs = np.zeros(graph.n_cliques, np.int8)
    if pairs:
        agreements = np.column_stack([_agreement(tables[k]) for k in pairs])
        signs[pairs] = _usual_signs(np.array(graph.edges), agreements, data)
    norms = [float(np.linalg.norm(table)) for table in tables]
    return CliqueGraph(graph.n_labels, graph.cliques, names, norms, signs)


def _agreement(table: Array) -> Array:
    """Return the score of equal minus that of different values; 0 where that is rounding."""
    agreement, sizes = table @ _AGREEMENT, np.abs(table).sum(axis=1)
    return np.where(np.abs(agreement) > _ROUNDING * sizes, agreement, 0.0)


def _usual_signs(pairs: Array, weights: Array, data: GraphData) -> Array:
    """Return the sign that the pairs' scores have in most rows with one of their labels, else 0."""
    seen, above, below = np.zeros((3, len(pairs)))
    size = max(1, _VALUES_AT_ONCE // (len(pairs) + data.labels.n_labels))
    for rows in panels(len(data.labels), size):
        is_on = data.labels.positives[rows].toarray() > 0
        counts = (is_on[:, pairs[:, 0]] | is_on[:, pairs[:, 1]]) * data.weights[rows, None]
        places = np.arange(rows.start, rows.stop)
        scores = data.features.mapped(lambda features: features.matmul(weights), places, size)
        seen += counts.sum(axis=0)
        above += (counts * (scores > 0)).sum(axis=0)
        below += (counts * (scores < 0)).sum(axis=0)
    is_most = [(side > 0) & (side >= _MOST * seen) for side in (above, below)]
    return np.subtract(*is_most, dtype=np.int8)
