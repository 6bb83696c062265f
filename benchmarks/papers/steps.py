"""The steps of ``python -m benchmarks.papers``: commands, results files, and which tables they measure."""

import json
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.frame import RESULTS, Run, origin
from benchmarks.machine import git
from benchmarks.needed_data import SOURCES
from benchmarks.problems import DEFAULT_DATA
from benchmarks.programs import PEERS_PYTHON

_ROOT = Path(__file__).resolve().parents[2]
_OF_MACHINES = {"date", "commit", "processor", "cores", "python", "labelweave"}


@dataclass(frozen=True)
class Step:
    """A command that measures.

    command: the module and its arguments.
    record: the results file; under "papers/" it is one of ``RecordedRuns``.
    serves: the tables and figures that it measures.
    guess: CPU minutes, where the results file does not state those of all its runs.
    data: the folders of shared data that it reads, between spaces.
    of: the values that runs of the results file have if they belong to this step.
    needs_peers: whether it runs other libraries.
    """

    name: str
    command: str
    record: str
    serves: str
    guess: float
    data: str = ""
    of: dict[str, list[Any]] = field(default_factory=dict)
    needs_peers: bool = False

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)

    def runs(self) -> list[Run]:
        """Return its runs in the results file; for a file without runs, its description of the machine."""
        file = _read(self.record)
        if not self.record.startswith("papers/"):
            known = {key: file[key] for key in ("date", "commit", "processor", "cores") if key in file}
            return [{"measured": known}] if file else []
        return [
            run
            for run in file.get("runs", [])
            if all(run.get(name) in values for name, values in self.of.items())
        ]

    def table(self) -> str:
        file = _read(self.record)
        if self.record.startswith("papers/"):
            return str(import_module(self.words[0]).table(self.runs()))
        return "\n".join(file.get("table") or _lines(file))

    def origin(self) -> str:
        """Return when, where and at which commits it was measured; empty for never."""
        runs = self.runs()
        return origin(_read(self.record), runs) if runs else ""

    def minutes(self) -> float:
        """Return its CPU minutes, at least the guess: some runs may be missing."""
        seconds = [run.get("measured", {}).get("seconds") for run in self.runs()]
        return max(self.guess, sum(one or 0.0 for one in seconds) / 60.0)

    def commits(self) -> list[str]:
        """List the commits that its runs were measured at."""
        return sorted({run.get("measured", {}).get("commit", "") for run in self.runs()})

    def is_current(self) -> bool:
        """Return whether all runs were measured with the current library and command."""
        commits = self.commits()
        files = ("src", *sorted(_files(self.words[0])))
        return bool(commits) and all(_has_present_code(commit, files) for commit in commits)

    def lacks(self) -> str:
        """Describe what is missing; empty if nothing is."""
        for name in self.data.split():
            if not (DEFAULT_DATA / name).is_dir():
                return f"lacks {DEFAULT_DATA / name}: {SOURCES[name]}"
        return (
            "lacks the other libraries: make peers" if self.needs_peers and not PEERS_PYTHON.exists() else ""
        )


def _read(record: str) -> dict[str, Any]:
    path = RESULTS / f"{record}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _lines(file: dict[str, Any]) -> list[str]:
    """Write the names and values of a results file without a table, one per line."""
    shown = {
        name.replace("_", " "): _shown(value)
        for name, value in file.items()
        if isinstance(value, bool | int | float | str) and name not in _OF_MACHINES
    }
    width = max(map(len, shown), default=0)
    return [f"{name:{width}}  {value:>12}" for name, value in shown.items()]


def _shown(value: bool | float | str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.5g}"


@cache
def _files(module: str) -> frozenset[str]:
    """Return the files of a benchmark's module and of those that it imports."""
    path = Path(*module.split(".")).with_suffix(".py")
    if not (_ROOT / path).exists():
        return frozenset()
    imported = re.findall(
        r"^ *from (benchmarks[\w.]*) import", (_ROOT / path).read_text("utf-8"), re.MULTILINE
    )
    return frozenset({path.as_posix()}).union(*map(_files, imported))


@cache
def _has_present_code(commit: str, files: tuple[str, ...]) -> bool:
    if not commit or commit.endswith("-dirty") or git("status", "--porcelain", "--", *files):
        return False
    last = git("log", "-1", "--format=%h", "--", *files)
    return git("rev-list", "--count", f"{commit}..{last}") == "0"


def _read_steps() -> dict[str, Step]:
    """Read ``steps.toml``; the results file of a step is named after its module by default."""
    found = {}
    for name, told in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items():
        module = told["command"].partition(" ")[0]
        more = told | {"command": f"benchmarks.{told['command']}"}
        found[name] = Step(name, **{"record": module.replace(".", "/")} | more)
    return found


STEPS = _read_steps()
