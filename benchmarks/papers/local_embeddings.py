"""Local embeddings of rows in the place of one low rank (after SLEEC, Bhatia et al., NeurIPS 2015).

Training rows are parted by k-means into clusters of some 6,000 rows.  In each, rows get embeddings of 100
numbers whose inner products are near those of label vectors of length 1, for the 250 rows that share the
most labels with each (singular value projection, with a step that is halved where the error rises); a ridge
regression maps features to them.  A new row goes to the nearest cluster, and its score of a label is the
share of the k nearest training rows there, among their own mapped embeddings, that have it.  Scores are
averaged over three learners from different seeds (one, where there is one cluster).  The paper regresses with
a sparse penalty by ADMM and takes 5 to 20 learners.

Mulan's splits, rows of unit length.  The ridge's penalty, k and whether nearness is by distance or by angle
have the highest top-3 accuracy on a fifth of the training rows; then all training rows are fitted, and the
test rows are looked at once.  "binary relevance" and "low rank" are those of
``benchmarks.papers.tail_labels``.

Example: ``OMP_NUM_THREADS=1 python -m benchmarks.papers.local_embeddings --sets bibtex``.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from benchmarks.frame import RESULTS, read_options, several
from benchmarks.needed_data import needs_data
from benchmarks.papers.tail_labels import measure, read_set
from benchmarks.problems import DEFAULT_DATA
from benchmarks.recorded_runs import RecordedRuns
from labelweave.metrics import precision_at_k

_SETS = ("bibtex", "delicious")
_METHODS = ("binary relevance", "low rank", "local embeddings")
_CLUSTER, _WIDTH, _NEIGHBOURS, _LEARNERS, _STEPS = 6000, 100, 250, 3, 15
_PENALTIES, _COUNTS, _METRICS = (0.01, 0.1, 1.0), (10, 20, 40, 80), ("euclidean", "cosine")
_PLACES = (1, 3, 5)

Run = dict[str, Any]


@needs_data
def main() -> None:
    arguments = read_options(
        __doc__,
        sets=several(_SETS),
        methods=several(_METHODS),
        data=DEFAULT_DATA,
        records=RESULTS / "papers" / "local_embeddings.json",
    )
    record = RecordedRuns(arguments)
    for name in arguments.sets if record.measures else ():
        train, test = (read_set(arguments.data, name, part) for part in ("train", "test"))
        for method in arguments.methods:
            case = {"set": name, "method": method}
            if record.wants(case):
                found = _local(train, test) if method == "local embeddings" else measure(method, train, test)
                print(_line(record.add(case, found)), flush=True)
    record.show(table(record.runs))


def _embedded(Y: Any) -> Any:
    """Give rows (n, 100) whose inner products are near those of their label vectors."""
    rows = sp.csr_array(normalize(Y))
    width = min(_WIDTH, len(Y) - 1)
    order = np.argpartition(-(rows @ rows.T).toarray(), min(_NEIGHBOURS, len(Y) - 1), axis=1)[:, :_NEIGHBOURS]
    first, second = np.repeat(np.arange(len(Y)), order.shape[1]), order.ravel()
    pattern = sp.coo_array((np.ones(len(first)), (first, second)), shape=(len(Y),) * 2).tocsr()
    pattern = sp.coo_array(((pattern + pattern.T) > 0).astype(float))
    first, second = pattern.row, pattern.col
    wanted = np.asarray(rows[first].multiply(rows[second]).sum(axis=1)).ravel()
    factor, step, error = np.zeros((len(Y), width)), 1.0, np.inf
    for _ in range(_STEPS):
        residual = wanted - np.einsum("ij,ij->i", factor[first], factor[second])
        moved = sp.csr_array((residual, (first, second)), shape=pattern.shape)
        made = _projected(factor, step * moved, width)
        now = float(np.sum((wanted - np.einsum("ij,ij->i", made[first], made[second])) ** 2))
        if now < error:
            factor, error = made, now
        else:
            step /= 2
    return factor


def _projected(factor: Any, moved: Any, width: int) -> Any:
    """Give the factor of so many columns that is nearest to ``factor factor^T + moved``."""

    def times(vector: Any) -> Any:
        return factor @ (factor.T @ vector) + moved @ vector

    operator = LinearOperator(moved.shape, times, dtype=float)
    values, vectors = eigsh(operator, width, which="LA", v0=np.ones(len(factor)))
    return vectors * np.sqrt(np.maximum(values, 0))


class Learner:
    """Clusters of rows, each with embeddings."""

    def __init__(self, X: Any, Y: Any, seed: int) -> None:
        count = max(1, round(len(Y) / _CLUSTER))
        self.clusters = KMeans(count, random_state=seed, n_init=1).fit(X)
        self.parts = []
        for number in range(count):
            own = np.flatnonzero(self.clusters.labels_ == number)
            self.parts.append((X[own], Y[own], _embedded(Y[own])))
        self.maps: dict[float, list[Any]] = {}

    def scores(self, X: Any, penalty: float, count: int, metric: str) -> Any:
        """Score rows."""
        if penalty not in self.maps:
            self.maps[penalty] = [Ridge(penalty).fit(own, factor) for own, _, factor in self.parts]
        found = np.zeros((X.shape[0], self.parts[0][1].shape[1]))
        at = self.clusters.predict(X)
        for number, (own, labels, _) in enumerate(self.parts):
            here, of_cluster = np.flatnonzero(at == number), self.maps[penalty][number]
            if len(here):
                search = NearestNeighbors(n_neighbors=min(count, len(labels)), metric=metric)
                near = search.fit(of_cluster.predict(own)).kneighbors(of_cluster.predict(X[here]))[1]
                found[here] = labels[near].mean(axis=1)
        return found


def _local(train: tuple[Any, Any], test: tuple[Any, Any]) -> Run:
    X, Y = train
    begin = time.process_time()
    is_held = np.random.default_rng(1).permutation(len(Y)) < len(Y) // 5
    tried = Learner(X[~is_held], Y[~is_held], 0)
    known = {
        choice: precision_at_k(Y[is_held], tried.scores(X[is_held], *choice), 3)
        for choice in product(_PENALTIES, _COUNTS, _METRICS)
    }
    best = max(known, key=known.__getitem__)
    n_learners = _LEARNERS if round(len(Y) / _CLUSTER) > 1 else 1
    scores = sum(Learner(X, Y, seed).scores(test[0], *best) for seed in range(n_learners))
    places = {f"P@{k}": float(precision_at_k(test[1], scores, k)) for k in _PLACES}
    chosen = {"penalty": best[0], "neighbours": best[1], "nearness": best[2]}
    return chosen | places | {"processor seconds": time.process_time() - begin}


def table(runs: list[Run]) -> str:
    """Write the table of some runs."""
    heads = "".join(f"{f'P@{k}':>8}" for k in _PLACES)
    return "\n".join([f"{'':<27}{heads}   seconds", *map(_line, runs)])


def _line(run: Run) -> str:
    numbers, chosen = "".join(f"{100 * run[f'P@{k}']:>8.2f}" for k in _PLACES), ""
    if "neighbours" in run:
        chosen = f"   {run['neighbours']} by {run['nearness']}, penalty {run['penalty']:g}"
    return f"{run['set']:<10}{run['method']:<17}{numbers}{run['processor seconds']:>10.0f}{chosen}"


if __name__ == "__main__":
    main()
