"""Every public function, class and method of labelweave, listed from the exports of its packages."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import labelweave

_PACKAGE = Path(labelweave.__file__).parent

# what only the library makes: methods that take such are internal, not for users
_OWN_TYPES = ("FeatureMatrix", "Workers", "RawTable")
_MODEL_FILES = ("to_state", "from_state")  # contents of model files, which attacks.model_files edits


def public_names() -> dict[str, Any]:
    """Return them by name, such as ``metrics.f1_score`` or ``Taxonomy.depth``, each once."""
    found: dict[str, Any] = {}
    seen = set()
    for prefix, module in _modules():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or id(value) in seen:
                continue
            seen.add(id(value))
            found[f"{prefix}{name}"] = value
            if inspect.isclass(value):
                found |= {f"{prefix}{name}.{method}": function for method, function in _methods(value)}
    return found


def is_of_library(filename: str) -> bool:
    """Return whether a source file is labelweave's, whatever the parent folders are called."""
    return Path(filename).is_relative_to(_PACKAGE)


def _modules() -> Iterator[tuple[str, Any]]:
    yield "", labelweave
    for name in labelweave.__all__:
        if inspect.ismodule(value := getattr(labelweave, name)):
            yield f"{name}.", value


def _methods(of: type) -> Iterator[tuple[str, Any]]:
    """Return the methods of a class that labelweave defines and whose arguments users have."""
    for name in dir(of):
        value = inspect.getattr_static(of, name)
        function = getattr(value, "__func__", getattr(value, "fn", value))  # static, class, available if
        if name.startswith("_") or name in _MODEL_FILES or not inspect.isfunction(function):
            continue
        function = inspect.unwrap(function)
        annotations = " ".join(map(str, function.__annotations__.values()))
        parameters = [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]
        if not function.__module__.startswith("labelweave") or not parameters:
            continue
        if not any(own in annotations for own in _OWN_TYPES):
            yield name, function
