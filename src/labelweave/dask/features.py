"""Features in partitions on a cluster, with the interface that solvers use in memory.

A product with the features is one task per partition, and sums over rows are computed in pairs, in the
order of the partitions, which alone determine its bits.  Tables with one entry per row are on the client.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from distributed import Client

from labelweave.dask.chunks import neighbors
from labelweave.dask.data import ReadData
from labelweave.dask.entries import EntriesApart
from labelweave.dask.filed import in_memory_or_file
from labelweave.dask.kernel_factor import PartitionedKernelMatrix
from labelweave.dask.parts import Parts
from labelweave.dask.rows import ReadRows, Sized, aligned, stacked
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.factor_maps import FactorMap, explicit_map
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.problems.low_rank_factors import RowsLoss

_WORK_A_SUM = 16  # entries of joined partitions, relative to the features


class Mapped(Sized):
    """The features of neighboring partitions as a map of factors."""

    def __init__(self, rows: list[ReadRows], constant: float, dtype: npt.DTypeLike) -> None:
        features = stacked([part.features for part in rows]).astype(dtype)
        table = (features.with_constant(constant) if constant else features).data
        self.map = explicit_map(table, dtype, Workers())

    def product(self, table: Array, *, name: str) -> Array:
        """Call a method of the map that returns an array."""
        with Workers().running():
            return np.asarray(getattr(self.map, name)(aligned(table)))


def _of_rows(of_rows: Callable[..., Any], rows: ReadRows, *by_row: Any) -> Any:
    with Workers().running():
        return of_rows(rows.features, *map(aligned, by_row))


class PartitionedMap(FactorMap):
    """Map a factor of the features (d, k) to its image of all rows (n, k), by products on the cluster."""

    def __init__(
        self, parts: Parts, entries: list[int], shape: tuple[int, int], constant: float, dtype: npt.DTypeLike
    ) -> None:
        self.shape, self.dtype = (shape[0], shape[1] + (constant != 0)), np.dtype(dtype)
        self._rows, self._entries, self._constant = parts, entries, constant

    @cached_property
    def _parts(self) -> Parts:
        # partitions with few entries are joined: each makes a table of all features in a sum
        groups = neighbors(self._entries, _WORK_A_SUM * self.shape[1])
        client = self._rows.client
        joined = [[self._rows.futures[part] for part in group] for group in groups]
        made = partial(client.submit, Mapped, constant=self._constant, dtype=self.dtype, pure=False)
        futures = [made(rows, **self._home(number / len(joined))) for number, rows in enumerate(joined)]
        sizes = [sum(self._rows.sizes[part] for part in group) for group in groups]
        return Parts(client, futures, sizes)

    def _home(self, place: float) -> dict[str, Any]:
        """Assign neighbors to one worker, so that most pairwise sums are local.

        place: the position of the rows among all, from 0 to 1.
        """
        workers = sorted(self._rows.client.scheduler_info(n_workers=-1)["workers"])
        return {"workers": workers[int(place * len(workers))], "allow_other_workers": True} if workers else {}

    def under(self, loss: RowsLoss, _: Workers) -> tuple[EntriesApart, FactorMap]:
        """Pass the factor itself to the loss, so that tables with one entry per row stay where rows are."""
        return EntriesApart(self._parts, loss, self.shape[1]), FactorMap(self.shape[1])

    def image(self, factor: Array) -> Array:
        return np.concatenate(self._parts.each(partial(Mapped.product, name="image"), factor))

    def __matmul__(self, factor: Array) -> Array:
        return self.image(np.asarray(factor, self.dtype))

    def toarray(self) -> Array:
        """Bring the features to the client, for fewer features than labels."""
        return self.image(np.eye(self.shape[1], dtype=self.dtype))

    def gradient(self, derivatives: Array) -> Array:
        return np.asarray(self._parts.summed(partial(Mapped.product, name="gradient"), derivatives))

    def squares(self, weights: Array) -> Array:
        return np.asarray(self._parts.summed(partial(Mapped.product, name="squares"), weights))


class PartitionedFeatures(FeatureMatrix):
    """The features of rows that workers have read.

    is_verbose: whether to write the progress of a factor of their kernel matrix to stderr.
    """

    is_distributed = True

    def __init__(self, client: Client, read: ReadData, *, is_verbose: bool = False) -> None:
        self.names, self._client, self._read = read.facts[0].names, client, read
        self._is_verbose = is_verbose
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
        """The map instead of the table."""
        shape = self.shape[0], self._facts[0].n_features
        entries = [facts.entries for facts in self._facts]
        return PartitionedMap(self._parts, entries, shape, self._constant, self._dtype)

    @property
    def parts(self) -> Parts:
        """The partitions with the original features."""
        return self._parts

    @property
    def constant(self) -> float:
        """The value of the constant feature; 0 without one."""
        return self._constant

    @property
    def visits(self) -> list[int]:
        """The number of visits to each partition per round."""
        return self._read.visits([[[part]] for part in range(len(self._facts))])

    @property
    def read(self) -> ReadData:
        """The partitions with these features."""
        return self._read

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
        constant = self._constant
        whole = of_rows if not constant else lambda part: of_rows(_with_constant(part, constant))
        return self._parts.mapped(whole, np.asarray(which))

    def to_local(self, which: npt.NDArray[Any] | None = None) -> FeatureMatrix:
        which = np.arange(len(self)) if which is None else which
        features = self._parts.features_at(which).astype(self._dtype)
        return features.with_constant(self._constant) if self._constant else features

    def transformed(self, of_rows: Callable[..., Any]) -> FeatureMatrix | None:
        probe = FeatureMatrix(sp.csr_array((1, self.shape[1])))
        made = of_rows(probe)
        if made is None or made is probe:
            return None if made is None else self
        rows = self._client.map(_transformed, self._parts.futures, of_rows=of_rows, pure=False)
        return PartitionedFeatures(self._client, self._read.with_features(self._client, rows))

    def matrix_apart(self, kernel: Kernel) -> PartitionedKernelMatrix:
        make = partial(PartitionedFeatures, self._client)
        return PartitionedKernelMatrix(self._client, self._read, kernel, make, is_verbose=self._is_verbose)

    def row_counts(self) -> npt.NDArray[Any] | None:
        counts = self._parts.gathered(lambda part: part.features.row_counts())
        return None if any(part is None for part in counts) else np.concatenate(counts)

    def squared_norms(self) -> npt.NDArray[np.float64]:
        return np.concatenate(self._parts.each(_squared_norms, self._constant))

    def largest_entry(self) -> float:
        return max(facts.largest for facts in self._facts)


def _transformed(rows: ReadRows, of_rows: Callable[..., Any]) -> ReadRows:
    with Workers().running():
        return replace(rows, features=in_memory_or_file(of_rows(rows.features)))


def _squared_norms(part: ReadRows, constant: float) -> Array:
    return _with_constant(part.features, constant).squared_norms()


def _with_constant(features: FeatureMatrix, constant: float) -> FeatureMatrix:
    return features.astype(np.float64).with_constant(constant) if constant else features
