"""Related labels beside each other, and correlations beyond what all labels share."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.labels import LabelCovariance

_ROWS_AT_ONCE = 500
_MOST_TO_SEARCH = 20_000  # labels; their pairs are all looked at
_MOST_TO_FLIP = 500  # labels up to which the branches are turned so that neighbours agree: slow beyond
_DECIMALS = 9  # rounding must not choose among equal pairs
_MOSTLY = 0.5  # the median size of correlations of labels that are mostly in common
_MOST_STEPS = 100
_SETTLED = 1e-8
_MEDIAN_STEPS = 3
_ENOUGH_FOR_MEDIANS = 20  # labels
_LEAST_LOADING = 0.1  # labels that share less than this tell nothing of what others share
_LEAST_OWN = 1e-6  # variance; a label that has no more of its own is uncorrelated with others


def cluster_order(correlations: Array) -> Array:
    """Order labels by average-linkage clustering at the distance 1 - correlation."""
    n_labels = len(correlations)
    if n_labels < 3:
        return np.arange(n_labels)
    distances = np.round(1.0 - correlations, _DECIMALS)
    np.fill_diagonal(distances, 0.0)
    pairs = squareform(distances, checks=False)
    tree = linkage(pairs, method="average", optimal_ordering=n_labels <= _MOST_TO_FLIP)
    return np.asarray(leaves_list(tree))


def most_related(covariance: LabelCovariance, count: int) -> Array:
    """Choose the labels with the largest sum of squared correlations with others."""
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
    for part in panels(n_labels, _ROWS_AT_ONCE):
        rows = every[part]
        related[rows] = precisions[rows] * (covariance.block(rows, every) ** 2 @ precisions)
    return np.sort(np.argsort(-np.round(related, _DECIMALS), kind="stable")[:count])


def is_mostly_common(correlations: Array) -> bool:
    """Say whether the median size of correlations of different labels is above one half."""
    between = correlations[np.triu_indices(len(correlations), 1)]
    return bool(len(between) and np.median(np.abs(between)) > _MOSTLY)


def beyond_common_share(correlations: Array) -> Array:
    """Take away what all labels share: correlations given the common factor."""
    shared = _loadings(np.asarray(correlations, dtype=np.float64))
    own = 1.0 - shared**2
    scales = np.divide(1.0, np.sqrt(own), out=np.zeros_like(own), where=own > _LEAST_OWN)
    found = (correlations - np.outer(shared, shared)) * np.outer(scales, scales)
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _loadings(correlations: Array) -> Array:
    """Fit the off-diagonal entries by the products of one number a label."""
    between = correlations.copy()
    np.fill_diagonal(between, 0.0)
    sums = between.sum(axis=1)
    shared = np.where(sums < 0, -1.0, 1.0) * np.sqrt(np.abs(between).mean(axis=1))
    for _ in range(_MOST_STEPS):
        others = shared @ shared - shared**2
        wanted = np.divide(between @ shared, others, out=np.zeros_like(shared), where=others > 0)
        step = np.clip(wanted, -1.0, 1.0) - shared
        shared = shared + step / 2  # whole steps swing to and fro
        if np.abs(step).max(initial=0.0) < _SETTLED:
            break
    return _by_medians(correlations, shared)


def _by_medians(correlations: Array, shared: Array) -> Array:
    for _ in range(_MEDIAN_STEPS):
        telling = np.abs(shared) > _LEAST_LOADING
        if telling.sum() < _ENOUGH_FOR_MEDIANS:
            break
        consistent = correlations.copy()
        np.fill_diagonal(consistent, shared**2)
        shared = np.clip(np.median(consistent[:, telling] / shared[telling], axis=1), -1.0, 1.0)
    return shared
