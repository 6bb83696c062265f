"""Drawing a square matrix over labels: colours around 0, names as far as they can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.display.figures import axes_of_size, settle_layout

__all__ = ["draw_heat_map", "name_rows_and_columns", "new_axes", "write_values"]

Array = npt.NDArray[Any]

_POINTS_A_NAME = 6.5  # the least height of a line of text that can be read
_FONT_SIZES = (5.0, 10.0)
_NAMES_ON_BOTH_SIDES = 60
_CELLS_WITH_LINES = 40
_LONGEST_NAME = 32


def new_axes(n_labels: int) -> Any:
    """Make axes in a new figure, larger for more labels.

    Parameters
    ----------
    n_labels : int
        The number of rows to show.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    side = min(max(4.5, 3.0 + 0.11 * n_labels), 10.0)
    return axes_of_size(side * 1.15, side)


def draw_heat_map(ax: Any, matrix: Array, limit: float, cmap: Any) -> Any:
    """Colour the cells.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    matrix : ndarray of shape (k, k)
        The values.
    limit : float
        The value of the strongest colour; its negative has the other one.
    cmap : str or Colormap
        The colours.

    Returns
    -------
    matplotlib.image.AxesImage
        The cells.
    """
    image = ax.imshow(matrix, cmap=cmap, vmin=-limit, vmax=limit, interpolation_stage="data")
    if len(matrix) <= _CELLS_WITH_LINES:
        borders = np.arange(len(matrix) + 1) - 0.5
        ax.set_xticks(borders, minor=True)
        ax.set_yticks(borders, minor=True)
        ax.grid(which="minor", color="white", linewidth=1)
        ax.tick_params(which="minor", length=0)
        ax.spines[:].set_visible(False)
    return image


def write_values(ax: Any, matrix: Array, limit: float) -> None:
    """Write the values into the cells.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to write.
    matrix : ndarray of shape (k, k)
        The values.
    limit : float
        The value of the strongest colour, on which text is white.
    """
    for (row, column), value in np.ndenumerate(matrix):
        color = "white" if abs(value) > 0.6 * limit else "black"
        text = f"{value:z.2g}" if limit > 1 else f"{value:z.2f}"
        ax.text(
            column,
            row,
            text.replace("-", "\N{MINUS SIGN}"),
            ha="center",
            va="center",
            color=color,
            fontsize="small",
        )


def name_rows_and_columns(ax: Any, names: Sequence[str] | Array, owned: bool) -> None:
    """Name as many rows as can be read, and columns too if they are few.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes.
    names : sequence of str
        One name a row.
    owned : bool
        Whether the figure was made for this picture, so that its layout may be settled.
    """
    short = [_shortened(str(name)) for name in names]
    _set_names(ax, short)
    if owned or ax.figure.canvas.figure.get_layout_engine() is not None:
        # names take room from the cells: only then is known how many fit
        settle_layout(ax)
        _set_names(ax, short)


def _set_names(ax: Any, names: list[str]) -> None:
    n_labels = len(names)
    height = ax.get_window_extent().height * 72 / ax.figure.dpi / max(1, n_labels)
    step = max(1, math.ceil(_POINTS_A_NAME / height))
    size = float(np.clip(0.85 * step * height, *_FONT_SIZES))
    ax.set_yticks(range(0, n_labels, step), names[::step], fontsize=size)
    if n_labels <= _NAMES_ON_BOTH_SIDES:
        ax.set_xticks(range(0, n_labels, step), names[::step], fontsize=size, rotation=90)
    else:
        ax.set_xticks([])


def _shortened(name: str) -> str:
    short = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return short.replace("$", r"\$")  # a dollar sign would begin a formula
