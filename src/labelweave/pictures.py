"""How a class asks for a picture of itself, which floors above it draw.

The package's root says who draws what; nothing is imported before a picture is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["draw", "register"]

_FINDERS: dict[str, Callable[[], Callable[..., Any]]] = {}


def register(kind: str, find: Callable[[], Callable[..., Any]]) -> None:
    """Say how to find what draws a kind of thing."""
    _FINDERS[kind] = find


def draw(kind: str, thing: Any, **options: Any) -> Any:
    """Draw a thing by what is registered for its kind."""
    return _FINDERS[kind]()(thing, **options)
