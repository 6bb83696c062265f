"""LIBLINEAR, one label after another: ``-s 1`` (squared hinge, dual) or ``-s 0`` (logistic), ``-c 1 -B 1``.

Timed: the calls of the C function ``train`` and the copies of the weights.  Not timed: the conversion of
X to LIBLINEAR's nodes.  Labels that no row has get no score.  The model is stored as the weights in
float64.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear import liblinear as library

from benchmarks.peers.top_labels import TOP, RankingProblem, Trained, serve_ranking

__all__ = ["prepare"]


def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Convert the features once; the function returned trains all labels with ``-s`` the variant."""
    features = sp.csr_matrix(problem.X, dtype=np.float64)
    n_rows, n_features = features.shape
    nodes = library.problem(np.ones(n_rows), features, bias=1.0)
    targets = np.ctypeslib.as_array(nodes.y, (n_rows,))
    columns, n_labels = problem.Y.tocsc(), problem.Y.shape[1]
    library.print_null = library.PRINT_STRING_FUN(lambda text: None)

    def train() -> Trained:
        parameters = library.parameter(f"-s {variant} -c 1 -B 1 -q")
        weights = np.zeros((n_labels, n_features + 1))
        for label in range(n_labels):
            positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
            if len(positives) in (0, n_rows):
                weights[label, -1] = 1e9 if len(positives) else -1e9
                continue
            targets[:] = -1.0
            targets[positives] = 1.0
            trained = library.toPyModel(library.liblinear.train(nodes, parameters))
            weights[label] = np.ctypeslib.as_array(trained.w, (n_features + 1,))

        def store(folder: Path) -> None:
            np.save(folder / "weights.npy", weights)

        return Trained(lambda rows: _top(weights, rows), store)

    return train


def _top(weights: Any, X: Any) -> Any:
    scores = X @ weights[:, :-1].T + weights[:, -1]
    best = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
    return np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)


if __name__ == "__main__":
    serve_ranking(prepare)
