"""The tasks of a label block as Dask graphs: a round of visits, a look at the gap, the certificate."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask._task_spec import Task, TaskRef
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from labelweave.array_types import Array
from labelweave.dask import tasks


class At:
    """Say at which worker a task is to be done, by its key; others do it where that one is gone."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def __call__(self, key: Any) -> list[str] | None:
        place = self.places.get(key)
        return None if place is None else [place]


@dataclass(frozen=True)
class Stop:
    """Where rows are: the partition that has them, and which of its stops they are."""

    partition: int
    stop: int


@dataclass(frozen=True)
class BlockKeys:
    """The keys of a block's state, None at its begin: its traveller and its seats, stop by stop."""

    traveller: str | None
    seats: tuple[str | None, ...]

    @property
    def all(self) -> list[str]:
        """Those of a block that has begun."""
        return [key for key in (self.traveller, *self.seats) if key is not None]


class BlockGraphs:
    """Makes the graphs of one block of labels.

    name: what keys begin with, other in each attempt.
    stops: all of them, those of a partition together.
    partitions: the keys of the partitions; common: that of what they share.
    """

    def __init__(
        self,
        name: str,
        block: int,
        labels: Array,
        stops: Sequence[Stop],
        partitions: Sequence[str],
        common: str,
    ) -> None:
        self.name, self.block, self.labels = name, block, labels
        self.stops, self.partitions, self.common = stops, partitions, common
        self.seats_of = [
            [place for place, stop in enumerate(stops) if stop.partition == number]
            for number in range(len(partitions))
        ]

    def round(self, number: int, order: Array, at: BlockKeys, is_full: bool) -> tuple[Graph, BlockKeys, str]:
        """Let the block visit every stop in an order; give its state then and the key of the gap met."""
        graph, name = Graph(), f"{self.name}-{number}"
        traveller, seats = at.traveller, list(at.seats)
        for place in order:
            stop, seat = self.stops[place], seats[place]
            key, seats[place] = f"visit-{name}-{place}", f"seat-{name}-{place}"
            graph.add(
                key, tasks.visit, TaskRef(self.partitions[stop.partition]), stop.stop, self.block,
                self.labels, TaskRef(self.common), is_full, _ref(traveller), _ref(seat),
                partition=stop.partition,
            )  # fmt: skip
            # the next visit takes the pair: a task for the traveller would double the way of a round
            graph.add(seats[place], operator.itemgetter(1), TaskRef(key), partition=stop.partition)
            traveller = key
        ended, gap = f"round-{name}", f"gap-{name}"
        graph.add(ended, tasks.round_ended, _ref(traveller), TaskRef(self.common))
        graph.add(gap, tasks.met_gap, TaskRef(ended))
        return graph, BlockKeys(ended, tuple(seats)), gap

    def _by_partition(
        self, graph: Graph, prefix: str, of_rows: Callable[..., Any], at: BlockKeys, *others: Any
    ) -> list[str]:
        keys = []
        for number, (partition, places) in enumerate(zip(self.partitions, self.seats_of, strict=True)):
            seats = [_ref(at.seats[place]) for place in places]
            keys.append(f"{prefix}-{number}")
            graph.add(keys[-1], of_rows, TaskRef(partition), self.labels, *others, *seats, partition=number)
        return keys

    def check(self, number: int, at: BlockKeys) -> tuple[Graph, str]:
        """Compute primal and dual value at the weights in use."""
        graph, name = Graph(), f"{self.name}-{number}"
        sums = self._by_partition(graph, f"sums-{name}", tasks.sums_in_use, at, _ref(at.traveller))
        key = f"check-{name}"
        graph.add(key, tasks.values_in_use, _ref(at.traveller), TaskRef(self.common), *map(TaskRef, sums))
        return graph, key

    def certificate(self, number: int, at: BlockKeys) -> tuple[Graph, str]:
        """Make weights anew from the variables in double precision, and measure them."""
        graph, name = Graph(), f"{self.name}-{number}"
        parts = self._by_partition(graph, f"product-{name}", tasks.exact_product, at)
        depth = 0
        while len(parts) > 1:
            pairs = list(zip(parts[::2], parts[1::2], strict=False))
            added = [f"weights-{name}-{depth}-{pair}" for pair in range(len(pairs))]
            for key, (first, second) in zip(added, pairs, strict=True):
                graph.add(key, operator.add, TaskRef(first), TaskRef(second))
            parts, depth = added + parts[2 * len(pairs) :], depth + 1
        weights = TaskRef(parts[0])
        sums = self._by_partition(graph, f"exact-{name}", tasks.exact_sums, at, weights, _ref(at.traveller))
        key = f"settled-{name}"
        common = TaskRef(self.common)
        graph.add(
            key, tasks.settled, weights, _ref(at.traveller), self.labels, number, common, *map(TaskRef, sums)
        )
        return graph, key

    def whole(self) -> tuple[Graph, str]:
        """Fit the block where all rows are together."""
        graph, key = Graph(), f"fitted-{self.name}"
        partition, common = TaskRef(self.partitions[0]), TaskRef(self.common)
        graph.add(key, tasks.fitted, partition, self.block, self.labels, common, partition=0)
        return graph, key


class Graph:
    """Tasks by key, and the partitions where they are to be done."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.partition_of: dict[str, int] = {}

    def add(
        self, key: str, function: Callable[..., Any], *arguments: Any, partition: int | None = None
    ) -> None:
        """Add a task; arguments are values and references to others."""
        self.tasks[key] = Task(key, function, *arguments)
        if partition is not None:
            self.partition_of[key] = partition

    def placed(self, homes: Sequence[str | None]) -> HighLevelGraph:
        """Give the graph as Dask takes it, with the workers that have the partitions."""
        places = {key: homes[number] for key, number in self.partition_of.items()}
        where = {key: home for key, home in places.items() if home is not None}
        layer = MaterializedLayer(self.tasks, annotations={"workers": At(where), "allow_other_workers": True})
        return HighLevelGraph({"labelweave": layer}, {"labelweave": set()})


def _ref(key: str | None) -> TaskRef | None:
    return None if key is None else TaskRef(key)


def order_of_round(seed: int, number: int, block: int, n_stops: int) -> Array:
    """Draw the order of a round: the same for all blocks, who begin at different places in it."""
    order = np.random.default_rng(np.random.SeedSequence((seed, number), spawn_key=(1,))).permutation(n_stops)
    return np.roll(order, -block)
