"""Every public function, class and method of labelweave, listed from what its packages say they offer."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import labelweave

_PACKAGE = Path(labelweave.__file__).parent

# what only the library makes: methods that take such are those of a part to its neighbor, not a user's
_OWN_TYPES = ("FeatureMatrix", "Workers", "RawTable")
_MODEL_FILES = ("to_state", "from_state")  # what model files hold, which attacks.model_files edits


def public_names() -> dict[str, Any]:
    """Give them by name, such as ``metrics.f1_score`` or ``Taxonomy.depth``, each once."""
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
    """Return whether a file of source is labelweave's, whatever the folders above the package are called."""
    return Path(filename).is_relative_to(_PACKAGE)


def _modules() -> Iterator[tuple[str, Any]]:
    yield "", labelweave
    for name in labelweave.__all__:
        if inspect.ismodule(value := getattr(labelweave, name)):
            yield f"{name}.", value


def _methods(of: type) -> Iterator[tuple[str, Any]]:
    """Give the methods of a class that labelweave defines and that take what users have."""
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
