"""Methods that use the dependence of labels: a Bayesian network (LEAD), a tree (PLEM), label codes (MMOC).

They enumerate sets of labels or labelings, so that they take up to ten labels.  ``C`` is an inverse penalty.
"""

from itertools import combinations, product
from typing import Any, Self

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats.contingency import crosstab
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV

from labelweave import LabelMatrix, MaxMarginClassifier

_STEPS, _PASSES = 300, 30
_PENALTIES = {"C": (0.003, 0.03, 0.3, 3.0, 30.0, 300.0)}


class LEAD:
    """Classify labels in the order of a Bayesian network, with a label's parents as further features.

    Zhang and Zhang, "Multi-label learning by exploiting label dependency", KDD 2010.  The network is that of
    the errors -1, 0, 1 of independent support vector machines on the training rows; it has the best BIC of
    all networks.
    """

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: Any, Y: Any) -> Self:
        Y = LabelMatrix.from_any(Y).to_dense()
        network = best_network(Y - MaxMarginClassifier(self.C, n_jobs=1).fit(X, Y).predict(X))
        self.network = {label: list(parents) for label, parents in network.items()}
        self._machines = {
            label: MaxMarginClassifier(self.C, n_jobs=1).fit(np.hstack([X, Y[:, parents]]), Y[:, [label]])
            for label, parents in self.network.items()
        }
        return self

    def predict(self, X: Any) -> Any:
        labels = np.zeros((len(X), len(self.network)), dtype=np.int8)
        for label, parents in self.network.items():
            labels[:, [label]] = self._machines[label].predict(np.hstack([X, labels[:, parents]]))
        return labels


def best_network(values: Any) -> dict[int, tuple[int, ...]]:
    """Return the parents of columns -1, 0, 1 in the network of the best BIC, in topological order."""
    columns = range(values.shape[1])
    best: dict[tuple[int, ...], tuple[float, dict[int, tuple[int, ...]]]] = {(): (0.0, {})}
    parents: dict[tuple[int, tuple[int, ...]], tuple[float, tuple[int, ...]]] = {}
    for known in (known for size in range(len(columns)) for known in combinations(columns, size)):
        for label in (label for label in columns if label not in known):
            fewer = [parents[label, known[:place] + known[place + 1 :]] for place in range(len(known))]
            gain, chosen = parents[label, known] = max([(bic(values, label, known), known), *fewer])
            score, both = best[known][0] + gain, tuple(sorted((*known, label)))
            if both not in best or score > best[both][0]:
                best[both] = score, {**best[known][1], label: chosen}
    return best[tuple(columns)][1]


def bic(values: Any, column: int, parents: tuple[int, ...]) -> float:
    """Return the log likelihood of a column given its parents, less the penalty of its free frequencies."""
    states = values[:, list(parents)] @ (3.0 ** np.arange(len(parents)))
    counts = crosstab(states, values[:, column]).count
    shares = np.maximum(counts, 1) / counts.sum(axis=1, keepdims=True)
    free = len(counts) * (counts.shape[1] - 1)
    return float((counts * np.log(shares)).sum() - 0.5 * free * np.log(len(values)))


class PLEM:
    """Add the pairs of a tree as labels, train piecewise, predict the best labeling of the random field.

    Li, Zhao and Guo, "Multi-label image classification with a probabilistic label enhancement model", UAI
    2014.  The tree spans the pairs with the most rows that have both; a pair is a label of four classes.
    """

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: Any, Y: Any) -> Self:
        Y = LabelMatrix.from_any(Y).to_dense().astype(int)
        together = np.triu(Y.T @ Y, 1)
        tree = minimum_spanning_tree(np.triu(together.max() + 1 - together, 1)).tocoo()
        self.pieces = [(label,) for label in range(Y.shape[1])] + np.transpose(tree.coords).tolist()
        self._models = [_logistic(self.C).fit(X, _states(Y, piece)) for piece in self.pieces]
        self._labelings = _all_labelings(Y.shape[1])
        return self

    def predict(self, X: Any) -> Any:
        scores = np.zeros((len(X), len(self._labelings)))
        for piece, model in zip(self.pieces, self._models, strict=True):
            scores += _log_shares(model, X, 2 ** len(piece))[:, _states(self._labelings, piece)]
        return self._labelings[scores.argmax(axis=1)]


