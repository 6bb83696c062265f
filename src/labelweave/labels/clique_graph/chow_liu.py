"""The Chow-Liu tree of the strongest label dependences.

Chow and Liu, "Approximating discrete probability distributions with dependence trees", IEEE Transactions
on Information Theory 14 (1968): among all trees, the one with the largest sum of mutual information over its
edges is the best approximation of a distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels, read_row_weights
from labelweave.labels.clique_graph.graph import CliqueGraph
from labelweave.labels.label_matrix import LabelMatrix

_PAIRS_AT_ONCE = 1_000_000


def chow_liu(labels: LabelMatrix, smoothing: float = 1.0, sample_weight: Array | None = None) -> CliqueGraph:
    """Build the maximum spanning tree of the pairs' empirical mutual information, strongest edges first.

    Pairs are counted over the rows where both labels are observed, with ``smoothing`` added to each of the
    four counts (Laplace); those without such rows are not joined.  The memory is about 40 bytes per pair of
    labels; the targets stay sparse.  Weights are mutual informations in nats, signs those of the covariance.
    """
    if not 0.0 < smoothing < np.inf:
        raise ValueError(f"smoothing is {smoothing!r}; it must be above 0.")
    counts = _PairCounts(labels, read_row_weights(sample_weight, len(labels), may_vanish=True))
    row, column = _spanning_tree(counts, smoothing)
    counted = counts.of_pairs(row, column)
    information, covariance = _mutual_information(counted, smoothing)
    order = np.lexsort((column, row, -information))
    order = order[counted[-1][order] > 0]
    pairs = np.column_stack([row, column])[order]
    signs = np.sign(covariance[order]).astype(np.int8)
    return CliqueGraph(labels.n_labels, map(tuple, pairs.tolist()), labels.names, information[order], signs)


def _spanning_tree(counts: _PairCounts, smoothing: float) -> tuple[Array, Array]:
    """Return the labels (L - 1,) that the edges of the maximum spanning tree join, the lower one first."""
    n_labels = counts.n_labels
    starts = np.cumsum([0, *range(n_labels - 1, -1, -1)])
    distances, others = np.empty(starts[-1]), np.empty(starts[-1], np.int32)
    for part in panels(n_labels, max(1, _PAIRS_AT_ONCE // n_labels)):
        place = slice(starts[part.start], starts[part.stop])
        is_above = np.arange(n_labels) > np.arange(part.start, part.stop)[:, None]
        distances[place] = _mutual_information(counts.of_labels(part), smoothing)[0][is_above]
        others[place] = np.nonzero(is_above)[1]
    # the library finds the minimum and treats 0 as no edge
    distances /= -(distances.max(initial=0.0) or 1.0)
    distances += 2.0
    tree = minimum_spanning_tree(sp.csr_array((distances, others, starts), (n_labels, n_labels))).tocoo()
    return tree.row, tree.col


class _PairCounts:
    """Counts of pairs (k, l): rows with both, with k, with l, and all rows, where both are observed."""

    def __init__(self, labels: LabelMatrix, weights: Array) -> None:
        self.n_labels, self._total = labels.n_labels, weights.sum()
        self._on = labels.positives.astype(np.float64)
        self._seen = None if labels.observed is None else abs(labels.observed).astype(np.float64)
        times = sp.diags_array(weights)
        self._weighed_on = sp.csr_array(self._on.T @ times)
        self._weighed_seen = None if self._seen is None else sp.csr_array(self._seen.T @ times)
        entries = np.repeat(weights, np.diff(self._on.indptr))
        self._alone = np.bincount(self._on.indices, entries, minlength=self.n_labels)

    def of_labels(self, part: slice | Array) -> Sequence[Array]:
        """Count pairs of some labels k with all l; each (k, L)."""
        both = (self._weighed_on[part] @ self._on).toarray()
        if self._seen is None or self._weighed_seen is None:
            return np.broadcast_arrays(both, self._alone[part, None], self._alone, self._total)
        one = (self._weighed_on[part] @ self._seen).toarray()
        other = (self._weighed_seen[part] @ self._on).toarray()
        return both, one, other, (self._weighed_seen[part] @ self._seen).toarray()

    def of_pairs(self, row: Array, column: Array) -> Array:
        """Count pairs of labels; each (pairs,)."""
        parts = panels(len(row), max(1, _PAIRS_AT_ONCE // self.n_labels))
        found = [self._chosen(row[part], column[part]) for part in parts]
        return np.concatenate(found, axis=1) if found else np.zeros((4, 0))

    def _chosen(self, row: Array, column: Array) -> Array:
        places = np.arange(len(row)), column
        return np.stack([table[places] for table in self.of_labels(row)])


def _mutual_information(counts: Iterable[Array], smoothing: float) -> tuple[Array, Array]:
    """Return the mutual information of every pair, in nats, and the covariance."""
    both, one, other, rows = counts
    total = rows + 4.0 * smoothing
    joint = np.stack([rows - one - other + both, one - both, other - both, both])
    joint = (joint + smoothing) / total
    on, other_on = joint[1] + joint[3], joint[2] + joint[3]
    product = np.stack([(1 - on) * (1 - other_on), on * (1 - other_on), (1 - on) * other_on, on * other_on])
    return (joint * np.log(joint / product)).sum(axis=0), joint[3] - on * other_on
