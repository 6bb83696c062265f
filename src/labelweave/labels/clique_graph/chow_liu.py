"""The tree of labels that depend on each other most.

Chow and Liu, "Approximating discrete probability distributions with dependence trees", IEEE Transactions
on Information Theory 14 (1968): among all trees the one whose edges have the largest sum of
mutual information is the best approximation of a distribution.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from labelweave.array_types import Array
from labelweave.labels.clique_graph.graph import CliqueGraph
from labelweave.labels.label_matrix import LabelMatrix


def chow_liu(labels: LabelMatrix, smoothing: float = 1.0, sample_weight: Array | None = None) -> CliqueGraph:
    """Build the maximum spanning tree of the pairs' empirical mutual information, strongest edges first.

    A pair is counted on the rows where both labels are observed, with ``smoothing`` added to each of its four
    counts (Laplace).  Tables of L x L are made; the targets stay sparse.  Weights are mutual informations in
    nats, signs those of the covariance.
    """
    if not 0.0 < smoothing < np.inf:
        raise ValueError(f"smoothing is {smoothing!r}; it is added to counts, so give a number above 0.")
    if sample_weight is not None:
        _check_weights(np.asarray(sample_weight), len(labels))
    both, one, other, rows = _pair_counts(labels, sample_weight)
    information, covariance = _mutual_information(both, one, other, rows, smoothing)
    # the library looks for the least sum and takes 0 for no edge
    distances = np.triu(information.max(initial=0.0) + 1.0 - information, k=1)
    tree = minimum_spanning_tree(sp.csr_array(distances)).tocoo()
    weights = information[tree.row, tree.col]
    order = np.lexsort((tree.col, tree.row, -weights))
    pairs = np.column_stack([tree.row, tree.col])[order]
    signs = np.sign(covariance[pairs[:, 0], pairs[:, 1]]).astype(np.int8)
    return CliqueGraph(labels.n_labels, map(tuple, pairs.tolist()), labels.names, weights[order], signs)


def _check_weights(weights: Array, n_rows: int) -> None:
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; give one number for each of the {n_rows} rows."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight at row {row} is {weights[row]}; weights are finite and 0 or above.")


def _pair_counts(labels: LabelMatrix, sample_weight: Array | None) -> tuple[Array, Array, Array, Array]:
    """Count, for every pair (k, l): rows with both on, with k on, with l on, and all; each as L x L."""
    weights = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    positives, times = labels.positives.astype(np.float64), sp.diags_array(weights)
    both = (positives.T @ times @ positives).toarray()
    if labels.observed is None:
        counts = np.broadcast_to(both.diagonal()[:, None], both.shape)
        return both, counts, counts.T, np.full(both.shape, weights.sum())
    observed = abs(labels.observed).astype(np.float64)
    on_seen = (positives.T @ times @ observed).toarray()
    return both, on_seen, on_seen.T, (observed.T @ times @ observed).toarray()


def _mutual_information(
    both: Array, one: Array, other: Array, rows: Array, smoothing: float
) -> tuple[Array, Array]:
    """Give the mutual information of every pair, in nats, and the covariance."""
    total = rows + 4.0 * smoothing
    joint = np.stack([rows - one - other + both, one - both, other - both, both])
    joint = (joint + smoothing) / total
    on, other_on = joint[1] + joint[3], joint[2] + joint[3]
    product = np.stack([(1 - on) * (1 - other_on), on * (1 - other_on), (1 - on) * other_on, on * other_on])
    return (joint * np.log(joint / product)).sum(axis=0), joint[3] - on * other_on
