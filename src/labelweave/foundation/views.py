"""Views that higher layers provide for classes: a picture, the facts as HTML, or a method's result
on a Dask collection.

The package's root registers the providers; nothing is imported before it is needed.
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
    """Return scikit-learn's HTML of an estimator, with facts once it is fitted, for ``_html_repr``."""
    from sklearn.base import BaseEstimator

    return f"{BaseEstimator._html_repr(estimator)}{view('facts', estimator)}"
