"""Which labels a picture shows, and in which order, so that related ones stand together."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from labelweave.array_types import Array
from labelweave.labels import LabelCovariance

__all__ = ["cluster_order", "most_related"]


_ROWS_AT_ONCE = 500
_MOST_TO_SEARCH = 20_000  # labels; their pairs are all looked at
_MOST_TO_FLIP = 500  # labels up to which the branches are turned so that neighbours agree: slow beyond
_DECIMALS = 9  # rounding must not choose among equal pairs


def cluster_order(correlations: Array) -> Array:
    """Order labels by average-linkage clustering at the distance 1 - correlation.

    correlations (k, k): entries from -1 to 1.
    Returns (k,): the labels from top to bottom.
    """
    n_labels = len(correlations)
    if n_labels < 3:
        return np.arange(n_labels)
    distances = np.round(1.0 - correlations, _DECIMALS)
    np.fill_diagonal(distances, 0.0)
    pairs = squareform(distances, checks=False)
    tree = linkage(pairs, method="average", optimal_ordering=n_labels <= _MOST_TO_FLIP)
    return np.asarray(leaves_list(tree))


def most_related(covariance: LabelCovariance, count: int) -> Array:
    """Choose the labels with the largest sum of squared correlations with others.

    count: how many labels to choose.
    Shapes: result (count,).
    Raises ValueError if there are more than 20,000 labels to choose among.
    """
    n_labels = covariance.n_labels
    if covariance.is_diagonal:
        return np.arange(count)
    if n_labels > _MOST_TO_SEARCH:
        raise ValueError(
            f"The covariance is over {n_labels} labels, too many to find the {count} most related ones; "
            "choose labels with covariance.columns(labels) and draw these."
        )
    variances, every = np.maximum(covariance.diagonal(), 0.0), np.arange(n_labels)
    precisions = np.divide(1.0, variances, out=np.zeros(n_labels), where=variances > 0)
    related = np.empty(n_labels)
    for start in range(0, n_labels, _ROWS_AT_ONCE):
        rows = every[start : start + _ROWS_AT_ONCE]
        related[rows] = precisions[rows] * (covariance.block(rows, every) ** 2 @ precisions)
    return np.sort(np.argsort(-np.round(related, _DECIMALS), kind="stable")[:count])
