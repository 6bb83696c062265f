"""Slow, readable reference of the kernelized M3L solver (M3L, journal version, algorithms 1 and 2).

In signed variables beta = 2 y alpha: max <T, beta> - tr(beta^T K beta R) / 2 between bounds.
"""

import numpy as np


def projected(slopes, beta, lower, upper):
    """Equation 31: 0 where a bound forbids the move."""
    return np.where(beta < upper, np.maximum(slopes, 0), 0) + np.where(
        beta > lower, np.minimum(slopes, 0), 0
    )  # fmt: skip


def solve_one_variable(curvature, slope, old, lower, upper):
    if curvature > 0:
        return min(max(old + slope / curvature, lower), upper)
    return {1: upper, -1: lower, 0: old}[int(np.sign(slope))]


def solve_two_variables(Q, slopes, old, lower, upper):
    """Algorithm 2; returns the new values."""
    free = old + np.linalg.solve(Q, slopes)
    held = np.clip(free, lower, upper)
    candidates = []
    for k, other in ((0, 1), (1, 0)):
        if held[k] != free[k]:  # the maximum is on a side beyond the free one
            slope = slopes[other] - Q[0, 1] * (held[k] - old[k])
            candidate = held.copy()
            candidate[other] = solve_one_variable(
                Q[other, other], slope, old[other], lower[other], upper[other]
            )  # fmt: skip
            candidates.append(candidate)
    return max(candidates or [held], key=lambda new: gain(Q, slopes, new - old))


def gain(Q, slopes, step):
    return slopes @ step - step @ Q @ step / 2


def choose_second(p, K, slopes):
    """Equation 30 over the rows that can move and are not (nearly) parallel to p; None if there are none."""
    diagonal = np.diag(K)
    counts = (np.abs(slopes) > 1e-9 * abs(slopes[p])) & (K[p] ** 2 < (1 - 1e-6) * K[p, p] * diagonal)
    bounds = np.zeros(len(K))
    for q in np.flatnonzero(counts):
        pair = np.array([p, q])
        bounds[q] = slopes[pair] @ np.linalg.solve(K[np.ix_(pair, pair)], slopes[pair])
    return int(np.argmax(bounds)) if counts.any() else None


def visit(K, R, targets, lower, upper, beta, scores, n_steps, enough=0.3):
    """Do the body of algorithm 1's outer loop in place; return the label and the pairs chosen.

    It ends when the largest slope is no more than the share ``enough`` of the one at the start.
    """
    slopes = projected(targets - scores, beta, lower, upper)
    label = int(np.argmax(np.abs(slopes).max(axis=0)))
    low, high, column = lower[:, label], upper[:, label], beta[:, label]
    accumulated, pairs = np.zeros(len(K)), []
    least = max(1e-14, enough * np.abs(slopes[:, label]).max())
    for _ in range(n_steps):
        slopes = projected(targets[:, label] - scores[:, label], column, low, high)
        p = int(np.argmax(np.abs(slopes)))
        if abs(slopes[p]) <= least:
            break
        q = choose_second(p, K, slopes) if R[label, label] > 0 else None
        chosen = np.array([p] if q is None else [p, q])
        Q = R[label, label] * K[np.ix_(chosen, chosen)]
        if q is None:
            new = [solve_one_variable(Q[0, 0], slopes[p], column[p], low[p], high[p])]
        else:
            new = solve_two_variables(Q, slopes[chosen], column[chosen], low[chosen], high[chosen])
        change = K[:, chosen] @ (new - column[chosen])
        column[chosen] = new
        scores[:, label] += R[label, label] * change
        accumulated += change
        pairs.append((p, q))
    for k in range(len(R)):
        if k != label:
            scores[:, k] += R[k, label] * accumulated
    return label, pairs
