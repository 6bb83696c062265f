"""Methods whose results Tan et al. 2015 quote: LSG21, and linear machines on features of MLF, MLRF and MLLS.

LSG21: Cai, Nie, Cai and Huang, "New graph structured sparsity model for multi-label image annotations", ICCV
2013.  MLF, MLRF: Kong, Ding, Huang and Zhao, "Multi-label ReliefF and F-statistic feature selections for
image annotation", CVPR 2012.  MLLS: Yu, Yu and Tresp, "Multi-label informed latent semantic indexing", SIGIR
2005.  They follow published outlines; what those leave open is chosen here.
"""

from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from labelweave import LabelMatrix, MaxMarginClassifier

_STEPS, _SMALL = 50, 1e-8
_NEIGHBORS, _SHARES, _COMPONENTS = 10, (0.25, 0.5, 0.75, 0.9), 50


class LSG21:
    """Minimize the mean of |W'x + b - y|^2 plus alpha sum_jk S_jk sum_d |(W_dj, W_dk)|, by reweighted ridges.

    S are the cosines between the columns of the labels; as many entries of training rows are predicted
    as are positive.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, X: Any, Y: Any) -> Self:
        Y = LabelMatrix.from_any(Y).to_dense().astype(float)
        lengths = np.linalg.norm(Y, axis=0)
        graph = np.triu(Y.T @ Y / np.maximum(np.outer(lengths, lengths), 1.0), 1)
        self.shift, self.mean = X.mean(axis=0), Y.mean(axis=0)
        centered, gram = X - self.shift, np.cov(X.T, bias=True)
        moments = centered.T @ (Y - self.mean) / len(X)
        self.weights = np.linalg.solve(gram + self.alpha * np.eye(len(gram)), moments)
        for _ in range(_STEPS):
            bends = penalty_bends(self.weights, graph + graph.T)
            self.weights = np.stack(
                [
                    np.linalg.solve(gram + 0.5 * self.alpha * np.diag(bend), moment)
                    for bend, moment in zip(bends.T, moments.T, strict=True)
                ],
                axis=1,
            )
        self.threshold = np.quantile(self.scores(X), 1.0 - Y.mean())
        return self

    def scores(self, X: Any) -> Any:
        return (X - self.shift) @ self.weights + self.mean

    def predict(self, X: Any) -> Any:
        return (self.scores(X) > self.threshold).astype(np.int8)


def penalty_bends(W: Any, graph: Any) -> Any:
    """Return the weights of the ridge that touches the penalty at W, shape (d, L)."""
    return np.stack(
        [(own / np.sqrt(W[:, [k]] ** 2 + W**2 + _SMALL)).sum(axis=1) for k, own in enumerate(graph)], axis=1
    )


class _OnFeatures:
    """Base of linear support vector machines, one per label, on features that depend on the labels."""

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: Any, Y: Any) -> Self:
        self.map = self.make_map(X, LabelMatrix.from_any(Y).to_dense().astype(float))
        self.model = MaxMarginClassifier(self.C, n_jobs=1).fit(X @ self.map, Y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(X @ self.map)

    def make_map(self, X: Any, Y: Any) -> Any:
        """Return the matrix from features to those of the machines, (d, k); a third of the rows chooses k."""
        best, learns = np.argsort(-self.relevance(X, Y), kind="stable"), np.arange(len(X)) % 3 > 0

        def loss(size: int) -> float:
            some = X[:, best[:size]]
            model = MaxMarginClassifier(self.C, n_jobs=1).fit(some[learns], Y[learns])
            return float((model.predict(some[~learns]) != Y[~learns]).mean())

        size = min((int(share * len(best)) for share in _SHARES), key=loss)
        return np.eye(len(best))[:, best[:size]]

    def relevance(self, X: Any, Y: Any) -> Any:
        """Return a value per feature, larger for better ones."""
        raise NotImplementedError


class MLF(_OnFeatures):
    """Keep features by the ratio of the scatter between labels to that within; a row counts per label."""

    def relevance(self, X: Any, Y: Any) -> Any:
        counts = Y.sum(axis=0)
        means, whole = Y.T @ X / counts[:, None], Y.sum(axis=1) @ X / counts.sum()
        between = counts @ (means - whole) ** 2
        within = Y.sum(axis=1) @ X**2 - counts @ means**2
        return between / np.maximum(within, 1e-300)


class MLRF(_OnFeatures):
    """Keep features by ReliefF for each pair of labels, without the rows that have both."""

    def relevance(self, X: Any, Y: Any) -> Any:
        distances, shares, found = cdist(X, X, "cityblock"), Y.mean(axis=0), np.zeros(X.shape[1])
        np.fill_diagonal(distances, np.inf)
        for one, other in combinations(range(Y.shape[1]), 2):
            for own, its in ((one, other), (other, one)):
                rows = np.flatnonzero((Y[:, own] > 0) & (Y[:, its] == 0))
                misses = np.flatnonzero((Y[:, its] > 0) & (Y[:, own] == 0))
                share = shares[own] * shares[its] / (1.0 - shares[own])
                away = _mean_difference(X, distances, rows, misses)
                found += share * (away - _mean_difference(X, distances, rows, rows))
        return found


def _mean_difference(X: Any, distances: Any, rows: Any, others: Any) -> Any:
    """Return the mean of |x - x'| over the rows and their nearest others, shape (d,)."""
    if not len(rows) or len(others) <= _NEIGHBORS:
        return np.zeros(X.shape[1])
    near = others[np.argpartition(distances[np.ix_(rows, others)], _NEIGHBORS, axis=1)[:, :_NEIGHBORS]]
    return np.mean([np.abs(X[rows] - X[one]).mean(axis=0) for one in near.T], axis=0)


class MLLS(_OnFeatures):
    """Project rows on the directions that reconstruct features and labels best, both with equal weight."""

    def make_map(self, X: Any, Y: Any) -> Any:
        gram = X.T @ X
        both = gram @ gram / np.trace(gram) + X.T @ Y @ Y.T @ X / np.sum(Y**2)
        ridge = 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
        return eigh(both, gram + ridge)[1][:, ::-1][:, :_COMPONENTS] * np.sqrt(len(X))
