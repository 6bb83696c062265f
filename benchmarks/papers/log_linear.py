"""The log-linear model with a group penalty on edges (Schmidt and Murphy 2010), the HLLM-L1 of CGM."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np

from labelweave import LabelMatrix

_SHARE_OF_RIDGE = 0.1


class LogLinear:
    """Fit all pairs of labels by proximal steps with momentum, over all 2^L labelings.

    P(y | x) is in proportion to exp(sum_k y_k w_k'x + sum_jk y_j y_k v_jk'x), labels in -1/1.  The penalty
    is alpha times the sum of the norms of v_jk, and a tenth of alpha times half the squares of all weights.
    """

    def __init__(self, alpha: float, max_iter: int = 200, tol: float = 1e-5) -> None:
        self.alpha, self.max_iter, self.tol = alpha, max_iter, tol

    def fit(self, X: Any, Y: Any) -> LogLinear:
        rows = _with_constant(X)
        signs = np.where(LabelMatrix.from_any(Y).to_dense() > 0, 1.0, -1.0).astype(np.float32)
        n_labels = signs.shape[1]
        self._states = _statistics(np.array(list(product((-1.0, 1.0), repeat=n_labels)), dtype=np.float32))
        self._n_labels, seen = n_labels, _statistics(signs)
        W = ahead = np.zeros((rows.shape[1], seen.shape[1]), dtype=np.float32)
        bound, momentum, value = float(np.linalg.norm(rows, 2) ** 2 / len(rows)), 1.0, np.inf
        for _ in range(self.max_iter):
            loss, gradient = self._loss(rows, seen, ahead, with_gradient=True)
            while True:
                new = self._proximal(ahead - gradient / bound, 1.0 / bound)
                step = new - ahead
                model = loss + float((gradient * step).sum()) + 0.5 * bound * float((step**2).sum())
                if self._loss(rows, seen, new)[0] <= model + 1e-6:
                    break
                bound *= 2.0
            later = 0.5 + np.sqrt(0.25 + momentum**2)
            ahead, W, momentum = new + (momentum - 1.0) / later * (new - W), new, later
            value, before = loss, value
            if abs(before - value) <= self.tol * value:
                break
        self._weights = W
        self.n_edges = int((np.linalg.norm(W[:, n_labels:], axis=0) > 0).sum())
        return self

    def predict(self, X: Any) -> Any:
        """Return the labels whose marginal probability is above one half."""
        scores = _with_constant(X) @ self._weights @ self._states.T
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (P @ self._states[:, : self._n_labels] > 0).astype(np.int8)

    def _loss(self, X: Any, seen: Any, W: Any, with_gradient: bool = False) -> tuple[float, Any]:
        inner = X @ W
        scores = inner @ self._states.T
        highest = scores.max(axis=1, keepdims=True)
        P = np.exp(scores - highest)
        total = P.sum(axis=1, keepdims=True)
        ridge = _SHARE_OF_RIDGE * self.alpha
        loss = float((np.log(total) + highest).mean() - (inner * seen).sum() / len(X))
        loss += 0.5 * ridge * float((W**2).sum())
        if not with_gradient:
            return loss, None
        return loss, X.T @ (P @ self._states / total - seen) / np.float32(len(X)) + np.float32(ridge) * W

    def _proximal(self, W: Any, step: float) -> Any:
        norms = np.linalg.norm(W[:, self._n_labels :], axis=0)
        W[:, self._n_labels :] *= np.maximum(0.0, 1.0 - step * self.alpha / np.maximum(norms, 1e-30))
        return W


def _with_constant(X: Any) -> Any:
    return np.column_stack([X, np.ones(len(X))]).astype(np.float32)


def _statistics(signs: Any) -> Any:
    """Put the products of all pairs of labels behind the labels."""
    pairs = np.array(list(combinations(range(signs.shape[1]), 2)))
    return np.hstack([signs, signs[:, pairs[:, 0]] * signs[:, pairs[:, 1]]])
