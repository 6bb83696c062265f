"""Names of labels and counts as short texts, and names beside points that do not lie on one another."""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from labelweave.app.display.figures import settle_layout
from labelweave.foundation.array_types import Array

_LONGEST_NAME = 32
_SMALL_LETTER = 4.8  # points, the usual width of a letter of a small font
_FEWEST_LETTERS = 24  # a line
_WIDE_LETTER = 1.75  # of Chinese, Japanese and Korean, and of pictures
_DISTANCES = (5.0, 16.0, 30.0, 48.0)  # points from a point to its name, the near ones tried first
_DIRECTIONS = ((1, 0), (-1, 0), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7), (0, 1), (0, -1))
_FONT_SIZE = 7.0
_POINT_SIZE = 2.0  # points from a point's middle to its edge
_WITH_LINE = 10.0  # names farther off than this have a line to their point


def shortened(name: object, longest: int = _LONGEST_NAME) -> str:
    """Write a name as text, and only its beginning if it is long."""
    text = str(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def short_text(name: object, longest: int = _LONGEST_NAME) -> str:
    """Shorten a name, and keep matplotlib from reading formulas in it."""
    return shortened(name, longest).replace("$", r"\$")  # a dollar sign would begin a formula


def letters_across(text: str) -> float:
    """Measure a text in letters of the usual width."""
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)


def legend_text(name: object, note: str = "", longest: int = _LONGEST_NAME) -> str:
    """Write a name for a legend."""
    text = short_text(name, longest) + (f": {note}" if note else "")
    return f" {text}" if text.startswith("_") else text  # an underscore in front would hide the entry


def wrapped_text(text: str, width: float) -> str:
    """Break a remark in small letters into lines."""
    return "\n".join(textwrap.wrap(text, max(_FEWEST_LETTERS, int(width / _SMALL_LETTER))))


def name_points(ax: Any, x: Array, y: Array, names: Sequence[Any], *, most: int, avoid: Array) -> list[int]:
    """Write at most so many names beside points, the first ones first, where they lie on nothing to avoid."""
    settle_layout(ax)
    frame, taken = ax.get_window_extent(), _boxes_around(ax, avoid)
    places = enumerate(zip(x.tolist(), y.tolist(), names, strict=True))
    return list(islice((number for number, place in places if _is_placed(ax, place, frame, taken)), most))


def _is_placed(ax: Any, place: tuple[float, float, Any], frame: Any, taken: list[Any]) -> bool:
    """Write one name at the first of many offsets where it is free and inside the axes."""
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
            box = _text_box(text)
            is_inside = frame.contains(*box.min) and frame.contains(*box.max)
            if is_inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                text.arrow_patch.set_visible(distance > _WITH_LINE)
                return True
    text.remove()
    return False


def _boxes_around(ax: Any, points: Array) -> list[Any]:
    from matplotlib.transforms import Bbox

    reach = _POINT_SIZE * ax.figure.dpi / 72
    places = ax.transData.transform(points)
    return [Bbox([place - reach, place + reach]) for place in places]


def _text_box(text: Any) -> Any:
    """Measure the text alone: its line to the point may cross other names."""
    from matplotlib.text import Text

    text.get_window_extent()  # puts the text to its offset
    return Text.get_window_extent(text)


def spread(places: Array, gap: float, low: float, high: float) -> Array:
    """Move ascending places apart, each as little as can be, so that lines of text at them can be read.

    The least squares of the moves under the wish ``moved[i + 1] - moved[i] >= gap`` are an isotonic
    regression of ``places[i] - i gap``.

    low, high: where the first may be and the last; all fit between them.
    Returns (k,): the places to write at.
    Shapes: places (k,).
    """
    if not len(places):
        return places
    steps = gap * np.arange(len(places))
    moved = IsotonicRegression().fit_transform(np.arange(len(places)), places - steps)
    highest = max(low, high - math.fsum([gap] * (len(places) - 1)))
    return np.asarray(np.clip(moved, low, highest) + steps)
