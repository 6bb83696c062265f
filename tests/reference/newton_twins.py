"""Slow, readable references of penalized likelihoods: every matrix explicit, row by row.

An array of scores of shape (n, C) is flattened row by row, ``U.ravel()``.
"""

import numpy as np
from scipy.optimize import minimize


def prior(grams, covariances, intercept_variance):
    n, C = len(grams[0]), len(covariances[0])
    total = intercept_variance * np.kron(np.ones((n, n)), np.eye(C))
    for K, R in zip(grams, covariances, strict=True):
        total += np.kron(K, R)
    return total


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


class SoftmaxTwin:
    """One class per row, or one of several where ``allowed`` says so."""

    def __init__(self, allowed, weights):
        self.allowed, self.weights = allowed, weights

    def value(self, scores):
        total = 0.0
        for u, allowed, weight in zip(scores, self.allowed, self.weights, strict=True):
            total += weight * (np.logaddexp.reduce(u) - np.logaddexp.reduce(u[allowed]))
        return total

    def slope(self, scores):
        slopes = np.zeros_like(scores)
        for i, (u, allowed, weight) in enumerate(zip(scores, self.allowed, self.weights, strict=True)):
            target = np.zeros(len(u))
            target[allowed] = softmax(u[allowed])
            slopes[i] = weight * (softmax(u) - target)
        return slopes

    def curvature(self, scores):
        """Return W of the M step, one C x C block per row."""
        blocks = []
        for u, weight in zip(scores, self.weights, strict=True):
            p = softmax(u)
            blocks.append(weight * (np.diag(p) - np.outer(p, p)))
        return np.array(blocks)


class LogisticTwin:
    """Many labels per row, with signs 1, -1 and 0 where unobserved."""

    def __init__(self, signs, weights):
        self.signs, self.weights = signs, weights

    def value(self, scores):
        seen = np.abs(self.signs) * self.weights[:, None]
        return np.sum(seen * np.logaddexp(0, -self.signs * scores))

    def slope(self, scores):
        return -self.weights[:, None] * self.signs * np.exp(-np.logaddexp(0, self.signs * scores))

    def curvature(self, scores):
        odds = np.logaddexp(0, scores) + np.logaddexp(0, -scores)
        seen = np.abs(self.signs) * self.weights[:, None]
        return np.array([np.diag(row) for row in seen * np.exp(-odds)])


class SquaredHingeTwin:
    """Half the squared distance to a margin of 1, with signs 1, -1 and 0 where unobserved."""

    def __init__(self, signs, weights):
        self.signs, self.weights = signs, weights[:, None] * np.abs(signs)

    def _short(self, scores):
        return np.maximum(0.0, 1.0 - self.signs * scores)

    def value(self, scores):
        return np.sum(self.weights * self._short(scores) ** 2) / 2

    def slope(self, scores):
        return -self.weights * self.signs * self._short(scores)

    def curvature(self, scores):
        return np.array([np.diag(row) for row in self.weights * (self._short(scores) > 0)])


class SquaredTwin:
    """Half squared distances to 1 and 0 for labels with signs 1 and -1, nothing for those with 0."""

    def __init__(self, signs, weights, negative_weight=1.0):
        factors = {1: 1.0, -1: negative_weight, 0: 0.0}
        self.weights = np.array(
            [
                [factors[int(sign)] * weight for sign in row]
                for row, weight in zip(signs, weights, strict=True)
            ]
        )
        self.targets = (np.asarray(signs) == 1).astype(float)

    def value(self, scores):
        return np.sum(self.weights / 2 * (scores - self.targets) ** 2)

    def slope(self, scores):
        return self.weights * (scores - self.targets)

    def curvature(self, scores):
        return np.array([np.diag(row) for row in self.weights])


def block_diagonal(blocks):
    n, C, _ = blocks.shape
    matrix = np.zeros((n * C, n * C))
    for i, block in enumerate(blocks):
        matrix[i * C : (i + 1) * C, i * C : (i + 1) * C] = block
    return matrix


def objective(loss, K, dual):
    scores = (K @ dual.ravel()).reshape(dual.shape)
    return loss.value(scores) + 0.5 * np.sum(dual * scores)


def optimum(loss, K, shape):
    """Minimize over z with ``u = F z``, ``F F^T = K``: the least objective and its scores."""
    sizes, axes = np.linalg.eigh(K)
    F = axes * np.sqrt(np.maximum(sizes, 0.0))

    def value_and_slope(z):
        scores = (F @ z).reshape(shape)
        return loss.value(scores) + z @ z / 2, F.T @ loss.slope(scores).ravel() + z

    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 0, "gtol": 1e-10, "maxcor": 30}
    found = minimize(value_and_slope, np.zeros(len(K)), jac=True, method="L-BFGS-B", options=options)
    return found.fun, (F @ found.x).reshape(shape)
