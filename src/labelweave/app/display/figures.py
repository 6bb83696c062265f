"""Axes and panels of fixed size, legends in free space, short texts, and names next to points."""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array

_ROOM = 8.0  # pixels between a legend and curves
_MOST_ROOM = 0.6  # of the axes; larger legends cover curves
_LONGEST_NAME = 32
_SMALL_LETTER = 4.8  # points, the average width of a letter in a small font
_FEWEST_LETTERS = 24  # per line
_WIDE_LETTER = 1.75  # width of Chinese, Japanese and Korean characters, and of emoji
_DISTANCES = (5.0, 16.0, 30.0, 48.0)  # points from a point to its name, nearest first
_DIRECTIONS = ((1, 0), (-1, 0), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7), (0, 1), (0, -1))
_FONT_SIZE = 7.0
_POINT_SIZE = 2.0  # points from a point's middle to its edge
_WITH_LINE = 10.0  # names at a larger distance have a line to their point


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise with how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Plots need matplotlib: install labelweave[app].") from None
    return plt


def _figure(width: float, height: float) -> Any:
    return pyplot().figure(figsize=(width, height), layout="compressed")


def axes_of_size(width: float, height: float) -> Any:
    return _figure(width, height).subplots()


def checked_axes(ax: Any) -> Any:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise ValueError(f"ax is {shown(ax)}; pass matplotlib axes, or None for a new figure.")
    return ax


def settle_layout(ax: Any) -> None:
    """Lay out a figure, so that the size of its axes is final."""
    ax.figure.canvas.figure.draw_without_rendering()


def size_in_points(ax: Any) -> tuple[float, float]:
    """Return the width and height of axes in points, 72 per inch."""
    frame = ax.get_window_extent()
    return frame.width * 72 / ax.figure.dpi, frame.height * 72 / ax.figure.dpi


def read_choices(kind: str, chosen: str | Iterable[str], known: Iterable[str]) -> list[str]:
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    for name in names or [""]:
        if name not in known:
            *others, last = map(repr, known)
            raise ValueError(f"A {kind} is {name!r}; {kind}s are {', '.join(others)} and {last}.")
    return names


class Display:
    """A plot like scikit-learn's displays: plotted by the ``from_`` methods, and again by ``plot``.

    ax_: its axes, an ndarray of axes for several panels.
    figure_: their figure.
    """

    ax_: Any
    figure_: Any

    def _begin(self, ax: Any, width: float, height: float) -> None:
        """Use the given axes, or create axes of a size in inches."""
        self.ax_ = axes_of_size(width, height) if ax is None else checked_axes(ax)
        self.figure_ = self.ax_.figure

    def _begin_panels(self, ax: Any, count: int, width: float, height: float) -> list[Any]:
        """Use the given axes, one per panel, or create axes of a size side by side."""
        if ax is None:
            axes = list(np.ravel(_figure(width * count, height).subplots(1, count)))
        else:
            axes = [checked_axes(one) for one in np.ravel(np.asarray(ax, dtype=object))]
        if len(axes) != count:
            raise ValueError(
                f"{len(axes)} axes were given for {count} panels; pass one axes per panel, or choose panels."
            )
        self.figure_ = axes[0].figure
        self.ax_ = axes[0] if count == 1 else np.asarray(axes, dtype=object)
        return axes


def place_legend(ax: Any, lines: Sequence[Any], **options: Any) -> Any:
    """Place a legend where it covers no line; without such a place, add space above the lines."""
    legend = ax.legend(**{"loc": "best", "fontsize": "small", "title_fontsize": "small", **options})
    legend.set_in_layout(False)  # a wide legend must not squeeze small axes
    settle_layout(ax)
    box = legend.get_window_extent()
    paths = (line.get_transform().transform_path(line.get_path()) for line in lines)
    share = (box.height + 2 * _ROOM) / max(1.0, ax.get_window_extent().height)
    if share < _MOST_ROOM and any(path.intersects_bbox(box, filled=False) for path in paths):
        for other in {line.axes for line in lines}:
            _make_room(other, share)
        legend.set_loc("upper right")
    return legend


