"""The client's side of a fit: which block does what next, what is kept, and what becomes of lost work.

Each block of labels goes its own way: a round of visits, a look at the gap when the gap that was met says
that it may be small enough, the certificate.  Nothing that a block becomes depends on when its tasks were
done, on which worker, or on what was done twice.  What a dead worker had is computed again: by Dask, from
what it came from; and where that is gone too, from the block's last snapshot.
"""

from __future__ import annotations

import asyncio
import queue
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future, KilledWorker
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

    state: what holds it.
    slot: which of the workers that have a partition, where there are several, does its tasks.
    furthest: the rounds that it had before it began again; losses, kills: since then, those of tasks that
        Dask gave up.
    """

    number: int
    labels: Array
    name: str
    state: BlockState
    slot: int = 0
    rounds: int = 0
    check_below: float = np.inf
    furthest: int = 0
    losses: int = 0
    kills: int = 0
    attempt: int = 0
    saved: float = 0.0


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
    """Fits all blocks."""

    def __init__(
        self, client: Client, plan: FitPlan, store: Store, on_progress: Callable[[Progress], None]
    ) -> None:
        self.client, self.plan, self.store, self.on_progress = client, plan, store, on_progress
        self.name = uuid.uuid4().hex[:8]
        self.waiting: dict[Future, tuple[BlockFit, str]] = {}
        self.arrived: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.homes: list[list[str]] = [[]] * len(plan.places)
        self.asked: set[str] = set()  # workers that tasks were sent to
        self.open_at: Counter[int] = Counter()
        self.looked = -np.inf
        self.begun, self.saving = time.monotonic(), 0.0
        self.rounds = 0

    def run(self) -> list[FittedBlock]:
        """Fit, and give every block."""
        plan = self.plan
        ends: dict[int, FittedBlock] = {}
        left = list(range(len(plan.blocks)))[::-1]
        under_way = 0
        try:
            while left or under_way:
                while left and under_way < self._most_open():
                    number = left.pop()
                    known = self.store.get(number)
                    if known is not None and known.end is not None:
                        ends[number] = known.end
                        continue
                    self._begin(number, known)
                    under_way += 1
                if under_way:
                    for block, end in self._next():
                        ends[block.number] = end
                        under_way -= 1
                self.on_progress(Progress(len(ends), len(plan.blocks), self.rounds))
        finally:
            self.waiting.clear()
        return [ends[number] for number in range(len(plan.blocks))]

    def _most_open(self) -> int:
        threads: int = sum(self.client.nthreads().values())
        if len(self.plan.places) == 1:  # each is one task, and goes to whoever is free
            return threads + 1
        return max(4, _OPEN_PER_THREAD * threads)

    def _begin(self, number: int, known: Snapshot | None) -> None:
        block = BlockFit(number, self.plan.blocks[number], f"{self.name}-{number}-0", self._no_state())
        self._look()
        slots = range(max(map(len, self.homes)) or 1)
        block.slot = min(slots, key=lambda slot: self.open_at[slot])
        self.open_at[block.slot] += 1
        block.saved = time.monotonic()
        self._place(block, known)
        self._go_on(block)

    def _go_on(self, block: BlockFit) -> None:
        """Do the next round; where all rows are together, all rounds."""
        if len(self.plan.places) > 1:
            self._do_round(block)
        else:
            self._submit(block, self._tasks(block).whole(), "certificate")

    def _no_state(self) -> BlockState:
        return BlockState(None, (None,) * len(self.plan.places))

    def _tasks(self, block: BlockFit) -> BlockTasks:
        plan, homes = self.plan, self._homes(block)
        return BlockTasks(
            block.name, block.number, block.labels, plan.places, plan.common, homes,
            is_coupled=plan.is_coupled,
        )  # fmt: skip

    def _place(self, block: BlockFit, known: Snapshot | None) -> None:
        """Bring a block to where its snapshot was taken; at 0 if there is none."""
        block.state = self._no_state()
        block.rounds, block.check_below = 0, np.inf
        if known is None:
            return
        block.rounds, block.check_below = known.rounds, known.check_below
        seats = zip(known.seats, self._homes(block), strict=True)
        placed = tuple(self._scattered(seat, home) for seat, home in seats)
        block.state = BlockState(self._scattered(known.traveller, None), placed)

    def _scattered(self, value: Any, worker: str | None) -> Future:
        return scattered(self.client, [value], worker)[0]

    def _homes(self, block: BlockFit) -> list[str | None]:
        """Say at which worker a block finds each partition."""
        self._look()
        homes = [places[block.slot % len(places)] if places else None for places in self.homes]
        self.asked.update(home for home in homes if home is not None)
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

    def _submit(self, block: BlockFit, wanted: Any, kind: str, more: Sequence[Any] = ()) -> list[Future]:
        """Send tasks; the first is what the client waits for."""
        futures = self.client.compute([wanted, *more], sync=False, optimize_graph=False)
        self.waiting[futures[0]] = block, kind
        futures[0].add_done_callback(self.arrived.put)
        return list(futures[1:])

    def _do_round(self, block: BlockFit) -> None:
        is_full = self._is_full(block.rounds)
        state, gap = self._tasks(block).round(block.rounds, self.plan.seed, block.state, is_full=is_full)
        traveller, *seats = self._submit(block, gap, "round", state.parts)
        block.state = BlockState(traveller, tuple(seats))

    @staticmethod
    def _is_full(number: int) -> bool:
        return number < 2 or number % _FULL_EVERY == 0

    def _next(self) -> list[tuple[BlockFit, FittedBlock]]:
        """Wait for a result and do what follows from it; give the block if it is done."""
        future = self._arrival()
        if future is None:
            self._leave_lost_workers()
            return []
        block, kind = self.waiting.pop(future)
        try:
            (result,) = self._fetched([future])
        except LOST as error:
            self._begin_again(block, error)
            return []
        if kind == "round":
            self._after_round(block, result)
        elif kind == "check":
            self._after_check(block, *result)
        else:
            return self._after_certificate(block, result)
        return []

    def _fetched(self, futures: Sequence[Future]) -> list[Any]:
        """Fetch results; raise TimeoutError where only a dead worker could make them, or after a minute."""
        coming = self.client.gather(list(futures), asynchronous=True)
        answer = asyncio.run_coroutine_threadsafe(coming, self.client.loop.asyncio_loop)
        begun = time.monotonic()
        try:
            while True:
                try:
                    return list(answer.result(timeout=1.0))
                except TimeoutError:
                    is_late = time.monotonic() - begun > _MOST_SECONDS
                    if answer.done() or is_late or self._waits_for_the_lost():
                        raise
        finally:
            answer.cancel()

    def _leave_lost_workers(self) -> None:
        """Begin blocks again whose tasks may wait for a worker that is gone."""
        blocks = [block for block, _ in self.waiting.values()]
        self.waiting.clear()
        self.asked.clear()
        for block in blocks:
            self._begin_again(block, CommClosedError("a worker is gone"))

    def _waits_for_the_lost(self) -> bool:
        """Tell whether tasks may wait for a worker that is gone: those of rows in files have no other."""
        if not self.plan.places[0].is_filed:
            return False
        workers = set(self.client.nthreads())
        return bool(workers) and not workers.issuperset(self.asked)

    def _arrival(self) -> Future | None:
        """Wait for a result; None if some may never come."""
        begun = time.monotonic()
        while True:
            try:
                future = self.arrived.get(timeout=1.0)
            except queue.Empty:
                if time.monotonic() - begun > SILENCE:
                    warn_of_silence(self.client, stacklevel=7)
                    begun = time.monotonic()
                if self._waits_for_the_lost():
                    return None
                continue
            if future in self.waiting:
                return future

    def _begin_again(self, block: BlockFit, error: BaseException) -> None:
        """Go on from the last snapshot of a block."""
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
        block.name = f"{self.name}-{block.number}-{block.attempt}"
        self.looked = -np.inf
        self._place(block, self.store.get(block.number))
        self._go_on(block)

    def _after_round(self, block: BlockFit, met_gap: float) -> None:
        was_full = self._is_full(block.rounds)
        block.rounds += 1
        self.rounds += 1
        if block.rounds > block.furthest:
            block.furthest, block.losses, block.kills = block.rounds, 0, 0
        if block.rounds >= self.plan.max_iter:
            self._certify(block)
        elif was_full and met_gap <= block.check_below:
            block.check_below = met_gap / 10
            self._submit(block, self._tasks(block).check(block.rounds, block.state), "check")
        else:
            self._save_when_due(block)
            self._do_round(block)

    def _after_check(self, block: BlockFit, primal: float, dual: float) -> None:
        block.check_below = max(block.check_below, 1.5 * self.plan.tol * abs(primal))
        if relative_gap(primal, dual) <= self.plan.tol:
            self._certify(block)
        else:
            self._do_round(block)

    def _certify(self, block: BlockFit) -> None:
        self._submit(block, self._tasks(block).certificate(block.rounds, block.state), "certificate")

    def _after_certificate(self, block: BlockFit, end: FittedBlock) -> list[tuple[BlockFit, FittedBlock]]:
        is_open = relative_gap(end.primal, end.dual) > self.plan.tol
        if is_open and len(self.plan.places) > 1 and block.rounds < self.plan.max_iter:
            self._do_round(block)
            return []
        block.state = self._no_state()
        self.open_at[block.slot] -= 1
        self.store.put(block.number, Snapshot(end.rounds, np.inf, None, (), end))
        return [(block, end)]

    def _save_when_due(self, block: BlockFit) -> None:
        """Keep the state of a block, if enough was done since the last time."""
        begun = time.monotonic()
        is_dear = self.saving > _COST_SHARE * (begun - self.begun)
        if is_dear or begun - block.saved < _SHORTEST:
            return
        try:
            traveller, *seats = self._fetched(block.state.parts)
        except LOST:
            return  # it is noticed when the next round fails
        snapshot = Snapshot(block.rounds, block.check_below, traveller, tuple(seats))
        self.store.put(block.number, snapshot)
        self._place(block, snapshot)  # what came before can be forgotten, and need not be computed again
        block.saved = time.monotonic()
        self.saving += block.saved - begun


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
