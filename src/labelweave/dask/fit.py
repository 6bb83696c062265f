"""The client's side of a fit: which block does what next, what is kept, and what becomes of lost work.

Each block of labels goes its own way, in a thread of its own: rounds of visits, a look at the gap when the
gap that was met says that it may be small enough, the certificate.  Nothing that a block becomes depends on
when its tasks were done, on which worker, or on what was done twice.  What a dead worker had is computed
again: by Dask, from what it came from; and where that is gone too, from the block's last snapshot.
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

from labelweave.dask.graphs import BlockState, BlockTasks, Place
from labelweave.dask.store import Snapshot, Store
from labelweave.dask.tasks import FittedBlock
from labelweave.dask.waiting import (
    LOST,
    MOST_KILLS,
    SILENCE,
    refuse_lost_rows,
    refuse_to_go_on,
    scattered,
    try_again,
    warn_of_silence,
)
from labelweave.foundation.array_types import Array
from labelweave.solvers.frame import relative_gap

_FULL_EVERY = 3  # rounds: between them rows that gain are visited
_OPEN_PER_THREAD = 3  # blocks under way for each thread, so that none waits for one
_SHORTEST = 5.0  # seconds between two snapshots of a block ...
_COST_SHARE = 0.1  # ... which take this share of the whole time at most
_LOOK_EVERY = 5.0  # seconds between two looks at where partitions are
_MOST_SECONDS = 60.0  # for results that are there to come
_MOST_LOSSES = 20  # of one block before it gets further than before


class Progress(NamedTuple):
    """How far a fit is: blocks that are done, all of them, and rounds of all blocks together."""

    done: int
    blocks: int
    rounds: int


@dataclass
class BlockFit:
    """A block under way.

    slot: which of the workers that have a partition, where there are several, does its tasks.
    rounds, furthest: those done, and the most before it began again.
    losses, kills: since it got further than before, those of tasks that Dask gave up.
    asked: workers that tasks were sent to.
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
    """What is to be fitted.

    blocks: the labels of each.
    places: where the rows are; common: the future of what they share.
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


class TravellingFit:
    """Fits all blocks, each in a thread of the client, which waits for its tasks."""

    def __init__(
        self, client: Client, plan: FitPlan, store: Store, on_progress: Callable[[Progress], None]
    ) -> None:
        self.client, self.plan, self.store, self.on_progress = client, plan, store, on_progress
        self.name = uuid.uuid4().hex[:8]
        self.lock = threading.RLock()  # of what follows, and of graphs that are made, as Dask annotates them
        self.homes: list[list[str]] = [[]] * len(plan.places)
        self.open_at: Counter[int] = Counter()
        self.looked = -np.inf
        self.begun = self.heard = time.monotonic()
        self.saving, self.rounds, self.is_over = 0.0, 0, False
        self.ends: dict[int, FittedBlock] = {}

    def run(self) -> list[FittedBlock]:
        """Fit, and give every block."""
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
        if len(self.plan.places) == 1:  # each is one task, and goes to whoever is free
            return threads + 1
        return max(4, _OPEN_PER_THREAD * threads)

    def _fit_block(self, number: int) -> None:
        """Fit a block, from its last snapshot on, again and again where its work is lost."""
        block, end = self._begun(number), None
        while end is None:
            known = self.store.get(number)
            try:
                end = self._course(block, known) if known is None or known.end is None else known.end
            except LOST as error:
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
        """Go from a snapshot, or from 0, to the end: rounds, looks at the gap, the certificate."""
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
        else:  # all rows are together, and so are all rounds
            end = self._result(block, "whole")
        self.store.put(block.number, Snapshot(end.rounds, np.inf, None, (), end))
        return end  # type: ignore[no-any-return]

    def _round(self, block: BlockFit, state: BlockState, *, is_full: bool) -> tuple[BlockState, float]:
        """Let a block visit all rows; return its state after it, and the gap that it met."""
        with self.lock:
            self._tell()
            tasks = self._tasks(block)
            state, gap = tasks.round(block.rounds, self.plan.seed, state, is_full=is_full)
            waited, traveller, *seats = self._computed([gap, *state.parts])
        (met_gap,) = self._fetched([waited], block)
        block.rounds += 1
        if block.rounds > block.furthest:
            block.furthest, block.losses, block.kills = block.rounds, 0, 0
        with self.lock:
            self.rounds += 1
        return BlockState(traveller, tuple(seats)), met_gap

    def _result(self, block: BlockFit, name: str, *given: Any) -> Any:
        """Have a task of a block done, by its name in :class:`BlockTasks`."""
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
        """Bring a snapshot to where its block finds the partitions."""
        with self.lock:
            homes = self._homes(block)
        seats = [self._scattered(*one) for one in zip(known.seats, homes, strict=True)]
        return BlockState(self._scattered(known.traveller, None), tuple(seats))

    def _scattered(self, value: Any, worker: str | None) -> Future:
        return scattered(self.client, [value], worker)[0]

    def _homes(self, block: BlockFit) -> list[str | None]:
        """Say at which worker a block finds each partition."""
        self._look()
        homes = [places[block.slot % len(places)] if places else None for places in self.homes]
        block.asked.update(home for home in homes if home is not None)
        return homes

    def _look(self) -> None:
        """Look up where partitions are, every few seconds."""
        if time.monotonic() - self.looked > _LOOK_EVERY:
            held = self.client.who_has(list(self.plan.partitions))
            places = [list(held.get(part.key, ())) for part in self.plan.partitions]
            is_filed = self.plan.places[0].is_filed  # many files at once would be sent through memory
            self.homes = (
                [at[:1] for at in places] if is_filed else spread(places, list(self.client.nthreads()))
            )
            self.looked = time.monotonic()

    def _fetched(self, futures: Sequence[Future], block: BlockFit) -> list[Any]:
        """Fetch results; raise one of LOST where only a dead worker could make them, or not within a minute.

        The minute is for results that are there to come.
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
        """Raise an error where the fit is over, or a worker gone that tasks may wait for; explain silence.

        Tasks of rows in files have no other worker.
        """
        if self.is_over:
            raise InterruptedFitError
        workers = set(self.client.nthreads()) if self.plan.places[0].is_filed else set()
        if workers and not workers.issuperset(block.asked):
            raise CommClosedError("a worker is gone")
        with self.lock:
            if time.monotonic() - self.heard > SILENCE:
                self.heard = time.monotonic()
                warn_of_silence(self.client, stacklevel=7)

    def _note_loss(self, block: BlockFit, error: BaseException) -> None:
        """Count a loss, after which a block begins again; end the fit if there are too many."""
        block.losses += 1
        block.kills += isinstance(error, KilledWorker)
        if block.losses > _MOST_LOSSES or block.kills >= MOST_KILLS:
            refuse_to_go_on(error)
        for future in [*self.plan.partitions, self.plan.common]:
            if future.status == "cancelled":
                refuse_lost_rows()
            if future.status == "error":
                try_again(future)
        block.attempt += 1
        self.looked = -np.inf

    def _saved_when_due(self, block: BlockFit, check_below: float, state: BlockState) -> BlockState:
        """Keep the state of a block, if enough was done since the last time; return where it is then."""
        begun = time.monotonic()
        is_dear = self.saving > _COST_SHARE * (begun - self.begun)
        if is_dear or begun - block.saved < _SHORTEST:
            return state
        try:
            traveller, *seats = self._fetched(state.parts, block)
        except LOST:
            return state  # it is noticed when the next round fails
        snapshot = Snapshot(block.rounds, check_below, traveller, tuple(seats))
        self.store.put(block.number, snapshot)
        block.saved = time.monotonic()
        with self.lock:
            self.saving += block.saved - begun
        # what came before can be forgotten, and need not be computed again
        return self._placed(block, snapshot)


class InterruptedFitError(RuntimeError):
    """The fit that a thread works for was ended."""


def spread(held: list[list[str]], workers: list[str]) -> list[list[str]]:
    """Choose workers for every partition: one that has it, or where too many are with that one the idlest.

    Where partitions are fewer than workers each has several, which then all keep it.
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
