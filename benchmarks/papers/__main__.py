"""Measure all tables and figures of the papers that the data allow, and write them into the papers' pages.

Each step is a separate command, run with one thread.  Its results file states for every run when, where and
at which commit it was measured and its CPU seconds; estimates are the sums of these, or those in
``benchmarks.papers.steps`` if a file has none.  ``--go-on`` skips steps whose runs were all measured with the
current library and command.  A step that fails is listed at the end and makes the exit status 1; one whose
data or programs are missing is skipped and listed.  After every step the blocks of ``docs/papers`` between
``<!-- measured: STEP -->`` and ``<!-- end -->`` are written again from the results files, and the counts of
verdicts from the pages' own tables.

Example: ``python -m benchmarks.papers --only usps satimage``.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.frame import flag, read_options, several
from benchmarks.papers.pages import write_pages
from benchmarks.papers.steps import STEPS, Step
from benchmarks.programs import threads

_ROOT = Path(__file__).resolve().parents[2]


def main(words: Sequence[str] | None = None) -> int:
    arguments = read_options(
        __doc__,
        words,
        only=several(STEPS, "these steps", metavar="NAME"),
        go_on=flag(False, "leave out steps measured with the present code"),
        list=flag(False, "say what would be run, and run nothing"),
        pages=flag(False, "write the pages from the records, and run nothing"),
    )
    steps = [STEPS[name] for name in arguments.only]
    if not arguments.pages:
        print(_listing(steps), flush=True)
    if arguments.list:
        return 0
    failed, out_of_fold = ([], []) if arguments.pages else _run_all(steps, arguments.go_on)
    for page in write_pages():
        print(f"written: {page}")
    if out_of_fold:
        print("left out, as what they need is not at hand: " + ", ".join(out_of_fold))
    if failed:
        print("failed: " + ", ".join(failed))
    return 1 if failed else 0


def _listing(steps: list[Step]) -> str:
    lines = [f"{'step':26s}{'minutes':>8s}  {'measured':40s}  for"]
    for step in steps:
        when = "with the present code" if step.is_current() else step.origin() or "never"
        lines.append(f"{step.name:26s}{step.minutes():8.0f}  {when[:40]:40s}  {step.serves}")
        lines += [f"{'':26s}{'':8s}  {lack}" for lack in [step.lacks()] if lack]
    total = sum(step.minutes() for step in steps)
    return "\n".join([*lines, f"{len(steps)} steps, about {total:,.0f} minutes"])


def _run_all(steps: list[Step], go_on: bool) -> tuple[list[str], list[str]]:
    """Run steps one after another; return the names of those that failed, and of those that were skipped."""
    failed, wanted = [], [step for step in steps if not (go_on and step.is_current())]
    out_of_fold = [step.name for step in wanted if step.lacks()]
    wanted = [step for step in wanted if not step.lacks()]
    for place, step in enumerate(wanted, 1):
        left = sum(one.minutes() for one in wanted[place - 1 :])
        print(f"\nstep {place} of {len(wanted)}, {step.name}, about {left:,.0f} minutes left", flush=True)
        begin = time.perf_counter()
        command = [sys.executable, "-m", *step.words]
        done = subprocess.run(command, env=os.environ | threads(1), cwd=_ROOT, check=False)
        minutes = (time.perf_counter() - begin) / 60.0
        how = "failed after" if done.returncode else "done in"
        print(f"{step.name}: {how} {minutes:.1f} minutes", flush=True)
        if done.returncode:
            failed.append(step.name)
        write_pages()
    return failed, out_of_fold


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted; --go-on leaves out the steps that are done.")
