"""The picture of a label graph on the page: where names stand and which lines join them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelweave.display.graph_drawing import GraphDrawing, graph_drawing
from labelweave.display.shown_cliques import line_widths, strongest
from labelweave.labels import CliqueGraph

__all__ = ["GraphPicture", "graph_picture"]

_MOST_CLIQUES = 40
_MARGIN = 8.0
_PADDING = 6.0  # browsers' letters are a little wider than the layout's
_KINDS = {1: "for", -1: "against", 0: "either"}


class Name(NamedTuple):
    """A label in the picture.

    text, whole: what is written, and the whole name.
    """

    x: float
    y: float
    width: float
    height: float
    text: str
    whole: str


class Line(NamedTuple):
    """A line between two labels, or from a label to the point of its clique.

    kind: whether the labels attract each other.
    words: the clique and its weight.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    kind: str
    words: str


@dataclass(frozen=True)
class GraphPicture:
    """Names and lines, in pixels from the upper left corner.

    names: the labels that have ties.
    hubs: the points of cliques of more than two labels.
    font: the size of the names.
    width, height: the size of the picture.
    n_shown, n_cliques: how many cliques are shown, and how many there are.
    kinds: the kinds of lines there are.
    """

    names: list[Name]
    lines: list[Line]
    hubs: list[tuple[float, float]]
    font: float
    width: float
    height: float
    n_shown: int
    n_cliques: int
    kinds: list[str]


def graph_picture(graph: CliqueGraph, names: list[str]) -> GraphPicture | None:
    """Place the strongest cliques.

    Returns the picture; None where there are no cliques, or networkx is not installed.
    """
    if not graph.n_cliques:
        return None
    try:
        drawing = graph_drawing(strongest(graph, _MOST_CLIQUES), names)
    except ImportError:  # the table beside the picture says the same
        return None
    width, height = drawing.layout.size + 2 * _MARGIN
    x, y = (drawing.layout.places + _MARGIN).round(1).T
    places = list(zip(x.tolist(), (height - y).round(1).tolist(), strict=True))
    lines = _lines(drawing, places, names)
    return GraphPicture(
        names=_names(drawing, places, names),
        lines=lines,
        hubs=places[len(drawing.labels) :],
        font=drawing.font,
        width=round(float(width), 1),
        height=round(float(height), 1),
        n_shown=drawing.graph.n_cliques,
        n_cliques=graph.n_cliques,
        kinds=[kind for kind in _KINDS.values() if any(line.kind == kind for line in lines)],
    )


def _names(drawing: GraphDrawing, places: list[tuple[float, float]], names: list[str]) -> list[Name]:
    return [
        Name(x, y, round(width + _PADDING, 1), height, text, names[label])
        for label, text, (x, y), (width, height) in zip(
            drawing.labels, drawing.texts, places, drawing.boxes.round(1).tolist(), strict=False
        )
    ]


def _lines(drawing: GraphDrawing, places: list[tuple[float, float]], names: list[str]) -> list[Line]:
    graph = drawing.graph
    widths = line_widths(graph).round(1)
    signs = np.zeros(graph.n_cliques, np.int8) if graph.signs is None else graph.signs
    found = []
    for (one, other), clique in drawing.lines:
        words = ", ".join(names[label] for label in graph.cliques[clique])
        if graph.weights is not None:
            words += f": weight {graph.weights[clique]:.3g}"
        kind = _KINDS[int(signs[clique])]
        found.append(Line(*places[one], *places[other], float(widths[clique]), kind, words))
    return found
