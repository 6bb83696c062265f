"""Where the labels of a graph stand: connected ones near each other, no name over another.

All lengths are points (1/72 inch).  Every connected component is laid out by itself (Kamada and Kawai 1989)
and turned to where it takes the least room, its names pushed apart where they would lie over each other; the
components stand side by side in rows, the tallest first, low ones below each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.array_types import Floats

__all__ = ["Layout", "lay_out"]


_ASPECT = 1.5  # of the whole picture, width to height
_BETWEEN = 26.0  # points between components
_ROOM = np.array([12.0, 12.0])  # points between two names, sideways and upwards
_REACH = np.array([1.6, 3.0])  # the length of an edge, in widths and heights of names
_MOST_PUSHES = 500
_TURNS = 12


class Layout(NamedTuple):
    """The places of nodes.

    places (k, 2): the middles of the nodes, in points from the lower left corner.
    size (2,): the width and height that they take.
    """

    places: Floats
    size: Floats


def lay_out(edges: Sequence[tuple[int, int]], boxes: Floats, least: Floats) -> Layout:
    """Find places for nodes.

    edges: pairs of nodes; every node is in one.
    boxes (k, 2): widths and heights of the nodes' names.
    least (2,): the width and height to fill at least.
    Raises ImportError if networkx is not installed.
    """
    networkx = _networkx()
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(boxes)))
    graph.add_edges_from(edges)
    parts = [sorted(part) for part in networkx.connected_components(graph)]
    placed = [_component(networkx, graph.subgraph(part), part, boxes) for part in parts]
    found = _in_rows(parts, placed, boxes)
    stretch = np.maximum(1.0, least / found.size)
    return Layout(found.places * stretch, found.size * stretch)


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError("Pictures of label graphs need networkx: install labelweave[graph].") from None
    return networkx


def _component(networkx: Any, graph: Any, nodes: list[int], boxes: Floats) -> Floats:
    """Give the places of one component's nodes."""
    ring = networkx.circular_layout(graph)  # the same start in every run
    found = networkx.kamada_kawai_layout(graph, pos=ring)
    places = np.array([found[node] for node in nodes])
    number = {node: place for place, node in enumerate(nodes)}
    ends = np.array([[number[one], number[other]] for one, other in graph.edges])
    places /= np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1).mean()
    crowd = max(1.0, np.sqrt(len(ends) / len(nodes)))  # many lines need room between names
    reach = crowd * _REACH * boxes[nodes].mean(axis=0)
    turned = (_pushed_apart(places @ turn.T * reach, boxes[nodes]) for turn in _turns())
    return min(turned, key=lambda places: _area(places, boxes[nodes]))


def _turns() -> list[Floats]:
    angles = np.linspace(0.0, np.pi, _TURNS, endpoint=False)
    return [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]


def _area(places: Floats, boxes: Floats) -> float:
    """Measure the rectangle that holds all names; rounding does not choose between equal ones."""
    low, high = (places - boxes / 2).min(axis=0), (places + boxes / 2).max(axis=0)
    return round(float((high - low + _BETWEEN).prod()), 3)


def _pushed_apart(places: Floats, boxes: Floats) -> Floats:
    """Move overlapping names apart, along the direction in which they overlap less."""
    least = (boxes[:, None] + boxes[None]) / 2 + _ROOM
    places = places + 1e-3 * np.arange(len(places))[:, None]  # no two in one place
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


def _in_rows(parts: list[list[int]], placed: list[Floats], boxes: Floats) -> Layout:
    """Put components side by side, in rows about as wide as makes a picture of the wanted shape."""
    lows = np.array([(p - boxes[nodes] / 2).min(axis=0) for nodes, p in zip(parts, placed, strict=True)])
    highs = np.array([(p + boxes[nodes] / 2).max(axis=0) for nodes, p in zip(parts, placed, strict=True)])
    sizes = highs - lows + _BETWEEN
    width = max(float(sizes[:, 0].max()), float(np.sqrt(_ASPECT * sizes.prod(axis=1).sum())))
    corners = _corners(sizes, width)
    whole = np.array([(corners + sizes)[:, 0].max(), (corners + sizes)[:, 1].max()])
    places = np.zeros_like(boxes)
    for nodes, found, corner, low, high in zip(parts, placed, corners, lows, highs, strict=True):
        # corners count downwards from the upper edge
        left, top = corner[0] + _BETWEEN / 2, whole[1] - corner[1] - _BETWEEN / 2
        places[nodes] = found + np.array([left - low[0], top - high[1]])
    return Layout(places, whole)


def _corners(sizes: Floats, width: float) -> Floats:
    """Give the upper left corners of rectangles, tallest first: down a column, across a row, row by row."""
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
