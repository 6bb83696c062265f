"""New figures; matplotlib is imported when one is made."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_of_size", "settle_layout"]


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
