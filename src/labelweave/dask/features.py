"""Features whose rows are partitions on a cluster, as the solvers of one machine see features.

A product with the features is one task a partition, and what is added over rows is added in pairs, in the
order of the partitions: its bits depend on these alone.  Tables with an entry a row are on the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client, Future
from distributed.comm import CommClosedError

import dask
from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.dask.data import ReadData
from labelweave.dask.graphs import in_pairs
from labelweave.dask.rows import ReadRows, Sized, aligned
from labelweave.dask.waiting import LostRowsError, gathered
from labelweave.features import FeatureMatrix
from labelweave.features.factor_maps import FactorMap, explicit_map

_PAUSE = 0.5  # seconds before tables are sent again
_MOST_LOSSES = 20  # of one product, whose tables died with a worker


class Mapped(Sized):
    """The features of a partition as a map of factors."""

    def __init__(self, rows: ReadRows, constant: float, dtype: npt.DTypeLike) -> None:
        features = rows.features.astype(dtype)
        table = (features.with_constant(constant) if constant else features).data
        self.map = explicit_map(table, dtype, Workers())

    def product(self, name: str, table: Array) -> Array:
        """Call a method of the map, which gives an array."""
        with Workers().running():
            return np.asarray(getattr(self.map, name)(aligned(table)))


def _of_rows(of_rows: Callable[..., Any], rows: ReadRows, *by_row: Any) -> Any:
    with Workers().running():
        return of_rows(rows.features, *map(aligned, by_row))


def _of_some_rows(rows: ReadRows, of_rows: Callable[..., Any], which: Array) -> Array:
    with Workers().running():
        return np.asarray(of_rows(rows.features.rows(which)))


class Parts:
    """Partitions of rows on the cluster.

    futures: one a partition; sizes: their rows.
    """

    def __init__(self, client: Client, futures: Sequence[Future], sizes: Sequence[int]) -> None:
        self.client, self.futures = client, list(futures)
        ends = np.cumsum(sizes).tolist()
        self._slices = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]

    def mapped(self, of_rows: Callable[..., Any], which: Array) -> Array:
        """Call a function of some rows of every partition; put the results in the order of these rows."""
        order = np.argsort(which, kind="stable")
        own = np.split(which[order], np.searchsorted(which[order], [part.stop for part in self._slices[:-1]]))

        def send() -> list[Future]:
            function = self.client.scatter(of_rows, hash=False)
            parts = zip(self.futures, self._slices, own, strict=True)
            return [
                self.client.submit(_of_some_rows, part, function, places - rows.start, pure=False)
                for part, rows, places in parts
                if len(places)
            ]

        found = np.concatenate(self._done(send))
        made = np.empty_like(found)
        made[order] = found
        return made

    def each(self, of_part: Callable[..., Any], table: Any) -> list[Any]:
        """Call a function of every partition and the same table; give the results in order."""

        def send() -> list[Future]:
            sent = self.client.scatter(table, hash=False)
            return [self.client.submit(of_part, part, sent, pure=False) for part in self.futures]

        return self._done(send)

    def summed(self, of_part: Callable[..., Any], *by_row: Any) -> Any:
        """Call a function of every partition and the rows of tables that it has; add the results in pairs."""

        def send() -> list[Future]:
            called = dask.delayed(of_part, pure=False)
            parts = []
            for part, rows in zip(self.futures, self._slices, strict=True):
                own = self.client.scatter([table[rows] for table in by_row], hash=False)
                parts.append(called(part, *own))
            total = in_pairs(parts, f"sum-{dask.base.tokenize(object())}")
            return list(self.client.compute([total], optimize_graph=False))

        return self._done(send)[0]

    def _done(self, send: Callable[[], list[Future]]) -> list[Any]:
        """Send tasks and gather what they give, anew where their tables died with a worker."""
        for _ in range(_MOST_LOSSES):
            try:
                return gathered(self.client, send())
            except LostRowsError:
                if any(part.status == "cancelled" for part in self.futures):
                    raise
            except (CommClosedError, OSError):  # a worker that is sent a table is dying
                time.sleep(_PAUSE)
        raise RuntimeError(
            f"Workers that had the tables of a product died {_MOST_LOSSES} times; see their logs."
        )


class PartitionedMap(FactorMap):
    """From a factor of the features (d, k) to its image of all rows (n, k), by products on the cluster."""

    def __init__(self, parts: Parts, shape: tuple[int, int], constant: float, dtype: npt.DTypeLike) -> None:
        self.shape, self.dtype = (shape[0], shape[1] + (constant != 0)), np.dtype(dtype)
        self._rows, self._constant = parts, constant

    @cached_property
    def _parts(self) -> Parts:
        client, made = self._rows.client, copy(self._rows)
        made.futures = [
            client.submit(Mapped, part, self._constant, self.dtype, pure=False) for part in made.futures
        ]
        return made

    def image(self, factor: Array) -> Array:
        return np.concatenate(self._parts.each(_image, factor))

    def __matmul__(self, factor: Array) -> Array:
        return self.image(np.asarray(factor, self.dtype))

    def toarray(self) -> Array:
        """Bring the features to the client; where there are fewer of them than labels."""
        return self.image(np.eye(self.shape[1], dtype=self.dtype))

    def gradient(self, derivatives: Array) -> Array:
        return np.asarray(self._parts.summed(_gradient, derivatives))

    def squares(self, weights: Array) -> Array:
        return np.asarray(self._parts.summed(_squares, weights))


def _image(part: Mapped, factor: Array) -> Array:
    return part.product("image", factor)


def _gradient(part: Mapped, derivatives: Array) -> Array:
    return part.product("gradient", derivatives)


def _squares(part: Mapped, weights: Array) -> Array:
    return part.product("squares", weights)


class PartitionedFeatures(FeatureMatrix):
    """The features of rows that were read on the cluster."""

    is_apart = True

    def __init__(self, client: Client, read: ReadData) -> None:
        self.names, self._client, self._read = read.facts[0].names, client, read
        self._parts = Parts(client, read.rows, [facts.n_rows for facts in read.facts])
        self._facts, self._constant = list(read.facts), 0.0
        self._dtype: np.dtype[Any] = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return sum(facts.n_rows for facts in self._facts), self._facts[0].n_features + (self._constant != 0)

    @property
    def is_sparse(self) -> bool:
        return self.row_counts() is not None

    def __repr__(self) -> str:
        return f"PartitionedFeatures({self.shape[0]} rows, {self.shape[1]} features)"

    @property
    def data(self) -> PartitionedMap:
        """The map that stands for the table."""
        shape = self.shape[0], self._facts[0].n_features
        return PartitionedMap(self._parts, shape, self._constant, self._dtype)

    @property
    def marks(self) -> Any:
        return [facts.mark for facts in self._facts]

    def summed(self, of_rows: Callable[..., Any], *by_row: Any) -> Any:
        def of_part(part: ReadRows, *own: Any) -> Any:
            return _of_rows(of_rows, part, *own)

        return self._parts.summed(of_part, *by_row)

    def astype(self, dtype: npt.DTypeLike) -> PartitionedFeatures:
        made = copy(self)
        made._dtype = np.dtype(dtype)
        return made

    def with_constant(self, value: float) -> PartitionedFeatures:
        made = copy(self)
        made._constant = value
        return made

    def rows(self, which: Any) -> FeatureMatrix:
        made = PartitionedFeatures(self._client, self._read.some_rows(self._client, np.asarray(which)))
        made._constant, made._dtype = self._constant, self._dtype
        return made

    def mapped(self, of_rows: Callable[..., Any], which: Any, size: int) -> Any:
        return self._parts.mapped(of_rows, np.asarray(which))

    def row_counts(self) -> npt.NDArray[Any] | None:
        counts = self._parts.each(_row_counts, None)
        return None if any(part is None for part in counts) else np.concatenate(counts)

    def squared_norms(self) -> npt.NDArray[np.float64]:
        return np.concatenate(self._parts.each(_squared_norms, None))

    def largest_entry(self) -> float:
        return max(facts.largest for facts in self._facts)


def _row_counts(part: ReadRows, _: None) -> Any:
    return part.features.row_counts()


def _squared_norms(part: ReadRows, _: None) -> Array:
    return part.features.squared_norms()
