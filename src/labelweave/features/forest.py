"""Forests as arrays, independent of the library that trained them: the leaf of each row in every tree.

Trees are grown by least squares of all targets together (Breiman, "Random forests", 2001), on values in bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelweave.features.sparse_products import read_only
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Numbers, count, is_bounded, places

_NUMBERS_AT_ONCE = 131_072  # of dense rows that pass the trees one by one: 512 KB of cache
_BINS, _COLUMNS_AT_ONCE = 64, 32
_FEW = 8  # a feature with a usual bin has at most an eighth of the rows in others
_LARGEST = float(np.finfo(np.float32).max)
_TYPES = np.int64, np.int32, np.float64, np.int32, np.bool_  # as of_trees makes arrays


def _is_a_forest(state: dict[str, Any]) -> bool:
    """Return whether every path from a root ends in a leaf of the same tree."""
    roots, feature, children = state["roots"], state["feature"], state["children"]
    m = len(feature)
    if not len(roots) or roots[0] != 0 or (roots[1:] <= roots[:-1]).any() or roots[-1] >= m:
        return False
    inner = np.flatnonzero(feature >= 0)
    ends = np.append(roots[1:], m)[np.searchsorted(roots, inner, side="right") - 1]
    after = children[inner]
    # children come after their parents, so no path is a cycle
    return bool((after > inner[:, None]).all() and (after < ends[:, None]).all())


@storable(
    "Forest",
    {
        "n_features": count(least=1),
        "roots": places("t"),
        "feature": Numbers("m", "i", -2, 2.0**31),
        "threshold": Numbers("m"),
        "children": Numbers("m 2", "i", -1, 2.0**31),
        "missing_left": Numbers("m", "b", 0, 1),
    },
    {
        "its trees end in leaves": _is_a_forest,
        "its nodes split on existing features": lambda s: s["feature"].max() < s["n_features"],
        "its rows are not much larger than the forest": lambda s: is_bounded(
            4 * s["n_features"], sum(part.nbytes for part in s.values() if isinstance(part, np.ndarray))
        ),
    },
)
@dataclass(frozen=True, repr=False, eq=False)  # identity hash, as a cache key
class Forest(StoredParameters):
    """Decision trees, with the nodes of all trees one after the other.

    roots (t,): the first node of every tree.
    feature (m,): the feature that a node splits on, negative at leaves.
    threshold (m,): rows with at most this value go to the first child.
    children (m, 2): node numbers, larger than the parent's.
    missing_left (m,): whether rows with a missing value go to the first child.
    """

    n_features: int
    roots: Array
    feature: Array
    threshold: Array
    children: Array
    missing_left: Array

    @classmethod
    def of_trees(cls, trees: Sequence[Any]) -> Self:
        """Build a forest from the ``tree_`` of scikit-learn's fitted estimators."""
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        pairs = [np.stack([tree.children_left, tree.children_right], axis=1) for tree in trees]
        feature = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
        children = np.concatenate([pair + root for pair, root in zip(pairs, roots, strict=True)])
        children[feature < 0] = -1
        missing = [np.asarray(tree.missing_go_to_left, np.bool_) for tree in trees]
        return cls(
            int(trees[0].n_features), roots, feature,
            np.where(feature < 0, 0.0, np.concatenate([tree.threshold for tree in trees])),
            children.astype(np.int32), np.concatenate(missing),
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        if len(parts) == 1:
            return parts[0]
        begins = np.cumsum([0, *(len(part.feature) for part in parts)])
        moved = [
            (part.roots + begin, np.where(part.children < 0, -1, part.children + begin).astype(np.int32))
            for part, begin in zip(parts, begins[:-1], strict=True)
        ]
        roots, children = (np.concatenate(arrays) for arrays in zip(*moved, strict=True))
        feature, threshold, missing = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("feature", "threshold", "missing_left")
        )
        return cls(parts[0].n_features, roots, feature, threshold, children, missing)

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @cached_property
    def leaf_numbers(self) -> Array:
        """The number of each leaf among all leaves, shape (m,); undefined for other nodes."""
        return np.cumsum(self.feature < 0) - 1

    @property
    def n_leaves(self) -> int:
        return int(self.leaf_numbers[-1]) + 1

    def leaves(self, data: Any) -> Array:
        """Return the leaf, among those of all trees, of each row (n, d): (n, t); NaN is a missing value."""
        from labelweave.foundation.loops.tables import find_leaves

        if data.shape[1] != self.n_features:
            raise ValueError(f"The rows have {data.shape[1]} features; pass the forest's {self.n_features}.")
        arrays = self.roots, self.feature, self.threshold, self.children, self.missing_left
        trees = read_only(
            *(array.astype(kind, copy=False) for array, kind in zip(arrays, _TYPES, strict=True))
        )
        nodes = np.empty((data.shape[0], self.n_trees), np.int32)
        for rows in panels(data.shape[0], max(8, _NUMBERS_AT_ONCE // max(1, data.shape[1]))):
            find_leaves(single(data[rows]), *trees, nodes[rows])
        return self.leaf_numbers[nodes]

    def indicators(self, data: Any, value: float = 1.0, dtype: Any = np.float64) -> sp.csr_array:
        """Return a sparse matrix with a value in the column of every leaf of a row: shape (n, leaves)."""
        leaves = self.leaves(data)
        n, trees = leaves.shape
        values = np.full(leaves.size, value, dtype)
        ends = np.arange(0, n * trees + 1, trees, dtype=sp.get_index_dtype(maxval=n * trees))
        return sp.csr_array((values, leaves.astype(np.int32).ravel(), ends), shape=(n, self.n_leaves))

    def __repr__(self) -> str:
        return f"Forest({self.n_trees} trees, {self.n_leaves} leaves)"


def single(data: Any) -> Array:
    """Convert rows to dense single precision, as trees compare them; larger values are clipped."""
    table = data.toarray() if sp.issparse(data) else data
    return np.ascontiguousarray(np.clip(table, -_LARGEST, _LARGEST), dtype=np.float32)


class BinnedRows(NamedTuple):
    """Rows to grow trees on, with the bins of their values.

    codes (d, n): the bin of each value, in the order of values; at most 64 per feature.
    least, most (d, bins): the values at both ends of a bin.
    others: the usual bin of each feature with nearly all rows in one, as of words, else -1; and the others'
        rows, as :func:`grow_tree` reads them.
    """

    codes: Array
    least: Array
    most: Array
    others: tuple[Array, Array, Array]

    @classmethod
    def of_rows(cls, data: Any) -> BinnedRows:
        """Divide the distinct values of every feature into bins of equal size."""
        n, d = data.shape
        data = data.tocsc() if sp.issparse(data) else data
        codes, ends = np.empty((d, n), np.uint8), np.zeros((2, d, _BINS))
        usual, others = np.full(d, -1, np.int16), [np.empty(0, np.int32)] * d
        for columns in panels(d, _COLUMNS_AT_ONCE):
            for feature, column in enumerate(single(data[:, columns].T), columns.start):
                values = np.unique(column)
                size = min(_BINS, len(values))
                starts = np.arange(size) * len(values) // size
                ends[:, feature, :size] = values[starts], values[np.append(starts[1:], len(values)) - 1]
                codes[feature] = np.searchsorted(values[starts[1:]], column, side="right")
                fullest = np.bincount(codes[feature]).argmax()
                rows = np.flatnonzero(codes[feature] != fullest)
                if _FEW * len(rows) <= n:
                    usual[feature], others[feature] = fullest, rows.astype(np.int32)
        starts = np.cumsum([0, *map(len, others)])
        return cls(codes, ends[0], ends[1], (usual, starts, np.concatenate(others)))

    def grown(self, targets: Array, weights: Array, seed: int) -> Forest:
        """Grow a tree on a bootstrap sample of the rows of positive weight.

        targets (n, k): in single precision.
        """
        from labelweave.foundation.loops.tables import grow_tree

        (d, n), random, rows = self.codes.shape, np.random.RandomState(seed), np.flatnonzero(weights)
        drawn = weights * np.bincount(rows[random.randint(0, len(rows), len(rows))], minlength=n)
        feature, (ends, children) = np.empty(2 * n, np.int32), np.zeros((2, 2 * n, 2), np.int32)
        sizes, state = (_BINS, max(1, int(d**0.5))), np.uint64(random.randint(1, 2**63))
        given = self.codes, self.others, targets, drawn.astype(np.float32)
        m = grow_tree(*given, *sizes, state, feature, ends, children)
        feature, ends, children = feature[:m].copy(), ends[:m], children[:m].copy()
        threshold = 0.5 * (self.most[feature, ends[:, 0]] + self.least[feature, ends[:, 1]])
        threshold[feature < 0], children[feature < 0] = 0.0, -1
        return Forest(d, np.zeros(1, np.int64), feature, threshold, children, np.zeros(m, np.bool_))
