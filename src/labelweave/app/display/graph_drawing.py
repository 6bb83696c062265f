"""Layout of a label graph: the cliques to show, and the places of names and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.app.display.figures import letters_across, short_text, shortened
from labelweave.app.display.given_labels import Names, one_name_a_label
from labelweave.foundation.array_types import Floats, PerLabel
from labelweave.labels.clique_graph import CliqueGraph

LONGEST_NAME = 24  # letters
WIDEST_LINE = 5.0  # points
_NARROWEST_LINE = 0.7
_USUAL_LINE = 1.5
_MOST_LISTED = 12  # labels without edges that are named
_ASPECT = 1.5  # of the whole plot, width to height
_BETWEEN = 26.0  # points between components
_ROOM = np.array([12.0, 12.0])  # points between two names, sideways and upwards
_REACH = np.array([1.6, 3.0])  # the length of an edge, in widths and heights of names
_MOST_PUSHES = 500
_TURNS = 12
_LETTER = np.array([0.58, 1.35])  # width of a letter and height of a line, in font sizes
_PADDING = np.array([8.0, 6.0])
_FONTS = ((30, 10.0), (60, 8.5))  # font sizes up to these numbers of names
_SMALL_FONT = 7.5
_LEAST_FONT = 5.5
_SMALLEST = np.array([340.0, 220.0])
_MOST_CUT = 0.8  # largest share of cliques in the next attempt, if not all fit


def names_of(graph: CliqueGraph, label_names: Names | None) -> PerLabel:
    """Return the names of a graph's labels: the given ones, else those of the graph, else numbers."""
    names = graph.shown_labels() if label_names is None else label_names
    return one_name_a_label(names, graph.n_labels, "graph")


def strongest(graph: CliqueGraph, count: int) -> CliqueGraph:
    """Return the strongest cliques, in order, or the first ones if strengths are unknown."""
    strengths = np.zeros(graph.n_cliques) if graph.weights is None else graph.weights
    kept = np.argsort(-strengths, kind="stable")[:count]
    weights, signs = (None if part is None else part[kept] for part in (graph.weights, graph.signs))
    cliques = [graph.cliques[k] for k in kept]
    return CliqueGraph(graph.n_labels, cliques, graph.label_names, weights, signs)


def omitted_note(graph: CliqueGraph, shown: CliqueGraph, names: PerLabel) -> str:
    """Describe the cliques and labels that a plot omits, if any."""
    notes, is_whole = [], shown.n_cliques == graph.n_cliques
    if not is_whole:
        how = "first" if graph.weights is None else "strongest"
        notes.append(f"the {how} {shown.n_cliques} of {graph.n_cliques} cliques")
    absent = np.setdiff1d(np.arange(graph.n_labels), np.concatenate(shown.cliques))
    if 0 < len(absent) <= _MOST_LISTED and is_whole:
        notes.append(f"without edges: {', '.join(short_text(name, LONGEST_NAME) for name in names[absent])}")
    elif len(absent):
        which = "without edges" if is_whole else "with weaker edges, or none,"
        notes.append(f"{len(absent)} of {graph.n_labels} labels {which} omitted")
    return "; ".join(notes)


def line_widths(graph: CliqueGraph) -> npt.NDArray[np.float64]:
    if graph.weights is None or graph.weights.max() <= 0:
        return np.full(graph.n_cliques, _USUAL_LINE)
    shares = np.maximum(graph.weights, 0) / graph.weights.max()
    return np.asarray(_NARROWEST_LINE + (WIDEST_LINE - _NARROWEST_LINE) * shares)


