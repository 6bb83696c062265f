"""PECOS's XR-Linear: a tree of labels from their mean features, linear machines at every node.

Variants: ``tree``; ``hard``, whose nodes learn also from rows that a beam sends there (matcher-aware
negatives); ``one-vs-rest``, a single level without a tree.  Numbers of its training parameters may follow,
such as ``Cp=10``.  All others have defaults: squared hinge loss, C = 1, weights below 0.1 dropped, 16
branches, a beam of 10.  Timed: embedding of the labels, clustering, training.

References: Yu, Zhong, Zhang, Chang, Dhillon (2022), PECOS: Prediction for enormous and correlated output
spaces.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from benchmarks.peers.exchange import TOP, RankingProblem, Trained, serve_ranking, settings_of

_NEGATIVES = {"tree": "tfn", "hard": "tfn+man", "one-vs-rest": "tfn"}
_OF_TREE = ("nr_splits", "max_leaf_size")


def _top(model: XLinearModel, X: Any, threads: int) -> Any:
    scores = model.predict(sp.csr_matrix(X, dtype=np.float32), only_topk=TOP, threads=threads)
    found = np.full((X.shape[0], TOP), -1)
    for row in range(X.shape[0]):
        entries = slice(scores.indptr[row], scores.indptr[row + 1])
        best = np.argsort(-scores.data[entries], kind="stable")[:TOP]
        found[row, : len(best)] = scores.indices[entries][best]
    return found


@serve_ranking
def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    X = sp.csr_matrix(problem.X, dtype=np.float32)
    Y = sp.csc_matrix(problem.Y, dtype=np.float32)
    word, settings = settings_of(variant)
    of_tree = {name: settings.pop(name) for name in _OF_TREE if name in settings}

    def train() -> Trained:
        clusters = None
        if word != "one-vs-rest":
            embedding = LabelEmbeddingFactory.create(Y, X, method="pifa")
            kind = {"indexer_type": "hierarchicalkmeans", "threads": problem.threads}
            clusters = Indexer.gen(embedding, **kind, **of_tree)
        model = XLinearModel.train(
            X, Y, C=clusters, threads=problem.threads, negative_sampling_scheme=_NEGATIVES[word], **settings
        )

        def store(folder: Path) -> None:
            model.save(str(folder))

        return Trained(lambda rows: _top(model, rows, problem.threads), store)

    return train
