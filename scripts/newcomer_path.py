"""Time a newcomer's path: from a clone of the repository to a report on a table of one's own.

    python scripts/newcomer_path.py    # 108 s on two cores on 2026-11-26: 38 of reading, 36 of installing

Steps and their seconds by the clock, in a fresh environment with no loop compiled yet: the README read as far
as its first commands at 200 words a minute, and these commands, on tickets that lie there as one's own table.
What is measured above took packages from a cache.
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
    """Give the words and the commands of the README, from its beginning to its first report."""
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
    """Walk the path in a folder that goes away, and print what each step took."""
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
