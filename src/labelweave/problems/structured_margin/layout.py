"""How a graph's components and cliques are laid out for the compiled passes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from labelweave._loops.structured.arrays import LABELS, DualPoint, Layout
from labelweave._loops.structured.moments import merge_components
from labelweave.array_types import Array
from labelweave.labels.clique_graph import CliqueGraph

__all__ = ["component_labels", "graph_layout", "merged_point"]


def graph_layout(graph: CliqueGraph) -> tuple[Layout, Array]:
    """List the components of two labels or more; say where every label is.

    homes (L,): the component of every label, -1 where it is alone.
    """
    homes = np.full(graph.n_labels, -1, np.int64)
    wide = [labels for labels in graph.components if len(labels) > 1]
    for number, labels in enumerate(wide):
        homes[list(labels)] = number
    own: list[list[int]] = [[] for _ in wide]
    for number, clique in enumerate(graph.cliques):
        own[homes[clique[0]]].append(number)
    order = [number for part in own for number in part]
    members = [graph.cliques[number] for number in order]
    columns = [graph.n_labels + int(graph.table_starts[number]) for number in order]
    layout = Layout(
        components=np.stack([_starts(wide), _starts(own)]),
        labels=np.concatenate([_integers(wide), np.flatnonzero(homes < 0)]),
        cliques=np.stack([_starts(members), np.asarray([*columns, 0], np.int64)]),
        members=_integers(members),
    )
    return layout, homes


def component_labels(layout: Layout) -> list[Array]:
    """List the labels of every component."""
    starts = layout.components[LABELS]
    return [layout.labels[first:end] for first, end in pairwise(starts)]


def merged_point(dual: DualPoint, old: tuple[Layout, Array], layout: Layout) -> DualPoint:
    """Give a dual point with the same means for a graph whose components are unions of the old ones.

    old: the layout that it has, and the homes of its labels.
    layout: the layout of the new one.
    Returns the point; it has the means' memory.
    """
    old_labels, homes = component_labels(old[0]), old[1]
    n, capacity, n_labels = dual.vertices.shape
    wide = component_labels(layout)
    shares = np.zeros((n, capacity, len(wide)))
    vertices = np.zeros((n, capacity, n_labels), np.int8)
    for component, labels in enumerate(wide):
        parts = [np.asarray([label]) for label in labels[homes[labels] < 0]]
        joined = np.unique(homes[labels][homes[labels] >= 0])
        parts += [old_labels[home] for home in joined]
        sources = np.concatenate([np.full(len(parts) - len(joined), -1), joined])
        starts = np.cumsum([0] + [len(part) for part in parts])
        merge_components(starts, np.concatenate(parts), sources, dual, component, shares, vertices)
    return DualPoint(dual.means, vertices, shares)


def _integers(parts: Any) -> Array:
    return np.asarray([number for part in parts for number in part], np.int64)


def _starts(parts: Any) -> Array:
    return np.cumsum([0] + [len(part) for part in parts], dtype=np.int64)
