"""Figures and axes of a size, panels below one another, and legends where there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labelweave.foundation.arguments import shown

_ROOM = 8.0  # pixels between a legend and curves
_MOST_ROOM = 0.6  # share of the axes; a legend that is larger lies over curves after all


def pyplot() -> Any:
    """Import matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: install labelweave[app].") from None
    return plt


def axes_of_size(width: float, height: float) -> Any:
    """Make axes in a new figure of a size in inches."""
    _, ax = pyplot().subplots(figsize=(width, height), layout="compressed")
    return ax


def checked_axes(ax: Any) -> Any:
    """Give axes back; ValueError if they are none."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise ValueError(f"ax is {shown(ax)}; give matplotlib's axes, or None for a new figure.")
    return ax


def given_axes(ax: Any, width: float, height: float) -> Any:
    """Take the axes that were given, or make some of a size in inches."""
    return axes_of_size(width, height) if ax is None else checked_axes(ax)


def settle_layout(ax: Any) -> None:
    """Lay a figure out, so that the size of its axes is known."""
    ax.figure.canvas.figure.draw_without_rendering()


def size_in_points(ax: Any) -> tuple[float, float]:
    """Measure the width and height of axes in points, 72 an inch."""
    frame = ax.get_window_extent()
    return frame.width * 72 / ax.figure.dpi, frame.height * 72 / ax.figure.dpi


def read_choices(kind: str, chosen: str | Iterable[str], known: Iterable[str]) -> list[str]:
    """Read one or several of the names that are known, at least one."""
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    for name in names or [""]:
        if name not in known:
            *others, last = map(repr, known)
            raise ValueError(f"A {kind} is {name!r}; {kind}s are {', '.join(others)} and {last}.")
    return names


def panel_axes(ax: Any, count: int, width: float, height: float) -> list[Any]:
    """Take the axes that were given, one a panel, or make some of a size in inches side by side."""
    if ax is None:
        first = axes_of_size(width * count, height)
        figure = first.figure
        first.remove()
        return list(np.ravel(figure.subplots(1, count)))
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != count:
        raise ValueError(
            f"{len(given)} axes were given for {count} panels; give one axes a panel, or choose panels."
        )
    return [checked_axes(one) for one in given]


def place_legend(ax: Any, lines: Sequence[Any], **options: Any) -> Any:
    """Explain curves where none of the lines runs; where there is no such place, make room above them."""
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