def lay_out(edges: Sequence[tuple[int, int]], boxes: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Place names of these sizes, each in an edge, in an area of at least this width and height.

    Returns the centers (nodes, 2) of the names, in points, and the width and height of the area.
    """
    try:
        import networkx
    except ImportError:
        raise ImportError("Plots of label graphs need networkx: install labelweave[app].") from None
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(boxes)))
    graph.add_edges_from(edges)
    parts = [sorted(part) for part in networkx.connected_components(graph)]
    placed = [_component(networkx, graph.subgraph(part), part, boxes) for part in parts]
    places, size = _in_rows(parts, placed, boxes)
    stretch = np.maximum(1.0, least / size)
    return places * stretch, size * stretch


def _component(networkx: Any, graph: Any, nodes: list[int], boxes: Floats) -> Floats:
    ring = networkx.circular_layout(graph)  # deterministic start
    found = networkx.kamada_kawai_layout(graph, pos=ring)
    places = np.array([found[node] for node in nodes])
    ends = np.searchsorted(nodes, list(graph.edges))
    places /= np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1).mean()
    crowd = max(1.0, np.sqrt(len(ends) / len(nodes)))  # many lines need space between names
    reach = crowd * _REACH * boxes[nodes].mean(axis=0)
    angles = np.linspace(0.0, np.pi, _TURNS, endpoint=False)
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    turned = (_pushed_apart(places @ turn.T * reach, boxes[nodes]) for turn in turns)
    return min(turned, key=lambda places: _area(places, boxes[nodes]))


def _area(places: Floats, boxes: Floats) -> float:
    """Return the area of the bounding box of all names, rounded, so that ties do not depend on rounding."""
    low, high = (places - boxes / 2).min(axis=0), (places + boxes / 2).max(axis=0)
    return round(float((high - low + _BETWEEN).prod()), 3)


def _pushed_apart(places: Floats, boxes: Floats) -> Floats:
    """Move overlapping names apart, along the axis of less overlap."""
    least = (boxes[:, None] + boxes[None]) / 2 + _ROOM
    places = places + 1e-3 * np.arange(len(places))[:, None]  # no two at the same place
    for _ in range(_MOST_PUSHES):
        between = places[:, None] - places[None]
        overlap = least - np.abs(between)
        np.einsum("iij->ij", overlap)[:] = 0.0
        meets = (overlap > 0).all(axis=2)
        if not meets.any():
            break
        relative = overlap / least
        sideways = relative[..., 0] < relative[..., 1]
        push = 0.5 * overlap * np.where(between < 0, -1.0, 1.0)
        push *= np.stack([sideways, ~sideways], axis=2) * meets[..., None]
        places = places + 0.6 * push.sum(axis=1) / np.maximum(1, meets.sum(axis=1))[:, None] + 1e-6
    return places


def _in_rows(parts: list[list[int]], placed: list[Floats], boxes: Floats) -> tuple[Floats, Floats]:
    """Place components side by side, in rows that result in the target aspect ratio of the plot."""
    halves = [boxes[nodes] / 2 for nodes in parts]
    lows = np.array([(p - half).min(axis=0) for p, half in zip(placed, halves, strict=True)])
    highs = np.array([(p + half).max(axis=0) for p, half in zip(placed, halves, strict=True)])
    sizes = highs - lows + _BETWEEN
    width = max(float(sizes[:, 0].max()), float(np.sqrt(_ASPECT * sizes.prod(axis=1).sum())))
    corners = _corners(sizes, width)
    whole, places = (corners + sizes).max(axis=0), np.zeros_like(boxes)
    for nodes, found, corner, low, high in zip(parts, placed, corners, lows, highs, strict=True):
        # corners count downwards from the upper edge
        left, top = corner[0] + _BETWEEN / 2, whole[1] - corner[1] - _BETWEEN / 2
        places[nodes] = found + np.array([left - low[0], top - high[1]])
    return places, whole


def _corners(sizes: Floats, width: float) -> Floats:
    """Return the upper left corners of rectangles, tallest first: down a column, across a row, row by row."""
    corners = np.zeros_like(sizes)
    row_top = row_height = column_left = column_width = column_end = 0.0
    for part in np.lexsort((-sizes[:, 0], -sizes[:, 1])):
        wide, tall = sizes[part]
        is_below = column_end + tall <= row_top + row_height and wide <= column_width
        if not is_below:
            column_left += column_width
            if column_left + wide > 1.001 * width or not row_height:
                row_top, row_height, column_left = row_top + row_height, float(tall), 0.0
            column_width, column_end = float(wide), row_top
        corners[part] = column_left, column_end
        column_end += float(tall)
    return corners


class GraphDrawing(NamedTuple):
    """A graph with the layout of its plot.

    graph: the cliques to plot.
    texts: their names as written.
    boxes (nodes, 2): widths and heights of the names, in points.
    lines: pairs of nodes, and the clique of each; the first nodes are the labels.
    places (nodes, 2): their centers, in points from the lower left corner.
    size (2,): the width and height of the plot.
    font: the size of the names.
    """

    graph: CliqueGraph
    labels: list[int]
    texts: list[str]
    boxes: Floats
    lines: list[tuple[tuple[int, int], int]]
    places: Floats
    size: Floats
    font: float


def graph_drawing(graph: CliqueGraph, names: Any) -> GraphDrawing:
    labels, lines, hubs = _nodes_and_lines(graph)
    texts = [shortened(names[label], LONGEST_NAME) for label in labels]
    font = next((size for most, size in _FONTS if len(texts) <= most), _SMALL_FONT)
    sizes = [np.array([letters_across(text), 1.0]) * _LETTER * font + _PADDING for text in texts]
    boxes = np.array(sizes + [_PADDING] * hubs)
    places, size = lay_out([pair for pair, _ in lines], boxes, _SMALLEST)
    return GraphDrawing(graph, labels, texts, boxes, lines, places, size, font)


def fitting_drawing(graph: CliqueGraph, names: Any, room: Floats) -> GraphDrawing:
    """Lay out as many of the strongest cliques, which come first, as are readable in the given area."""
    while True:
        drawing = graph_drawing(graph, names)
        font = drawing.font * min(1.0, float((room / drawing.size).min()))
        if font >= _LEAST_FONT or graph.n_cliques == 1:
            return drawing._replace(font=max(font, _LEAST_FONT))
        share = min(_MOST_CUT, (font / _LEAST_FONT) ** 2)  # the area of a plot is proportional to it
        graph = strongest(graph, max(1, int(share * graph.n_cliques)))


def _nodes_and_lines(graph: CliqueGraph) -> tuple[list[int], list[tuple[tuple[int, int], int]], int]:
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
