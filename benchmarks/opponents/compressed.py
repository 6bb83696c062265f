"""Bayesian compressed sensing of labels (Kapoor, Viswanathan and Jain 2012): random codes, sparse labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

_ROUNDS, _ROWS = 3, 256


class BCS:
    """Regress codes on features by ridge; infer labels of variance 1 / Gamma each, also unobserved ones."""

    def __init__(self, rank: float, alpha: float) -> None:
        self.rank, self.alpha = rank, alpha

    def fit(self, X: Any, Y: Any) -> BCS:
        is_seen, labels, table = ~np.isnan(Y), np.nan_to_num(Y), self._table(X)
        n_codes = round(self.rank * Y.shape[1])
        self._codes = np.random.default_rng(0).normal(size=(n_codes, Y.shape[1])) / np.sqrt(n_codes)
        factor = linalg.cho_factor(table.T @ table + self.alpha * np.eye(table.shape[1]))
        for _ in range(1 if is_seen.all() else _ROUNDS):
            codes = labels @ self._codes.T
            self._weights = linalg.cho_solve(factor, table.T @ codes)
            predicted = table @ self._weights
            self._noise = float(((codes - predicted) ** 2).mean())
            known = np.where(is_seen, labels, 0.0)
            labels = known + self._labels(predicted - known @ self._codes.T, ~is_seen)
        return self

    def decision_function(self, X: Any) -> Any:
        codes = self._table(X) @ self._weights
        return self._labels(codes, np.ones((len(codes), self._codes.shape[1])))

    def predict(self, X: Any) -> Any:
        return (self.decision_function(X) > 0.5).astype(np.int8)

    def _table(self, X: Any) -> Any:
        return np.column_stack([X.toarray() if sp.issparse(X) else X, np.ones(X.shape[0])])

    def _labels(self, codes: Any, is_open: Any) -> Any:
        parts = range(0, len(codes), _ROWS)
        return np.vstack([self._of_rows(codes[i : i + _ROWS], is_open[i : i + _ROWS]) for i in parts])

    def _of_rows(self, codes: Any, is_open: Any) -> Any:
        """Alternate the means of labels and their variances, from a variance of 1."""
        variances = means = is_open.astype(float)
        for _ in range(_ROUNDS):
            covariances = (variances[:, None] * self._codes) @ self._codes.T + self._noise * np.eye(
                len(self._codes)
            )
            solved = np.linalg.solve(
                covariances, np.broadcast_to(self._codes, (len(codes), *self._codes.shape))
            )
            means = variances * np.einsum("ikl,ik->il", solved, codes)
            left = variances - variances**2 * (self._codes * solved).sum(axis=1)
            variances = is_open * (means**2 + left)
        return means