def _make_room(ax: Any, share: float) -> None:
    """Raise the upper limit so that the current range takes the rest."""
    low, high = ax.get_ylim()
    scale = ax.yaxis.get_transform()
    start, end = scale.transform([low, high])
    raised = scale.inverted().transform([start + (end - start) / (1.0 - share)])[0]
    ax.set_ylim(low, raised, auto=None)  # later plots may still extend the limits


def shortened(name: object, longest: int = _LONGEST_NAME) -> str:
    """Return a name as text, shortened if it is long."""
    text = str(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def short_text(name: object, longest: int = _LONGEST_NAME) -> str:
    """Shorten a name, and escape it for matplotlib."""
    return shortened(name, longest).replace("$", r"\$")  # a dollar sign would start a formula


def letters_across(text: str) -> float:
    """Return the width of a text, in average letters."""
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)


def legend_text(name: object, note: str = "", longest: int = _LONGEST_NAME) -> str:
    text = short_text(name, longest) + (f": {note}" if note else "")
    return f" {text}" if text.startswith("_") else text  # a leading underscore would hide the entry


def wrapped_text(text: str, width: float) -> str:
    """Wrap a note in small letters."""
    return "\n".join(textwrap.wrap(text, max(_FEWEST_LETTERS, int(width / _SMALL_LETTER))))


def name_points(ax: Any, x: Array, y: Array, names: Sequence[Any], *, most: int, avoid: Array) -> list[int]:
    """Write up to ``most`` names next to points, in order, where they overlap nothing to avoid."""
    from matplotlib.transforms import Bbox

    settle_layout(ax)
    reach, frame = _POINT_SIZE * ax.figure.dpi / 72, ax.get_window_extent()
    taken = [Bbox([point - reach, point + reach]) for point in ax.transData.transform(avoid)]
    places = enumerate(zip(x.tolist(), y.tolist(), names, strict=True))
    return list(islice((number for number, place in places if _is_placed(ax, place, frame, taken)), most))


def _is_placed(ax: Any, place: tuple[float, float, Any], frame: Any, taken: list[Any]) -> bool:
    """Write one name at the first of several offsets where it is free and inside the axes."""
    from matplotlib.text import Text

    x, y, name = place
    text = ax.annotate(
        short_text(name, 24), (x, y), (0.0, 0.0), textcoords="offset points", fontsize=_FONT_SIZE,
        arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "0.3", "shrinkA": 0, "shrinkB": 2},
        bbox={"boxstyle": "square,pad=0.08", "facecolor": "white", "alpha": 0.75, "linewidth": 0},
        zorder=5,
    )  # fmt: skip
    text.set_in_layout(False)
    for distance in _DISTANCES:
        for right, up in _DIRECTIONS:
            text.set_position((distance * right, distance * up))
            text.set_horizontalalignment("left" if right > 0 else "right" if right < 0 else "center")
            text.set_verticalalignment("bottom" if up > 0 else "top" if up < 0 else "center")
            text.get_window_extent()  # moves the text to its offset
            box = Text.get_window_extent(text)  # without its line to the point, which may cross other names
            is_inside = frame.contains(*box.min) and frame.contains(*box.max)
            if is_inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                text.arrow_patch.set_visible(distance > _WITH_LINE)
                return True
    text.remove()
    return False


def spread(places: Array, gap: float, low: float, high: float) -> Array:
    """Move ascending places apart with minimal changes, so that lines of text at them do not overlap.

    The least-squares moves subject to ``moved[i + 1] - moved[i] >= gap`` are an isotonic regression of
    ``places[i] - i gap``.

    low, high: bounds of the first place and the last; all fit between them.
    Returns (k,): the places to write at.
    Shapes: places (k,).
    """
    if not len(places):
        return places
    steps = gap * np.arange(len(places))
    moved = IsotonicRegression().fit_transform(np.arange(len(places)), places - steps)
    highest = max(low, high - math.fsum([gap] * (len(places) - 1)))
    return np.asarray(np.clip(moved, low, highest) + steps)
