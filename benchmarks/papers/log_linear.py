"""The log-linear model with a group penalty on edges (Schmidt and Murphy 2010), the HLLM-L1 of CGM."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from labelweave import LabelMatrix

_MOST_STEPS, _SHARE_OF_RIDGE, _TOLERANCE = 200, 0.1, 1e-5


class LogLinear:
    """Fit all pairs of labels by proximal steps with momentum, over all 2^L labelings.

    P(y | x) is in proportion to exp(sum_k y_k w_k'x + sum_jk y_j y_k v_jk'x), labels in -1/1.  The penalty
    is alpha times the sum of the norms of v_jk, and a tenth of alpha times half the squares of all weights.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, X: Any, Y: Any) -> LogLinear:
        rows, signs = _with_constant(X), 2.0 * LabelMatrix.from_any(Y).to_dense().astype(np.float32) - 1.0
        self._n_labels, seen = signs.shape[1], _statistics(signs)
        self._states = _statistics(np.array(list(product((-1.0, 1.0), repeat=self._n_labels)), np.float32))
        W = ahead = np.zeros((rows.shape[1], seen.shape[1]), dtype=np.float32)
        bound, momentum, value = float(np.linalg.norm(rows, 2) ** 2 / len(rows)), 1.0, np.inf
        for _ in range(_MOST_STEPS):
            loss, gradient = self._loss(rows, seen, ahead)
            while True:
                step = (new := self._proximal(ahead - gradient / bound, self.alpha / bound)) - ahead
                model = loss + float((gradient * step).sum()) + 0.5 * bound * float((step**2).sum())
                if self._loss(rows, seen, new)[0] <= model + 1e-6:
                    break
                bound *= 2.0
            later = 0.5 + np.sqrt(0.25 + momentum**2)
            ahead, W, momentum = new + (momentum - 1.0) / later * (new - W), new, later
            if abs(loss - value) <= _TOLERANCE * loss:
                break
            value = loss
        self._weights = W
        return self

    def predict(self, X: Any) -> Any:
        """Return the labels whose marginal probability is above one half."""
        P = softmax(_with_constant(X) @ self._weights @ self._states.T, axis=1)
        return (P @ self._states[:, : self._n_labels] > 0).astype(np.int8)

    def _loss(self, X: Any, seen: Any, W: Any) -> tuple[float, Any]:
        inner, ridge = X @ W, np.float32(_SHARE_OF_RIDGE * self.alpha)
        scores = inner @ self._states.T
        loss = logsumexp(scores, axis=1).mean() - (inner * seen).sum() / len(X) + 0.5 * ridge * (W**2).sum()
        return float(loss), X.T @ (softmax(scores, axis=1) @ self._states - seen) / len(X) + ridge * W

    def _proximal(self, W: Any, size: float) -> Any:
        norms = np.linalg.norm(W[:, self._n_labels :], axis=0)
        W[:, self._n_labels :] *= np.maximum(0.0, 1.0 - size / np.maximum(norms, 1e-30))
        return W


def _with_constant(X: Any) -> Any:
    return np.column_stack([X, np.ones(len(X))]).astype(np.float32)


def _statistics(signs: Any) -> Any:
    """Put the products of all pairs of labels behind the labels."""
    return np.hstack(
        [signs, *(signs[:, [j]] * signs[:, [k]] for j, k in combinations(range(signs.shape[1]), 2))]
    )
