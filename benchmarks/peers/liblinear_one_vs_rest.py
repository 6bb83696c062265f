"""LIBLINEAR, one label after another: ``-s 1`` (squared hinge, dual) or ``-s 0`` (logistic), ``-c 1 -B 1``.

The variant is the number after ``-s``; ``drop=0.01`` may follow, which drops smaller weights as DiSMEC does.
Threads take labels in turn.  Timed: the calls of the C function ``train`` and the copies of the weights.  Not
timed: the conversion of X to LIBLINEAR's nodes.  Labels that no row has get no score.  The model is stored as
the weights in float64, or those that are left in float32 as a sparse matrix.

References: Babbar, Schölkopf (2017), DiSMEC: distributed sparse machines for extreme multi-label
classification.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear import liblinear as library

from benchmarks.peers.exchange import TOP, RankingProblem, Trained, serve_ranking, settings_of

_ROWS_AT_ONCE = 500
_NEVER, _ALWAYS = -1e9, 1e9


def _top(weights: Any, X: Any) -> Any:
    parts = [
        _top_of(weights, X[start : start + _ROWS_AT_ONCE]) for start in range(0, X.shape[0], _ROWS_AT_ONCE)
    ]
    return np.concatenate(parts)


def _top_of(weights: Any, X: Any) -> Any:
    scores = X @ weights[:, :-1].T
    biases = weights[:, -1:].toarray().ravel() if sp.issparse(weights) else weights[:, -1]
    scores = (scores.toarray() if sp.issparse(scores) else scores) + biases
    best = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
    return np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)


@serve_ranking
def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Convert the features once; the function returned trains all labels with ``-s`` the variant."""
    features = sp.csr_matrix(problem.X, dtype=np.float64)
    n_rows, n_features = features.shape
    nodes = library.problem(np.ones(n_rows), features, bias=1.0)
    columns, n_labels = problem.Y.tocsc(), problem.Y.shape[1]
    library.print_null = library.PRINT_STRING_FUN(lambda text: None)
    word, settings = settings_of(variant)
    least = settings.get("drop", 0.0)

    def some_labels(first: int) -> Any:
        own, targets = nodes.copy(), np.empty(n_rows)
        own.y = np.ctypeslib.as_ctypes(targets)
        parameters = library.parameter(f"-s {word} -c 1 -B 1 -q")
        found = []
        for label in range(first, n_labels, problem.threads):
            positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
            weights = np.zeros(n_features + 1)
            if len(positives) in (0, n_rows):
                weights[-1] = _ALWAYS if len(positives) else _NEVER
            else:
                targets[:] = -1.0
                targets[positives] = 1.0
                trained = library.toPyModel(library.liblinear.train(own, parameters))
                weights[:] = np.ctypeslib.as_array(trained.w, (n_features + 1,))
            if least:
                weights[:-1][np.abs(weights[:-1]) < least] = 0
                found.append(sp.csr_matrix(weights, dtype=np.float32))
            else:
                found.append(weights)
        return sp.vstack(found, format="csr") if least else np.array(found)

    def train() -> Trained:
        with ThreadPoolExecutor(problem.threads) as pool:
            parts = list(pool.map(some_labels, range(problem.threads)))
        order = np.argsort(np.concatenate([np.arange(k, n_labels, len(parts)) for k in range(len(parts))]))
        weights = (sp.vstack(parts, format="csr") if least else np.concatenate(parts))[order]

        def store(folder: Path) -> None:
            if least:
                sp.save_npz(folder / "weights.npz", weights, compressed=False)
            else:
                np.save(folder / "weights.npy", weights)

        return Trained(lambda rows: _top(weights, rows), store)

    return train
