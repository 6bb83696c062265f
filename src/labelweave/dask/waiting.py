"""Waiting for the cluster: never for long without a word, and not for workers that die again and again."""

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

SILENCE = 60.0  # seconds without any task done before it is said why
SAY_EVERY = 2.0
"""Seconds between lines on how far a fit is."""
PAUSE = 0.5
"""Seconds before another try to reach a worker."""
LOST = (CancelledError, KilledWorker, OSError, TimeoutError)
"""What tells that work is gone, mostly with the worker that did it."""
_MOST_FAILURES = 3  # times that a task cannot read or write its data before a fit ends
MOST_KILLS = 2
"""Times that Dask gives a task up, whose worker died four times each, before a fit ends."""


def warn_of_silence(client: Client, stacklevel: int) -> None:
    """Say why no task has ended, as far as the scheduler knows."""
    warnings.warn(
        f"No task of the fit has ended for {SILENCE:.0f} s: {_why(client)}", UserWarning, stacklevel
    )


def _why(client: Client) -> str:
    address = client.scheduler.address
    if client.status != "running":
        return f"the connection to {address} is {client.status}; see whether it runs."
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        return f"no worker is connected to {address}; start some, and it goes on, or interrupt it."
    paused = [name for name, worker in workers.items() if worker.get("status") == "paused"]
    if paused:
        return (
            f"{len(paused)} of {len(workers)} workers are paused, since their memory is full; "
            "give them more, or more workers, or make partitions smaller."
        )
    return (
        f"{len(workers)} workers are connected, and are busy or do not answer; smaller partitions make "
        "shorter tasks."
    )


class LostRowsError(RuntimeError):
    """Values that were put onto a worker as they are died with it."""


def returning_refusals(task: _Task) -> _Task:
    """Let a task return what it refuses, for :func:`gathered` to raise.

    Errors that tasks raise are written to the logs of workers, and which one comes first is chance.
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
    """Gather what tasks gave, again where workers died with it; raise the first refusal among it.

    what: is written to stderr, with how many are done, every two seconds in which
        some were; nothing if it is empty.
    long: tasks before these that take long, and are counted in their place.
    part: what each task is of, which a refusal is then said of with its number.
    Raises RuntimeError if workers die again and again, LostRowsError if they had what cannot be made again,
    OSError if a task cannot read its data each time that it is done.
    """
    kills = failures = 0
    while True:
        try:
            if long:
                _settle(client, long, what)
            _settle(client, futures, "" if long else what)  # which raises for lost values too
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
    """Tell an error of data that a task reads or writes from one of a worker that is gone."""
    return isinstance(error, OSError) and not isinstance(error, CommClosedError)


def try_again(future: Future) -> None:
    """Let the scheduler do a failed task again, with what it came from."""
    future.client.sync(_try_again, future)


async def _try_again(future: Future) -> None:
    """Mark the future as pending, then ask: a quick task may end before the scheduler's answer.

    Future.retry of distributed 2026.8 marks it after the answer, and then waits for ever.
    """
    client = future.client
    if future.status != "error":  # it came with another task that was tried again
        return
    client.futures[future.key].retry()
    await client.scheduler.retry(keys=[future.key], client=client.id)


def scattered(client: Client, values: Sequence[Any], worker: str | None = None) -> list[Future]:
    """Put values onto a worker, other ones if that is gone; wait where there is none."""
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
    """Wait until no more than so many of these are still to be done."""
    while len(left := [future for future in futures if not future.done()]) > max(0, most - 1):
        try:
            with client.as_current():
                wait(left, timeout=SILENCE, return_when="FIRST_COMPLETED")
        except TimeoutError:
            warn_of_silence(client, stacklevel=6)
        except CancelledError:  # it is noticed when they are used
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
    """Say that rows are gone for good."""
    raise LostRowsError(
        "A partition of rows was lost with the worker that had it, and cannot be made again, since "
        "it was put there as it is; give X and y as collections that read their data."
    )


def refuse_to_go_on(error: BaseException) -> NoReturn:
    """Say that workers die again and again; give the error of data as it is."""
    if is_of_data(error):
        raise error
    raise RuntimeError(
        f"Workers died each time that a task was done ({type(error).__name__}); see their logs, and give "
        "them more memory, or make partitions smaller."
    ) from error
