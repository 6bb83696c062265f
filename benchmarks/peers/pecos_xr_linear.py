"""PECOS's XR-Linear: a tree of labels from their mean features, linear machines at every node.

Default settings (squared hinge loss, C = 1, weights below 0.1 dropped, 16 branches, beam of 10), one
thread.  Timed: embedding of the labels, clustering, training.

References: Yu, Zhong, Zhang, Chang, Dhillon (2022), PECOS: Prediction for enormous and correlated output
spaces.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from benchmarks.peers.top_labels import TOP, RankingProblem, Trained, serve_ranking

__all__ = ["prepare"]


def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    """Convert the problem once; the function returned trains."""
    X, Y = (sp.csr_matrix(table, dtype=np.float32) for table in (problem.X, problem.Y))

    def train() -> Trained:
        embedding = LabelEmbeddingFactory.create(Y, X, method="pifa")
        clusters = Indexer.gen(embedding, indexer_type="hierarchicalkmeans", threads=1)
        model = XLinearModel.train(X, Y, C=clusters, threads=1)

        def store(folder: Path) -> None:
            model.save(str(folder))

        return Trained(lambda rows: _top(model, rows), store)

    return train


def _top(model: XLinearModel, X: Any) -> Any:
    scores = model.predict(sp.csr_matrix(X, dtype=np.float32), only_topk=TOP, threads=1)
    found = np.full((X.shape[0], TOP), -1)
    for row in range(X.shape[0]):
        entries = slice(scores.indptr[row], scores.indptr[row + 1])
        best = np.argsort(-scores.data[entries], kind="stable")[:TOP]
        found[row, : len(best)] = scores.indices[entries][best]
    return found


if __name__ == "__main__":
    serve_ranking(prepare)
