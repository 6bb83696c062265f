"""Fits of ``LabelGraphClassifier`` with what the tables of Tan et al. 2015 report, kept after every fit.

Three methods that the paper compares with are "binary relevance", a linear support vector machine per label,
"PLST", with four codes for five labels, and "HLLM-L1", up to ten labels.
"""

import warnings
from inspect import signature
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.frame import timed
from benchmarks.opponents import PLST
from benchmarks.papers.log_linear import LogLinear
from labelweave import GraphGrowth, LabelGraphClassifier, MaxMarginClassifier
from labelweave.metrics import f1_score, hamming_loss, precision_score, recall_score

GRAPHS: dict[str, dict[str, Any]] = {
    "learned": {"graph": "learn"},
    "learned, ridge": {},  # the edges of "learned" as a given graph
    "none": {"graph": "none"},
    "full": {"graph": "full"},
    "Chow-Liu": {"graph": "chow-liu"},
    "learned, proximal": {"graph": "learn", "solver": "proximal", "tol": 0.005},
}

_PLST_SHARE = 0.8  # of the labels, so that some of their space is left out
METHODS = (*GRAPHS, "binary relevance", "PLST", "HLLM-L1")

Run = dict[str, Any]


def make(method: str, regularization: float, **parameters: Any) -> Any:
    if method == "binary relevance":
        return MaxMarginClassifier(0.01 / regularization, n_jobs=1)
    if method == "PLST":
        return PLST(_PLST_SHARE, alpha=100.0 * regularization)
    if method == "HLLM-L1":
        return LogLinear(regularization)
    own, growth = dict(GRAPHS[method]), {}
    for name in signature(GraphGrowth).parameters:
        growth |= {name: parameters.pop(name)} if name in parameters else {}
    if own.get("graph") == "learn":
        own["graph"] = GraphGrowth(**growth)
    return LabelGraphClassifier(alpha=regularization, n_jobs=1, **(own | parameters))


def edges_of(runs: list[Run], **which: Any) -> Run:
    """Give the edges of a learned graph as the graph of "learned, ridge"."""
    wanted = {"method": "learned", **which}
    for run in runs:
        if wanted.items() <= run.items():
            return {"graph": [tuple(edge) for edge in run["cliques"]] or "none"}
    return {}


def fit(model: Any, X: Any, Y: Any) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is among the results
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
    """Predict labels, of graphs the best labelings."""
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
