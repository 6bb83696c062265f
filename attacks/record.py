"""Run attackers, keep what they said, and write the page about it, docs/trust.md.

    python -m attacks.record certificates soak     # runs these; all of them without names
    python -m attacks.record --page                # writes the page anew from what was kept

Runs are kept in ``attacks/results``: the command, when and of what version it ran, for how long, how it
ended, and its last lines.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.results_file import write_json

import labelweave
from attacks.peers import LIBRARIES, OUTCOMES

_RESULTS = Path(__file__).with_name("results")
_PAGE = Path(__file__).resolve().parents[1] / "docs" / "trust.md"
_LAST_LINES = 12
# the arguments of every attacker, and what its trials are
ATTACKERS = {
    "certificates": (
        "--problems 500",
        "Random small problems of every estimator: what duality gaps claim, against an independent solver "
        "(CLARABEL).",
    ),
    "sparse_arrays": (
        "--trials 100000",
        "Arrays with broken structure, index types, byte orders and alignments, into all public functions, "
        "in processes that may crash.",
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
        "--files 100000",
        "Model files of every class, edited in their structure, their checksums made right again: refused in "
        "a sentence, or finite scores of the right shape.",
    ),
    "killed_fits": (
        "--fits 100",
        "`kill -9` at random moments: fits go on from their checkpoints to the same bits.",
    ),
    "killed_commands": (
        "--runs 60",
        "SIGINT, SIGTERM and SIGKILL to commands: files are whole, or as they were.",
    ),
    "processors": (
        "",
        "Vector code of older processors and other numbers of threads: the same bits, or rounding.",
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
_BOUNDS = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": ".numba-boundscheck"}


def run(name: str, arguments: str | None) -> None:
    """Run an attacker and keep what it said."""
    words = (ATTACKERS[name][0] if arguments is None else arguments).split()
    words += ["--out", str(_RESULTS / "peer_trials.json")] if name == "peers" else []
    surroundings = os.environ | (_BOUNDS if name == "bounds" else {})
    print(f"{name}: python -m attacks.{name} {' '.join(words)}", flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", f"attacks.{name}", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings,
        check=False,
    )
    said = done.stdout.strip().splitlines()[-_LAST_LINES:]
    print(*said, sep="\n", flush=True)
    kept = {
        "command": " ".join(["python -m", f"attacks.{name}", *words[: len(words) - 2 * (name == "peers")]]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": labelweave.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "seconds": round(time.monotonic() - started),
        "exit": done.returncode,
        "said": said,
    }
    write_json(_RESULTS / f"{name}.json", kept)


def page() -> str:
    """Write the page from what was kept."""
    parts = [_TOP]
    for name, (_, what) in ATTACKERS.items():
        parts.append(f"## {name.replace('_', ' ').capitalize()}\n\n{what}\n")
        place = _RESULTS / f"{name}.json"
        if not place.exists():
            parts.append("Not run yet.\n")
            continue
        kept = json.loads(place.read_text())
        end = "" if kept["exit"] == 0 else f", exit code {kept['exit']}"
        parts.append(f"`{kept['command']}`, {kept['date']}, {kept['seconds']} s{end}:\n")
        parts.append("\n".join(["```text", *kept["said"], "```", ""]))
    trials = _RESULTS / "peer_trials.json"
    if trials.exists():
        parts.append(_peer_table(json.loads(trials.read_text())["trials"]))
    return "\n".join(parts)


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

Attackers are part of the project, in `attacks/`; small runs of them are in the test suite. This page is
written from stored results of the runs that it names (`python -m attacks.record`).
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *ATTACKERS], default=[])
    parser.add_argument("--arguments", help="for the attacker instead of its usual ones")
    parser.add_argument("--page", action="store_true", help="run nothing")
    chosen = parser.parse_args()
    if not chosen.page:
        for name in chosen.names or ATTACKERS:
            run(name, chosen.arguments)
    _PAGE.write_text(page())
    print(f"written: {_PAGE.name}")


if __name__ == "__main__":
    main()
