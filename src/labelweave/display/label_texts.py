"""Names of labels as matplotlib writes them: short enough, and never taken for formulas."""

from __future__ import annotations

__all__ = ["grouped_count", "legend_text", "short_text"]

_LONGEST_NAME = 32


def short_text(name: object, longest: int = _LONGEST_NAME) -> str:
    """Shorten a name, and keep matplotlib from reading formulas in it.

    Parameters
    ----------
    name : object
        The name; anything but text is written as text.
    longest : int, default=32
        The most characters.

    Returns
    -------
    str
        The text to draw.
    """
    text = str(name)
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return short.replace("$", r"\$")  # a dollar sign would begin a formula


def legend_text(name: object, note: str = "", longest: int = _LONGEST_NAME) -> str:
    """Write a name for a legend.

    Parameters
    ----------
    name : object
        The name.
    note : str, default=""
        What stands after it.
    longest : int, default=32
        The most characters of the name.

    Returns
    -------
    str
        The text to draw.
    """
    text = short_text(name, longest) + (f": {note}" if note else "")
    return f" {text}" if text.startswith("_") else text  # an underscore in front would hide the entry


def grouped_count(count: float) -> str:
    """Write a number of rows, thousands apart.

    Parameters
    ----------
    count : float
        The number.

    Returns
    -------
    str
        The text.
    """
    return f"{count:,.0f}"
