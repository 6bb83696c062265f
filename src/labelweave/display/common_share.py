"""Correlations beyond what all labels share.

The prior of M3L averages y yᵀ over rows in -1/1 without taking means away.  With rare labels nearly all of
its correlations are near 1, as nearly all labels are absent together.  They are a_i a_j plus what two
labels have to do with each other, where a is the labels' mean; with that a,

    (r_ij - a_i a_j) / sqrt((1 - a_i²) (1 - a_j²))

is the usual correlation, with the means taken away.  The means are not known to a covariance, so a is the one
factor that fits its correlations best (Spearman 1904), once by least squares, then by medians, which
related labels do not move.
"""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array

__all__ = ["beyond_common_share", "is_mostly_common"]


_MOSTLY = 0.5  # the median size of correlations of labels that are mostly in common
_MOST_STEPS = 100
_SETTLED = 1e-8
_MEDIAN_STEPS = 3
_ENOUGH_FOR_MEDIANS = 20  # labels
_LEAST_LOADING = 0.1  # labels that share less than this tell nothing of what others share
_LEAST_OWN = 1e-6  # variance; a label that has no more of its own is uncorrelated with others


def is_mostly_common(correlations: Array) -> bool:
    """Say whether most labels are strongly correlated with most others.

    correlations (k, k): entries from -1 to 1.
    Returns whether the median size of correlations of different labels is above one half.
    """
    between = correlations[np.triu_indices(len(correlations), 1)]
    return bool(len(between) and np.median(np.abs(between)) > _MOSTLY)


def beyond_common_share(correlations: Array) -> Array:
    """Take away what all labels share.

    correlations (k, k): entries from -1 to 1.
    Returns (k, k): correlations given the common factor, from -1 to 1, with ones on the diagonal.
    """
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
