"""The runs of a results file: measured anew, gone on with, or shown as they were recorded, which is said."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.results_file import write_json

__all__ = ["RecordedRuns", "Run", "mark", "origin"]

Run = dict[str, Any]


class RecordedRuns:
    """What a call measures, and what its results file has of earlier ones.

    A run is a dictionary of what it is of (its case), what was found, and under "measured" when, where, at
    which commit and in how many seconds of the processor.  Measured runs take the places of
    recorded ones of the same case; the file is written after every run.

    Parameters
    ----------
    out : Path
        The results file, a dictionary that has ``runs``.
    arguments : argparse.Namespace
        That has the options of :meth:`add_options`.
    **facts : object
        What the file says besides, such as the paper's figures.

    Attributes
    ----------
    runs : list of dict
        Those that this call shows: the measured ones, and with ``--go-on`` or ``--show-recorded`` those of
        the file.
    known : list of dict
        All that the file has.
    measures : bool
        Whether anything is to be measured.
    """

    def __init__(self, out: Path, arguments: argparse.Namespace, **facts: Any) -> None:
        self._out, self._facts = out, facts
        self._file: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"runs": []}
        self.known: list[Run] = list(self._file["runs"])
        self.measures = not arguments.show_recorded
        self.runs: list[Run] = list(self.known) if arguments.go_on or arguments.show_recorded else []
        self._recorded = list(self.runs)
        self._begin = time.process_time()

    @staticmethod
    def add_options(parser: argparse.ArgumentParser, out: Path | None) -> None:
        """Add ``--out``, ``--go-on`` and ``--show-recorded``.

        Parameters
        ----------
        parser : argparse.ArgumentParser
            The parser, changed.
        out : Path or None
            The results file by default.
        """
        parser.add_argument("--out", type=Path, default=out, help="the results file")
        known = parser.add_mutually_exclusive_group()
        known.add_argument("--go-on", action="store_true", help="measure only what the results file lacks")
        known.add_argument("--show-recorded", action="store_true", help="measure nothing; show the file")

    def wants(self, case: Run) -> bool:
        """Say whether a case is to be measured.

        Parameters
        ----------
        case : dict
            What its run would have.
        """
        return self.measures and self.find(case) is None

    def find(self, case: Run) -> Run | None:
        """Find the run of a case among those that this call shows.

        Parameters
        ----------
        case : dict
            What the run has.

        Returns
        -------
        dict or None
            The first one.
        """
        return next((run for run in self.runs if case.items() <= run.items()), None)

    def add(self, case: Run, found: Run) -> Run:
        """Take in what was measured, and write the file.

        Parameters
        ----------
        case : dict
            What the run is of.
        found : dict
            What came out.

        Returns
        -------
        dict
            The run.
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
        """Print lines, each with the mark of recorded runs if there are any.

        Parameters
        ----------
        text : str
            The lines.
        """
        share = "" if len(self._recorded) == len(self.runs) else "partly "
        ending = mark(self._file, self._recorded, share) if self._recorded else ""
        for line in text.splitlines():
            print(line + ending, flush=True)


def mark(file: dict[str, Any], runs: list[Run], share: str = "") -> str:
    """Give the end of a line that shows recorded runs.

    Parameters
    ----------
    file : dict
        What the results file has.
    runs : list of dict
        Some of its runs.
    share : str
        "partly " where the line shows others too.

    Returns
    -------
    str
        Where they come from, and that a commit is not recorded if one is not.
    """
    commits = [run.get("measured", {}).get("commit") for run in runs]
    rest = "" if all(commits) else "/commit not recorded" if any(commits) else ", commit not recorded"
    return f"  [{share}recorded {origin(file, runs)}{rest}]"


def origin(file: dict[str, Any], runs: list[Run]) -> str:
    """Say when, where and of which commit runs are.

    Parameters
    ----------
    file : dict
        What the results file has.
    runs : list of dict
        Some of its runs.

    Returns
    -------
    str
        Dates, processors, cores and commits, where several are, between slashes.
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