class MMOC:
    """Find label codes that are predictable and far from each other, by a margin between labelings.

    Zhang and Schneider, "Maximum margin output coding", ICML 2012.  With p the ridge regression of the labels
    y on a row, the metric Q, positive semidefinite, minimizes |Q|^2 / (2 C) + the mean over the rows of

        max over z in the box [0, 1]^L of  |z - y|_1 + (p - y)'Q(p - y) - (p - z)'Q(p - z),

    here by subgradients instead of cutting planes.  The codes are the labels themselves, predicted by
    logistic regression, and their projections on the axes of Q, predicted by p with normal errors; the
    predicted labeling is the most probable one.
    """

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: Any, Y: Any) -> Self:
        Y = LabelMatrix.from_any(Y).to_dense().astype(float)
        self._ridge = RidgeCV(np.logspace(-2, 5, 15)).fit(X, Y)
        P = self._ridge.predict(X)
        self.metric = max_margin_metric(P, Y, self.C)
        self._axes = np.linalg.eigh(self.metric)[1]
        self._variances = (((P - Y) @ self._axes) ** 2).mean(axis=0)
        search = GridSearchCV(_logistic(1.0), _PENALTIES, scoring="neg_log_loss")
        self._models = [search.fit(X, own).best_estimator_ for own in Y.T.astype(int)]
        return self

    def predict(self, X: Any) -> Any:
        labelings = _all_labelings(len(self._axes))
        codes = (self._ridge.predict(X) @ self._axes)[:, None] - labelings @ self._axes
        scores = -0.5 * (codes**2 / self._variances).sum(axis=2)
        for own, model in zip(labelings.T, self._models, strict=True):
            scores += _log_shares(model, X, 2)[:, own]
        return labelings[scores.argmax(axis=1)]


def max_margin_metric(P: Any, Y: Any, C: float) -> Any:
    best, metric, Q = np.inf, Y, np.eye(Y.shape[1])
    for step in range(_STEPS):
        Z = _most_violating(Q, P, Y)
        gradient = ((P - Y).T @ (P - Y) - (P - Z).T @ (P - Z)) / len(Y)
        value = np.abs(Z - Y).sum() / len(Y) + (Q * gradient).sum() + (Q**2).sum() / (2.0 * C)
        if value < best:
            best, metric = value, Q
        sizes, axes = np.linalg.eigh(Q - (C * gradient + Q) / (step + 2.0))
        Q = (axes * np.maximum(sizes, 0.0)) @ axes.T
    return metric


def _most_violating(Q: Any, P: Any, Y: Any) -> Any:
    """Minimize (p - z)'Q(p - z) - |z - y|_1 over the box, for each row, one entry after the other."""
    Z = 1.0 - Y
    for _ in range(_PASSES):
        for label, row in enumerate(Q):
            slope = (Z - P) @ row - (0.5 - Y[:, label])
            Z[:, label] = np.clip(Z[:, label] - slope / max(row[label], 1e-12), 0.0, 1.0)
    return Z


def _logistic(C: float) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000)


def _log_shares(model: LogisticRegression, X: Any, n_states: int) -> Any:
    """Return log probabilities, at least log 1e-12 also of states without training rows."""
    shares = np.full((len(X), n_states), 1e-12)
    shares[:, model.classes_] += model.predict_proba(X)
    return np.log(shares)


def _all_labelings(n_labels: int) -> Any:
    return np.array(list(product((0, 1), repeat=n_labels)), dtype=np.intp)


def _states(labels: Any, piece: tuple[int, ...]) -> Any:
    return labels[:, piece] @ (1 << np.arange(len(piece)))
