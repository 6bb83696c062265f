"""Limits of memory and time, and numbered trials in a process that is restarted after one that ended it."""

import multiprocessing
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Trial = Callable[[int], Any]


class Ended(str):
    """How a trial ended the process, or that there was no response."""

    __slots__ = ()


def allow_memory(more: int) -> None:
    """Bound the memory of this process by what it has and some more bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Interrupt what takes longer, in Python, with a TimeoutError."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _work(begin: Callable[[], AbstractContextManager[Trial]], seeds: range, reports: Connection) -> None:
    with begin() as trial:
        reports.send(None)  # ready
        for seed in seeds:
            reports.send(trial(seed))


def trials(
    begin: Callable[[], AbstractContextManager[Trial]], seeds: range, patience: float, how: str = "spawn"
) -> Iterator[tuple[int, Any]]:
    """Yield every seed with the result of its trial, or how it ended the process.

    begin: returns the trial, in the process that runs it.
    patience: seconds per trial.
    how: the process is started.
    """
    start, context = seeds.start, multiprocessing.get_context(how)
    while start < seeds.stop:
        reports, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(begin, range(start, seeds.stop), theirs))
        process.start()
        theirs.close()
        ended = None
        try:
            reports.recv()
            while start < seeds.stop:
                if not reports.poll(patience):
                    ended = Ended("no answer")
                    break
                said = reports.recv()
                yield start, said
                start += 1
        except EOFError:
            process.join()
            ended = Ended(f"the process died with code {process.exitcode}")
        process.kill()
        process.join()
        if ended is not None:
            yield start, ended
            start += 1
