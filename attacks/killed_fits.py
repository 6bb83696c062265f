"""Kill fits at random moments, and compare fits resumed from checkpoints with undisturbed ones.

    python -m attacks.killed_fits --fits 100

Every fit runs in its own process, which writes its state at every check of the gap.  It gets SIGKILL up to
three times, at random moments of the usual time of such a fit, and is then started again with the same
checkpoint.  In the end its weights, objectives and scores must have the bits of a fit without a checkpoint,
and no other file may remain.
"""

import multiprocessing
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.frame import command, flag, several
from sklearn.base import clone

from attacks.small_fits import CHECKPOINTED, data_of, fitted, mark
from labelweave.estimators import journal

_MOST_KILLS = 3


class Whole(NamedTuple):
    """An undisturbed fit: the digest of its bits, and its time with a file at every check."""

    mark: str
    seconds: float


class Attack(NamedTuple):
    """The outcome of a fit: how often it was killed and resumed from a checkpoint, and what was wrong."""

    kills: int
    continued: int
    wrong: str | None


def whole_fit(name: str, folder: Path) -> Whole:
    X, Y = data_of(name)
    whole = mark(fitted(clone(CHECKPOINTED[name]), X, Y), X)
    begin = time.perf_counter()
    _noted_fit(name, folder / "fit.lwc")
    return Whole(whole, time.perf_counter() - begin)


def _noted_fit(name: str, path: Path) -> str:
    X, Y = data_of(name)
    often, journal._SECONDS = journal._SECONDS, 0.0
    try:
        return mark(fitted(clone(CHECKPOINTED[name]).set_params(checkpoint=path), X, Y), X)
    finally:
        journal._SECONDS = often


def _answer(name: str, path: Path, answers: Any) -> None:
    try:
        answers.send(_noted_fit(name, path))
    except Exception as error:
        answers.send(f"{type(error).__name__}: {error}")


def attack(name: str, whole: Whole, random: np.random.Generator, folder: Path) -> Attack:
    """Kill a fit at random moments, start it again, and compare the final result."""
    fork = multiprocessing.get_context("fork")
    path, kills, continued, answer = folder / "fit.lwc", 0, 0, None
    while answer is None:
        receive, send = fork.Pipe(duplex=False)
        process = fork.Process(target=_answer, args=(name, path, send))
        process.start()
        send.close()
        moment = random.uniform(0, whole.seconds) if kills < _MOST_KILLS else None
        process.join(moment)
        if process.is_alive():
            process.kill()
            kills += 1
        process.join()
        try:
            answer = receive.recv() if receive.poll() else None
        except EOFError:  # killed before it could respond
            answer = None
        if answer is None:
            if process.exitcode != -9:
                return Attack(kills, continued, f"ended with {process.exitcode}")
            continued += path.exists()
    left = sorted(file.name for file in folder.iterdir())
    if answer != whole.mark:
        return Attack(kills, continued, f"gave {answer}, and {whole.mark} in one go")
    return Attack(kills, continued, f"left {', '.join(left)}" if left else None)


def run(names: list[str], n_fits: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Attack fits of every kind in turn; return counts, and what was wrong, one line each."""
    random, wholes, wrong = np.random.default_rng(seed), {}, []
    counts = Counter(fits=0, kills=0, continued=0)
    for number in range(n_fits):
        name = names[number % len(names)]
        with tempfile.TemporaryDirectory() as folder:
            if name not in wholes:
                wholes[name] = whole_fit(name, Path(folder))
            found = attack(name, wholes[name], random, Path(folder))
        counts.update(fits=1, kills=found.kills, continued=found.continued)
        if found.wrong is not None:
            wrong.append(f"{name}, fit {number}, {found.kills} kills: {found.wrong}")
    return counts, wrong


@command(
    fits=flag(100, "in all, of every kind in turn"),
    kinds=several(CHECKPOINTED),
    seed=flag(0, "of what is drawn"),
)
def main(given: Any) -> int:
    counts, wrong = run(given.kinds, given.fits, given.seed)
    said = "{fits} fits, killed {kills} times, went on from a checkpoint {continued} times"
    print(f"{said.format(**counts)}, {len(wrong)} wrong", *wrong, sep="\n  ")
    return bool(wrong)
