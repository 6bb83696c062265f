"""A tree as an icicle: a column a level, every node as tall as the leaves below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, Floats
from labelweave.labels import Taxonomy

__all__ = ["Icicle", "icicle_of", "tail_names"]


@dataclass(frozen=True)
class Icicle:
    """Where the nodes stand.

    top, bottom (k,): their vertical extents, downwards; the whole height is 1.
    is_end (k,): which have no children here.
    Shapes: nodes (k,), columns (k,).
    """

    nodes: Array
    columns: Array
    top: Floats
    bottom: Floats
    is_end: npt.NDArray[np.bool_]

    @property
    def n_columns(self) -> int:
        """The number of levels."""
        return int(self.columns.max()) + 1

    def corners(self) -> Floats:
        """List the corners of the nodes' rectangles.

        Returns (k, 4, 2): the corners; a column is 1 wide.
        """
        left, right = self.columns.astype(np.float64), self.columns + 1.0
        x = np.stack([left, right, right, left], axis=1)
        y = np.stack([self.top, self.top, self.bottom, self.bottom], axis=1)
        return np.stack([x, y], axis=2)

    def upper(self, n_columns: int) -> Icicle:
        """Leave the lower levels out.

        n_columns: how many levels to keep.
        Returns the nodes of the upper ones, where they stand here.
        """
        kept = self.columns < n_columns
        is_end = self.is_end | (self.columns == n_columns - 1)
        return Icicle(self.nodes[kept], self.columns[kept], self.top[kept], self.bottom[kept], is_end[kept])


def icicle_of(taxonomy: Taxonomy, leaf_sizes: Floats | None = None) -> Icicle:
    """Lay a tree out; a single root above all is left out, for no row can be outside it.

    leaf_sizes (nodes,): how much room each leaf has beside the others, by default all the same.
    """
    is_leaf = taxonomy.is_leaf(taxonomy.nodes)
    sizes = np.ones(len(taxonomy)) if leaf_sizes is None else leaf_sizes
    edges = np.concatenate([[0.0], np.cumsum(np.where(is_leaf, sizes, 0.0))])
    whole = edges[-1] if edges[-1] > 0 else 1.0
    depths, ends = taxonomy.depth(taxonomy.nodes), _ends(taxonomy)
    shown = np.arange(len(taxonomy))
    if len(taxonomy.roots) == 1 and len(taxonomy) > 1:
        shown, depths = shown[1:], depths - 1
    top, bottom = edges[shown] / whole, edges[ends[shown]] / whole
    return Icicle(shown, depths[shown], top, bottom, is_leaf[shown])


def _ends(taxonomy: Taxonomy) -> Array:
    """Find where the nodes below each one end, in the depth-first order."""
    depths = taxonomy.depth(taxonomy.nodes)
    ends, open_nodes = np.full(len(depths), len(depths)), list[int]()
    for k, depth in enumerate(depths.tolist()):
        while len(open_nodes) > depth:
            ends[open_nodes.pop()] = k
        open_nodes.append(k)
    return ends


def tail_names(taxonomy: Taxonomy) -> list[str]:
    """Shorten the names of nodes that begin with their parent's name, such as paths.

    Returns one name a node: what stands after the parent's name and a separator.
    """
    parents: Sequence[str | None] = taxonomy.parents_of(taxonomy.nodes)
    return [_tail(name, parent) for name, parent in zip(taxonomy.nodes, parents, strict=True)]


def _tail(name: str, parent: str | None) -> str:
    if parent is None or not name.startswith(parent):
        return name
    rest = name[len(parent) :]
    return rest[1:] if len(rest) > 1 and not rest[0].isalnum() else name
