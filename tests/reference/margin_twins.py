"""Slow, readable references of the max-margin loops and objectives (M3L, sections 3 to 6)."""

import itertools

import numpy as np
from scipy.optimize import minimize


def add_rows(weights, indices, values, start, stop, total):
    for p in range(start, stop):
        total += values[p] * weights[indices[p]]


def add_to_rows(weights, indices, values, start, stop, change):
    for p in range(start, stop):
        weights[indices[p]] += values[p] * change


def target_of(sign, margins, label):
    return {1: margins[0, label], -1: -margins[1, label], 0: 0.0}[int(sign)]


def box_step(scores, signs, margins, beta, upper, inverse_norms, change, free, squared=None):
    gain = gap = 0.0
    ridge = 1 / (2 * upper) if squared else 0.0
    for label, (score, sign, old) in enumerate(zip(scores, signs, beta, strict=True)):
        gradient = target_of(sign, margins, label) - score
        hinge, slope = max(0, sign * gradient), gradient - ridge * old
        step = 1 / (1 / inverse_norms[label] + ridge)
        most = np.inf if squared else upper
        lowest, highest = (-most if sign < 0 else 0), (most if sign > 0 else 0)
        new = min(max(old + slope * step, lowest), highest)
        change[label] = new - old
        free[label] += step if lowest < new < highest else 0
        gain += (new - old) * slope
        gap += (upper * hinge**2 + old**2 / (4 * upper) if squared else upper * hinge) - old * gradient
    return gain, gap


def add_entry_sums(scores, signs, margins, beta, upper, sums, squared=None):
    for label, (score, sign, variable) in enumerate(zip(scores, signs, beta, strict=True)):
        target = target_of(sign, margins, label)
        hinge, conjugate = max(0, sign * (target - score)), variable**2 / (4 * upper) if squared else 0
        loss = upper * hinge ** (2 if squared else 1)
        sums[:, label] += loss, variable * target - conjugate, variable * score


def sweep_independent(
    rows, X, signs, beta, upper, margins, weights, intercept, share, threshold, has_intercept,
    keeps_zeros=False, squared=None,
):  # fmt: skip
    """Change beta, weights and intercept in place; return gains, the gap found, and the free variables."""
    gains, met, free = np.zeros(len(X)), 0.0, np.zeros(len(intercept))
    for i in rows:
        norm = max(X[i] @ X[i], 1e-25)
        is_small = has_intercept and norm < 1e-3
        follows = np.ones_like(share) if is_small else share
        change = np.zeros(len(intercept))
        counted = np.zeros_like(free) if is_small else free
        scores, inverse_norms = X[i] @ weights + intercept, 1 / (norm + follows)
        gains[i], gap = box_step(
            scores, signs[i], margins, beta[i], upper[i], inverse_norms, change, counted, squared
        )  # fmt: skip
        met += gap
        if gains[i] > threshold:
            beta[i] += change
            weights += np.outer(X[i], change) * (weights != 0 if keeps_zeros else 1)
            intercept += follows * change
    return gains, met, free


def sweep_coupled(rows, X, signs, beta, upper, margins, Z, R, threshold):
    """Visit labels one after the other; the last column of X may be the constant feature."""
    gains, met = np.zeros(len(X)), 0.0
    for i in rows:
        norm, change = X[i] @ X[i], np.zeros(len(R))
        before = X[i] @ Z
        for label, sign in enumerate(signs[i]):
            if sign == 0:
                continue
            target = target_of(sign, margins, label)
            slope = target - before[label] - norm * (R[label] @ change)
            bounds = sorted([0.0, sign * upper[i]])
            change[label] = (
                np.clip(beta[i, label] + slope / (norm * R[label, label]), *bounds) - beta[i, label]
            )
            gains[i] += change[label] * slope
            at_first = target - before[label]
            met += upper[i] * max(0, sign * at_first) - beta[i, label] * at_first
        if gains[i] > threshold:
            beta[i] += change
            Z += np.outer(X[i], R @ change)
    return gains, met


def hinge_losses(scores, signs, upper, margins):
    asked = np.where(signs > 0, margins[0], margins[1])
    return float(
        (
            (upper if upper.ndim == 2 else upper[:, None])
            * np.where(signs == 0, 0, np.maximum(0, asked - signs * scores))
        ).sum()
    )


def primal_at(Z, X, signs, upper, margins, R):
    """Equations 11 to 14, for an invertible R; one row of Z per feature."""
    return 0.5 * np.trace(Z @ np.linalg.inv(R) @ Z.T) + hinge_losses(X @ Z, signs, upper, margins)


def dual_at(beta, X, signs, margins, R):
    """Equation 25 in signed variables."""
    targets = np.where(signs > 0, margins[0], np.where(signs < 0, -margins[1], 0.0))
    return float((beta * targets).sum() - 0.5 * np.trace(beta.T @ X @ X.T @ beta @ R))


def largest_dual(K, signs, C, R, margins):
    """Maximize equation 25 within its box by a quasi-Newton method: the optimum, of missing entries too."""
    targets = np.where(signs > 0, margins[0], np.where(signs < 0, -margins[1], 0.0))

    def loss(variables):
        B = variables.reshape(signs.shape)
        gradient = K @ B @ R - targets
        return 0.5 * (B * (gradient - targets)).sum(), gradient.ravel()

    bounds = [tuple(sorted((0.0, 2 * C * sign))) for sign in signs.ravel()]
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(loss, np.zeros(signs.size), jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return -found.fun


def exponential_primal(X, signs, C, R, margins):
    """Solve P1 (equations 1 to 8) with one constraint for every row and every label vector."""
    (n, d), L = X.shape, signs.shape[1]
    P = np.linalg.cholesky(R).T
    rows, bounds = [], []
    for i, y in itertools.product(range(n), np.array(list(itertools.product((-1, 1), repeat=L)))):
        wrong = y != signs[i]
        loss = (2 * wrong * np.where(signs[i] > 0, margins[0], margins[1])).sum()
        slack = np.zeros(n)
        slack[i] = 1
        rows.append(np.concatenate([-np.kron(X[i], P @ (y - signs[i])), slack]))
        bounds.append(loss)
    A, b = np.array(rows), np.array(bounds)
    k = d * L
    start = np.concatenate([np.zeros(k), np.full(n, b.max())])
    found = minimize(
        lambda v: 0.5 * v[:k] @ v[:k] + C * v[k:].sum(),
        start,
        jac=lambda v: np.concatenate([v[:k], np.full(n, C)]),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.fun, found.x[:k].reshape(d, L) @ P
