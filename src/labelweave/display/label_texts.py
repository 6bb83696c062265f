"""Names of labels as pictures write them: short enough, and never taken for formulas."""

from __future__ import annotations

import textwrap
import unicodedata

__all__ = ["grouped_count", "legend_text", "letters_across", "short_text", "shortened", "wrapped_text"]

_LONGEST_NAME = 32
_SMALL_LETTER = 4.8  # points, the usual width of a letter of a small font
_FEWEST_LETTERS = 24  # a line
_WIDE_LETTER = 1.75  # of Chinese, Japanese and Korean, and of pictures


def shortened(name: object, longest: int = _LONGEST_NAME) -> str:
    """Shorten a name.

    name: the name; anything but text is written as text.
    Returns the name, or its beginning.
    """
    text = str(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def short_text(name: object, longest: int = _LONGEST_NAME) -> str:
    """Shorten a name, and keep matplotlib from reading formulas in it.

    name: the name; anything but text is written as text.
    """
    return shortened(name, longest).replace("$", r"\$")  # a dollar sign would begin a formula


def letters_across(text: str) -> float:
    """Measure a text in usual letters.

    Returns about how many usual letters are as wide.
    """
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)


def legend_text(name: object, note: str = "", longest: int = _LONGEST_NAME) -> str:
    """Write a name for a legend.

    longest: the most characters of the name.
    """
    text = short_text(name, longest) + (f": {note}" if note else "")
    return f" {text}" if text.startswith("_") else text  # an underscore in front would hide the entry


def grouped_count(count: float) -> str:
    """Write a number of rows, thousands apart."""
    return f"{count:,.0f}"


def wrapped_text(text: str, width: float) -> str:
    """Break a remark in small letters into lines."""
    return "\n".join(textwrap.wrap(text, max(_FEWEST_LETTERS, int(width / _SMALL_LETTER))))
