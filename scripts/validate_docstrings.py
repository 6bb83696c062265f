"""Check the docstrings of every public module with numpydoc; exit 1 and list what fails.

The checks and exceptions are those of ``[tool.numpydoc_validation]`` in
pyproject.toml.  Modules, classes and functions whose name starts with an
underscore are left out, and so is what a module imports from another one.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = "labelweave"


def main() -> int:
    """Validate everything; the number returned is the exit status."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    checks, excluded = set(settings["checks"]), re.compile("|".join(settings["exclude"]))
    names = [name for module in _public_modules() for name in _public_names(module)]
    failures = sorted(
        failure for name in names if not excluded.search(name) for failure in _failures(name, checks)
    )
    for path, line, text in failures:
        print(f"{path}:{line}: {text}")
    print(f"{len(names)} docstrings, {len(failures)} failures")
    return 1 if failures else 0


def _public_modules() -> Iterator[str]:
    package = importlib.import_module(_PACKAGE)
    yield _PACKAGE
    for found in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def _public_names(module_name: str) -> Iterator[str]:
    """Name a module, what it defines, and the public methods of its classes."""
    module = importlib.import_module(module_name)
    yield module_name
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module_name:
            continue
        if inspect.isfunction(value):
            yield f"{module_name}.{name}"
        elif inspect.isclass(value):
            yield f"{module_name}.{name}"
            yield from (f"{module_name}.{name}.{member}" for member in _own_members(value))


def _own_members(kind: type) -> Iterator[str]:
    """Name the public methods and properties that a class itself defines."""
    for name, value in vars(kind).items():
        function = getattr(value, "__func__", value)
        is_callable = inspect.isroutine(function) or isinstance(value, property)
        if not name.startswith("_") and is_callable and _is_written(kind, function):
            yield name


def _is_written(kind: type, function: Any) -> bool:
    """Say whether a member stands in the class's own source; enumerations and tuples get some made."""
    target = inspect.unwrap(getattr(function, "fget", None) or function)
    code = getattr(target, "__code__", None)
    return code is not None and code.co_filename == inspect.getfile(kind)


def _failures(name: str, checks: set[str]) -> Iterator[tuple[str, int, str]]:
    result = validate(name)
    path = Path(result["file"]) if result["file"] else _ROOT / "src"
    line = result["file_line"] or 1
    for code, message in result["errors"]:
        if code in checks:
            yield str(path.relative_to(_ROOT)), line, f"{code} {name}: {message}"


if __name__ == "__main__":
    sys.exit(main())
