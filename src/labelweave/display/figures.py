"""New figures; matplotlib is imported when one is made."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_of_size", "settle_layout", "size_in_points"]


def axes_of_size(width: float, height: float) -> Any:
    """Make axes in a new figure.

    Parameters
    ----------
    width, height : float
        The size of the figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: install labelweave[plot].") from None
    _, ax = plt.subplots(figsize=(width, height), layout="compressed")
    return ax


def settle_layout(ax: Any) -> None:
    """Lay a figure out, so that the size of its axes is known.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes of the figure, or of a figure inside it.
    """
    ax.figure.canvas.figure.draw_without_rendering()


def size_in_points(ax: Any) -> tuple[float, float]:
    """Measure axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes.

    Returns
    -------
    tuple of (float, float)
        Width and height in points, 72 an inch.
    """
    frame = ax.get_window_extent()
    return frame.width * 72 / ax.figure.dpi, frame.height * 72 / ax.figure.dpi
