"""Fits of ``LabelGraphClassifier`` with the figures that the tables of Tan et al.  2015 report, stored after
every fit.

Other methods of the paper's comparison are "binary relevance", a linear support vector machine per label,
"PLST", with four codes for five labels, those of ``benchmarks.opponents.quoted_methods``, and up to ten
labels "HLLM-L1" (Schmidt and Murphy 2010) and those of ``benchmarks.opponents.label_dependency``.
"""

from inspect import signature
from itertools import combinations, product
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp, softmax

from benchmarks.frame import Run, quiet, timed
from benchmarks.opponents import LEAD, LSG21, MLF, MLLS, MLRF, MMOC, PLEM, PLST
from labelweave import GraphGrowth, LabelGraphClassifier, LabelMatrix, MaxMarginClassifier
from labelweave.metrics import f1_score, hamming_loss, precision_score, recall_score
from labelweave.testing import CliqueFeatures


class Constant(CliqueFeatures):
    """One feature of cliques, as long as a row of standardized features: pairs depend on no row."""

    def of(self, X: Any, clique: tuple[int, ...]) -> Any:
        return np.full((X.shape[0], 1), np.sqrt(X.shape[1]))


GRAPHS: dict[str, dict[str, Any]] = {
    "learned": {"graph": "learn"},
    "learned, ridge": {},  # the edges of "learned" as a given graph
    "none": {"graph": "none"},
    "full": {"graph": "full"},
    "Chow-Liu": {"graph": "chow-liu"},
    "full, constant": {"graph": "full", "inputs": Constant()},
    "Chow-Liu, constant": {"graph": "chow-liu", "inputs": Constant()},
    "learned, proximal": {"graph": "learn", "solver": "proximal", "tol": 0.005},
}

_PLST_SHARE = 0.8  # of the labels, so that some of their space is omitted
_MOST_STEPS, _SHARE_OF_RIDGE, _TOLERANCE = 200, 0.1, 1e-5
UP_TO_TEN_LABELS = ("HLLM-L1", "LEAD", "PLEM", "MMOC")
_ON_LAMBDA = {"MMOC": lambda alpha: MMOC(1.0 / alpha), "LSG21": lambda alpha: LSG21(0.1 * alpha)}
_ON_C = {"LEAD": LEAD, "PLEM": PLEM, "MLF": MLF, "MLRF": MLRF, "MLLS": MLLS}
METHODS = (*GRAPHS, "binary relevance", "PLST", "LSG21", "MLF", "MLRF", "MLLS", *UP_TO_TEN_LABELS)


def make(method: str, alpha: float, **parameters: Any) -> Any:
    if method == "binary relevance":
        return MaxMarginClassifier(0.01 / alpha, n_jobs=1)
    if method == "PLST":
        return PLST(_PLST_SHARE, alpha=100.0 * alpha)
    if method == "HLLM-L1":
        return LogLinear(alpha)
    if method in _ON_C:
        return _ON_C[method](0.01 / alpha)
    if method in _ON_LAMBDA:
        return _ON_LAMBDA[method](alpha)
    own, growth = dict(GRAPHS[method]), {}
    for name in signature(GraphGrowth).parameters:
        growth |= {name: parameters.pop(name)} if name in parameters else {}
    if own.get("graph") == "learn":
        own["graph"] = GraphGrowth(**growth)
    return LabelGraphClassifier(alpha=alpha, n_jobs=1, **(own | parameters))


def edges_of(runs: list[Run], **which: Any) -> Run:
    """Return the edges of a learned graph as the graph of "learned, ridge"."""
    wanted = {"method": "learned", **which}
    for run in runs:
        if wanted.items() <= run.items():
            return {"graph": [tuple(edge) for edge in run["cliques"]] or "none"}
    return {}


def fit(model: Any, X: Any, Y: Any) -> Run:
    with quiet():  # the gap is among the results
        _, seconds = timed(model.fit, X, Y)
    if not isinstance(model, LabelGraphClassifier):
        return {"seconds": seconds}
    return {
        "seconds": seconds,
        "passes": int(model.n_iter_),
        "objective": float(model.objective_),
        "gap": float(model.duality_gap_),
        "edges": model.label_graph_.n_cliques,
        "width": model.label_graph_.width,
        "cliques": [list(edge) for edge in model.label_graph_.cliques],
    }


def predict(model: Any, X: Any) -> Any:
    """Predict labels; for graphs the best labelings."""
    is_graph = isinstance(model, LabelGraphClassifier)
    return model.predict_map(X).labels if is_graph else model.predict(X)


def score(model: Any, X: Any, Y: Any) -> Run:
    predict(model, X[:2])  # compiled
    labels, seconds = timed(predict, model, X)
    found = {
        "hamming": float(hamming_loss(Y, labels)),
        "macro_f1": float(f1_score(Y, labels, average="macro")),
        "micro_f1": float(f1_score(Y, labels, average="micro")),
        "recall": float(recall_score(Y, labels, average="micro")),
        "precision": float(precision_score(Y, labels, average="micro")),
        "rows_per_second": X.shape[0] / seconds,
    }
    if isinstance(model, LabelGraphClassifier):
        found["proven"] = float(model.predict_map(X).proven.mean())
    return found


def mean_and_deviation(runs: list[Run], name: str) -> str:
    values = np.array([run[name] for run in runs])
    return f"{values.mean():.4f} ± {values.std():.4f}"


class LogLinear:
    """Fit all pairs of labels by proximal steps with momentum, over all 2^L labelings.

    P(y | x) is proportional to exp(sum_k y_k w_k'x + sum_jk y_j y_k v_jk'x), labels in -1/1.  The penalty is
    alpha times the sum of the norms of v_jk, and a tenth of alpha times half the squares of all weights.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, X: Any, Y: Any) -> Self:
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
    """Append the products of all pairs of labels to the labels."""
    return np.hstack(
        [signs, *(signs[:, [j]] * signs[:, [k]] for j, k in combinations(range(signs.shape[1]), 2))]
    )
