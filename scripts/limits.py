"""Measure the limited quantities, and lower the limits to the measurements.

    python scripts/limits.py            # each limit, with its measurement
    python scripts/limits.py --lower    # write tests/limits.json; never raises a limit

``tests/test_structure.py`` compares the source with ``tests/limits.json``, and the file with that of the last
commit.  Lines are those of Python files; the core is all of ``src`` except app and dask.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

from files_entered import entered, fits
from source_size import measure

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "limits.json"


def measured() -> dict[str, int]:
    """Measure everything except the fits."""
    package = ROOT / "src" / "labelweave"
    size = measure(package)
    parts = {part: sum(_under(size.files, f"{part}/")) for part in ("app", "dask")}
    beside = [path for path in package.iterdir() if path.name != "__pycache__"]
    return {
        "lines of the core": size.total - sum(parts.values()),
        "lines of app": parts["app"],
        "lines of dask": parts["dask"],
        "lines of code in src": size.code,
        "lines of tests": measure(ROOT / "tests").total,
        "lines of benchmarks and attacks": sum(
            measure(ROOT / name).total for name in ("benchmarks", "attacks")
        ),
        "modules": len(size.files),
        "folders and files on the top level": len(beside),
        "own classes above an estimator": max(len(_own_bases(kind)) for kind in _estimators()),
        "parameters of a constructor": max(len(inspect.signature(kind).parameters) for kind in _estimators()),
        "words of docs/architecture.md": len((ROOT / "docs" / "architecture.md").read_text().split()),
    }


def measured_fits() -> dict[str, int]:
    """Count the files that fits enter, and the depth of their calls."""
    found = {name: entered(fit) for name, fit in fits().items()}
    files = {f"files that a fit enters: {name}": len(files) for name, (files, _) in found.items()}
    return files | {"depth of calls in a fit": max(len(stack) for _, stack in found.values())}


def _under(files: dict[str, int], folder: str) -> list[int]:
    return [lines for name, lines in files.items() if name.startswith(folder)]


def _estimators() -> list[type]:
    import labelweave

    named = (getattr(labelweave, name) for name in labelweave.__all__)
    return [kind for kind in named if isinstance(kind, type) and hasattr(kind, "fit")]


def _own_bases(kind: type) -> list[type]:
    return [
        base
        for base in kind.__mro__[1:]
        if base.__module__.startswith("labelweave.") and not base.__module__.endswith("sklearn_compat")
    ]


def main() -> int:
    """Print the limits, or lower them."""
    limits = json.loads(FILE.read_text()) if FILE.exists() else {}
    found = measured() | measured_fits()
    if "--lower" in sys.argv[1:]:
        lower = {name: min(number, limits.get(name, number)) for name, number in found.items()}
        FILE.write_text(json.dumps(lower, indent=1) + "\n")
        return 0
    for name, number in found.items():
        print(f"{name:58}{number:8}{limits.get(name, '-'):>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
