"""Run attackers, keep what they said, and write the page about it, docs/trust.md.

    python -m attacks.record certificates soak     # runs these; all of them without names
    python -m attacks.record --page                # writes the page anew from what was kept
    python -m attacks.record certificates --arguments "--estimators low-rank" --part factors  # beside others

Runs are kept in ``attacks/results``: the command, when and of what version it ran, for how long, how it
ended, and its last lines.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.frame import command, flag, without_name, write_json

import labelweave
from attacks import coverage, mutants
from attacks.peers import LIBRARIES, OUTCOMES

_RESULTS = Path(__file__).with_name("results")
_PAGE = Path(__file__).resolve().parents[1] / "docs" / "trust.md"
_LAST_LINES = 12
_FEW = 3  # runs of an attacker whose lines stand on the page; of more only the last one of each does
# the arguments of every attacker, and what its trials are
ATTACKERS = {
    "certificates": (
        "--problems 500",
        "Random small problems of the estimators named below (label trees are not among them): what duality "
        "gaps claim, against an independent solver (CLARABEL).  Where gaps are shares of the objective, "
        "thirteen fits take as many rounds as where they were shares of 1 below it, and 0.86 to 1.10 "
        "of the seconds (`python -m benchmarks.before_after`).",
    ),
    "sparse_arrays": (
        "--trials 100000",
        "Arrays with broken structure, index types, byte orders and alignments, into all public functions, "
        "in processes that may crash.  The checks take 0.2 to 0.7 % of a prediction "
        "(`python -m benchmarks.check_cost`).",
    ),
    "bounds": (
        "",
        "Every compiled loop on short problems, its arrays with bounds checks (`make boundscheck`).",
    ),
    "data_files": (
        "--files 4000",
        "Broken data files of every format: whole results or one sentence, bounded time and memory.",
    ),
    "model_files": (
        "--seed 1000000 --files 1000000 --progress attacks/results/model_files_counts.json",
        "Model files of every class, pipelines of scikit-learn's steps and (one in fifty) checkpoints of "
        "fits, edited in their structure, their checksums made right again: refused in a sentence, or finite "
        "scores of the right shape, in 10 s of the processor and within the memory that a file may ask for.  "
        "A first million (seeds 0 to 999,999, 2026-11-23) found nine that were neither: parts of other "
        "models (5), offsets for probabilities (1), a numeric column 1e62 standard deviations away (1), "
        "checkpoints with an end of the wrong kind or without a record (2).  Eight are refused now, with "
        "tests; the column is refused by place in a sentence when it predicts, and rows are tried within the "
        "training scale.  One more was stopped from outside, and the outcomes of 166 were lost with it: run "
        "again, they did no harm (--seed 376500 --files 167).  What follows is of other seeds, of "
        "which three waited for a processor for 120 s at a load of 30, and 569 outcomes were lost with them: "
        "run again, they did no harm (--seed 1597900 --files 1000).",
    ),
    "killed_fits": (
        "--fits 100",
        "`kill -9` at random moments: fits go on from their checkpoints to the same bits.",
    ),
    "killed_workers": (
        "--runs 20",
        "`kill -9` to half of the workers of Dask, or to one of them five times, at random moments: "
        "the same bits, within the tolerance.  Workers are started again by the attacker, as managers of "
        "clusters do: LocalCluster gives them up that are killed while they start.  A worker that stood "
        "still for ten seconds, and a killed client whose fit went on from its checkpoint, were tried once "
        "each (`--others 1`), with the same bits; workers with less memory than rows take died, and the fit "
        "said that no worker was connected.",
    ),
    "killed_commands": (
        "--runs 60",
        "SIGINT, SIGTERM and SIGKILL to commands: files are whole, or as they were.",
    ),
    "processors": (
        "",
        "Vector code of older processors and other numbers of threads.  Promised: the same bits for any "
        "number of threads; on other processors a model file predicts scores that differ by at most 8 units "
        "of the last place of what they are added up from, the absolute values of their terms, and "
        "certificates hold on both.  Where terms cancel, as those of learned kernel models do, that is more "
        "units of the score itself: a thousand, or 3e-13 of it, where they add up to 800 times the largest.  "
        "New fits promise no such thing: they end anywhere within their tolerance.",
    ),
    "stress": (
        "--minutes 5",
        "Threads, forks, joblib, asyncio and pytest-xdist at the same time: the same bits.",
    ),
    "soak": ("--fits 10000", "Fits, saves and loads in one process, whose memory stays as it was."),
    "peers": (
        "--model-files 100",
        "The same hostile inputs and broken model files for this library and its peers.",
    ),
}
_SETTINGS = {
    "bounds": {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": ".numba-boundscheck"},
    "stress": {"OPENBLAS_NUM_THREADS": "1"},
}


def run(name: str, arguments: str | None, part: str | None = None) -> None:
    """Run an attacker and keep what it said; under the name of a part beside other runs of it."""
    words = shlex.split(ATTACKERS[name][0] if arguments is None else arguments)
    words += ["--out", str(_RESULTS / "peer_trials.json")] if name == "peers" else []
    command = _command(name, shlex.join(words[: len(words) - 2 * (name == "peers")]))
    print(command, flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", f"attacks.{name}", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | _SETTINGS.get(name, {}),
        check=False,
    )
    said = done.stdout.strip().splitlines()[-_LAST_LINES:]
    print(*said, sep="\n", flush=True)
    kept = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": labelweave.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "seconds": round(time.monotonic() - started),
        "exit": done.returncode,
        "said": said,
    }
    write_json(_RESULTS / (f"{name}.json" if part is None else f"{name}.{part}.json"), kept)


def _command(name: str, arguments: str) -> str:
    settings = [f"{key}={value}" for key, value in _SETTINGS.get(name, {}).items()]
    return " ".join([*settings, "python -m", f"attacks.{name}", arguments]).strip()


def page() -> str:
    parts = [_TOP]
    for name, (_, what) in ATTACKERS.items():
        parts.append(f"## {name.replace('_', ' ').capitalize()}\n\n{what}\n")
        kept = [_RESULTS / f"{name}.json", *sorted(_RESULTS.glob(f"{name}.*.json"))]
        runs = [json.loads(place.read_text()) for place in kept if place.exists()]
        parts += _said_in_short(runs) if len(runs) > _FEW else [_said(name, one) for one in runs]
        parts += [] if runs else ["Not run yet.\n"]
    parts += [coverage.section(), mutants.section()]
    trials = _RESULTS / "peer_trials.json"
    if trials.exists():
        parts.append(_peer_table(json.loads(trials.read_text())["trials"]))
    parts.append(_LIMITS)
    return "\n".join(parts)


def _said_in_short(runs: list[dict[str, Any]]) -> list[str]:
    """Write the last line of every run, and all that those said which ended otherwise than they should."""
    lines = ["| run | day | seconds | its last line |", "|---|---|---|---|"]
    for one in runs:
        said = "; ".join(one["said"] if one["exit"] else one["said"][-1:])
        lines.append(f"| `{one['command']}` | {one['date']} | {one['seconds']} | {said} |")
    return ["\n".join([*lines, ""])]


def _said(name: str, kept: dict[str, Any]) -> str:
    is_stopped = kept["exit"] < 0  # by a signal
    end = (
        ", stopped after what is said below"
        if is_stopped
        else f", exit code {kept['exit']}" * bool(kept["exit"])
    )
    usual = _command(name, ATTACKERS[name][0])
    whole = "" if kept["command"].startswith(usual) else f" (the full run is `{usual}`)"
    last = ", its last lines" * (len(kept["said"]) >= _LAST_LINES)
    head = f"`{kept['command']}`, {kept['date']}, {kept['seconds']} s{end}{whole}{last}:\n"
    return "\n".join([head, "```text", *kept["said"], "```", ""])


def _peer_table(trials: dict[str, list[dict[str, Any]]]) -> str:
    """Count what came of trials, a line a library: hostile inputs, then model files."""
    lines = []
    for words, is_file in (("Hostile inputs", False), ("Broken model files", True)):
        lines += [f"| {words} | tried | {' | '.join(_WORDS[outcome] for outcome in OUTCOMES)} |"]
        lines += ["|---|" + "---:|" * (len(OUTCOMES) + 1)]
        for library in LIBRARIES:
            own = [trial for trial in trials.get(library, []) if (trial["case"] == "model file") == is_file]
            counts = Counter(trial["outcome"] for trial in own)
            cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
            lines.append(f"| {library} | {len(own)} | {cells} |")
        lines.append("")
    return "\n".join(lines)


_WORDS = {
    "refused": "refused, and says why", "unclear": "another error", "answers": "answers all the same",
    "crash": "crash", "hang": "no end in 20 s", "memory": "over 8 GiB", "unharmed": "sound, or unharmed",
}  # fmt: skip
_TOP = """# What was tried to break it

