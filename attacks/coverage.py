"""Report how much of the source the tests run, and list the rest.

    make coverage

Reads the measurements of coverage.py, and stores lines, branches and the functions with gaps in
``attacks/results/coverage.json``.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.frame import write_json

_OUT = Path(__file__).with_name("results") / "coverage.json"
_PACKAGE = "src/labelweave/"


def _measured() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "coverage.json")
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(path)], check=True)
        found: dict[str, Any] = json.loads(path.read_text())
    return found


def _shares(counts: Any) -> dict[str, Any]:
    found = {}
    for kind, number in (("lines", "statements"), ("branches", "branches")):
        covered, total = counts[f"covered_{kind}"], counts[f"num_{number}"]
        found[kind] = {"run": covered, "of": total, "percent": round(100 * covered / max(total, 1), 1)}
    return found


def main() -> None:
    measured = _measured()
    gaps = []
    folders: dict[str, Counter[str]] = {}
    for path, of_file in measured["files"].items():
        name = path.removeprefix(_PACKAGE)
        folder = name.split("/")[0] if "/" in name else "."
        counts = folders.setdefault(folder, Counter())
        counts.update({key: value for key, value in of_file["summary"].items() if isinstance(value, int)})
        for function, part in of_file["functions"].items():
            missing = part["missing_lines"], part["missing_branches"]
            if any(missing):
                where = f"{name}: {function}" if function else name
                gaps.append({"where": where, "lines": len(missing[0]), "branches": len(missing[1])})
    gaps.sort(key=lambda gap: (-gap["lines"] - gap["branches"], gap["where"]))
    found = {
        **_shares(measured["totals"]),
        "folders": {folder: _shares(counts) for folder, counts in sorted(folders.items())},
        "gaps": gaps,
    }
    write_json(_OUT, found)
    print(
        f"{found['lines']['percent']} % of lines and {found['branches']['percent']} % of branches run; "
        f"{len(gaps)} functions have a gap"
    )


if __name__ == "__main__":
    main()
