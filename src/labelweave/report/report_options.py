"""What a report says besides, and how much of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ReportOptions"]


@dataclass(frozen=True)
class ReportOptions:
    """What a report says besides, and how much of it.

    Parameters
    ----------
    title : str, default="Model report"
        The heading of the page.
    facts : mapping of str to str, default={}
        Further facts about model and data, such as the names of their files.
    weakest : int, default=20
        The most weak labels to look into.
    examples : int, default=6
        The most rows to show with all their labels.
    unknown_labels : {"error", "ignore"}, default="error"
        What to do with labels or classes that the model does not know.

    Raises
    ------
    ValueError
        If a number is negative, or ``unknown_labels`` something else.
    """

    title: str = "Model report"
    facts: Mapping[str, str] = field(default_factory=dict)
    weakest: int = 20
    examples: int = 6
    unknown_labels: Literal["error", "ignore"] = "error"

    def __post_init__(self) -> None:
        for name in ("weakest", "examples"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        if self.unknown_labels not in ("error", "ignore"):
            raise ValueError(f"unknown_labels is {self.unknown_labels!r}; it is 'error' or 'ignore'.")
