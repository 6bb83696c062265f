"""New figures; matplotlib is imported when one is made."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_of_size", "settle_layout", "size_in_points"]


def axes_of_size(width: float, height: float) -> Any:
    """Make axes in a new figure.

    width, height: the size of the figure, in inches.
    Raises ImportError if matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: install labelweave[plot].") from None
    _, ax = plt.subplots(figsize=(width, height), layout="compressed")
    return ax


def settle_layout(ax: Any) -> None:
    """Lay a figure out, so that the size of its axes is known.

    ax: axes of the figure, or of a figure inside it.
    """
    ax.figure.canvas.figure.draw_without_rendering()


def size_in_points(ax: Any) -> tuple[float, float]:
    """Measure axes.

    Returns width and height in points, 72 an inch.
    """
    frame = ax.get_window_extent()
    return frame.width * 72 / ax.figure.dpi, frame.height * 72 / ax.figure.dpi
