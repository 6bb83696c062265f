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


def exported(path: str) -> dict[str, str]:
    """Return the names that a package's file imports in the form ``name as name``, and their modules.

    Type checkers read this form as an export, so that no other list of names is needed.
    """
    nodes = ast.walk(ast.parse(Path(path).read_bytes()))
    lines = [(node.module, one) for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names]
    return dict(sorted((one.name, str(module)) for module, one in lines if one.name == one.asname))


def names_on_use(package: str, path: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that imports its exports on first use.

    path: its file, where they are below ``TYPE_CHECKING``.
    """
    homes = exported(path)

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

    return find, lambda: sorted({*vars(sys.modules[package]), *homes}), list(homes)
