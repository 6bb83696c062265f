"""Waiting for the cluster: with messages after long silence, and an end when workers die repeatedly."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

from distributed import CancelledError, Client, Future, KilledWorker, wait
from distributed.comm import CommClosedError

_Task = TypeVar("_Task", bound=Callable[..., Any])

SILENCE = 60.0  # seconds without a finished task before a warning
SAY_EVERY = 2.0
"""Seconds between progress lines."""
PAUSE = 0.5
"""Seconds before another attempt to reach a worker."""
LOST = (CancelledError, KilledWorker, OSError, TimeoutError)
"""Errors of lost work, mostly with its worker."""
_MOST_FAILURES = 3  # failures of a task to read or write its data before a fit ends
MOST_KILLS = 2
"""How often Dask may give up a task, whose worker died four times each, before a fit ends."""


def warn_of_silence(client: Client, stacklevel: int) -> None:
    """Warn with the reason why no task has ended, as far as the scheduler reports."""
    warnings.warn(
        f"No task of the fit has ended for {SILENCE:.0f} s: {_why(client)}", UserWarning, stacklevel
    )


def _why(client: Client) -> str:
    address = client.scheduler.address
    if client.status != "running":
        return f"the connection to {address} is {client.status}; check whether it runs."
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        return f"no worker is connected to {address}; start some, and the fit continues, or interrupt it."
    paused = [name for name, worker in workers.items() if worker.get("status") == "paused"]
    if paused:
        return (
            f"{len(paused)} of {len(workers)} workers are paused, since their memory is full; "
            "give them more memory, add workers, or use smaller partitions."
        )
    return (
        f"{len(workers)} workers are connected, and are busy or do not respond; smaller partitions make "
        "shorter tasks."
    )


class LostRowsError(RuntimeError):
    """Values that were scattered to a worker were lost with it."""


def returning_refusals(task: _Task) -> _Task:
    """Return a task's ValueErrors as results, for :func:`gathered` to raise.

    Errors that tasks raise go to the logs of workers, and which one comes first is random.
    """

    @wraps(task)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return task(*given, **named)
        except ValueError as error:
            return error
        except TypeError as error:
            return ValueError(str(error))

    return cast(_Task, called)


def gathered(
    client: Client, futures: Sequence[Future], what: str = "", long: Sequence[Future] = (), part: str = ""
) -> list[Any]:  # fmt: skip
    """Gather the results of tasks, again after worker deaths; raise the first refusal.

    what: is written to stderr with the number of finished tasks, every two seconds in
        which some finished; nothing if it is empty.
    long: earlier tasks that take long, and are counted instead.
    part: the name of a task's part, which a refusal mentions with its number.
    Raises RuntimeError if workers die repeatedly, LostRowsError if they had data that cannot be recomputed,
    OSError if a task repeatedly cannot read its data.
    """
    kills = failures = 0
    while True:
        try:
            if long:
                _settle(client, long, what)
            _settle(client, futures, "" if long else what)  # raises for lost values too
            return _without_refusals(list(client.gather(list(futures))), part)
        except KilledWorker as error:
            kills += 1
            if kills >= MOST_KILLS:
                refuse_to_go_on(error)
        except CancelledError:
            refuse_lost_rows()
        except OSError as error:
            failures += is_of_data(error) and any(future.status == "error" for future in futures)
            if failures >= _MOST_FAILURES:
                raise
            time.sleep(PAUSE)
        for future in futures:
            if future.status == "error":
                try_again(future)


def _without_refusals(found: list[Any], part: str) -> list[Any]:
    for number, one in enumerate(found):
        if isinstance(one, ValueError):
            raise ValueError(f"{part} {number}: {one}") if part else one
    return found


def is_of_data(error: BaseException) -> bool:
    """Return whether an error is about data that a task reads or writes, not about a lost worker."""
    return isinstance(error, OSError) and not isinstance(error, CommClosedError)


def try_again(future: Future) -> None:
    """Make the scheduler run a failed task again, with its inputs."""
    future.client.sync(_try_again, future)


async def _try_again(future: Future) -> None:
    """Mark the future as pending, then retry: a quick task may end before the scheduler's answer.

    Future.retry of distributed 2026.8 marks it after the answer, and then waits forever.
    """
    client = future.client
    if future.status != "error":  # it was retried with another task
        return
    client.futures[future.key].retry()
    await client.scheduler.retry(keys=[future.key], client=client.id)


def scattered(client: Client, values: Sequence[Any], worker: str | None = None) -> list[Future]:
    """Scatter values to a worker, or to others if it is gone; wait if there are none."""
    begun = time.monotonic()
    workers = None if worker is None else [worker]
    while values:
        try:
            return list(client.scatter(list(values), workers=workers, hash=False))
        except (ValueError, KeyError, OSError):
            workers = None
        if time.monotonic() - begun > SILENCE:
            warn_of_silence(client, stacklevel=6)
            begun = time.monotonic()
        time.sleep(PAUSE)
    return []


def wait_for_some(client: Client, futures: Sequence[Future], most: int) -> None:
    """Wait until at most some of these are unfinished."""
    while len(left := [future for future in futures if not future.done()]) > max(0, most - 1):
        try:
            with client.as_current():
                wait(left, timeout=SILENCE, return_when="FIRST_COMPLETED")
        except TimeoutError:
            warn_of_silence(client, stacklevel=6)
        except CancelledError:  # raised when they are used
            return


def _settle(client: Client, futures: Sequence[Future], what: str) -> None:
    left, changed = len(futures) + 1, time.monotonic()
    while True:
        try:
            with client.as_current():
                wait(list(futures), timeout=min(SAY_EVERY, SILENCE))
            return
        except TimeoutError:
            now = sum(not future.done() for future in futures)
        if now < left:
            left, changed = now, time.monotonic()
            if what:
                sys.stderr.write(f"labelweave: {len(futures) - now} of {len(futures)} {what}\n")
        elif time.monotonic() - changed > SILENCE:
            warn_of_silence(client, stacklevel=6)
            changed = time.monotonic()


def refuse_lost_rows() -> NoReturn:
    """Raise for rows that are lost permanently."""
    raise LostRowsError(
        "A partition of rows was lost with its worker, and cannot be recomputed, since "
        "it was scattered; pass X and y as collections that read their data."
    )


def refuse_to_go_on(error: BaseException) -> NoReturn:
    """Raise for workers that die repeatedly; errors of data are raised unchanged."""
    if is_of_data(error):
        raise error
    raise RuntimeError(
        f"Workers died each time that a task ran ({type(error).__name__}); see their logs, and give "
        "them more memory, or use smaller partitions."
    ) from error
