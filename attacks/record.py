"""Run attacks, store their output, and write the tables of docs/trust.md between its marks.

    python -m attacks.record certificates soak     # run these; without names all of them
    python -m attacks.record --page                # write the tables again from the stored output
    python -m attacks.record certificates --arguments "--estimators low-rank" --part factors  # a further run

Runs are stored in ``attacks/results``: the machine, date and commit, the command and its duration, how it
ended, and its last lines.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.frame import command, flag, read_json, save, without_name

from attacks.peers import LIBRARIES, OUTCOMES

_RESULTS = Path(__file__).with_name("results")
_PAGE = Path(__file__).resolve().parents[1] / "docs" / "trust.md"
_LAST_LINES = 12
_BLOCK = re.compile(r"(<!-- recorded: (.+?) -->\n).*?(?=<!-- end -->)", re.DOTALL)
ATTACKERS = {  # with their usual arguments
    "certificates": "--problems 500",
    "sparse_arrays": "--trials 100000",
    "bounds": "",
    "data_files": "--files 4000",
    "model_files": "--seed 1000000 --files 1000000 --progress attacks/results/model_files_counts.json",
    "killed_fits": "--fits 100",
    "killed_workers": "--runs 20",
    "killed_commands": "--runs 60",
    "processors": "",
    "stress": "--minutes 5",
    "soak": "--fits 10000",
    "peers": "--model-files 100 --out attacks/results/peer_trials.json",
}
_SETTINGS = {
    "bounds": {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": ".numba-boundscheck"},
    "stress": {"OPENBLAS_NUM_THREADS": "1"},
}


def run(name: str, arguments: str | None, part: str | None = None) -> None:
    """Run an attack and store its output; with the name of a part, next to its other runs."""
    words = shlex.split(ATTACKERS[name] if arguments is None else arguments)
    settings = _SETTINGS.get(name, {})
    command = shlex.join([*map("=".join, settings.items()), "python", "-m", f"attacks.{name}", *words])
    print(command, flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", f"attacks.{name}", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | settings,
        check=False,
    )
    said = done.stdout.strip().splitlines()[-_LAST_LINES:]
    print(*said, sep="\n", flush=True)
    kept = {
        "command": command,
        "seconds": round(time.monotonic() - started),
        "exit": done.returncode,
        "said": said,
    }
    save(_RESULTS / (f"{name}.json" if part is None else f"{name}.{part}.json"), kept)


def with_tables(page: str) -> str:
    """Write the tables of a page again, each between its marks."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_table(block[2])}", page)


def _table(name: str) -> str:
    """Write a line per stored run: its last line, or all of them if it failed; or the tables of peers."""
    if name != "runs":
        return _peer_table(read_json(_RESULTS / "peer_trials.json")["trials"])
    lines = ["| run | date | seconds | result |", "|---|---|---:|---|"]
    for name in (name for name in ATTACKERS if name != "peers"):  # which have separate tables
        places = [_RESULTS / f"{name}.json", *sorted(_RESULTS.glob(f"{name}.*.json"))]
        lines += [_run_line(read_json(place)) for place in places if place.exists()]
    return "\n".join([*lines, ""])


def _run_line(one: dict[str, Any]) -> str:
    said = "; ".join(one["said"] if one["exit"] else one["said"][-1:])
    return f"| `{one['command']}` | {one['date']} | {one['seconds']:,} | {said} |"


def _peer_table(trials: dict[str, list[dict[str, Any]]]) -> str:
    """Count the outcomes of trials, one line per library: hostile inputs, then model files."""
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
    return "\n".join(lines[:-1]) + "\n"


_WORDS = {
    "refused": "refused with a reason", "unclear": "another error", "answers": "wrong answer",
    "crash": "crash", "hang": "no end in 20 s", "memory": "over 8 GiB", "unharmed": "harmless",
}  # fmt: skip


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
    _PAGE.write_text(with_tables(_PAGE.read_text()))
    print(f"written: {_PAGE.name}")
