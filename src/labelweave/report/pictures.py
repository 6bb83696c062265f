"""What the pictures of the page need: places in pixels, words and colours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelweave.array_types import Array, LabelsByLabels
from labelweave.display.graph_drawing import GraphDrawing, graph_drawing, line_widths, strongest
from labelweave.display.icicle import icicle_of, tail_names
from labelweave.display.label_order import cluster_order
from labelweave.display.label_texts import letters_across, shortened
from labelweave.labels import CliqueGraph, Taxonomy
from labelweave.report.label_numbers import LabelNumbers, NodeNumbers

_MOST_POINTS = 2000
_MOST_SHOWN = 30
_DECIMALS = 9  # rounding must not choose among equal labels
_ENOUGH_FOR_MEDIAN = 50
_GROUPS = 10
_WIDTH, _HEIGHT = 640.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 72.0, 12.0, 12.0, 52.0  # for words at the edges
_MARGIN = 10.0
_ENOUGH_TICKS = 2
_SHORTEST_AXIS = 0.3  # in powers of ten
_MOST_CLIQUES = 40
_GRAPH_MARGIN = 8.0
_PADDING = 6.0  # browsers' letters are a little wider than the layout's
_KINDS = {1: "for", -1: "against", 0: "either"}
_TREE_WIDTH = 720.0  # pixels
_HEIGHT_A_LEAF = 16.0
_LEAST_HEIGHT, _MOST_HEIGHT = 96.0, 1600.0
_LINE = 13.0  # the height of a name
_LETTER = 7.6  # the width of a wide letter such as n
_MOST_NODES = 3000


class Point(NamedTuple):
    """A label in a picture."""

    x: float
    y: float
    name: str
    n_rows: int
    f1: float


@dataclass(frozen=True)
class FrequencyPicture:
    """F1 scores against numbers of rows, on a logarithmic axis.

    x_ticks, y_ticks: places and words on the axes.
    median: the median F1 score of labels of about the same frequency.
    left_out: labels without a point, where there are very many.
    """

    points: list[Point]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    median: list[tuple[float, float]]
    left_out: int

    width, height = _WIDTH, _HEIGHT
    left, right, top, bottom = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM


def frequency_picture(numbers: LabelNumbers, names: list[str]) -> FrequencyPicture | None:
    """Place the labels that some row has; None for fewer than two."""
    shown = np.flatnonzero(numbers.positive > 0)
    if len(shown) < 2:
        return None
    shown = shown[np.argsort(numbers.positive[shown], kind="stable")]
    counts, f1 = numbers.positive[shown], numbers.f1[shown]
    x, y = _across(counts, counts), _down(f1)
    kept = np.unique(np.linspace(0, len(shown) - 1, min(_MOST_POINTS, len(shown))).round().astype(np.intp))
    points = [Point(x[k], y[k], names[shown[k]], int(counts[k]), float(f1[k])) for k in kept.tolist()]
    ticks = _round_counts(int(counts[0]), int(counts[-1]))
    return FrequencyPicture(
        points,
        list(zip(_across(np.array(ticks), counts), [f"{count:,}" for count in ticks], strict=True)),
        list(zip(_down(np.array([0.0, 0.5, 1.0])), ("0", "0.5", "1"), strict=True)),
        _running_median(x, y),
        len(shown) - len(kept),
    )


def _across(counts: Array, all_counts: Array) -> list[float]:
    """Place numbers of rows between the left and the right edge."""
    low, high = np.log10(all_counts.min()), np.log10(all_counts.max())
    share = (np.log10(counts) - low) / max(high - low, _SHORTEST_AXIS)
    places = _LEFT + _MARGIN + share * (_WIDTH - _LEFT - _RIGHT - 2 * _MARGIN)
    return [float(place) for place in places.round(1)]


def _down(f1: Array) -> list[float]:
    places = _HEIGHT - _BOTTOM - _MARGIN - f1 * (_HEIGHT - _TOP - _BOTTOM - 2 * _MARGIN)
    return [float(place) for place in places.round(1)]


def _round_counts(low: int, high: int) -> list[int]:
    """Give numbers for the axis: powers of ten, or finer ones where these are few."""
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        powers = range(int(math.log10(low)), int(math.log10(high)) + 1)
        chosen = [round(step * 10**power) for power in powers for step in steps]
        inside = [count for count in dict.fromkeys(chosen) if low <= count <= high]
        if len(inside) >= _ENOUGH_TICKS:
            return inside
    return sorted({low, high})


def _running_median(x: list[float], y: list[float]) -> list[tuple[float, float]]:
    """Summarise ten groups of labels of about one frequency."""
    if len(x) < _ENOUGH_FOR_MEDIAN:
        return []
    groups = zip(np.array_split(x, _GROUPS), np.array_split(y, _GROUPS), strict=True)
    return [(round(float(np.median(a)), 1), round(float(np.median(b)), 1)) for a, b in groups]


class Square(NamedTuple):
    """A pair of labels in a picture."""

    row: int
    column: int
    value: float


@dataclass(frozen=True)
class CorrelationPicture:
    """Correlations of labels, related ones beside each other.

    names: the labels from top to bottom.
    squares: the pairs that are not uncorrelated.
    n_labels: how many labels there are, of which the most related are shown.
    strongest: the correlation of the strongest colour: the largest between different labels.
    """

    names: list[str]
    squares: list[Square]
    n_labels: int
    strongest: float


def correlation_picture(correlations: LabelsByLabels, names: list[str]) -> CorrelationPicture:
    """Choose the labels that are most related, and order them."""
    n_labels = len(correlations)
    related = (correlations**2).sum(axis=1).round(_DECIMALS)
    chosen = np.sort(np.argsort(-related, kind="stable")[:_MOST_SHOWN])
    part = correlations[np.ix_(chosen, chosen)]
    order = cluster_order(part)
    ordered = np.round(part[np.ix_(order, order)], 2)
    pairs = np.argwhere(ordered != 0).tolist()
    squares = [Square(row, column, float(ordered[row, column])) for row, column in pairs]
    between = np.abs(ordered - np.diag(ordered.diagonal())).max()
    return CorrelationPicture([names[chosen[k]] for k in order], squares, n_labels, float(between) or 1.0)


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
    """Place the strongest cliques; None where there are none, or networkx is not installed."""
    if not graph.n_cliques:
        return None
    try:
        drawing = graph_drawing(strongest(graph, _MOST_CLIQUES), names)
    except ImportError:  # the table beside the picture says the same
        return None
    width, height = drawing.layout.size + 2 * _GRAPH_MARGIN
    x, y = (drawing.layout.places + _GRAPH_MARGIN).round(1).T
    places = list(zip(x.tolist(), (height - y).round(1).tolist(), strict=True))
    lines = _lines(drawing, places, names)
    kinds = [kind for kind in _KINDS.values() if any(line.kind == kind for line in lines)]
    size = round(float(width), 1), round(float(height), 1)
    hubs, counts = places[len(drawing.labels) :], (drawing.graph.n_cliques, graph.n_cliques)
    return GraphPicture(_names(drawing, places, names), lines, hubs, drawing.font, *size, *counts, kinds)


def _names(drawing: GraphDrawing, places: list[tuple[float, float]], names: list[str]) -> list[Name]:
    parts = zip(drawing.labels, drawing.texts, places, drawing.boxes.round(1).tolist(), strict=False)
    return [
        Name(x, y, round(width + _PADDING, 1), height, text, names[label])
        for label, text, (x, y), (width, height) in parts
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


class Cell(NamedTuple):
    """A node in the picture.

    text: its name, as far as it has room; empty where it has none.
    words: the whole name and its numbers.
    missed: the share of what belongs here that was predicted elsewhere, NaN where nothing does.
    """

    x: float
    y: float
    width: float
    height: float
    text: str
    words: str
    missed: float


@dataclass(frozen=True)
class TreePicture:
    """The nodes of a taxonomy, in pixels from the upper left corner.

    width, height: the size of the picture.
    """

    cells: list[Cell]
    width: float
    height: float


def tree_picture(taxonomy: Taxonomy, nodes: list[NodeNumbers]) -> TreePicture | None:
    """Place the nodes; None where there are too many to see any, or no levels."""
    if len(nodes) > _MOST_NODES or max(node.depth for node in nodes) == 0:
        return None
    places, names = icicle_of(taxonomy), tail_names(taxonomy)
    height = float(np.clip(_HEIGHT_A_LEAF * places.is_end.sum(), _LEAST_HEIGHT, _MOST_HEIGHT))
    wide = _TREE_WIDTH / places.n_columns
    left, top, tall = places.columns * wide, height * places.top, height * (places.bottom - places.top)
    boxes = np.column_stack([left, top, np.full(len(left), wide), tall])
    cells = [_cell(nodes[node], names[node], box) for node, box in zip(places.nodes, boxes, strict=True)]
    return TreePicture(cells, _TREE_WIDTH, height)


def _cell(node: NodeNumbers, name: str, box: Array) -> Cell:
    text, (x, y, width, height) = "", (round(float(part), 1) for part in box)
    if box[3] >= _LINE:
        letters = int(box[2] / _LETTER * len(name) / max(1.0, letters_across(name))) - 1
        text = shortened(name, max(1, letters))
    words = f"{node.name}: {node.missed:,} of {node.positive:,} predicted elsewhere"
    return Cell(x, y, width, height, text, words, 1.0 - node.recall)
