"""Interrupt and kill commands at random moments; files are complete or absent, and nothing else remains.

    python -m attacks.killed_commands --runs 60

Every command is a separate process that writes to a file, which may already exist.  It gets SIGINT, SIGTERM
or SIGKILL at a random moment of its run time.  Afterwards the file must be the earlier one or a complete new
one; an interrupted fit may have written the best model so far.  An interrupted command reports this in one
line and exits with status 130, without a traceback once it has begun.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.frame import command, flag, several

import labelweave
from labelweave.datasets import LabeledData, make_text_like, write_xmc
from labelweave.model_files import ModelFileError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_OLD = b"what was there before"
_STARTING = "labelweave/app/cli/program.py"  # appears in tracebacks of failures after the imports


class Command(NamedTuple):
    """A command and the file that it writes."""

    words: tuple[str, ...]
    out: str

    def start(self, folder: Path) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "labelweave", *self.words, self.out]
        return subprocess.Popen(
            words, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            preexec_fn=_notice_interrupts,  # noqa: PLW1509, no threads run here
        )  # fmt: skip


def _notice_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which background jobs of a shell ignore and pass on


COMMANDS = {
    "fit": Command(("fit", "d.txt", "--tol", "1e-7", "--out"), "fitted.lw"),
    "predict": Command(("predict", "m.lw", "d.txt", "--out"), "p.jsonl"),
    "predict a table": Command(("predict", "m.lw", "d.txt", "--output-format", "tsv", "--out"), "p.tsv"),
    "convert": Command(("convert", "d.txt"), "d.svm"),
    "report": Command(("report", "m.lw", "d.txt", "--out"), "r.html"),
}


class Whole(NamedTuple):
    """The output of an undisturbed command, and its run time."""

    content: bytes
    seconds: float


def prepare(folder: Path, names: Iterable[str], n_rows: int = 1500) -> dict[str, Whole]:
    """Write data and, where a command reads one, a model, and run the commands once."""
    data = make_text_like(n_rows, 200, 8)
    write_xmc(LabeledData(data.X, data.Y), folder / "d.txt")
    commands = {name: COMMANDS[name] for name in names}
    if any("m.lw" in command.words for command in commands.values()):
        made = Command(("fit", "d.txt", "--model", "max-margin", "--quiet", "--out"), "m.lw").start(folder)
        made.communicate()
    return {name: _whole(command, folder) for name, command in commands.items()}


def _whole(command: Command, folder: Path) -> Whole:
    begin, process = time.perf_counter(), command.start(folder)
    said = process.communicate()[1]
    if process.returncode:
        raise RuntimeError(f"{' '.join(command.words)} ended with {process.returncode}: {said}")
    seconds, path = time.perf_counter() - begin, folder / command.out
    content = path.read_bytes()
    path.unlink()
    return Whole(content, seconds)


def attack(
    command: Command, whole: Whole, folder: Path, random: np.random.Generator
) -> tuple[str, list[str]]:
    """Send a signal at a random moment; return which, how the command ended, and what is wrong."""
    path, number = folder / command.out, random.choice(_SIGNALS)
    before = _OLD if random.random() < 0.5 else None
    if before is not None:
        path.write_bytes(before)
    process = command.start(folder)
    try:
        said = process.communicate(timeout=random.uniform(0, whole.seconds))[1]
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        said = process.communicate()[1]
    wrong = []
    after = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    is_complete = _is_model(after, folder) if command.out.endswith(".lw") else after == whole.content
    if after != before and not is_complete:
        wrong.append(f"{command.out} is neither the earlier file nor a complete one")
    began = "KeyboardInterrupt" not in said or _STARTING in said
    if (
        process.returncode not in (0, 130, -number, 128 + number) and began
    ):  # otherwise Python itself exits with status 1
        wrong.append(f"it ended with {process.returncode}")
    if "Traceback" in said and _STARTING in said:
        wrong.append(f"it wrote a traceback: {said}")
    end = "done" if process.returncode == 0 else signal.Signals(number).name
    return end, wrong


def _is_model(content: bytes | None, folder: Path) -> bool:
    if content is None:
        return False
    path = folder / "copy.lw"
    path.write_bytes(content)
    try:
        labelweave.load(path)
    except ModelFileError:
        return False
    finally:
        path.unlink()
    return True


def run(names: list[str], runs: int, seed: int = 0, n_rows: int = 1500) -> tuple[Counter[str], list[str]]:
    """Attack commands in turn; return how they ended, and what was wrong."""
    random, ends, wrong = np.random.default_rng(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wholes = prepare(folder, names, n_rows)
        for number in range(runs):
            command = names[number % len(names)]
            end, found = attack(COMMANDS[command], wholes[command], folder, random)
            ends[end] += 1
            wrong += [f"{command}, run {number}, {end}: {what}" for what in found]
        for command in names:  # removes what dead processes left
            _whole(COMMANDS[command], folder)
        left = sorted(set(os.listdir(folder)) - {"d.txt", "m.lw"})
        wrong += [f"left {', '.join(left)}"] if left else []
    return ends, wrong


@command(
    runs=flag(60, "in all, of every kind in turn"),
    commands=several(COMMANDS),
    seed=flag(0, "of what is drawn"),
)
def main(given: Any) -> int:
    ends, wrong = run(given.commands, given.runs, given.seed)
    done = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    print(f"{ends.total()} runs ({done}), {len(wrong)} wrong", *wrong, sep="\n  ")
    return bool(wrong)
