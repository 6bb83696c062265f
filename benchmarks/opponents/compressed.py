"""Bayesian compressed sensing of labels (Kapoor, Viswanathan and Jain 2012): random codes, sparse labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

_ROUNDS, _ROWS = 3, 256


class BCS:
    """Regress codes on features by ridge; infer unobserved labels, each with a variance of its own."""

    def __init__(self, rank: float, alpha: float) -> None:
        self.rank, self.alpha = rank, alpha

    def fit(self, X: Any, Y: Any) -> BCS:
        is_seen, labels, table = ~np.isnan(Y), np.nan_to_num(Y), _table(X)
        self._codes = np.random.default_rng(0).normal(size=(round(self.rank * Y.shape[1]), Y.shape[1]))
        self._codes /= np.sqrt(len(self._codes))
        factor = linalg.cho_factor(table.T @ table + self.alpha * np.eye(table.shape[1]))
        known = labels
        for _ in range(1 if is_seen.all() else _ROUNDS):
            codes = labels @ self._codes.T
            self._weights = linalg.cho_solve(factor, table.T @ codes)
            predicted = table @ self._weights
            self._noise = float(((codes - predicted) ** 2).mean()) * np.eye(len(self._codes))
            labels = known + self._labels(predicted - known @ self._codes.T, ~is_seen)
        return self

    def decision_function(self, X: Any) -> Any:
        return self._labels(_table(X) @ self._weights, np.ones((X.shape[0], self._codes.shape[1])))

    def predict(self, X: Any) -> Any:
        return (self.decision_function(X) > 0.5).astype(np.int8)

    def _labels(self, codes: Any, is_open: Any) -> Any:
        """Alternate the means of labels and their variances, from a variance of 1, some rows at a time."""
        means, variances = np.zeros(is_open.shape), is_open.astype(float)
        for rows in (slice(start, start + _ROWS) for start in range(0, len(codes), _ROWS)):
            for _ in range(_ROUNDS):
                covariances = (variances[rows, None] * self._codes) @ self._codes.T + self._noise
                solved = np.linalg.inv(covariances) @ self._codes
                means[rows] = variances[rows] * np.einsum("ikl,ik->il", solved, codes[rows])
                left = variances[rows] * (1.0 - variances[rows] * (self._codes * solved).sum(axis=1))
                variances[rows] = is_open[rows] * (means[rows] ** 2 + left)
        return means


def _table(X: Any) -> Any:
    return np.column_stack([X.toarray() if sp.issparse(X) else X, np.ones(X.shape[0])])
