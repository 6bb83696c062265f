"""The client's side of a fit: scheduling of blocks, snapshots, and recovery of lost work.

Each block of labels has its own thread: rounds of visits, a check of the gap when the
encountered gap suggests that it may be small enough, the certificate.  A block's result does not depend on
when its tasks ran, on which worker, or on repetitions.  Work of a dead worker is computed
again: by Dask from its inputs; if these are lost too, from the block's last snapshot.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_threads
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future, KilledWorker, wait
from distributed.comm import CommClosedError

from labelweave.dask import waiting
from labelweave.dask.graphs import BlockState, BlockTasks, Place
from labelweave.dask.store import Snapshot, Store
from labelweave.dask.tasks import FittedBlock
from labelweave.foundation.array_types import Array
from labelweave.solvers.frame import relative_gap

_FULL_EVERY = 3  # rounds: in between only rows that gain are visited
_OPEN_PER_THREAD = 3  # open blocks per thread, so that threads stay busy
_SHORTEST = 5.0  # seconds between snapshots of a block ...
_COST_SHARE = 0.1  # ... which take at most this fraction of the time
_LOOK_EVERY = 5.0  # seconds between checks of the places of partitions
_MOST_SECONDS = 60.0  # for results that exist
_MOST_LOSSES = 20  # of one block without progress


class Progress(NamedTuple):
    """Progress of a fit: finished blocks, all blocks, and rounds of all blocks together."""

    done: int
    blocks: int
    rounds: int


@dataclass
class BlockFit:
    """A block that is being fitted.

    slot: which of several workers with the same partition does its tasks.
    rounds, furthest: completed rounds, and the most before a restart.
    losses, kills: since the last progress, kills for tasks that Dask gave up.
    asked: workers that got its tasks.
    """

    number: int
    labels: Array
    slot: int
    rounds: int = 0
    furthest: int = 0
    losses: int = 0
    kills: int = 0
    attempt: int = 0
    saved: float = 0.0
    asked: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit.

    blocks: the labels of each.
    places: the places of the rows; common: the future of their shared data.
    is_coupled: whether a covariance couples the labels of blocks.
    """

    blocks: Sequence[Array]
    places: Sequence[Place]
    common: Future
    seed: int
    tol: float
    max_iter: int
    is_coupled: bool

    @property
    def partitions(self) -> list[Future]:
        """The futures of the rows."""
        return [place.partition for place in self.places]


