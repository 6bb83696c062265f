"""A slow, readable reference of the sweeps inside a block of kernel rows.

In signed variables: max <T, beta> - tr(beta^T K beta R) / 2 between bounds, rows outside the block fixed.
"""

import numpy as np


def shares(targets, scores, beta, lower, upper):
    """Every row's share of the duality gap."""
    short = targets - scores
    return (np.maximum(lower * short, upper * short) - beta * short).sum(axis=1)


def best_value(curvature, slope, old, lower, upper):
    if curvature > 0:
        return min(max(old + slope / curvature, lower), upper)
    return {1: upper, -1: lower, 0: old}[int(np.sign(slope))]


def sweep(K, R, targets, scores, beta, lower, upper):
    """Update every variable once, in place, row by row; return the sum of steps times slopes."""
    gain = 0.0
    for row, label in np.ndindex(beta.shape):
        slope, old = targets[row, label] - scores[row, label], beta[row, label]
        bounds = lower[row, label], upper[row, label]
        step = best_value(K[row, row] * R[label, label], slope, old, *bounds) - old
        beta[row, label] += step
        scores += step * np.outer(K[row], R[label])
        gain += step * slope
    return gain


def ascend(K, R, targets, scores, beta, lower, upper, most_sweeps, settled=0.1):
    """Sweep until one gains no more than the share ``settled`` of the best.

    Return beta and the change of beta R.
    """
    new, scores, best = beta.copy(), scores.copy(), 0.0
    for _ in range(most_sweeps):
        gain = sweep(K, R, targets, scores, new, lower, upper)
        best = max(best, gain)
        if gain <= settled * best:
            break
    return new, (new - beta) @ R
