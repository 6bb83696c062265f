"""Slow, readable references of the kernel max-margin dual: everything explicit, label by row."""

import numpy as np
from scipy.optimize import minimize


def box(signs, weights, margins):
    """Return T, the lower and the upper bounds, entry by entry."""
    targets, lower, upper = np.zeros(signs.shape), np.zeros(signs.shape), np.zeros(signs.shape)
    for (i, label), sign in np.ndenumerate(signs):
        if sign > 0:
            targets[i, label], upper[i, label] = margins[0][label], weights[i]
        if sign < 0:
            targets[i, label], lower[i, label] = -margins[1][label], -weights[i]
    return targets, lower, upper


def primal(B, K, R, targets, lower, upper):
    scores = K @ B @ R
    loss = np.maximum(lower * (targets - scores), upper * (targets - scores))
    return 0.5 * np.sum(B * scores) + loss.sum()


def dual(V, K, R, targets):
    return np.sum(targets * V) - 0.5 * np.sum(V * (K @ V @ R))


def kronecker(K, R):
    """Return the operator on B.ravel()."""
    return np.kron(K, R)


def optimum(K, R, targets, lower, upper):
    """Maximize the dual over the box; accurate to about 1e-9 if K (x) R is not too ill-conditioned."""
    A, T, low, high = kronecker(K, R), targets.ravel(), lower.ravel(), upper.ravel()
    found = minimize(
        lambda v: (0.5 * v @ A @ v - T @ v, A @ v - T),
        np.zeros(T.size),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": 100_000, "maxfun": 1_000_000, "ftol": 0, "gtol": 1e-12, "maxcor": 50},
    )
    v = _with_the_free_ones_solved(found.x, A, T, low, high)
    V = v.reshape(targets.shape)
    value, bound = dual(V, K, R, targets), primal(V, K, R, targets, lower, upper)
    assert bound - value <= 1e-8 * max(1, bound), "the twin itself has not converged"
    return value, V


def _with_the_free_ones_solved(v, A, T, low, high):
    for _ in range(10):
        near = 1e-7 * (high - low)
        free = (v > low + near) & (v < high - near)
        fixed = np.where(free, 0, np.where(v <= low + near, low, high))
        slopes = T - A @ fixed
        v = fixed.copy()
        v[free] = np.linalg.lstsq(A[np.ix_(free, free)], slopes[free], rcond=1e-12)[0]
        v = np.clip(v, low, high)
    return v