class TravelingFit:
    """Fits all blocks, each in a thread of the client that waits for its tasks."""

    def __init__(
        self, client: Client, plan: FitPlan, store: Store, on_progress: Callable[[Progress], None]
    ) -> None:
        self.client, self.plan, self.store, self.on_progress = client, plan, store, on_progress
        self.name = uuid.uuid4().hex[:8]
        self.lock = threading.RLock()  # for the state below, and for building graphs, which Dask annotates
        self.homes: list[list[str]] = [[]] * len(plan.places)
        self.open_at: Counter[int] = Counter()
        self.looked = -np.inf
        self.begun = self.heard = time.monotonic()
        self.saving, self.rounds, self.is_over = 0.0, 0, False
        self.ends: dict[int, FittedBlock] = {}

    def run(self) -> list[FittedBlock]:
        numbers = range(len(self.plan.blocks))
        left, under_way = list(numbers)[::-1], set[Any]()
        with ThreadPoolExecutor(len(numbers)) as threads:
            try:
                while left or under_way:
                    while left and len(under_way) < self._most_open():
                        under_way.add(threads.submit(self._fit_block, left.pop()))
                    done, under_way = wait_for_threads(under_way, 1.0, FIRST_COMPLETED)
                    for one in done:
                        one.result()
            finally:
                self.is_over = True
        return [self.ends[number] for number in numbers]

    def _most_open(self) -> int:
        threads: int = sum(self.client.nthreads().values())
        if len(self.plan.places) == 1:  # each is one task, for any free worker
            return threads + 1
        return max(4, _OPEN_PER_THREAD * threads)

    def _fit_block(self, number: int) -> None:
        """Fit a block from its last snapshot, with restarts when its work is lost."""
        block, end = self._begun(number), None
        while end is None:
            known = self.store.get(number)
            try:
                end = self._course(block, known) if known is None or known.end is None else known.end
            except waiting.LOST as error:
                self._note_loss(block, error)
        with self.lock:
            self.open_at[block.slot] -= 1
            self.ends[number] = end
            self._tell()

    def _begun(self, number: int) -> BlockFit:
        with self.lock:
            self._look()
            slot = min(range(max(map(len, self.homes)) or 1), key=lambda slot: self.open_at[slot])
            self.open_at[slot] += 1
        return BlockFit(number, self.plan.blocks[number], slot, saved=time.monotonic())

    def _tell(self) -> None:
        self.on_progress(Progress(len(self.ends), len(self.plan.blocks), self.rounds))

    def _course(self, block: BlockFit, known: Snapshot | None) -> FittedBlock:
        """Fit from a snapshot, or from 0: rounds, checks of the gap, the certificate."""
        plan, block.rounds, check_below = self.plan, 0, np.inf
        block.asked.clear()
        state = self._no_state()
        if known is not None:
            block.rounds, check_below = known.rounds, known.check_below
            state = self._placed(block, known)
        while len(plan.places) > 1:
            was_full = block.rounds < 2 or block.rounds % _FULL_EVERY == 0
            state, met_gap = self._round(block, state, is_full=was_full)
            is_last = block.rounds >= plan.max_iter
            if not is_last:
                if not was_full or met_gap > check_below:
                    state = self._saved_when_due(block, check_below, state)
                    continue
                primal, dual = self._result(block, "check", block.rounds, state)
                check_below = max(met_gap / 10, 1.5 * plan.tol * abs(primal))
                if relative_gap(primal, dual) > plan.tol:
                    continue
            end = self._result(block, "certificate", block.rounds, state)
            if is_last or relative_gap(end.primal, end.dual) <= plan.tol:
                break
        else:  # all rows, and so all rounds, are in one place
            end = self._result(block, "whole")
        self.store.put(block.number, Snapshot(end.rounds, np.inf, None, (), end))
        return end  # type: ignore[no-any-return]

    def _round(self, block: BlockFit, state: BlockState, *, is_full: bool) -> tuple[BlockState, float]:
        """Visit all rows with a block; return its new state and the gap found on the way."""
        with self.lock:
            self._tell()
            tasks = self._tasks(block)
            state, gap = tasks.round(block.rounds, self.plan.seed, state, is_full=is_full)
            waited, shared, *states = self._computed([gap, *state.parts])
        (met_gap,) = self._fetched([waited], block)
        block.rounds += 1
        if block.rounds > block.furthest:
            block.furthest, block.losses, block.kills = block.rounds, 0, 0
        with self.lock:
            self.rounds += 1
        return BlockState(shared, tuple(states)), met_gap

    def _result(self, block: BlockFit, name: str, *given: Any) -> Any:
        """Run a task of a block, by its name in :class:`BlockTasks`."""
        with self.lock:
            futures = self._computed([getattr(self._tasks(block), name)(*given)])
        return self._fetched(futures, block)[0]

    def _computed(self, tasks: Sequence[Any]) -> list[Future]:
        return list(self.client.compute(list(tasks), sync=False, optimize_graph=False))

    def _no_state(self) -> BlockState:
        return BlockState(None, (None,) * len(self.plan.places))

    def _tasks(self, block: BlockFit) -> BlockTasks:
        plan, name = self.plan, f"{self.name}-{block.number}-{block.attempt}"
        return BlockTasks(
            name, block.number, block.labels, plan.places, plan.common, self._homes(block),
            is_coupled=plan.is_coupled,
        )  # fmt: skip

    def _placed(self, block: BlockFit, known: Snapshot) -> BlockState:
        """Send a snapshot to the workers that have the block's partitions."""
        with self.lock:
            homes = self._homes(block)
        states = [self._scattered(*one) for one in zip(known.states, homes, strict=True)]
        return BlockState(self._scattered(known.shared, None), tuple(states))

    def _scattered(self, value: Any, worker: str | None) -> Future:
        return waiting.scattered(self.client, [value], worker)[0]

    def _homes(self, block: BlockFit) -> list[str | None]:
        """Return the worker of each partition for a block."""
        self._look()
        homes = [places[block.slot % len(places)] if places else None for places in self.homes]
        block.asked.update(home for home in homes if home is not None)
        return homes

    def _look(self) -> None:
        """Look up the places of partitions, every few seconds."""
        if time.monotonic() - self.looked > _LOOK_EVERY:
            held = self.client.who_has(list(self.plan.partitions))
            places = [list(held.get(part.key, ())) for part in self.plan.partitions]
            is_filed = self.plan.places[0].is_filed  # sending many files at once would fill memory
            self.homes = (
                [at[:1] for at in places] if is_filed else spread(places, list(self.client.nthreads()))
            )
            self.looked = time.monotonic()

    def _fetched(self, futures: Sequence[Future], block: BlockFit) -> list[Any]:
        """Fetch results; raise one of LOST if only a dead worker could make them, or after a minute.

        The minute is for results that exist.
        """
        while True:
            try:
                with self.client.as_current():
                    wait(list(futures), timeout=1.0)
                break
            except TimeoutError:
                self._refuse_to_wait(block)
        self.heard = begun = time.monotonic()
        coming = self.client.gather(list(futures), asynchronous=True)
        answer = asyncio.run_coroutine_threadsafe(coming, self.client.loop.asyncio_loop)
        try:
            while True:
                try:
                    return list(answer.result(timeout=1.0))
                except TimeoutError:
                    if answer.done() or time.monotonic() - begun > _MOST_SECONDS:
                        raise
                    self._refuse_to_wait(block)
        finally:
            answer.cancel()

    def _refuse_to_wait(self, block: BlockFit) -> None:
        """Raise if the fit is over, or a worker is gone that tasks may wait for; warn of silence.

        Tasks with rows in files have no other worker.
        """
        if self.is_over:
            raise InterruptedFitError
        workers = set(self.client.nthreads()) if self.plan.places[0].is_filed else set()
        if workers and not workers.issuperset(block.asked):
            raise CommClosedError("a worker is gone")
        with self.lock:
            if time.monotonic() - self.heard > waiting.SILENCE:
                self.heard = time.monotonic()
                waiting.warn_of_silence(self.client, stacklevel=7)

    def _note_loss(self, block: BlockFit, error: BaseException) -> None:
        """Count a loss, after which a block restarts; end the fit after too many."""
        block.losses += 1
        block.kills += isinstance(error, KilledWorker)
        if block.losses > _MOST_LOSSES or block.kills >= waiting.MOST_KILLS:
            waiting.refuse_to_go_on(error)
        for future in [*self.plan.partitions, self.plan.common]:
            if future.status == "cancelled":
                waiting.refuse_lost_rows()
            if future.status == "error":
                waiting.try_again(future)
        block.attempt += 1
        self.looked = -np.inf

    def _saved_when_due(self, block: BlockFit, check_below: float, state: BlockState) -> BlockState:
        """Store the state of a block if enough was done since the last time; return where it is then."""
        begun = time.monotonic()
        is_dear = self.saving > _COST_SHARE * (begun - self.begun)
        if is_dear or begun - block.saved < _SHORTEST:
            return state
        try:
            shared, *states = self._fetched(state.parts, block)
        except waiting.LOST:
            return state  # the next round will fail
        snapshot = Snapshot(block.rounds, check_below, shared, tuple(states))
        self.store.put(block.number, snapshot)
        block.saved = time.monotonic()
        with self.lock:
            self.saving += block.saved - begun
        # earlier results can be released, and need not be computed again
        return self._placed(block, snapshot)


class InterruptedFitError(RuntimeError):
    """The fit of this thread was stopped."""


def spread(held: list[list[str]], workers: list[str]) -> list[list[str]]:
    """Choose workers for every partition: one that has it, or the idlest if that one has too many.

    With fewer partitions than workers each has several workers, which all keep it.
    held: the workers that have each partition.
    """
    if not workers or not held:
        return [[] for _ in held]
    most = -(-len(held) // len(workers))
    count = dict.fromkeys(workers, 0)
    homes: list[list[str]] = [[] for _ in held]
    for home, places in zip(homes, held, strict=True):
        free = [place for place in places if count.get(place, most) < most]
        if free:
            home.append(min(free, key=count.__getitem__))
            count[home[0]] += 1
    n_each = max(1, len(workers) // len(held))
    for home in homes:
        while len(home) < n_each:
            idlest = min((place for place in workers if place not in home), key=count.__getitem__)
            home.append(idlest)
            count[idlest] += 1
    return homes
