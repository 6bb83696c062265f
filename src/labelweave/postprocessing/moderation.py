"""Probabilities averaged over a Gaussian posterior of the scores.

The mean of a logistic function is computed by the trapezoidal rule, which converges exponentially: over the
Gaussian where it is narrow, else over the logistic density.  The mean of a softmax is that over fixed
quasi-random scores (Sobol points).
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_ndtr, log_softmax, logsumexp, ndtri

from labelweave.foundation.array_types import Array, RowsByClasses
from labelweave.foundation.arrays import panels

_STEP, _NARROW, _WIDE = 0.5, 8.0, 40.0  # of the rule, and its ends over either density
_LOG_POINTS = 9  # base 2
# measured errors of probabilities are below _ERROR v / (v + _HALF) at variances v up to _WIDEST
_ERROR, _HALF, _WIDEST = 0.03, 10.0, 1e3
_VALUES_AT_ONCE = 4_000_000


def mean_log_expit(means: Array, variances: Array) -> Array:
    """Compute ``log E[expit(f)]`` for Gaussian f, accurate to 1e-9 for any variance."""
    deviations, below = np.sqrt(variances), -np.abs(means)
    total = np.full(means.shape, -np.inf)
    wide = deviations > 1.0
    for t in np.arange(-_NARROW, _NARROW + _STEP, _STEP):
        values = log_expit(below[~wide] + t * deviations[~wide]) - t * t / 2
        total[~wide] = np.logaddexp(total[~wide], values)
    total[~wide] -= np.log(2 * np.pi) / 2
    for z in np.arange(-_WIDE, _WIDE + _STEP, _STEP):
        values = log_expit(z) + log_expit(-z) + log_ndtr((below[wide] - z) / deviations[wide])
        total[wide] = np.logaddexp(total[wide], values)
    total += np.log(_STEP)
    return np.where(means > 0, np.log1p(-np.exp(total)), total)


def mean_log_softmax(means: RowsByClasses, covariances: Array) -> RowsByClasses:
    """Compute ``log E[softmax(f)]`` for Gaussian f of covariances (n, C, C), by 512 points.

    The error is below 0.03 at variances up to 1,000, and at most 0.003 at variances of 1.  Within it, and at
    larger variances, the class of the greatest mean is the most probable one.
    """
    from scipy.stats.qmc import Sobol

    n_classes = means.shape[1]
    points = Sobol(n_classes, scramble=False).random_base2(_LOG_POINTS)
    normal = ndtri(points + 0.5 / len(points))
    found = np.empty(means.shape)
    for rows in panels(len(means), max(1, _VALUES_AT_ONCE // normal.size)):
        values, vectors = np.linalg.eigh(covariances[rows])
        # the first points are the most even: they are for the largest eigenvalues
        roots = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, ::-1]
        scores = means[rows, None, :] + normal @ roots.transpose(0, 2, 1)
        found[rows] = logsumexp(log_softmax(scores, axis=2), axis=1)
    found -= np.log(len(points))
    every, best, top = np.arange(len(means)), means.argmax(axis=1), found.argmax(axis=1)
    variances = np.einsum("ncc->n", covariances) / n_classes
    error = np.where(variances > _WIDEST, 1.0, _ERROR * variances / (variances + _HALF))
    near = np.exp(found[every, top]) - np.exp(found[every, best]) < error
    pair = every[near], np.stack([best[near], top[near]])
    found[pair] = found[pair][::-1]
    return found
