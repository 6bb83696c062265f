"""Check the docstrings of every name that a public package exports; list failures and exit with status 1.

The checks and exceptions are those of ``[tool.numpydoc_validation]`` in pyproject.toml, for the exported
classes and functions, and for the public methods and properties of those classes, wherever in the package
they are defined.  Two exceptions keep each text in one place: a docstring that ends in ``see
:meth:`Other.method``` may omit parameters and returns in favor of the one it names, which must exist; and
enumerations and protocols have no parameters.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

import labelweave

_ROOT = Path(__file__).resolve().parents[1]
_POINTER = re.compile(r"see\s+:(?:meth|func|class):`([\w.]+)`")
_LEFT_TO_ANOTHER = frozenset({"PR01", "RT01"})
_UNKNOWN_LINE = 1

Failure = tuple[str, int, str]


def main() -> int:
    """Validate everything; the number returned is the exit status."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    checks, excluded = set(settings["checks"]), re.compile("|".join(settings["exclude"]))
    names = sorted({name for module in _public_modules() for name in _public_names(module)})
    failures = [failure for name in names if not excluded.search(name) for failure in _failures(name, checks)]
    for path, line, text in sorted(failures):
        print(f"{path}:{line}: {text}")
    print(f"{len(names)} docstrings checked, {len(failures)} failures")
    return 1 if failures else 0


def _public_modules() -> list[Any]:
    found = [getattr(labelweave, name) for name in labelweave.__all__]
    return [labelweave, *(value for value in found if inspect.ismodule(value))]


def _public_names(module: Any) -> Iterator[str]:
    """List the exports of a module where they are defined, and the public methods of its classes."""
    for value in (getattr(module, name) for name in module.__all__):
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{value.__module__}.{value.__qualname__}"
        if inspect.isclass(value):
            for home in (base for base in value.__mro__ if base.__module__.startswith("labelweave.")):
                yield from (f"{home.__module__}.{home.__qualname__}.{name}" for name in _own_members(home))


def _own_members(kind: type) -> Iterator[str]:
    for name, value in vars(kind).items():
        if not name.startswith("_") and _is_written_in(kind, value):
            yield name


def _is_written_in(kind: type, member: Any) -> bool:
    """Return whether a member is defined in the class's own file; enumerations and tuples generate some."""
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
    """Look up a name from where it is mentioned, and from the top."""
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
