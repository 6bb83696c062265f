"""Linear models of many labels on the same Dask workers: this library, scikit-learn's one-vs-rest, dask-ml.

    python -m benchmarks.dask_peers --problems dense rcv1-subset1

Two worker processes on this machine, with the rows in their memory, four fifths of them for training.
scikit-learn's ``OneVsRestClassifier(LinearSVC)`` runs its labels as joblib's tasks on Dask; dask-ml's
``LogisticRegression`` is binary, and fitted label by label.  Reported are wall-clock seconds, CPU seconds of
the busiest worker, the peak memory of a worker above that before the fit, and, on the other rows,
micro-averaged F1 of labels with positive scores and precision at 1.

dask-ml is not a dependency of this repository: run this in a virtual environment with dask-ml and
``labelweave[dask]``.  If it is missing or fails, the table states this.
"""

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from distributed import Client
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.clusters import Watched, on_cluster, timed, workers
from benchmarks.frame import command
from benchmarks.problems import load_problem
from dask import array as da
from labelweave import MaxMarginClassifier
from labelweave.metrics import f1_score, precision_at_k

_C, _TRAINED = 1.0, 0.8


def load(name: str) -> tuple[Any, Any]:
    """Load a problem; ``dense`` is 20,000 rows of 200 features and 20 labels."""
    if name != "dense":
        return load_problem(name)
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 200))
    scores = X @ random.normal(size=(200, 20)) + 5 * random.normal(size=(20_000, 20))
    return X, (scores > 20).astype(np.int64)


def fits_of(client: Client, X: Any, Y: Any) -> dict[str, Callable[[], Callable[[Any], Any]]]:
    rows, labels = (on_cluster(client, table, 4) for table in (X, Y))
    dense = Y.toarray() if hasattr(Y, "toarray") else Y

    def ours() -> Callable[[Any], Any]:
        return MaxMarginClassifier(C=_C).fit(rows, labels).decision_function

    def one_vs_rest() -> Callable[[Any], Any]:
        inner = LinearSVC(C=2 * _C, loss="hinge", tol=1e-3, max_iter=10_000, random_state=0)
        with joblib.parallel_config("dask"):
            return OneVsRestClassifier(inner, n_jobs=-1).fit(X, dense).decision_function

    def dask_ml() -> Callable[[Any], Any]:
        from dask_ml.linear_model import LogisticRegression

        models = [
            LogisticRegression(C=_C).fit(rows, da.from_array(dense[:, label], chunks=rows.chunks[:1]))
            for label in range(dense.shape[1])
        ]
        weights = np.stack([np.ravel(model.coef_) for model in models], axis=1)
        constants = np.array([np.ravel(model.intercept_)[0] for model in models])
        return lambda table: table @ weights + constants

    return {"labelweave": ours, "scikit-learn one-vs-rest": one_vs_rest, "dask-ml": dask_ml}


def compare(client: Client, pids: list[int], name: str, repeats: int) -> None:
    X, Y = load(name)
    order = np.random.default_rng(0).permutation(X.shape[0])
    kept, held = np.split(order, [int(_TRAINED * len(order))])
    print(f"{name}: {len(kept)} rows, {X.shape[1]} features, {Y.shape[1]} labels", flush=True)
    for program, fit in fits_of(client, X[kept], Y[kept]).items():
        try:
            score = fit()  # loops are compiled, and programs imported
            lines = []
            for _ in range(repeats):
                with Watched(pids) as watched:
                    taken, own, score = timed(client, fit)
                risen = [watched.most[pid] - before for pid, before in watched.before.items()]
                lines.append((taken, own, 1e-6 * max(risen)))
        except Exception as error:
            print(f"  {program}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        scores = np.asarray(score(X[held]))
        f1, first = f1_score(Y[held], scores > 0), precision_at_k(Y[held], scores, 1)
        taken, own, megabytes = np.median(lines, axis=0)
        print(
            f"  {program}: {taken:.1f} s, {own:.1f} s of the busiest worker's processor, {megabytes:.0f} MB, "
            f"micro-F1 {f1:.3f}, P@1 {first:.3f}",
            flush=True,
        )


@command(problems=["dense", "rcv1-subset1"], repeats=1)
def main(given: Any) -> None:
    with workers() as client:
        pids = [worker.pid for worker in client.cluster.workers.values()]
        for name in given.problems:
            compare(client, pids, name, given.repeats)
