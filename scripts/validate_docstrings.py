"""Check the docstrings of every public module with numpydoc; exit 1 and list what fails.

The checks and exceptions are those of ``[tool.numpydoc_validation]`` in
pyproject.toml, for all classes, functions, methods and properties whose names
do not start with an underscore (ruff checks that modules have docstrings).
Two exceptions keep one text in one place: a docstring that ends in
``see :meth:`Other.method``` may leave parameters and returns to the one it names,
which must exist; and enumerations and protocols have no parameters of their own.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = "labelweave"
_POINTER = re.compile(r"see :(?:meth|func|class):`([\w.]+)`")
_LEFT_TO_ANOTHER = frozenset({"PR01", "RT01"})
_UNKNOWN_LINE = 1

Failure = tuple[str, int, str]


def main() -> int:
    """Validate everything; the number returned is the exit status."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    checks, excluded = set(settings["checks"]), re.compile("|".join(settings["exclude"]))
    names = [name for module in _public_modules() for name in _public_names(module)]
    failures = [failure for name in names if not excluded.search(name) for failure in _failures(name, checks)]
    for path, line, text in sorted(failures):
        print(f"{path}:{line}: {text}")
    print(f"{len(names)} docstrings checked, {len(failures)} failures")
    return 1 if failures else 0


def _public_modules() -> Iterator[str]:
    package = importlib.import_module(_PACKAGE)
    yield _PACKAGE
    for found in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def _public_names(module_name: str) -> Iterator[str]:
    """Name what a module defines itself, and the public methods of its classes."""
    for name, value in vars(importlib.import_module(module_name)).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module_name:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{module_name}.{name}"
        if inspect.isclass(value):
            yield from (f"{module_name}.{name}.{member}" for member in _own_members(value))


def _own_members(kind: type) -> Iterator[str]:
    for name, value in vars(kind).items():
        if not name.startswith("_") and _is_written_in(kind, value):
            yield name


def _is_written_in(kind: type, member: Any) -> bool:
    """Say whether a member is code of the class's own file; enumerations and tuples get some made."""
    for wrapper in ("__func__", "fget", "func"):
        member = getattr(member, wrapper, None) or member
    code = getattr(inspect.unwrap(member) if callable(member) else None, "__code__", None)
    return code is not None and code.co_filename == inspect.getfile(kind)


def _failures(name: str, checks: set[str]) -> Iterator[Failure]:
    result = validate(name)
    path = Path(result["file"] or _ROOT).relative_to(_ROOT)
    line = result["file_line"] or _UNKNOWN_LINE
    pointer = _POINTER.search(result["docstring"] or "")
    if pointer is not None and not _found(pointer[1], name):
        yield str(path), line, f"{name}: points to {pointer[1]}, which does not exist"
    waived = _LEFT_TO_ANOTHER if pointer is not None or _has_no_parameters(name) else frozenset()
    for code, message in result["errors"]:
        if code in checks - waived:
            yield str(path), line, f"{code} {name}: {message}"


def _found(target: str, seen_from: str) -> bool:
    """Look a name up from where it is mentioned, and from the top."""
    parts = seen_from.split(".")
    scopes = [".".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
    return any(_loaded(path) is not None for path in [*(f"{scope}.{target}" for scope in scopes), target])


def _loaded(path: str) -> Any:
    """Load an object by its dotted path; None if there is none."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None


def _has_no_parameters(name: str) -> bool:
    value = _loaded(name)
    return inspect.isclass(value) and (issubclass(value, Enum) or getattr(value, "_is_protocol", False))


if __name__ == "__main__":
    sys.exit(main())
