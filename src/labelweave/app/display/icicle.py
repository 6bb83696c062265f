"""Layout of a taxonomy as an icicle plot, one column per level, with texts inside and next to nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.app.display.figures import short_text, size_in_points, spread
from labelweave.foundation.array_types import Array, Floats
from labelweave.labels import Taxonomy

_LINE_HEIGHT = 6.4  # points, the smallest readable line of text
_FONT_SIZES = (5.5, 9.0)
_PADDING = 4.0  # points inside a cell
_BESIDE_SIZE = 6.5  # points
_MOST_BESIDE, _FEWEST_BESIDE = 28, 3  # letters of a name
_BESIDE_WIDTH = 140.0  # points
_BESIDE_SHARE = 0.42  # of the width, at most
_BESIDE_LINE = 9.0  # points
_DARK = 0.45


@dataclass(frozen=True)
class Icicle:
    """Places of the nodes.

    top, bottom (k,): their vertical extents, downwards; the whole height is 1.
    is_end (k,): whether they have no children here.
    Shapes: nodes (k,), columns (k,).
    """

    nodes: Array
    columns: Array
    top: Floats
    bottom: Floats
    is_end: npt.NDArray[np.bool_]

    @property
    def n_columns(self) -> int:
        return int(self.columns.max()) + 1

    def corners(self) -> Floats:
        """Return the corners of the nodes' rectangles, shape (k, 4, 2); a column is 1 wide."""
        x = self.columns[:, None] + np.array([0.0, 1.0, 1.0, 0.0])
        y = np.stack([self.top, self.top, self.bottom, self.bottom], axis=1)
        return np.stack([x, y], axis=2)

    def upper(self, n_columns: int) -> Icicle:
        """Keep only the upper levels, with unchanged places."""
        kept = self.columns < n_columns
        is_end = self.is_end | (self.columns == n_columns - 1)
        return Icicle(self.nodes[kept], self.columns[kept], self.top[kept], self.bottom[kept], is_end[kept])


def icicle_of(taxonomy: Taxonomy, leaf_sizes: Floats | None = None) -> Icicle:
    """Lay out a tree with leaves of these sizes; omit a single root, which has all rows."""
    is_leaf = taxonomy.is_leaf(taxonomy.nodes)
    sizes = np.ones(len(taxonomy)) if leaf_sizes is None else leaf_sizes
    edges = np.concatenate([[0.0], np.cumsum(np.where(is_leaf, sizes, 0.0))])
    whole = edges[-1] if edges[-1] > 0 else 1.0
    # in depth-first order descendants follow their node
    below = np.asarray(taxonomy.membership(taxonomy.nodes).sum(axis=0), dtype=np.intp).ravel()
    depths, ends = taxonomy.depth(taxonomy.nodes), np.arange(len(taxonomy)) + below
    shown = np.arange(len(taxonomy))
    if len(taxonomy.roots) == 1 and len(taxonomy) > 1:
        shown, depths = shown[1:], depths - 1
    top, bottom = edges[shown] / whole, edges[ends[shown]] / whole
    return Icicle(shown, depths[shown], top, bottom, is_leaf[shown])


def rarest_parents(taxonomy: Taxonomy, rows: Array) -> Taxonomy:
    """Keep one parent per node of a graph, the one with the fewest rows, of which theirs are most.

    rows (nodes,): in the order of ``taxonomy.nodes``; the tree may have another order.
    """
    if taxonomy.is_tree:
        return taxonomy
    number = {name: k for k, name in enumerate(taxonomy.nodes)}
    pairs = [
        (min(above, key=lambda name: (rows[number[name]], -number[name])), node)
        for node, above in taxonomy.parents.items()
        if above
    ]
    return Taxonomy(pairs, nodes=taxonomy.nodes)


def tail_names(taxonomy: Taxonomy) -> list[str]:
    """Drop from the names of nodes, such as paths, their parent's name and a separator."""
    found = []
    for name, parent in zip(taxonomy.nodes, taxonomy.parents_of(taxonomy.nodes), strict=True):
        rest = name[len(parent) :] if parent is not None and name.startswith(parent) else ""
        found.append(rest[1:] if len(rest) > 1 and not rest[0].isalnum() else name)
    return found


