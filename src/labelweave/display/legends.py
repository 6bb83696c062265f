"""Legends that lie beside curves and not over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelweave.display.figures import settle_layout

__all__ = ["place_legend"]

_ROOM = 8.0  # pixels between a legend and curves
_MOST_ROOM = 0.6  # share of the axes; a legend that is larger lies over curves after all


def place_legend(ax: Any, lines: Sequence[Any], **options: Any) -> Any:
    """Explain curves where none of them runs; where there is no such place, make room above them.

    ax: axes whose limits are set.
    lines: what the legend must not cover, also lines of twin axes.
    """
    legend = ax.legend(**{"loc": "best", "fontsize": "small", "title_fontsize": "small", **options})
    legend.set_in_layout(False)  # a wide legend must not squeeze small axes
    settle_layout(ax)
    if not _covers(legend, lines):
        return legend
    share = (legend.get_window_extent().height + 2 * _ROOM) / max(1.0, ax.get_window_extent().height)
    if share < _MOST_ROOM:
        for other in {line.axes for line in lines}:
            _make_room(other, share)
        legend.set_loc("upper right")
    return legend


def _covers(legend: Any, lines: Sequence[Any]) -> bool:
    box = legend.get_window_extent()
    paths = (line.get_transform().transform_path(line.get_path()) for line in lines)
    return any(path.intersects_bbox(box, filled=False) for path in paths)


def _make_room(ax: Any, share: float) -> None:
    """Raise the upper limit so that what is below takes the rest."""
    low, high = ax.get_ylim()
    scale = ax.yaxis.get_transform()
    start, end = scale.transform([low, high])
    raised = scale.inverted().transform([start + (end - start) / (1.0 - share)])[0]
    ax.set_ylim(low, raised, auto=None)  # what is drawn later may still ask for other limits
