"""Scores by sparse weights: products of sparse rows, and top labels without computing all scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.estimators.scorers import KERNEL, Scorer, explicit_features, explicit_width
from labelweave.features import FeatureMatrix, Kernel
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import Workers, from_gaps, panels, to_gaps
from labelweave.model_files import storable
from labelweave.model_files.schema import Numbers, places

_LABELS_AT_ONCE = 2**15  # whose scores, 256 KB, stay in the cache
_ROWS_AT_ONCE = 256
_FULL_SHARE = 0.1  # of the labels, above which a dense table is faster, with at most five times the memory
_MOST_BEST = 64  # with more, the best are found by a partition of all scores


def _are_places(state: dict[str, Any]) -> bool:
    indptr = state["indptr"]
    ends = len(indptr) > 1 and indptr[0] == 0 and indptr[-1] == len(state["values"])
    return bool(ends and (np.diff(indptr.astype(np.int64)) >= 0).all())


def _are_gaps(state: dict[str, Any]) -> bool:
    gaps, starts = state["gaps"], np.unique(state["indptr"][:-1])
    starts = starts[starts < len(gaps)].astype(np.intp)
    if not len(starts):
        return True
    lengths = np.add.reduceat(gaps, starts, dtype=np.int64)
    return bool(gaps.min() > 0 and lengths.max() <= len(state["scales"]))


@storable(
    "SparseScorer",
    {
        "intercept_": Numbers("L"),
        "indptr": places("e"),
        "gaps": Numbers("w", "u", 0, 2**16),
        "values": Numbers("w", "if"),
        "scales": Numbers("L"),
        "kernel": KERNEL,
    },
    {
        "indptr are places in labels": _are_places,
        "labels of a feature rise, below the number there is": _are_gaps,
    },
)
@dataclass(frozen=True)
class SparseScorer(Scorer):
    """Sparse weights, stored by feature, in units of one scale per label.

    indptr (d + 1,): the start of the weights of each feature.
    gaps (nnz,): the differences of successive label numbers, the first from -1.
    values (nnz,): the values; zeros may be stored to bridge a gap that is too large.
    scales (L,): the units.
    """

    indptr: Array
    gaps: Array
    values: Array
    scales: Array
    kernel: Kernel | None = None

    @classmethod
    def of_labels(
        cls, intercepts: Array, indptr: Array, labels: Array, values: Array, scales: Array, kernel: Any = None
    ) -> SparseScorer:
        """Create a scorer from the labels of the weights, ascending in every feature."""
        return cls(intercepts, *to_gaps(indptr, labels, values), scales, kernel)

    @property
    def coef_(self) -> sp.csr_array:
        return self._by_labels

    @cached_property
    def _by_labels(self) -> sp.csr_array:
        shape, labels = (self.n_labels, len(self.indptr) - 1), from_gaps(self.indptr, self.gaps)
        table = sp.csc_array((self.values * self.scales[labels], labels, self.indptr), shape=shape).tocsr()
        table.eliminate_zeros()
        return table

    def takes(self, n_features: int) -> bool:
        return explicit_width(self.kernel, n_features) == len(self.indptr) - 1

    def scores(self, features: FeatureMatrix) -> RowsByLabels:
        from labelweave.foundation.loops.sparse_scores import score_rows

        table = np.empty((len(features), self.n_labels))

        def score(rows: slice, numbers: Any, part: slice, weights: Any, factors: Any) -> None:
            score_rows(*numbers, *weights, part.start, *factors, table[rows, part])

        self._by_panels(features, score)
        return table

    def top(self, features: FeatureMatrix, k: int) -> tuple[Array, Array]:
        """Find the k labels with the highest scores, and these, two of shape (n, k); ties by number."""
        from labelweave.foundation.loops.sparse_scores import keep_best

        best = np.zeros((len(features), k), np.int64)
        scores = np.full(best.shape, -np.inf)

        def keep(rows: slice, numbers: Any, part: slice, weights: Any, factors: Any) -> None:
            keep_best(*numbers, *weights, part.start, *factors, best[rows], scores[rows])

        self._by_panels(features, keep)
        return best, scores

    def finds(self, k: int) -> bool:
        return k <= _MOST_BEST

    def _by_panels(self, features: FeatureMatrix, work: Callable[..., None]) -> None:
        """Process panels of rows, each with all parts of the labels in their order."""
        explicit = explicit_features(self.kernel, features)

        def one(rows: slice) -> None:
            numbers = explicit.rows(rows).sparse_rows(np.float64)
            for part in self._parts:
                work(rows, numbers, *part)

        runs = panels(len(features), _ROWS_AT_ONCE)
        if len(runs) == 1:  # a pool of threads takes longer to start than a row
            one(runs[0])
            return
        with Workers.of_library().running() as workers:
            workers.each(one, runs)

    @cached_property
    def _parts(self) -> list[tuple[slice, Any, Any]]:
        """Split the labels into parts: slice, starts and values of the weights by feature, units, constants.

        Arrays are read-only as those from a file are, so that loops are compiled for one type.
        """
        from labelweave.foundation.loops.sparse_products import cut_rows

        starts = range(0, self.n_labels, _LABELS_AT_ONCE)
        indptr = self.indptr.astype(np.int64)
        cuts = np.stack([indptr[:-1], indptr[1:]])
        before = np.full(cuts.shape, -1, np.int32)  # the label of the weight before the first of a part
        if len(starts) > 1:
            cuts = np.empty((len(starts) + 1, len(indptr) - 1), np.int64)
            before, labels = np.full(cuts.shape, -1, np.int32), from_gaps(indptr, self.gaps)
            cut_rows(indptr, labels, _LABELS_AT_ONCE, cuts)
            is_cut = cuts > indptr[:-1]
            before[is_cut] = labels[cuts[is_cut] - 1]
        parts = [slice(start, min(start + _LABELS_AT_ONCE, self.n_labels)) for start in starts]
        weights = self.gaps.view(), self.values.view()
        for array in weights:
            array.flags.writeable = False
        found = []
        for part, *of_part in zip(parts, cuts[:-1], cuts[1:], before, strict=False):
            entries = (*of_part, *weights, *self._full_features(part, *of_part))
            found.append((part, entries, (self.scales[part].copy(), self.intercept_[part].copy())))
        return found

    def _full_features(self, part: slice, starts: Array, stops: Array, before: Array) -> tuple[Array, Array]:
        """Return positions of features that many labels have in a dense table, else -1, and the table."""
        n_labels = part.stop - part.start
        full = np.flatnonzero(stops - starts > _FULL_SHARE * n_labels)
        slots = np.full(len(starts), -1, np.int32)
        slots[full] = np.arange(len(full))
        table = np.zeros((len(full), n_labels), self.values.dtype)
        for row, feature in zip(table, full, strict=True):
            of_feature = slice(starts[feature], stops[feature])
            labels = before[feature] + self.gaps[of_feature].cumsum(dtype=np.int64)
            row[labels - part.start] = self.values[of_feature]
        return slots, table
