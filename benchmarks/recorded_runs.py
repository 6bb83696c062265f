"""The runs of a results file: measured again, continued, or shown with a note that they were recorded."""

import argparse
import time
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from benchmarks.frame import read_json, write_json
from benchmarks.machine import describe_machine

Run = dict[str, Any]


class RecordedRuns:
    """What a call measures, and the earlier runs in its results file.

    A run is a dictionary of its case, its results, and under "measured" when, where, at which commit and in
    how many CPU seconds.  Measured runs replace recorded ones of the same case; the file is written after
    every run.

    arguments: the result of ``read_options`` called with ``records``.
    **facts: further content of the file, such as the paper's figures.
    runs: those that this call shows: the measured ones, and with ``--go-on`` or ``--show-recorded`` those of
    the file.
    known: all runs in the file.
    measures: whether anything is to be measured.
    """

    def __init__(self, arguments: argparse.Namespace, **facts: Any) -> None:
        self._out, self._facts = arguments.out, facts
        self._file: dict[str, Any] = read_json(self._out) or {"runs": []}
        self.known: list[Run] = list(self._file["runs"])
        self.measures = not arguments.show_recorded
        self.runs: list[Run] = list(self.known) if arguments.go_on or arguments.show_recorded else []
        self._recorded = list(self.runs)
        self._begin = time.process_time()

    def wants(self, case: Run) -> bool:
        """Return whether a case is to be measured.

        case: the values that its run would have.
        """
        return self.measures and self.find(case) is None

    def missing(self, **choices: Iterable[Any]) -> Iterator[Run]:
        """Yield the cases of all combinations of choices that are to be measured."""
        cases = (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))
        return filter(self.wants, cases)

    def find(self, case: Run) -> Run | None:
        """Find the run of a case among those that this call shows.

        case: the values that the run has.
        Returns: the first one, or None.
        """
        return next((run for run in self.runs if case.items() <= run.items()), None)

    def add(self, case: Run, found: Run) -> Run:
        """Add a measurement, and write the file.

        found: the results.
        """
        machine = describe_machine()
        measured = {key: machine[key] for key in ("date", "commit", "processor", "cores")}
        seconds, self._begin = time.process_time() - self._begin, time.process_time()
        run = case | found | {"measured": measured | {"seconds": round(seconds, 1)}}
        self.runs.append(run)
        self.known = [*(one for one in self.known if not case.items() <= one.items()), run]
        write_json(self._out, {**machine, **self._facts, "runs": self.known})
        return run

    def show(self, text: str) -> None:
        """Print lines, each with the note of recorded runs if there are any."""
        share = "" if len(self._recorded) == len(self.runs) else "partly "
        ending = mark(self._file, self._recorded, share) if self._recorded else ""
        for line in text.splitlines():
            print(line + ending, flush=True)


def mark(file: dict[str, Any], runs: list[Run], share: str = "") -> str:
    """Return the end of a line that shows recorded runs.

    file: the content of the results file.
    runs: some of its runs.
    share: "partly " if the line shows others too.
    Returns: their origin, and that a commit is not recorded if one is not.
    """
    commits = [run.get("measured", {}).get("commit") for run in runs]
    rest = "" if all(commits) else "/commit not recorded" if any(commits) else ", commit not recorded"
    return f"  [{share}recorded {origin(file, runs)}{rest}]"


def origin(file: dict[str, Any], runs: list[Run]) -> str:
    """Return when, where and at which commit runs were measured.

    file: the content of the results file.
    runs: some of its runs.
    Returns: dates, processors, cores and commits, several separated by slashes.
    """
    usual = {key: file[key] for key in ("processor", "cores") if key in file}
    usual |= {"date": "before 2026-11-24", "commit": ""}
    parts = [usual | run.get("measured", {}) for run in runs]
    machines = [
        f"{part['processor']}, {part['cores']} cores" if "processor" in part else "machine not recorded"
        for part in parts
    ]
    dates, commits = ([str(part[key]) for part in parts] for key in ("date", "commit"))
    return ", ".join("/".join(sorted(set(said) - {""})) for said in (dates, machines, commits) if any(said))
