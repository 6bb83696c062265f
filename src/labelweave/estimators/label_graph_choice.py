"""Graphs from what users write, costs of errors, and what a fitted graph says about its cliques."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.clique_graph.chow_liu import chow_liu
from labelweave.problems.structured_margin import StructuredMargin

__all__ = ["choose_graph", "error_costs", "graph_with_strengths"]

Array = npt.NDArray[Any]


def choose_graph(graph: Any, labels: LabelMatrix) -> CliqueGraph:
    """Make the graph that was asked for.

    Parameters
    ----------
    graph : {"chow-liu", "full", "none"}, CliqueGraph, networkx.Graph or list of tuple
        What was asked for.
    labels : LabelMatrix of shape (n, L)
        The training labels.

    Returns
    -------
    CliqueGraph
        The graph.

    Raises
    ------
    ValueError
        If the graph does not fit the labels.
    """
    if isinstance(graph, str):
        if graph == "chow-liu":
            return chow_liu(labels)
        make = CliqueGraph.complete if graph == "full" else CliqueGraph.empty
        return make(labels.n_labels, labels.names)
    if isinstance(graph, CliqueGraph):
        if graph.n_labels != labels.n_labels:
            raise ValueError(
                f"The graph has {graph.n_labels} labels but Y has {labels.n_labels}; give a graph over Y's labels."
            )
        return graph
    return CliqueGraph.from_edges(graph, labels.names, labels.n_labels)


def error_costs(false_positive: Any, false_negative: Any, labels: LabelMatrix) -> Array:
    """Write out the costs of errors.

    Parameters
    ----------
    false_positive, false_negative : float or array-like of shape (L,)
        Costs.
    labels : LabelMatrix of L labels
        The labels.

    Returns
    -------
    ndarray of float64, shape (2, L)
        Costs of a 1 in place of a 0, and of the reverse.

    Raises
    ------
    ValueError
        If there is not one finite non-negative cost a label.
    """
    costs = []
    for name, given in (("false_positive_cost", false_positive), ("false_negative_cost", false_negative)):
        cost = np.asarray(given, np.float64)
        if cost.shape not in ((), (labels.n_labels,)):
            raise ValueError(
                f"{name} has shape {cost.shape}; give one number, or one for each of {labels.n_labels} labels."
            )
        if not (np.isfinite(cost) & (cost >= 0)).all():
            raise ValueError(f"{name} has a value that is negative or not finite; costs are at least 0.")
        costs.append(np.broadcast_to(cost, labels.n_labels))
    return np.asarray(costs)


def graph_with_strengths(problem: StructuredMargin, weights: Array, names: Array | None) -> CliqueGraph:
    """Give the graph with the norm of every clique's weights, and signs of pairs.

    Parameters
    ----------
    problem : StructuredMargin
        The fitted problem.
    weights : ndarray of shape (L + states, d)
        Its weights.
    names : ndarray of str, shape (L,), or None
        The labels' names.

    Returns
    -------
    CliqueGraph
        The graph.
    """
    graph, n_labels = problem.graph, problem.data.n_labels
    center = np.asarray(problem.data.arrays.weights @ problem.data.products.data).ravel()
    norms, signs = [], []
    for number, clique in enumerate(graph.cliques):
        start, end = n_labels + graph.table_starts[number : number + 2]
        states = weights[start:end]
        norms.append(float(np.linalg.norm(states)))
        # states 00, 10, 01, 11: what agreement gains over disagreement in the mean row
        sign = np.sign((states @ center) @ np.array([1, -1, -1, 1])) if len(clique) == 2 else 0
        signs.append(int(sign))
    return CliqueGraph(n_labels, graph.cliques, names, norms, signs)
