"""Partitions on a cluster: functions of each of them, sums in pairs, and rows brought to the client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from distributed import Client, Future

import dask
from labelweave.dask.filed import in_memory_or_file
from labelweave.dask.graphs import in_pairs
from labelweave.dask.rows import ReadRows, stacked, stacked_entries
from labelweave.dask.waiting import PAUSE, LostRowsError, gathered, scattered
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers

_MOST_LOSSES = 20  # of one product whose tables were lost with a worker


class Parts:
    """Partitions of rows on the cluster.

    futures: one per partition; sizes: their rows; slices: their positions among all rows.
    """

    def __init__(self, client: Client, futures: Sequence[Future], sizes: Sequence[int]) -> None:
        self.client, self.futures = client, list(futures)
        self.sizes, ends = list(sizes), np.cumsum(sizes).tolist()
        self.slices = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]

    @property
    def begins(self) -> list[int]:
        """The first row of each partition, among all rows."""
        return [rows.start for rows in self.slices]

    def of(self, futures: Sequence[Future]) -> Parts:
        """Wrap values computed from the same rows."""
        made = copy(self)
        made.futures = list(futures)
        return made

    def at(
        self,
        of_part: Callable[..., Any],
        which: Array,
        *given: Any,
        stack: Callable[[Any], Any] = np.concatenate,
    ) -> Any:
        """Call a function of every partition, of positions in it, and of further arguments.

        Returns its results for these rows, stacked in their order.
        """
        order = np.argsort(which, kind="stable")
        own = np.split(which[order], np.searchsorted(which[order], [part.stop for part in self.slices[:-1]]))
        parts = list(zip(self.futures, self.slices, own, strict=True))
        # if no row is requested, the first partition returns an empty result
        some = [part for part in parts if len(part[2])] or parts[:1]

        def send() -> list[Future]:
            sent = scattered(self.client, given)
            return [
                self.client.submit(of_part, part, places - rows.start, *sent, pure=False)
                for part, rows, places in some
            ]

        found = stack(self.done(send))
        back = np.argsort(order, kind="stable")
        return found.rows(back) if isinstance(found, FeatureMatrix) else found[back]

    def mapped(self, of_rows: Callable[..., Any], which: Array) -> Any:
        """Call a function on the features of some rows; return the results in their order."""
        return self.at(_of_some_rows, which, of_rows)

    def features_at(self, which: Array) -> FeatureMatrix:
        """Bring the features of some rows to the client."""
        made: FeatureMatrix = self.at(_features_at, which, stack=stacked)
        return made

    def each(self, of_part: Callable[..., Any], table: Any) -> list[Any]:
        """Call a function of every partition and the same table; return the results in order."""

        def send() -> list[Future]:
            (sent,) = scattered(self.client, [table])
            return [self.client.submit(of_part, part, sent, pure=False) for part in self.futures]

        return self.done(send)

    def gathered(self, of_part: Callable[..., Any]) -> list[Any]:
        """Call a function of every partition; return the results in order."""
        return self.done(lambda: list(self.client.map(of_part, self.futures, pure=False)))

    def summed(self, of_part: Callable[..., Any], *by_row: Any) -> Any:
        """Sum a function of every partition and its rows of tables, in pairs."""

        def send() -> list[Future]:
            called = dask.delayed(of_part, pure=False)
            parts = []
            for part, rows in zip(self.futures, self.slices, strict=True):
                own = scattered(self.client, [table[rows] for table in by_row])
                parts.append(called(part, *own))
            total = in_pairs(parts, f"sum-{dask.base.tokenize(object())}")
            return list(self.client.compute([total], optimize_graph=False))

        return self.done(send)[0]

    def done(self, send: Callable[[], list[Future]]) -> list[Any]:
        """Send tasks and gather their results, again if their tables were lost with a worker."""
        for _ in range(_MOST_LOSSES):
            try:
                sent = send()
            except OSError:  # a worker died while it received a table
                time.sleep(PAUSE)
                continue
            try:
                return gathered(self.client, sent)
            except LostRowsError:
                if any(part.status == "cancelled" for part in self.futures):
                    raise
        raise RuntimeError(f"Workers with the tables of a product died {_MOST_LOSSES} times; see their logs.")


class Kept:
    """Futures of data kept on workers; built on first use, and again if some are lost with a worker."""

    def __init__(self, make: Callable[[], list[Future]]) -> None:
        self._make, self._futures = make, list[Future]()

    @classmethod
    def of(cls, client: Client, values: Sequence[Any]) -> Kept:
        """Keep values that the client sends."""
        return cls(lambda: scattered(client, values))

    def futures(self, *, is_lost: bool = False) -> list[Future]:
        if is_lost or not self._futures or any(future.status == "cancelled" for future in self._futures):
            self._futures = self._make()
        return self._futures

    def hold(self, futures: list[Future]) -> None:
        self._futures = futures


def joined_rows(parts: Sequence[ReadRows]) -> ReadRows:
    features, targets, weights, entries = (
        [getattr(part, name) for part in parts] for name in ("features", "targets", "weights", "entries")
    )
    return replace(
        parts[0],
        features=in_memory_or_file(stacked(features)),
        targets=stacked(targets),
        weights=stacked(weights),
        entries=None if entries[0] is None else stacked_entries(entries),
    )


def _of_some_rows(rows: ReadRows, places: Array, of_rows: Callable[..., Any]) -> Array:
    with Workers().running():
        return np.asarray(of_rows(rows.features.rows(places)))


def _features_at(rows: ReadRows, places: Array) -> FeatureMatrix:
    return rows.features.rows(places)
