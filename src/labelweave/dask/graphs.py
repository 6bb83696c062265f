"""The tasks of a label block: a round of visits, a check of the gap, the certificate.

They are Dask delayed values with a preferred worker; others run them if it is gone
or busy, unless rows are in files.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

import dask
from labelweave.dask import tasks
from labelweave.foundation.array_types import Array
from labelweave.problems.traveling_margins import CONCURRENT_VISITS, brought_together


@dataclass(frozen=True)
class Place:
    """Rows on the cluster: the future of a partition, and the number of visits per round.

    is_filed: whether the rows are in a file of the worker, and must not be sent to another.
    """

    partition: Any
    visits: int
    is_filed: bool = False


@dataclass(frozen=True)
class BlockState:
    """The state of a block, None at its start: the shared one, and that of the rows of each partition."""

    shared: Any
    states: tuple[Any, ...]

    @property
    def parts(self) -> list[Any]:
        """The parts of a started block."""
        return [part for part in (self.shared, *self.states) if part is not None]


class BlockTasks:
    """Makes the tasks of one block of labels.

    name: the prefix of keys, different in each attempt.
    common: the future of shared data.
    homes: the worker of each partition for the block; None for any.
    is_coupled: whether a covariance couples the labels.
    """

    def __init__(
        self, name: str, block: int, labels: Array, places: Sequence[Place], common: Any,
        homes: Sequence[str | None], *, is_coupled: bool,
    ) -> None:  # fmt: skip
        self.name, self.block, self.labels = name, block, labels
        self.places, self.common, self.homes, self.is_coupled = places, common, homes, is_coupled

    def _task(self, key: str, home: str | None, of: Callable[..., Any], *given: Any, **more: Any) -> Any:
        made = dask.delayed(of, pure=False)
        if home is None:
            return made(*given, dask_key_name=key, **more)
        # another worker would receive rows in files through memory
        with dask.annotate(workers=[home], allow_other_workers=not self.places[0].is_filed):
            return made(*given, dask_key_name=key, **more)

    def round(self, number: int, seed: int, at: BlockState, *, is_full: bool) -> tuple[BlockState, Any]:
        """Visit all rows; return the new state and the gap that the visits found."""
        name, shared, states = f"{self.name}-{number}", at.shared, list(at.states)
        counts = [place.visits for place in self.places]
        done = [0] * len(counts)
        if self.is_coupled:
            turns = turns_of_round(seed, number, counts, CONCURRENT_VISITS)
            if shared is None:
                first = self.places[0].partition
                shared = self._task(f"begun-{name}", self.homes[0], tasks.begun, first, self.labels)
        else:
            turns = [[place] for place in order_of_round(seed, number, self.block, counts)]
        for turn, places in enumerate(turns):
            came = []
            for at_place in places:
                step, home = f"{name}-{turn}-{at_place}", self.homes[at_place]
                visit = tasks.Visit(number, is_full, done[at_place], counts[at_place])
                pair = self._task(
                    f"visit-{step}", home, tasks.visit, self.places[at_place].partition, visit, self.block,
                    self.labels, self.common, shared, states[at_place],
                )  # fmt: skip
                came.append(pair)
                states[at_place] = self._task(f"state-{step}", home, operator.itemgetter(1), pair)
                done[at_place] += 1
            shared = self._together(f"{name}-{turn}", shared, places, came)
        ended = self._task(
            f"round-{name}", None, tasks.round_ended, shared, self.labels, self.common, was_full=is_full
        )
        return BlockState(ended, tuple(states)), self._task(f"gap-{name}", None, tasks.met_gap, ended)

    def _together(self, name: str, before: Any, places: Sequence[int], came: Sequence[Any]) -> Any:
        """Join the results of simultaneous visits, each a pair of a shared state and states of rows."""
        if not self.is_coupled:
            return came[0]  # the pair: a separate task would double the latency of a round
        first = operator.itemgetter(0)  # states of many labels are not sent
        moved = [
            self._task(f"moved-{name}-{place}", self.homes[place], first, pair)
            for place, pair in zip(places, came, strict=True)
        ]
        return self._task(f"together-{name}", None, brought_together, before, moved)

    def _at_places(self, prefix: str, of_rows: Callable[..., Any], at: Sequence[Any], *others: Any) -> Any:
        return [
            self._task(f"{prefix}-{number}", home, of_rows, place.partition, self.labels, *others, state)
            for number, (place, home, state) in enumerate(zip(self.places, self.homes, at, strict=True))
        ]

    def check(self, number: int, at: BlockState) -> Any:
        """Compute the primal and dual value at the current weights."""
        name = f"{self.name}-{number}"
        sums = self._at_places(f"sums-{name}", tasks.summed, at.states, "sums_in_use", at.shared)
        return self._task(
            f"check-{name}", None, tasks.values_in_use, at.shared, self.labels, self.common, *sums
        )

    def certificate(self, number: int, at: BlockState) -> Any:
        """Recompute weights from the variables in double precision, and evaluate them."""
        name = f"{self.name}-{number}"
        products = self._at_places(f"product-{name}", tasks.summed, at.states, "exact_product")
        product = in_pairs(products, f"sum-{name}")
        of_all = self.labels, self.common
        weights = self._task(f"weights-{name}", None, tasks.exact_weights, product, *of_all)
        constants = self._task(f"constants-{name}", None, tasks.exact_constants, at.shared, *of_all)
        sums = self._at_places(f"exact-{name}", tasks.exact_sums, at.states, weights, constants)
        return self._task(
            f"settled-{name}", None, tasks.settled, weights, constants, at.shared, self.labels, number,
            self.common, *sums,
        )  # fmt: skip

    def whole(self) -> Any:
        """Fit the block where all rows are in one place."""
        partition, home = self.places[0].partition, self.homes[0]
        return self._task(
            f"fitted-{self.name}", home, tasks.fitted, partition, self.block, self.labels, self.common
        )


def in_pairs(parts: Sequence[Any], name: str) -> Any:
    """Sum delayed values in pairs, so that the bits of the sum depend only on their order."""
    parts, depth = list(parts), 0
    while len(parts) > 1:
        add = dask.delayed(operator.add, pure=False)
        pairs = list(zip(parts[::2], parts[1::2], strict=False))
        added = [add(*pair, dask_key_name=f"{name}-{depth}-{place}") for place, pair in enumerate(pairs)]
        parts, depth = added + parts[2 * len(pairs) :], depth + 1
    return parts[0]


def order_of_round(seed: int, number: int, block: int, counts: Sequence[int]) -> list[int]:
    """Draw the order in which a block visits partitions in a round, each as often as it has visits.

    It is the same for all blocks, which start at different positions.
    """
    random = np.random.default_rng(np.random.SeedSequence((seed, number), spawn_key=(1,)))
    order: list[int] = []
    for turn in range(max(counts)):
        left = np.flatnonzero(np.asarray(counts) > turn)
        order.extend(random.permutation(left).tolist())
    begin = block % len(order)
    return order[begin:] + order[:begin]


def turns_of_round(seed: int, number: int, counts: Sequence[int], abreast: int) -> list[list[int]]:
    """Draw which places coupled labels visit at the same time, turn by turn, until each had its visits.

    Places of a turn are far apart: neighbors are on the same worker.
    """
    random = np.random.default_rng(np.random.SeedSequence((seed, number), spawn_key=(1,)))
    turns: list[list[int]] = []
    for turn in range(max(counts)):
        left = np.flatnonzero(np.asarray(counts) > turn)
        stretches = [random.permutation(stretch).tolist() for stretch in np.array_split(left, abreast)]
        turns.extend([place for place in found if place is not None] for found in zip_longest(*stretches))
    return turns
