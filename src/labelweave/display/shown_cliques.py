"""Which cliques of a label graph a picture shows, and what it says of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, PerLabel
from labelweave.display.label_texts import short_text
from labelweave.labels.clique_graph import CliqueGraph

__all__ = ["LONGEST_NAME", "WIDEST_LINE", "line_widths", "names_of", "strongest", "what_is_left_out"]


LONGEST_NAME = 24  # letters
WIDEST_LINE = 5.0  # points
_NARROWEST_LINE = 0.7
_USUAL_LINE = 1.5
_MOST_LISTED = 12  # labels without ties that are named


def names_of(graph: CliqueGraph, label_names: Sequence[str] | Array | None) -> PerLabel:
    """Name the labels of a graph.

    label_names: one name a label; by default those it carries, else the labels' numbers.
    Raises ValueError if the names are not one a label.
    """
    names = np.asarray(graph.shown_labels() if label_names is None else label_names).astype(np.str_)
    if names.shape != (graph.n_labels,):
        raise ValueError(
            f"{len(names)} label names were given for a graph over {graph.n_labels} labels; give one name a "
            "label."
        )
    return names


def strongest(graph: CliqueGraph, count: int) -> CliqueGraph:
    """Keep the strongest cliques, the first ones where strengths are not known.

    Returns the cliques kept, the strongest first.
    """
    order = np.arange(graph.n_cliques)
    if graph.weights is not None:
        order = np.argsort(-graph.weights, kind="stable")
    kept = order[:count]
    return CliqueGraph(
        graph.n_labels,
        [graph.cliques[k] for k in kept],
        graph.label_names,
        None if graph.weights is None else graph.weights[kept],
        None if graph.signs is None else graph.signs[kept],
    )


def what_is_left_out(graph: CliqueGraph, shown: CliqueGraph, names: PerLabel) -> str:
    """Say which cliques and labels are not in a picture.

    Returns the remark; empty if nothing is left out.
    """
    notes = []
    if shown.n_cliques < graph.n_cliques:
        how = "first" if graph.weights is None else "strongest"
        notes.append(f"the {how} {shown.n_cliques} of {graph.n_cliques} cliques")
    absent = sorted(set(range(graph.n_labels)) - {label for clique in shown.cliques for label in clique})
    if 0 < len(absent) <= _MOST_LISTED and shown.n_cliques == graph.n_cliques:
        notes.append(f"without ties: {', '.join(short_text(names[label], LONGEST_NAME) for label in absent)}")
    elif absent:
        which = "without ties" if shown.n_cliques == graph.n_cliques else "with weaker ties, or none,"
        notes.append(f"{len(absent)} of {graph.n_labels} labels {which} left out")
    return "; ".join(notes)


def line_widths(graph: CliqueGraph) -> npt.NDArray[np.float64]:
    """Give strong cliques wide lines.

    Shapes: result (n_cliques,).
    """
    if graph.weights is None or graph.weights.max() <= 0:
        return np.full(graph.n_cliques, _USUAL_LINE)
    shares = np.maximum(graph.weights, 0) / graph.weights.max()
    return np.asarray(_NARROWEST_LINE + (WIDEST_LINE - _NARROWEST_LINE) * shares)
