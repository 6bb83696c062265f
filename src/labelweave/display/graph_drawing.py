"""What a picture of a label graph draws: names, lines, their places, and how much of it has room."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.array_types import Floats
from labelweave.display.graph_layout import Layout, lay_out
from labelweave.display.label_texts import letters_across, shortened
from labelweave.display.shown_cliques import LONGEST_NAME, strongest
from labelweave.labels.clique_graph import CliqueGraph

__all__ = ["GraphDrawing", "fitting_drawing", "graph_drawing"]


_LETTER = np.array([0.58, 1.35])  # width of a letter and height of a line, in font sizes
_PADDING = np.array([8.0, 6.0])
_FONTS = ((30, 10.0), (60, 8.5))  # up to so many names this size
_SMALL_FONT = 7.5
_LEAST_FONT = 5.5
_SMALLEST = np.array([340.0, 220.0])
_MOST_CUT = 0.8  # share of cliques that are tried next where all have no room


class GraphDrawing(NamedTuple):
    """A graph with places for what is drawn of it.

    graph: the cliques that are drawn.
    texts: their names as they are written.
    boxes (nodes, 2): widths and heights of the names, in points.
    lines: pairs of nodes, and the clique that each belongs to; the first nodes are the labels.
    font: the size of the names.
    """

    graph: CliqueGraph
    labels: list[int]
    texts: list[str]
    boxes: Floats
    lines: list[tuple[tuple[int, int], int]]
    layout: Layout
    font: float


def graph_drawing(graph: CliqueGraph, names: Any) -> GraphDrawing:
    """Find places for all cliques of a graph.

    Returns the drawing, as large as it needs to be.
    Raises ImportError if networkx is not installed.
    """
    labels, lines, hubs = _nodes_and_lines(graph)
    texts = [shortened(names[label], LONGEST_NAME) for label in labels]
    font = next((size for most, size in _FONTS if len(texts) <= most), _SMALL_FONT)
    boxes = _boxes(texts, hubs, font)
    layout = lay_out([pair for pair, _ in lines], boxes, _SMALLEST)
    return GraphDrawing(graph, labels, texts, boxes, lines, layout, font)


def fitting_drawing(graph: CliqueGraph, names: Any, room: tuple[float, float]) -> GraphDrawing:
    """Find places for as many of the first cliques as can be read in axes of some size.

    graph: the graph, its cliques in the order of their strength.
    room: width and height of the axes in points.
    Returns the drawing, its names as small as the axes ask for.
    Raises ImportError if networkx is not installed.
    """
    while True:
        drawing = graph_drawing(graph, names)
        font = drawing.font * min(1.0, float((np.array(room) / drawing.layout.size).min()))
        if font >= _LEAST_FONT or graph.n_cliques == 1:
            return drawing._replace(font=max(font, _LEAST_FONT))
        share = min(_MOST_CUT, (font / _LEAST_FONT) ** 2)  # the area that a drawing takes grows with it
        graph = strongest(graph, max(1, int(share * graph.n_cliques)))


def _nodes_and_lines(graph: CliqueGraph) -> tuple[list[int], list[tuple[tuple[int, int], int]], int]:
    """List the labels, the lines between nodes with their cliques, and count the points of larger cliques."""
    labels = sorted({label for clique in graph.cliques for label in clique})
    place = {label: number for number, label in enumerate(labels)}
    lines: list[tuple[tuple[int, int], int]] = []
    hubs = 0
    for number, clique in enumerate(graph.cliques):
        nodes = [place[label] for label in clique]
        if len(nodes) == 2:
            lines.append(((nodes[0], nodes[1]), number))
        else:
            lines += [((node, len(labels) + hubs), number) for node in nodes]
            hubs += 1
    return labels, lines, hubs


def _boxes(texts: list[str], hubs: int, font: float) -> Floats:
    sizes = [np.array([letters_across(text), 1.0]) * _LETTER * font + _PADDING for text in texts]
    return np.array(sizes + [_PADDING] * hubs)
