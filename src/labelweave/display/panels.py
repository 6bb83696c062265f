"""Several axes for one display: new ones side by side, or those that a user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.display.figures import axes_of_size

__all__ = ["panel_axes"]


def panel_axes(ax: Any, count: int, width: float, height: float) -> list[Any]:
    """Take the axes that were given, or make some side by side.

    width, height: the size of each of the new ones, in inches.
    Returns as many as are needed.
    Raises ImportError if matplotlib is not installed.
    Raises ValueError if another number of axes was given.
    """
    if ax is None:
        return _new_axes(count, width, height)
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != count:
        raise ValueError(
            f"{len(given)} axes were given for {count} panels; give one axes a panel, or choose panels."
        )
    return given


def _new_axes(count: int, width: float, height: float) -> list[Any]:
    first = axes_of_size(width * count, height)
    if count == 1:
        return [first]
    figure = first.figure
    first.remove()
    return list(figure.subplots(1, count))
