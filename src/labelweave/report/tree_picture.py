"""The picture of a taxonomy on the page: a column a level, every node as tall as the leaves below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from labelweave.display.icicle import icicle_of, tail_names
from labelweave.display.label_texts import letters_across, shortened
from labelweave.labels import Taxonomy
from labelweave.report.taxonomy_nodes import NodeNumbers

__all__ = ["TreePicture", "tree_picture"]

_WIDTH = 720.0  # pixels
_HEIGHT_A_LEAF = 16.0
_LEAST_HEIGHT, _MOST_HEIGHT = 96.0, 1600.0
_LINE = 13.0  # the height of a name
_LETTER = 7.6  # the width of a wide letter such as n
_MOST_NODES = 3000


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
    """Place the nodes.

    nodes: the numbers of all nodes, depth first.
    Returns the picture; None where there are too many nodes to see any, or no levels.
    """
    if len(nodes) > _MOST_NODES or max(node.depth for node in nodes) == 0:
        return None
    places, names = icicle_of(taxonomy), tail_names(taxonomy)
    height = float(np.clip(_HEIGHT_A_LEAF * places.is_end.sum(), _LEAST_HEIGHT, _MOST_HEIGHT))
    wide = _WIDTH / places.n_columns
    cells = [
        _cell(nodes[node], names[node], column * wide, wide, height * top, height * bottom)
        for node, column, top, bottom in zip(
            places.nodes, places.columns, places.top, places.bottom, strict=True
        )
    ]
    return TreePicture(cells, _WIDTH, height)


def _cell(node: NodeNumbers, name: str, left: float, wide: float, top: float, bottom: float) -> Cell:
    text = ""
    if bottom - top >= _LINE:
        letters = int(wide / _LETTER * len(name) / max(1.0, letters_across(name))) - 1
        text = shortened(name, max(1, letters))
    words = f"{node.name}: {node.missed:,} of {node.positive:,} predicted elsewhere"
    missed = 1.0 - node.recall if node.positive else float("nan")
    place = [round(float(part), 1) for part in (left, top, wide, bottom - top)]
    return Cell(place[0], place[1], place[2], place[3], text, words, missed)
