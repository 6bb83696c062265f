"""A balanced tree over labels from vectors of these: spherical 2-means with halves of equal size.

As in Parabel (Prabhu et al. 2018, section 4.1) labels are split in two until parts are small enough; each
split alternates between the two mean directions and the half of the labels that is nearer to the first than
to the second.  Splits come together into nodes of more branches, with what a shallow tree gains (Khandagale
et al. 2020, Bonsai; Yu et al. 2022, PECOS).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels.label_tree.tree import LabelTree

_ROUNDS = 20
_LEAST_GAIN = 1e-4  # of the mean cosine, below which a split is done


def cluster_labels(vectors: Any, leaf_size: int, branching: int, seed: int, workers: Workers) -> LabelTree:
    """Make a tree whose leaves have ``leaf_size`` labels at most, and other nodes ``branching`` branches.

    vectors (L, d): one row a label, CSR or dense; only directions count.
    branching: a power of two, or rounded down to one.
    """
    rows = normalize(_single_directions(sp.csr_array(vectors)))
    n_labels, parts = rows.shape[0], [np.arange(rows.shape[0])]
    while -(-n_labels // len(parts)) > leaf_size:
        level = len(parts)

        def halved(number: int, level: int = level, now: Any = parts) -> tuple[Array, Array]:
            return _halves(rows, now[number], np.random.default_rng((seed, level, number)))

        parts = [half for pair in workers.map(halved, list(range(level))) for half in pair]
    nested: list[Any] = [np.sort(part) for part in parts]
    width = 2 ** int(np.log2(branching))
    while len(nested) > 1:
        # levels near the root are full, the lowest has what remains
        step = len(nested) // width ** _levels_above(len(nested), width)
        nested = [_node(nested[start : start + step]) for start in range(0, len(nested), step)]
    return LabelTree.from_nested(nested[0])


def single_rows(vectors: Any) -> sp.csr_array:
    """Give the rows in single precision, all divided by a power of 2 so that no square leaves its range."""
    rows = sp.csr_array(vectors)
    return _divided(rows, np.full(rows.nnz, np.frexp(np.abs(rows.data).max(initial=0.0))[1]))


def _single_directions(rows: sp.csr_array) -> sp.csr_array:
    """Give the rows in single precision, each divided by a power of 2 near its own largest entry."""
    largest = abs(rows).max(axis=1).toarray().ravel() if rows.nnz else np.zeros(rows.shape[0])
    return _divided(rows, np.repeat(np.frexp(largest)[1], np.diff(rows.indptr)))


def _divided(rows: sp.csr_array, powers: Array) -> sp.csr_array:
    data = np.ldexp(rows.data if rows.dtype.kind == "f" else rows.data.astype(np.float64), -powers)
    return sp.csr_array((data.astype(np.float32), rows.indices, rows.indptr), rows.shape)


def _node(parts: list[Any]) -> Any:
    """Put nodes below one, without those of no labels; a single one stays what it is."""
    found = [part for part in parts if len(part)]
    return found[0] if len(found) == 1 else found


def _levels_above(n_parts: int, width: int) -> int:
    """Count the full levels that fit above the lowest one."""
    levels = 0
    while width ** (levels + 1) < n_parts:
        levels += 1
    return levels


def _halves(rows: sp.csr_array, members: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """Split labels in two halves that differ by one label at most."""
    if len(members) < 2:
        return members, members[:0]
    own, size = rows[members], (len(members) + 1) // 2
    if own.nnz < own.shape[1]:  # most features are in none of them
        used, places = np.unique(own.indices, return_inverse=True)
        own = sp.csr_array((own.data, places, own.indptr), shape=(len(members), len(used)))
    first, second = random.choice(len(members), 2, replace=False)
    centres = own[[first, second]].toarray().astype(np.float64)
    before, is_left = -np.inf, np.zeros(len(members), bool)
    for _ in range(_ROUNDS):
        nearness = own @ centres.T
        order = np.argsort(nearness[:, 1] - nearness[:, 0], kind="stable")
        is_left[:] = False
        is_left[order[:size]] = True
        now = float(np.where(is_left, nearness[:, 0], nearness[:, 1]).mean())
        if now - before <= _LEAST_GAIN:
            break
        before = now
        centres = (own.T @ np.stack([is_left, ~is_left], axis=1).astype(np.float64)).T
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        centres = centres / np.where(lengths > 0, lengths, 1)
    return members[is_left], members[~is_left]
