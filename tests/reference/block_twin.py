"""A slow, readable twin of the sweeps inside a block of kernel rows.

In signed variables: max <T, beta> - tr(beta^T K beta R) / 2 between bounds, rows outside the block held.
"""

import numpy as np

GROUP = 16  # labels whose sweeps end together when labels are independent


def shares(targets, scores, beta, lower, upper):
    short = targets - scores
    return (np.maximum(lower * short, upper * short) - beta * short).sum(axis=1)


def _best(curvature, slope, old, lower, upper):
    if curvature > 0:
        return min(max(old + slope / curvature, lower), upper)
    return {1: upper, -1: lower, 0: old}[int(np.sign(slope))]


def sweep(K, R, targets, scores, beta, lower, upper):
    """Take every variable once, in place, labels of a row before the next row; return the gain."""
    gain = 0.0
    for row in range(len(K)):
        for label in range(len(R)):
            slope = targets[row, label] - scores[row, label]
            new = _best(
                K[row, row] * R[label, label], slope, beta[row, label], lower[row, label], upper[row, label]
            )  # fmt: skip
            step = new - beta[row, label]
            beta[row, label] = new
            scores += step * np.outer(K[row], R[label])
            gain += step * slope if R[label, label] == 1 and not R[label].sum() - 1 else 0.0
    return gain


def ascend(K, R, targets, scores, beta, lower, upper, n_sweeps):
    """Sweep so often; return the new beta and the change of beta R."""
    beta, scores, start = beta.copy(), scores.copy(), beta
    for _ in range(n_sweeps):
        sweep(K, R, targets, scores, beta, lower, upper)
    return beta, (beta - start) @ R
