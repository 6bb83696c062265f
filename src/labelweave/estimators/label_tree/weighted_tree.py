"""One tree over labels with the weights of its columns, and searches of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.labels.label_tree import LabelTree
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Made, Numbers, places
from labelweave.problems.tree_blocks import TreeWeights, column_type

SHARPNESS = 3.0  # benchmarks.md/benchmarks.md
_ROWS_AT_ONCE = 4096  # grouped by node within
_FEW_ROWS = 64  # for fewer, starting threads takes longer than the work


class FoundLabels(NamedTuple):
    """The best labels of rows that a search found, and whether they are proven.

    labels, scores (n, k): best first; -1 and minus infinity where there are none.
    proven (n,): whether no other label has a higher score.
    opened (n,): how many nodes were visited.
    """

    labels: Array
    scores: Array
    proven: Array
    opened: Array


def _ends_rise(ends: Array, last: int) -> bool:
    is_whole = len(ends) > 0 and ends[0] == 0 and ends[-1] == last
    return bool(is_whole and (np.diff(ends.astype(np.int64)) >= 0).all())


def _are_places(state: dict[str, Any]) -> bool:
    pair_ends, starts = state["pair_ends"], state["starts"]
    sizes = len(pair_ends) == state["tree"].n_nodes + 1 and len(starts) == len(state["features"]) + 1
    return (
        sizes and _ends_rise(pair_ends, len(state["features"])) and _ends_rise(starts, len(state["columns"]))
    )


def _are_rising(state: dict[str, Any]) -> bool:
    features = state["features"].astype(np.int64)
    falls = 1 + np.flatnonzero(features[1:] <= features[:-1])
    return bool(np.isin(falls, state["pair_ends"]).all())


def _are_columns(state: dict[str, Any]) -> bool:
    ends = state["starts"][state["pair_ends"]].astype(np.int64)
    has_some = np.flatnonzero(np.diff(ends))
    if not len(has_some):
        return True
    largest = np.maximum.reduceat(state["columns"], ends[has_some])
    return bool((largest < np.diff(state["tree"].ends)[has_some]).all())


@storable(
    "WeightedTree",
    {
        "tree": Made(LabelTree),
        "pair_ends": places("e"),
        "features": Numbers("p", "iu", 0, 2.0**31 - 1),
        "starts": places("s"),
        "columns": places("w"),
        "values": Numbers("w", "if"),
        "scales": Numbers("c"),
        "intercepts": Numbers("c"),
    },
    {
        "pair_ends and starts are places": _are_places,
        "features of a node rise": _are_rising,
        "columns are those of their nodes": _are_columns,
        "columns have scales": lambda state: len(state["scales"]) == len(state["tree"].targets),
    },
)
@dataclass(frozen=True)
class WeightedTree(StoredParameters):
    """A tree with the weights of its columns; arrays as :class:`labelweave.problems.TreeWeights` has them."""

    tree: LabelTree
    pair_ends: Array
    features: Array
    starts: Array
    columns: Array
    values: Array
    scales: Array
    intercepts: Array

    @classmethod
    def of(cls, tree: LabelTree, weights: TreeWeights) -> WeightedTree:
        return cls(tree, **vars(weights))

    @property
    def n_labels(self) -> int:
        return self.tree.n_labels

    def takes(self, n_features: int) -> bool:
        return not len(self.features) or int(self.features.max()) < n_features

    @property
    def label_intercepts(self) -> Array:
        """The intercept of each label's own column, shape (L,)."""
        return self.intercepts[self.tree.columns_of_labels]

    def label_weights(self, n_features: int) -> Any:
        """Return the weights of each label's own column, CSR of shape (L, d)."""
        import scipy.sparse as sp

        counts = np.diff(self.starts)
        of_node = np.repeat(np.arange(self.tree.n_nodes), np.diff(self.pair_ends))
        columns = np.repeat(self.tree.ends[:-1][of_node], counts) + self.columns
        labels, features = self.tree.targets[columns], np.repeat(self.features, counts)
        own = labels >= 0
        entries = (self.values * self.scales[columns])[own], (labels[own], features[own])
        return sp.csr_array(entries, shape=(self.n_labels, n_features))

    def scores(self, features: FeatureMatrix, *, by_margin: bool) -> RowsByLabels:
        """Score all labels; with ``by_margin`` by their own margins alone."""
        from labelweave.foundation.loops.label_tree import score_tree

        table = np.empty((len(features), self.n_labels))

        def score(rows: slice, numbers: Any) -> None:
            score_tree(*numbers, *self._walked, SHARPNESS, by_margin, table[rows])

        _by_panels(features, score)
        return table

    def of_pairs(
        self, features: FeatureMatrix, rows: Array, labels: Array, known: tuple[Array, Array] | None = None
    ) -> Array:
        """Score pairs of a row and a label, sorted by row; ``known`` labels (n, m) come with scores."""
        from labelweave.foundation.loops.label_tree import score_labels

        scores, wanted = np.empty(len(rows)), self.tree.columns_of_labels[labels]
        above = self.tree.columns_above, self.tree.owners
        best = _none_yet(len(features), 0) if known is None else known

        def score(part: slice, numbers: Any) -> None:
            own = slice(*np.searchsorted(rows, [part.start, part.stop]))
            pairs = best[0][part], best[1][part], rows[own] - part.start, wanted[own], scores[own]
            score_labels(*numbers, *self._walked, SHARPNESS, *above, *pairs)

        _by_panels(features, score)
        return scores

    def by_beam(
        self, features: FeatureMatrix, k: int, beam: int, *, by_margin: bool, n_opened: int = 0
    ) -> tuple[Array, Array, Array]:
        """Search below the best nodes of each level; see ``search_by_beam``.

        Returns labels and scores (n, k), best first, and the visited nodes (n, n_opened), -1 for none.
        """
        from labelweave.foundation.loops.label_tree import search_by_beam

        best, scores = _none_yet(len(features), k)
        opened, beam = np.full((len(features), n_opened), -1, np.int64), min(beam, self.tree.n_nodes)

        def search(rows: slice, numbers: Any) -> None:
            found = best[rows], scores[rows], opened[rows]
            search_by_beam(*numbers, *self._walked, SHARPNESS, by_margin, beam, *found)

        _by_panels(features, search)
        return best, scores, opened

    def by_bound(
        self, features: FeatureMatrix, k: int, budget: int, *, by_margin: bool, above: float = -np.inf
    ) -> FoundLabels:
        """Search for labels above a score until no other can be better, within ``budget`` nodes per row."""
        from labelweave.foundation.loops.label_tree import search_by_bound, search_by_envelopes

        best, scores = _none_yet(len(features), k, above)
        proven, opened = np.zeros(len(features), bool), np.zeros(len(features), np.int64)
        envelopes = self._envelopes(features.shape[1]) if by_margin else None

        def search(rows: slice, numbers: Any) -> None:
            found = best[rows], scores[rows], proven[rows], opened[rows]
            if envelopes is None:
                search_by_bound(*numbers, *self._walked, SHARPNESS, budget, *found)
            else:
                search_by_envelopes(*numbers, *self._walked, envelopes, budget, *found)

        _by_panels(features, search)
        return FoundLabels(best, scores, proven, opened)

    @cached_property
    def _walked(self) -> tuple[tuple[Array, ...], int]:
        """The arrays as the loops take them, and the maximum number of columns of a node.

        They are read-only and of the types that a fit makes, whatever the types in a file, so that loops are
        compiled for few types.
        """
        widest = int(np.diff(self.tree.ends).max())
        is_kept = self.values.dtype.kind == "f" or self.values.dtype == np.int16
        arrays: tuple[tuple[Array, Any], ...] = (
            (self.tree.ends, np.int64),
            (self.tree.targets, np.int64),
            (self.pair_ends, np.int64),
            (self.features, np.int32),
            (self.starts, np.int64),
            (self.columns, column_type(widest)),
            (self.values, self.values.dtype if is_kept else np.float64),
        )
        taken = *(array.astype(kind, copy=False) for array, kind in arrays), self.scales, self.intercepts
        return tuple(_read_only(array) for array in (*taken, *self._index())), widest

    def _index(self) -> tuple[Array, Array, Array]:
        """Index features by the upper bits of their numbers, with no more entries per node than features.

        Returns where the part of each node ends, how many lower bits are dropped, and the index.
        """
        from labelweave.foundation.loops.label_tree import index_features

        ends = self.pair_ends.astype(np.int64, copy=False)
        counts, largest = np.diff(ends), np.zeros(self.tree.n_nodes, np.int64)
        largest[counts > 0] = self.features[ends[1:][counts > 0] - 1]
        sizes = (largest + 1) / np.maximum(counts, 1)
        shifts = np.ceil(np.log2(np.maximum(sizes, 1.0))).astype(np.int64)
        index_ends = np.concatenate([[0], np.cumsum((largest >> shifts) + 2)])
        index = np.empty(index_ends[-1], np.int32)
        index_features(ends, self.features, index_ends, shifts, index)
        return index_ends, shifts, index

    def _envelopes(self, n_features: int) -> tuple[Array, ...]:
        """Bound the labels' weights of every node, feature by feature; see ``search_by_envelopes``."""
        from labelweave.foundation.loops.label_tree import bound_nodes

        known: Any = self.__dict__.get("_bounds")
        if known is not None and len(known[0]) == n_features + 1:
            found: tuple[Array, ...] = known
            return found
        above, below, centers = (np.empty(len(self.features)) for _ in range(3))
        largest, radii = np.empty(self.tree.n_nodes), np.empty(self.tree.n_nodes)
        bound_nodes(self._walked[0], above, below, centers, largest, radii)
        order = np.argsort(self.features, kind="stable")
        nodes = np.repeat(np.arange(self.tree.n_nodes), np.diff(self.pair_ends))
        has_some = ((above != 0) | (below != 0) | (centers != 0))[order]
        order = order[has_some]
        starts = np.searchsorted(self.features[order], np.arange(n_features + 1))
        made = starts, nodes[order], above[order], below[order], centers[order], largest, radii
        self.__dict__["_bounds"] = made
        return made

    def __getstate__(self) -> dict[str, Any]:
        return self.to_state()


def _none_yet(n_rows: int, k: int, above: float = -np.inf) -> tuple[Array, Array]:
    return np.full((n_rows, k), -1, np.int64), np.full((n_rows, k), above)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _by_panels(features: FeatureMatrix, work: Callable[[slice, Any], None]) -> None:
    """Work on panels of rows, several per thread, on as many threads as the linear algebra library uses."""
    n_rows = len(features)
    if n_rows <= _FEW_ROWS:
        work(slice(0, n_rows), features.sparse_rows(np.float64))
        return

    def one(rows: slice) -> None:
        work(rows, features.rows(rows).sparse_rows(np.float64))

    with Workers.of_library().running() as workers:
        n_panels = workers.n_threads * -(-n_rows // (_ROWS_AT_ONCE * workers.n_threads))
        workers.each(one, panels(n_rows, -(-n_rows // n_panels)))
