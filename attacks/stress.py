"""Fit and predict in threads, forks, joblib's processes, asyncio's executors and pytest-xdist, all at once.

    OPENBLAS_NUM_THREADS=1 python -m attacks.stress --minutes 5

Each of them fits models of all kinds, one after the other, until the time is up, and every fit must have the
bits of a fit alone, on any thread or process and with anything else running.

Known to fail: forks during fits in other threads, unless OPENBLAS_NUM_THREADS=1 is set.  With more threads,
other bits and "Eigenvalues did not converge" were observed.  Threads without forks (231 fits), and threads
with forks and one OpenBLAS thread (292 fits), had no such failure.  The likely cause is that OpenBLAS ends
its threads at a fork while others compute; that is not proven.  Children that waited forever had another
cause, the lock of cached properties in Python 3.11, which ``labelweave.foundation.forks`` renews.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.frame import command, several
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from attacks.small_fits import KINDS, data_of, fitted, mark
from labelweave import MaxMarginClassifier

_SECONDS_FOR_A_FORK = 120.0  # after which it hangs
_TESTS = ("tests/solvers/test_frame.py", "tests/arrays", "tests/contracts/test_linear_solvers.py")
_ROOT = Path(__file__).parents[1]


def marked_fit(name: str, n_jobs: int | None = None) -> str:
    X, Y = data_of(name, n=60)
    model = clone(KINDS[name])
    if n_jobs is not None and "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    return mark(fitted(model, X, Y), X)


class Stress:
    """Shared data: the digests of fits alone, the end time, and the outcomes of the others."""

    end = 0.0

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.marks = {name: marked_fit(name) for name in names}
        self.searched = search()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._turns = itertools.count()
        self._lock = threading.Lock()

    def is_over(self) -> bool:
        return time.monotonic() > self.end or bool(self.wrong)

    def turns(self) -> Iterator[str]:
        while not self.is_over():
            yield self.names[next(self._turns) % len(self.names)]

    def note(self, where: str, name: str, found: Any, expected: Any = None) -> None:
        expected = self.marks[name] if expected is None else expected
        with self._lock:
            self.counts[where] += 1
            if found != expected:
                self.wrong.append(f"{where}: {name} gave {found}, and {expected} alone")

    def run(self, works: list[Callable[[Stress], None]], seconds: float) -> None:
        self.end = time.monotonic() + seconds

        def one(work: Callable[[Stress], None]) -> None:
            try:
                work(self)
            except Exception as error:
                with self._lock:
                    self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")

        threads = [threading.Thread(target=one, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def threads(stress: Stress) -> None:
    """Fit in this thread, every other fit with two threads."""
    for number, name in enumerate(stress.turns()):
        stress.note("threads", name, marked_fit(name, n_jobs=1 + number % 2))


def forks(stress: Stress) -> None:
    """Fit in children forked from this process while its threads are running."""
    fork = multiprocessing.get_context("fork")

    def child(name: str, answers: Any) -> None:
        answers.send(marked_fit(name))

    for name in stress.turns():
        receive, send = fork.Pipe(duplex=False)
        process = fork.Process(target=child, args=(name, send))
        process.start()
        send.close()
        if receive.poll(_SECONDS_FOR_A_FORK):
            stress.note("forks", name, receive.recv())
        else:
            stress.note("forks", name, "nothing: it hangs")
            process.kill()
        process.join()


def search() -> list[float]:
    X, Y = data_of("tuned", n=60)
    options: dict[str, Any] = {"scoring": "f1_macro", "cv": 2, "n_jobs": 2}
    found = GridSearchCV(MaxMarginClassifier(), {"C": [0.1, 1.0], "kernel": ["linear", "rbf"]}, **options)
    return list(found.fit(X, Y == 1).cv_results_["mean_test_score"])


def joblib_processes(stress: Stress) -> None:
    for name in stress.turns():
        found = Parallel(n_jobs=2)(delayed(marked_fit)(one) for one in (name, stress.names[0]))
        stress.note("joblib's processes", name, found[0])
        stress.note("joblib's processes", stress.names[0], found[1])
        stress.note("searches", "search", search(), stress.searched)


def joblib_threads(stress: Stress) -> None:
    for name in stress.turns():
        found = Parallel(n_jobs=2, backend="threading")(delayed(marked_fit)(name) for _ in range(2))
        for one in found:
            stress.note("joblib's threads", name, one)


def executors(stress: Stress) -> None:
    """Fit in the executors of an event loop: threads, and spawned processes."""

    async def fits(where: str, executor: Executor) -> None:
        loop = asyncio.get_running_loop()
        for name in stress.turns():
            stress.note(where, name, await loop.run_in_executor(executor, marked_fit, name))

    async def both() -> None:
        spawn = multiprocessing.get_context("spawn")
        with ThreadPoolExecutor(2) as pool, ProcessPoolExecutor(1, mp_context=spawn) as processes:
            await asyncio.gather(
                fits("asyncio's threads", pool), fits("asyncio's threads", pool),
                fits("asyncio's processes", processes),
            )  # fmt: skip

    asyncio.run(both())


def xdist(stress: Stress) -> None:
    """Run some of the tests in two processes of pytest-xdist."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *_TESTS]
    while not stress.is_over():
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        stress.note("runs of pytest-xdist", "tests", done.returncode or "passed", "passed")


WORKS = [threads, threads, forks, joblib_processes, joblib_threads, executors, xdist]


@command(minutes=5.0, kinds=several(KINDS))
def main(chosen: Any) -> None:
    stress = Stress(chosen.kinds)
    stress.run(WORKS, 60 * chosen.minutes)
    done = ", ".join(f"{count} in {where}" for where, count in sorted(stress.counts.items()))
    total = f"{sum(stress.counts.values())} fits and runs on {os.cpu_count()} cores"
    print(f"{total}: {done}; {len(stress.wrong)} wrong", *stress.wrong, sep="\n  ")
    raise SystemExit(bool(stress.wrong))
