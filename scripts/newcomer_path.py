"""Time the path of a new user: from a clone of the repository to a report on a table.

    python scripts/newcomer_path.py    # 108 s on two cores on 2026-11-26: 38 reading, 36 installing

Steps and their wall-clock seconds, in a fresh environment without compiled loops: reading the README up to
its first commands at 200 words per minute, and these commands, on the table of tickets.  The measurement
above installed packages from a cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_WORDS_A_MINUTE = 200
_TABLES = """
from ticket_table import BLANK, Path, write_tickets
write_tickets(Path("tickets.csv"), 1200, seed=0, blank=BLANK)
write_tickets(Path("new.csv"), 600, seed=1, blank=0.0)
"""


def path() -> tuple[int, list[str]]:
    """Return the words and the commands of the README, from its beginning to its first report."""
    words, commands = 0, []
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        words += len(line.split())
        if line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
        if line.startswith("$ labelweave report"):
            break
    return words, [command for command in commands if "examples/" not in command]


def _run(command: str, folder: Path, **variables: str) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    started = time.perf_counter()
    subprocess.run(
        command, shell=True, check=True, cwd=folder, env=environment | variables, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def main() -> int:
    """Follow the path in a temporary folder, and print the duration of each step."""
    words, commands = path()
    steps = {f"{words} words read": 60.0 * words / _WORDS_A_MINUTE}
    with tempfile.TemporaryDirectory() as name:
        clone, programs = Path(name, "clone"), Path(name, "environment", "bin")
        _run(f"git clone --quiet {ROOT} {clone}", Path(name))
        steps["an environment"] = _run(f"{sys.executable} -m venv environment", Path(name))
        found = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        for command in commands:
            steps[command.partition(" --")[0]] = _run(command, clone, **found)
            if command.startswith("pip"):
                _run(f"python -c '{_TABLES}'", clone, **found, PYTHONPATH="examples")
    for step, seconds in [*steps.items(), ("together", sum(steps.values()))]:
        print(f"{step:45}{seconds:7.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
