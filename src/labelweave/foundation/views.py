"""How a class asks for what floors above it make of it: a picture, the facts about it as HTML, or an answer
of a method whose rows are on a cluster.

The package's root says who makes what; nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FINDERS: dict[str, Callable[[], Callable[..., Any]]] = {}


def register(kind: str, find: Callable[[], Callable[..., Any]]) -> None:
    _FINDERS[kind] = find


def view(kind: str, *things: Any, **options: Any) -> Any:
    return _FINDERS[kind]()(*things, **options)


def html_with_facts(estimator: Any) -> str:
    """Return scikit-learn's HTML of an estimator and, once it is fitted, the facts; its ``_html_repr``."""
    from sklearn.base import BaseEstimator

    return f"{BaseEstimator._html_repr(estimator)}{view('facts', estimator)}"
