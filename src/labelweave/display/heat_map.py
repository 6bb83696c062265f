"""Drawing a square matrix over labels: colours around 0, names as far as they can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.display.figures import axes_of_size, settle_layout, size_in_points
from labelweave.display.label_texts import short_text

__all__ = ["draw_heat_map", "labels_a_square", "name_rows_and_columns", "new_axes", "write_values"]


_POINTS_A_NAME = 6.5  # the least height of a line of text that can be read
_FONT_SIZES = (5.0, 10.0)
_NAMES_ON_BOTH_SIDES = 60
_CELLS_WITH_LINES = 40
_LEAST_SQUARE = 1.8  # points; smaller ones cannot be seen
_LETTER = 0.6  # width in font sizes
_VALUE_LETTERS = 5.5  # "−0.17" and a little room
_VALUE_FONTS = (4.5, 8.5)


def new_axes(n_labels: int) -> Any:
    """Make axes in a new figure, larger for more labels.

    n_labels: the number of rows to show.
    Raises ImportError if matplotlib is not installed.
    """
    side = min(max(4.5, 3.0 + 0.11 * n_labels), 10.0)
    return axes_of_size(side * 1.15, side)


def labels_a_square(ax: Any, n_labels: int) -> int:
    """Say how many labels must share a row of squares so that these can be seen.

    Returns one, or more where labels are too many for the axes.
    """
    return max(1, math.ceil(_LEAST_SQUARE / _cell_size(ax, n_labels)))


def _cell_size(ax: Any, n_labels: int) -> float:
    """Give the side of a label's cell in points, or a little more before the figure is laid out."""
    return max(1.0, min(size_in_points(ax))) / max(1, n_labels)


def draw_heat_map(ax: Any, matrix: Array, limit: float, cmap: Any, together: int = 1) -> Any:
    """Colour the cells.

    limit: the value of the strongest colour; its negative has the other one.
    together: how many labels share a row of squares, which then show the strongest value of different labels.
    Shapes: matrix (k, k).
    """
    squares = matrix if together == 1 else _strongest(matrix, together)
    end = len(squares) * together - 0.5
    image = ax.imshow(
        squares, cmap=cmap, vmin=-limit, vmax=limit, interpolation_stage="data", extent=(-0.5, end, end, -0.5)
    )
    ax.set(xlim=(-0.5, len(matrix) - 0.5), ylim=(len(matrix) - 0.5, -0.5))
    if len(matrix) <= _CELLS_WITH_LINES:
        borders = np.arange(len(matrix) + 1) - 0.5
        ax.set_xticks(borders, minor=True)
        ax.set_yticks(borders, minor=True)
        ax.grid(which="minor", color="white", linewidth=1)
        ax.tick_params(which="minor", length=0)
        ax.spines[:].set_visible(False)
    return image


def _strongest(matrix: Array, together: int) -> Array:
    """Give the entry of the largest size in every square block, those of a label with itself left out."""
    count = math.ceil(len(matrix) / together)
    padded = np.zeros((count * together, count * together))
    padded[: len(matrix), : len(matrix)] = matrix
    np.fill_diagonal(padded, 0.0)
    blocks = padded.reshape(count, together, count, together)
    high, low = blocks.max(axis=(1, 3)), blocks.min(axis=(1, 3))
    return np.asarray(np.where(high >= -low, high, low))


def write_values(ax: Any, matrix: Array, limit: float) -> None:
    """Write the values into the cells, as large as they have room.

    ax: where to write; its size is final.
    limit: the value of the strongest colour, on which text is white.
    Shapes: matrix (k, k).
    """
    fitting = _cell_size(ax, len(matrix)) / (_VALUE_LETTERS * _LETTER)
    size = float(np.clip(fitting, *_VALUE_FONTS))
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
            fontsize=size,
        )


def name_rows_and_columns(ax: Any, names: Sequence[str] | Array, owned: bool) -> None:
    """Name as many rows as can be read, and columns too if they are few.

    owned: whether the figure was made for this picture, so that its layout may be settled.
    """
    short = [short_text(name) for name in names]
    _set_names(ax, short)
    if owned or ax.figure.canvas.figure.get_layout_engine() is not None:
        # names take room from the cells: only then is known how many fit
        settle_layout(ax)
        _set_names(ax, short)


def _set_names(ax: Any, names: list[str]) -> None:
    n_labels = len(names)
    height = size_in_points(ax)[1] / max(1, n_labels)
    step = max(1, math.ceil(_POINTS_A_NAME / height))
    size = float(np.clip(0.85 * step * height, *_FONT_SIZES))
    ax.set_yticks(range(0, n_labels, step), names[::step], fontsize=size)
    if n_labels <= _NAMES_ON_BOTH_SIDES:
        ax.set_xticks(range(0, n_labels, step), names[::step], fontsize=size, rotation=90)
    else:
        ax.set_xticks([])
