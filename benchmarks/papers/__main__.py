"""Measure all tables and figures of the papers that the data allow, and write them into the papers' pages.

Each step is a command of its own, run with one thread.  Its results file says of every run when, where and
at which commit it was measured and how many seconds of the processor it took; estimates are the sums of
these, or what stands in ``benchmarks.papers.steps`` where a file has none.  ``--go-on`` leaves out steps
all of whose runs were measured with the library and the command as they are now.  A step that fails is
named at the end and makes the exit code 1; one whose data or programs are missing is left out and named.
After every step the blocks of ``docs/papers`` between ``<!-- measured: STEP -->`` and ``<!-- end -->`` are
written anew from the results files, and those of all items and of their words from the pages' own tables.

Example: ``python -m benchmarks.papers --only usps satimage``.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.pages import write_pages
from benchmarks.papers.steps import STEPS, Step

_ROOT = Path(__file__).resolve().parents[2]
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def main(words: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(words)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = list(STEPS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these steps")
    parser.add_argument("--go-on", action="store_true", help="leave out steps measured with the present code")
    known = parser.add_mutually_exclusive_group()
    known.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    known.add_argument(
        "--pages", action="store_true", help="write the pages from the records, and run nothing"
    )
    return parser


def _listing(steps: list[Step]) -> str:
    lines = [f"{'step':26s}{'minutes':>8s}  {'measured':40s}  for"]
    for step in steps:
        when = "with the present code" if step.is_current() else step.origin() or "never"
        lines.append(f"{step.name:26s}{step.minutes():8.0f}  {when[:40]:40s}  {step.serves}")
        lines += [f"{'':26s}{'':8s}  {lack}" for lack in [step.lacks()] if lack]
    total = sum(step.minutes() for step in steps)
    return "\n".join([*lines, f"{len(steps)} steps, about {total:,.0f} minutes"])


def _run_all(steps: list[Step], go_on: bool) -> tuple[list[str], list[str]]:
    """Run steps one after another; give the names of those that failed, and of those that were left out."""
    failed, wanted = [], [step for step in steps if not (go_on and step.is_current())]
    out_of_fold = [step.name for step in wanted if step.lacks()]
    wanted = [step for step in wanted if not step.lacks()]
    for place, step in enumerate(wanted, 1):
        left = sum(one.minutes() for one in wanted[place - 1 :])
        print(f"\nstep {place} of {len(wanted)}, {step.name}, about {left:,.0f} minutes left", flush=True)
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", *step.words], env=os.environ | _THREADS, cwd=_ROOT, check=False
        )
        minutes = (time.perf_counter() - begin) / 60.0
        print(
            f"{step.name}: {'failed after' if done.returncode else 'done in'} {minutes:.1f} minutes",
            flush=True,
        )
        if done.returncode:
            failed.append(step.name)
        write_pages()
    return failed, out_of_fold


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted; --go-on leaves out the steps that are done.")
