"""What is imported on first use: names of packages, and views that higher layers provide for classes.

Views are a picture, the facts as HTML, or a method's result on a Dask collection; the package's root
registers their providers.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any, cast

_LIBRARY = __name__.partition(".")[0]
_FINDERS: dict[str, Callable[[], Callable[..., Any]]] = {}


def register(kind: str, find: Callable[[], Callable[..., Any]]) -> None:
    _FINDERS[kind] = find


def view(kind: str, *things: Any, **options: Any) -> Any:
    return _FINDERS[kind]()(*things, **options)


def html_with_facts(estimator: Any) -> str:
    """Return scikit-learn's HTML of an estimator, with facts once it is fitted, for ``_html_repr``."""
    from sklearn.base import BaseEstimator

    return f"{BaseEstimator._html_repr(estimator)}{view('facts', estimator)}"


def exported(package: str) -> dict[str, str]:
    """Return the names that a package's file imports from labelweave as they are, and their modules.

    They are read from its compiled code, also where imports stand below ``TYPE_CHECKING``: no other list of
    names is needed, nor the source.
    """
    homes, loader = {}, cast(Any, import_module(package).__loader__)
    for step, after in pairwise(dis.get_instructions(loader.get_code(package))):
        if step.opname == "IMPORT_NAME":
            module = step.argval
        elif step.opname == "IMPORT_FROM" and step.argval == after.argval and module != __name__:
            homes[step.argval] = module
    return {name: home for name, home in sorted(homes.items()) if home.partition(".")[0] == _LIBRARY}


def names_on_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that imports its exports on first use.

    Its file has them below ``TYPE_CHECKING``.
    """
    homes = exported(package)

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