Attackers are part of the project, in `attacks/`; small runs of them are in the test suite, with tests that
they find what they look for: false certificates, crashes, hangs, other bits, bare errors (the attack of the
peers has no such test). This page is written from stored results of the runs that it names
(`python -m attacks.record`). A run that finds a violation lists it here and ends with exit code 1.
[What is known not to hold](#what-is-known-not-to-hold) stands at the end.
"""
_LIMITS = """\
The libraries are fitted on the same rows, with their defaults. Inputs are those that a data pipeline makes
by mistake: NaN, infinities and 1e300, too few rows, indices out of range and broken CSR arrays, empty
labels, other widths in prediction, cut and hostile files. A model file is broken by bits flipped, cut,
lengthened or overwritten at random, each library's in its own format. "Answers all the same" is a result
for an input that has none, or other scores than the file was written with: nobody is told. Where a library
takes no such input, it was not tried.

## What is known not to hold

- **A model file that is shortened in place while it is mapped** ends the process on POSIX systems (SIGBUS):
  an error that a program could catch needs a handler in C there. Windows does not let mapped files be
  shortened. `load(path, mmap=False)` reads the file once and is not concerned.
- **A fork beside fits in other threads**, where OpenBLAS has more than one thread: OpenBLAS ends its threads
  at a fork, and other bits and errors were met. A smaller number of threads set at the fork does not help,
  since the threads exist. Set `OPENBLAS_NUM_THREADS=1` before Python starts, or start processes by spawn, as
  joblib does.
- **Checkpoints** are checked to be states of the fit at hand, in kind, shape, type and range. That their
  numbers are those of a run on these data is not checked: who may write them can change what a fit ends
  with. Keep them where only you can write.
- **Hyper-parameters, graphs and thresholds between processors**: rounding can turn a choice that is close.
"""


@command(
    names=without_name([], choices=[[], *ATTACKERS]),
    arguments=flag(help="for the attacker instead of its usual ones"),
    part=flag(help="keep the run under this name, beside others of the attacker"),
    page=flag(False, "run nothing"),
)
def main(chosen: Any) -> None:
    if not chosen.page:
        for name in chosen.names or ATTACKERS:
            run(name, chosen.arguments, chosen.part)
    _PAGE.write_text(page())
    print(f"written: {_PAGE.name}")
