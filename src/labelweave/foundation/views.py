"""What is imported on first use: names of packages, and views that higher layers provide for classes.

Views are a picture, the facts as HTML, or a method's result on a Dask collection; the package's root
registers their providers.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
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


def names_on_use(package: str, path: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    path: its file, whose imports of the form ``name as name``, for type checkers, are the one list of names.
    """
    lines = [
        line for line in ast.walk(ast.parse(Path(path).read_bytes())) if isinstance(line, ast.ImportFrom)
    ]
    homes = {one.name: str(line.module) for line in lines for one in line.names if one.name == one.asname}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = f"{homes[name]}.{name}"
        try:
            found = import_module(place)
        except ModuleNotFoundError as error:
            if error.name != place:
                raise
            found = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)  # so that this is called once
        return found

    return find, lambda: sorted({*vars(sys.modules[package]), *homes}), sorted(homes)
