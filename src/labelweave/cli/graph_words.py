"""What is said of a model's graph of labels, after a fit and by ``inspect``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelweave.labels.clique_graph import CliqueGraph

__all__ = ["graph_facts", "graph_lines", "graph_words", "has_graph", "label_ties", "path_lines", "tie_lines"]

Facts = dict[str, Any]

_SIGNS = {1: "together", -1: "apart", 0: "by row"}


def has_graph(classifier: Any) -> bool:
    """Say whether a fitted classifier has a graph of labels."""
    return hasattr(classifier, "label_graph_")


def graph_words(classifier: Any) -> str:
    """Say how large the graph is, and why it is not larger.

    Returns such as ``learned, 4 of 45 pairs, width 1: the limit of rounds was reached``.
    """
    graph, rounds = classifier.label_graph_, len(classifier.graph_trace_)
    kind = "learned" if rounds else classifier.graph if isinstance(classifier.graph, str) else "given"
    most = graph.n_labels * (graph.n_labels - 1) // 2
    larger = graph.n_cliques - len(graph.edges)
    size = f"{len(graph.edges)} of {most} pairs" + (f" and {larger} larger cliques" if larger else "")
    reason = f": {classifier.graph_reason_}" if classifier.graph_reason_ else ""
    return f"{kind}, {size}, width {graph.width}{reason}"


def graph_lines(classifier: Any) -> dict[str, str]:
    """Say which graph and which penalty a fit has."""
    chosen = " (auto)" if classifier.regularization == "auto" else ""
    return {
        "graph": graph_words(classifier),
        "penalty": f"regularization {classifier.regularization_:.3g}{chosen}",
    }


def graph_facts(classifier: Any) -> Facts:
    """Describe the graph and how it was learned.

    Returns cliques with their weights and signs, the strongest first, and the rounds in order.
    """
    graph = classifier.label_graph_
    return {
        "summary": graph_words(classifier),
        "reason": classifier.graph_reason_ or None,
        "regularization": classifier.regularization_,
        "width": graph.width,
        "components": len([part for part in graph.components if len(part) > 1]),
        "cliques": _ties(graph, range(graph.n_cliques)),
        "rounds": [_round(record, graph) for record in classifier.graph_trace_],
    }


def _ties(graph: CliqueGraph, chosen: Any) -> list[Facts]:
    """Give some cliques, the strongest first."""
    names = graph.shown_labels()
    weights = np.zeros(graph.n_cliques) if graph.weights is None else graph.weights
    signs = np.zeros(graph.n_cliques, int) if graph.signs is None else graph.signs
    return [
        {
            "labels": [str(names[label]) for label in graph.cliques[k]],
            "weight": float(f"{weights[k]:.6g}"),
            "sign": int(signs[k]),
        }
        for k in sorted(chosen, key=lambda k: -weights[k])
    ]


def _round(record: Any, graph: CliqueGraph) -> Facts:
    names = graph.shown_labels()
    loss = record.held_out_loss
    return {
        "round": record.round,
        "cliques": [[str(names[label]) for label in clique] for clique in record.cliques],
        "score": float(f"{record.score:.6g}"),
        "objective": float(f"{record.primal:.8g}"),
        "held_out_loss": None if math.isnan(loss) else float(f"{loss:.6g}"),
        "passes": record.n_iter,
        "seconds": round(record.time, 3),
    }


def label_ties(classifier: Any, label: int) -> list[Facts]:
    """Give the cliques of one label, the strongest first."""
    graph = classifier.label_graph_
    return _ties(graph, [k for k, clique in enumerate(graph.cliques) if label in clique])


def tie_lines(ties: list[Facts], most: int) -> list[str]:
    """Write cliques, a line each.

    most: how many to write; of more, the last line says how many are left out.
    """
    lines = [f"{tie['weight']:10.4f}  {_sign(tie):9}{', '.join(tie['labels'])}" for tie in ties[:most]]
    left = len(ties) - most
    return lines if left <= 0 else [*lines, f"{'...':>10}  and {left} weaker ones"]


def _sign(tie: Facts) -> str:
    return _SIGNS[tie["sign"]] if len(tie["labels"]) == 2 else ""


def path_lines(rounds: list[Facts]) -> list[str]:
    """Write the rounds in which a graph was learned, a line each.

    Returns A header, then round, objective, held-out Hamming loss where there is one, and the cliques added.
    """
    measured = any(entry["held_out_loss"] is not None for entry in rounds)
    lines = [
        f"{'round':>5}  {'objective':>10}  {'held-out':>8}  added" if measured else "round   objective  added"
    ]
    for entry in rounds:
        loss = f"{entry['held_out_loss']:8.4f}  " if measured else ""
        added = "; ".join(", ".join(clique) for clique in entry["cliques"]) or "no clique"
        lines.append(f"{entry['round']:5}  {entry['objective']:10.5g}  {loss}{added}")
    return lines
