"""Incomplete Cholesky factors of kernel matrices whose rows are partitions on a cluster.

The client chooses the pivots, with the residual diagonal and the entries between candidates; workers
compute the columns of accepted pivots where rows are, and keep their
rows of the factor.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from labelweave.dask.data import ReadData
from labelweave.dask.filed import in_memory_or_file
from labelweave.dask.parts import Parts
from labelweave.dask.rows import ReadRows, Sized, itself
from labelweave.dask.waiting import SAY_EVERY
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram.low_rank import GrowingRows, new_entries
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers


@dataclass(frozen=True)
class FactorRows(Sized):
    """A partition's rows of a factor.

    columns: arrays of shape (n, k), in the order of computation.
    left (n,): the residual diagonal.
    """

    columns: tuple[Array, ...]
    left: Array


@dataclass(frozen=True)
class Pivots(Sized):
    """Columns to add.

    features (k, d): of the pivots; known (k, r): their rows of the factor.
    active (r,), new (k,): the row numbers of previous and of these pivots, among all rows.
    """

    kernel: Kernel
    features: FeatureMatrix
    known: Array
    triangle: Array
    slack: float
    active: Array
    new: Array


def _begun(rows: ReadRows, kernel: Kernel) -> FactorRows:
    return FactorRows((), kernel.diagonal(rows.features).astype(np.float64))


def _extended(factor: FactorRows, rows: ReadRows, pivots: Pivots, begin: int) -> FactorRows:
    with Workers().running():
        residual = pivots.kernel.block(rows.features, pivots.features).astype(np.float64)
        done = 0
        for columns in factor.columns:
            residual -= columns @ pivots.known[:, done : done + columns.shape[1]].T
            done += columns.shape[1]
        left = factor.left.copy()
        made = np.ascontiguousarray(new_entries(residual, pivots.triangle, left, pivots.slack))
    # at pivots the values are exact
    own, places = _own(pivots.active, begin, len(left))
    made[places] = 0
    own, places = _own(pivots.new, begin, len(left))
    made[places] = pivots.triangle[own]
    return FactorRows((*factor.columns, made), left)


def _own(which: Array, begin: int, n_rows: int) -> tuple[Array, Array]:
    """Return which of some rows a partition has, and their positions."""
    own = np.flatnonzero((which >= begin) & (which < begin + n_rows))
    return own, which[own] - begin


def _at(factor: FactorRows, places: Array) -> Array:
    return np.hstack([np.empty((len(places), 0)), *(columns[places] for columns in factor.columns)])


def _diagonal(rows: ReadRows, kernel: Kernel) -> Array:
    return kernel.diagonal(rows.features).astype(np.float64)


def _as_features(rows: ReadRows, factor: FactorRows) -> ReadRows:
    table = np.hstack([np.empty((len(factor.left), 0)), *factor.columns])
    return replace(rows, features=in_memory_or_file(FeatureMatrix._unchecked(table)))


class PartitionedKernelMatrix(GrowingRows):
    """A kernel matrix of rows on the cluster, and the rows of its factor.

    make: returns features of rows that workers have read.
    is_verbose: whether to write the number of columns to stderr every two seconds.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self, client: Client, read: ReadData, kernel: Kernel, make: Callable[[ReadData], FeatureMatrix], *,
        is_verbose: bool = False,
    ) -> None:  # fmt: skip
        self._client, self._read, self._kernel, self._make = client, read, kernel, make
        self._parts = Parts(client, read.rows, [facts.n_rows for facts in read.facts])
        self.n_rows = read.n_rows
        self._active = np.empty(0, np.int64)
        self._is_verbose, self._said = is_verbose, time.monotonic()

    @cached_property
    def _factor(self) -> Parts:
        begun = self._client.map(_begun, self._parts.futures, kernel=self._kernel, pure=False)
        return self._parts.of(begun)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return np.concatenate(self._parts.each(_diagonal, self._kernel))

    def block(self, rows: Any, columns: Any, dtype: npt.DTypeLike) -> Array:
        """Compute the entries of some rows and columns, on the client."""
        left, right = (self._parts.features_at(np.arange(self.n_rows)[which]) for which in (rows, columns))
        return np.asarray(self._kernel.block(left, right), dtype)

    def corner(self, which: Array) -> Array:
        features = self._parts.features_at(which)
        return np.asarray(self._kernel.block(features, features), np.float64)

    def known(self, which: Array) -> Array:
        return np.asarray(self._factor.at(_at, which))

    def append(self, pivots: Array, triangle: Array, slack: float) -> npt.NDArray[np.float64]:
        given = Pivots(
            self._kernel, self._parts.features_at(pivots), self.known(pivots), triangle, slack,
            self._active, pivots,
        )  # fmt: skip
        sent = self._client.submit(itself, given, pure=False)
        self._factor = self._parts.of(
            [
                self._client.submit(_extended, factor, rows, sent, begin, pure=False)
                for factor, rows, begin in zip(
                    self._factor.futures, self._parts.futures, self._parts.begins, strict=True
                )
            ]
        )
        self._active = np.concatenate([self._active, pivots])
        left = np.concatenate(self._factor.gathered(attrgetter("left")))
        if self._is_verbose and time.monotonic() - self._said > SAY_EVERY:
            self._said = time.monotonic()
            sys.stderr.write(f"labelweave: {len(self._active)} columns of a factor of the kernel matrix\n")
        return left

    def of_rows(self, kept: Array) -> PartitionedKernelMatrix:
        read = self._read.some_rows(self._client, kept)
        return PartitionedKernelMatrix(
            self._client, read, self._kernel, self._make, is_verbose=self._is_verbose
        )

    def finished(self) -> FeatureMatrix:
        rows = self._client.map(_as_features, self._parts.futures, self._factor.futures, pure=False)
        return self._make(self._read.with_features(self._client, rows))
