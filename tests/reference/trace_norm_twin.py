"""The trace norm problem by accelerated proximal gradients on the whole matrix Z."""

import numpy as np

from reference.entry_twins import EntriesTwin


def objective(Z, X, twin, penalty, *, power="trace_norm"):
    losses = twin.values(X @ Z, np.eye(Z.shape[1])).sum()
    size = np.linalg.svd(Z, compute_uv=False).sum() if power == "trace_norm" else 0.5 * (Z**2).sum()
    return losses + penalty * size


def soft_thresholded(Z, penalty):
    left, sizes, right = np.linalg.svd(Z, full_matrices=False)
    return (left * np.maximum(sizes - penalty, 0)) @ right


def minimize(X, loss, signs, weights, penalty, n_iter=4000):
    """Return the best Z of any rank and its objective."""
    twin = EntriesTwin(loss, signs, weights)
    eye = np.eye(signs.shape[1])
    rate = 1 / (np.linalg.norm(X, 2) ** 2 * twin.weights.max())
    Z = ahead = np.zeros((X.shape[1], signs.shape[1]))
    momentum = 1.0
    for _ in range(n_iter):
        last = Z
        Z = soft_thresholded(ahead - rate * (X.T @ twin.gradients(X @ ahead, eye)), rate * penalty)
        after = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead = Z + (momentum - 1) / after * (Z - last)
        momentum = after
    return Z, objective(Z, X, twin, penalty)


def projected(Z, bound):
    """Return the nearest matrix of a trace norm up to the bound (Duchi et al. 2008, on singular values)."""
    left, sizes, right = np.linalg.svd(Z, full_matrices=False)
    if sizes.sum() <= bound:
        return Z
    sums = np.cumsum(sizes)
    kept = np.flatnonzero(sizes * np.arange(1, len(sizes) + 1) > sums - bound)[-1]
    return (left * np.maximum(sizes - (sums[kept] - bound) / (kept + 1), 0)) @ right


def minimize_within(X, loss, signs, weights, bound, n_iter=4000):
    """Return the best Z of a trace norm up to the bound, and its loss, by accelerated projected gradients."""
    twin, eye = EntriesTwin(loss, signs, weights), np.eye(signs.shape[1])
    rate = 1 / (np.linalg.norm(X, 2) ** 2 * twin.weights.max())
    Z = ahead = np.zeros((X.shape[1], signs.shape[1]))
    momentum = 1.0
    for _ in range(n_iter):
        last = Z
        Z = projected(ahead - rate * X.T @ twin.gradients(X @ ahead, eye), bound)
        after = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead = Z + (momentum - 1) / after * (Z - last)
        momentum = after
    return Z, objective(Z, X, twin, 0.0)
