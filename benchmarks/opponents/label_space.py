"""Label space transformations: codes of the labels, regressed on the features, decoded linearly.

PLST: Tai and Lin, "Multilabel classification with principal label-space transformation", Neural Computation
24 (2012).  CPLST: Chen and Lin, "Feature-aware label space dimension reduction for multi-label
classification", NIPS 2012; Yu et al. 2014 (LEML), section 2.1, claims 1 and 2.  BCS: Kapoor, Viswanathan
and Jain, "Multilabel classification using Bayesian compressed sensing", NIPS 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import LinearOperator

from labelweave import LabelMatrix
from labelweave.estimators.binary_relevance.fit import IterativeRidge, Ridge, make_ridge
from labelweave.estimators.low_rank.fit import columns_for_rank
from labelweave.foundation.array_types import Array


class FactorOpponent:
    """Base of models with weights Z = W H^T, which predict a label if its score is above ``threshold_``.

    ``decision_function`` returns scores minus the threshold.
    """

    feature_factors_: Array
    label_factors_: Array
    intercept_: Array
    threshold_: float

    def decision_function(self, X: Any) -> Array:
        scores = np.asarray(X @ self.feature_factors_) @ self.label_factors_.T
        return np.asarray(scores + (self.intercept_ - self.threshold_))

    def predict(self, X: Any) -> Array:
        return (self.decision_function(X) > 0).astype(np.int8)


_LARGEST_TABLE = 50_000_000  # entries of dense rows, 400 MB
_PANEL = 256
_ROUNDS, _ROWS = 3, 256

Product = Callable[[Array], Array]


class LabelSpaceOpponent(FactorOpponent):
    """Base of label space transformations: ``y = mean + H W^T (x - mean)`` with orthonormal H.

    A subclass defines the matrix over labels whose leading eigenvectors are the columns of H. All labels must
    be observed.

    rank: the number of codes, or a share of the number of labels.
    alpha: the penalty of the ridge regressions, ``||T - X W||^2 + alpha ||W||^2`` with T the codes.  With 0
    the solution of minimum norm is used.
    """

    def __init__(self, rank: float = 100, *, alpha: float = 0.0) -> None:
        self.rank = rank
        self.alpha = alpha

    def fit(self, X: Any, Y: Any) -> Self:
        labels = LabelMatrix.from_any(Y)
        if labels.has_missing:
            raise ValueError(f"{type(self).__name__} needs every label of every row.")
        inputs, targets = _Centered(X), _Centered(labels.positives)
        ridge = _centered_ridge(inputs, float(self.alpha))
        self.rank_ = int(min(columns_for_rank(self.rank, labels.n_labels), *targets.shape))
        directions = _leading_directions(self._label_product(targets, inputs, ridge), labels.n_labels)
        self.label_factors_ = directions[:, : self.rank_]
        self.feature_factors_ = ridge.solve(targets.matmat(self.label_factors_))
        self.intercept_ = targets.means - self.label_factors_ @ (inputs.means @ self.feature_factors_)
        self.threshold_ = 0.5
        return self

    def _label_product(self, targets: _Centered, inputs: _Centered, ridge: Ridge) -> Product:
        """Return the product with the matrix whose leading eigenvectors code the labels."""
        raise NotImplementedError


class PLST(LabelSpaceOpponent):
    """Code the labels by the principal components of the labels alone (Tai and Lin 2012)."""

    def _label_product(self, targets: _Centered, inputs: _Centered, ridge: Ridge) -> Product:
        return lambda vectors: targets.rmatmat(targets.matmat(vectors))


class CPLST(LabelSpaceOpponent):
    """Code the labels by the directions that the features predict best (Chen and Lin 2012).

    The columns of H are the leading eigenvectors of ``Y^T X (X^T X + alpha I)^-1 X^T Y``, X and Y
    less their means.  The weights Z = W H^T minimize

    ``||Y - X Z||^2 + alpha ||Z||^2    subject to    rank(Z) <= rank``,

    whatever the penalty.  Without a penalty this is the closed form of claim 1 of Yu et al. (2014),
    V S^-1 (U^T Y)_k with X = U S V^T.
    """

    def _label_product(self, targets: _Centered, inputs: _Centered, ridge: Ridge) -> Product:
        return lambda vectors: targets.rmatmat(inputs.matmat(ridge.solve(targets.matmat(vectors))))


class _Centered(LinearOperator):
    """The columns of a matrix minus their means, without computing it."""

    def __init__(self, data: Any) -> None:
        self.data = data.astype(np.float64)
        self.means = np.asarray(self.data.mean(axis=0)).ravel()
        super().__init__(np.float64, data.shape)

    def _matmat(self, vectors: Array) -> Array:
        return np.asarray(self.data @ vectors) - self.means @ vectors

    def _matvec(self, vector: Array) -> Array:
        return self._matmat(vector.reshape(-1, 1))

    def _rmatmat(self, vectors: Array) -> Array:
        return np.asarray(self.data.T @ vectors) - np.outer(self.means, vectors.sum(axis=0))

    def _rmatvec(self, vector: Array) -> Array:
        return self._rmatmat(vector.reshape(-1, 1))


def _centered_ridge(inputs: _Centered, penalty: float) -> Ridge:
    if inputs.shape[0] * inputs.shape[1] > _LARGEST_TABLE:
        return IterativeRidge(inputs, penalty)
    table = inputs.data.toarray() if sp.issparse(inputs.data) else inputs.data
    return make_ridge(table - inputs.means, penalty)


def _leading_directions(product: Product, n_labels: int) -> Array:
    """Return the eigenvectors of a symmetric matrix over labels, by decreasing eigenvalue."""
    matrix = np.empty((n_labels, n_labels))
    for start in range(0, n_labels, _PANEL):
        width = min(_PANEL, n_labels - start)
        matrix[:, start : start + width] = product(np.eye(n_labels, width, -start))
    _, vectors = linalg.eigh(0.5 * (matrix + matrix.T), overwrite_a=True)
    return np.asarray(vectors[:, ::-1])


class BCS:
    """Regress codes on features by ridge; infer unobserved labels, each with its own variance."""

    def __init__(self, rank: float, alpha: float) -> None:
        self.rank, self.alpha = rank, alpha

    def fit(self, X: Any, Y: Any) -> Self:
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
