"""napkinXC: a probabilistic label tree, or one-vs-rest machines.

Variants: ``tree``, its PLT of logistic machines at C = 10 over balanced 2-means clusters; ``one-vs-rest``,
its BR of the squared hinge loss at C = 1.  Its parameters may follow, such as ``ensemble=3``.  All others
have defaults: weights below 0.1 dropped, exact search.  Timed: ``fit``, which also writes the model to files.

References: Wydmuch, Jasinska-Kobus, Kuznetsov, Busa-Fekete, Dembczyński (2018), A no-regret generalization of
hierarchical softmax to extreme multi-label classification.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from napkinxc.models import BR, PLT

from benchmarks.peers.exchange import TOP, RankingProblem, Trained, serve_ranking, settings_of


def _top(model: Any, X: Any) -> Any:
    best = model.predict(sp.csr_matrix(X, dtype=np.float32), top_k=TOP)
    found = np.full((X.shape[0], TOP), -1)
    for row, labels in enumerate(best):
        found[row, : len(labels)] = labels[:TOP]
    return found


@serve_ranking
def prepare(problem: RankingProblem, variant: str) -> Callable[[], Trained]:
    X = sp.csr_matrix(problem.X, dtype=np.float32)
    Y = sp.csr_matrix(problem.Y)
    labels = [Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist() for row in range(Y.shape[0])]
    word, settings = settings_of(variant)
    scratch = tempfile.TemporaryDirectory()
    place = str(Path(scratch.name) / "model")
    if word == "tree":
        model = PLT(place, threads=problem.threads, seed=0, **settings)
    else:
        model = BR(place, threads=problem.threads, seed=0, **{"loss": "l2", "liblinear_c": 1} | settings)

    def train() -> Trained:
        model.fit(X, labels)

        def store(folder: Path) -> None:
            shutil.copytree(scratch.name, folder / "model")

        return Trained(lambda rows: _top(model, rows), store)

    return train