@dataclass(frozen=True)
class NodeTexts:
    """Texts of the nodes of an icicle plot.

    names: their names, in the order of ``layout.nodes``.
    short_names: names for a column right of their parents.
    Shapes: rows (k,), wrong (k,).
    """

    ax: Any
    layout: Icicle
    names: list[str]
    short_names: list[str]
    rows: Floats
    wrong: Floats

    def heights(self) -> Floats:
        return (self.layout.bottom - self.layout.top) * size_in_points(self.ax)[1]

    def write_inside(self, colors: Array) -> None:
        column = size_in_points(self.ax)[0] / float(np.ptp(self.ax.get_xlim()))
        heights = self.heights()
        for k in np.flatnonzero(heights >= _LINE_HEIGHT).tolist():
            color = "white" if colors[k, :3] @ (0.299, 0.587, 0.114) < _DARK else "black"
            self._write_cell(k, color, column - _PADDING, float(heights[k]))

    def _write_cell(self, k: int, color: str, width: float, height: float) -> None:
        x, y = self.layout.columns[k] + 0.5, 0.5 * (self.layout.top[k] + self.layout.bottom[k])
        options = {"ha": "center", "va": "center", "fontsize": float(np.clip(0.72 * height, *_FONT_SIZES))}
        text = self.ax.text(x, y, "", color=color, **options)
        text.set_in_layout(False)
        for written, rotation in self._candidates(k):
            text.set(text=written, rotation=rotation)
            if _fits(text, width, height):
                return
        text.remove()

    def _candidates(self, k: int) -> Iterator[tuple[str, int]]:
        """Yield texts and their rotations, the best first."""
        name, share, rows = self.short_names[k], self._share(k), f"{self.rows[k]:,.0f}"
        of_rows = f"{share} of {rows}" if share else "no rows"
        yield f"{short_text(name)}  {of_rows}", 0
        yield f"{short_text(name)}\n{of_rows}", 0
        yield f"{short_text(name)}  {share}", 0
        yield f"{short_text(name)}  {of_rows}", 90
        yield f"{short_text(name, 16)}  {share}", 0
        yield short_text(name, 16), 0
        yield short_text(name, 16), 90
        yield short_text(name, 9), 0

    def _share(self, k: int) -> str:
        return f"{100 * self.wrong[k] / self.rows[k]:.0f} %" if self.rows[k] > 0 else ""

    def write_beside(self) -> None:
        """Name leaves too thin for text on the right, those with the most wrong rows, from top to bottom."""
        thin = np.flatnonzero(self.layout.is_end & (self.heights() < _LINE_HEIGHT) & (self.wrong > 0))
        if not len(thin):
            return
        width, height = size_in_points(self.ax)
        beside = min(_BESIDE_WIDTH, _BESIDE_SHARE * width)
        self.ax.set_xlim(0, self.layout.n_columns * width / (width - beside))
        most = max(1, int(height / _BESIDE_LINE))
        worst = thin[np.argsort(-self.wrong[thin], kind="stable")[:most]]
        places = 0.5 * (self.layout.top + self.layout.bottom)
        worst = worst[np.argsort(places[worst], kind="stable")]
        gap = _BESIDE_LINE / height
        for k, at in zip(worst.tolist(), spread(places[worst], gap, 0.5 * gap, 1 - 0.5 * gap), strict=True):
            self._write_line(k, float(places[k]), float(at))

    def _write_line(self, k: int, place: float, at: float) -> None:
        first, end = self.layout.columns[k] + 1.0, float(self.layout.n_columns)
        beside = self.ax.get_xlim()[1] - end
        x = [first, end + 0.02 * beside, end + 0.12 * beside]
        self.ax.plot(x, [place, place, at], color="0.5", linewidth=0.4, solid_joinstyle="round")
        text = self.ax.text(end + 0.14 * beside, at, "", va="center", fontsize=_BESIDE_SIZE)
        text.set_in_layout(False)
        right = self.ax.get_window_extent().x1
        for letters in range(_MOST_BESIDE, _FEWEST_BESIDE, -2):
            name = _end_of(self.names[k], letters)
            text.set_text(f"{name}  {self._share(k)} of {self.rows[k]:,.0f}")
            if text.get_window_extent().x1 <= right:
                return


def _end_of(name: str, longest: int) -> str:
    """Shorten a name at the front, since the ends of paths differ."""
    return short_text(name if len(name) <= longest else "…" + name[1 - longest :])


def _fits(text: Any, width: float, height: float) -> bool:
    box, to_points = text.get_window_extent(), 72 / text.figure.dpi
    # letters without tails may touch the cell's edges
    return bool(box.width * to_points <= width and box.height * to_points <= height + 2.0)
