"""Large fits of models other than max-margin by two processes of a Dask cluster: seconds and peak memory.

    python -m benchmarks.dask_large --problem logistic
    python -m benchmarks.dask_large --problem low-rank --share 0.1

"logistic": kernel logistic regression of 100,000 rows of 20 features and one of 10 classes, an RBF kernel
with a factor of 2,000 columns.  "low-rank": a share of the rows of the shape of the Wikipedia problem of Yu
et al. (2014, Table 3) with all words and labels, rank 250, five rounds, as ``benchmarks.wikipedia_shape``
fits them in memory.  Rows are synthetic, made by another process, and read from files by the workers.  Memory
is the largest resident size of each worker and of the client.
"""

import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client

import dask
from benchmarks.clusters import Watched, read_table, workers, write_table
from benchmarks.frame import OUT, command, flag, quiet, save, timed
from benchmarks.machine import in_own_process
from labelweave import KernelLogisticClassifier, LabelMatrix, LowRankClassifier

_N_PARTS, _N_TEST = 16, 5_000
_WIKIPEDIA = 881_805, 366_932, 213_707
_CLASSES, _FEATURES = 10, 20


def _measured(client: Client, folder: Path, given: Any) -> dict[str, Any]:
    load = dask.delayed(_read, pure=False)
    pairs = [load(folder, number) for number in range(_N_PARTS)]
    if given.problem == "logistic":
        made: Any = KernelLogisticClassifier(kernel_rank=given.kernel_rank, hyperparameters="fixed")
    else:
        made = LowRankClassifier(250, max_iter=5, tol=0.0, dtype="float32", n_jobs=2)
    pids = [os.getpid(), *client.run(os.getpid).values()]
    with Watched(pids) as watched, quiet(Warning):  # the number of rounds is fixed, not convergence
        model, seconds = timed(
            made.fit, [one[0] for one in pairs], [one[1] for one in pairs], clock=time.perf_counter
        )
    X, y = _read(folder, _N_PARTS)
    if given.problem == "logistic":
        score = float(np.mean(model.predict(X) == y))
    else:
        best, truth = model.predict_top(X, 1)[0][:, 0], y.positives
        score = float(truth[np.arange(len(best)), best].mean())
    return {
        "problem": given.problem,
        "rows": sum(_read(folder, number)[0].shape[0] for number in range(_N_PARTS)),
        "seconds": seconds,
        "rounds": int(model.n_iter_),
        "duality_gap": float(model.duality_gap_),
        "score": score,
        "gigabytes": [watched.most[pid] / 1e9 for pid in pids],
        "processor_seconds": [watched.seconds[pid] for pid in pids],
    }


def _sentence(found: dict[str, Any]) -> str:
    client, *workers = found["gigabytes"]
    own, *theirs = found["processor_seconds"]
    return (
        f"{found['problem']}, {found['rows']} rows: {found['seconds']:.0f} s, {found['rounds']} rounds, gap "
        f"{found['duality_gap']:.1e}, {'accuracy' if found['problem'] == 'logistic' else 'P@1'} "
        f"{found['score']:.4f}; most memory of the client {client:.2f} GB, of workers "
        f"{', '.join(f'{one:.2f}' for one in workers)} GB; processor {own:.0f} s, "
        f"{', '.join(f'{one:.0f}' for one in theirs)} s"
    )


def _write(folder: Path, given: dict[str, Any]) -> None:
    if given["problem"] == "logistic":
        X, Y = _classes(given["rows"] + _N_TEST)
    else:
        from labelweave.datasets import make_text_like

        n, d, n_labels = _WIKIPEDIA
        n = round(given["share"] * n)
        data = make_text_like(n + _N_TEST, d, n_labels, labels_per_row=7.1, words_per_row=147, random_state=0)
        X, Y = data.X, data.Y.positives
    cuts = np.linspace(0, X.shape[0] - _N_TEST, _N_PARTS + 1).astype(int).tolist()
    parts = [slice(*rows) for rows in pairwise(cuts)] + [slice(-_N_TEST, None)]
    for number, rows in enumerate(parts):
        write_table(folder / f"X{number}", X[rows])
        write_table(folder / f"Y{number}", Y[rows])


def _classes(n_rows: int) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, _FEATURES))
    hidden = np.tanh(X @ random.normal(size=(_FEATURES, 60)) / 2)
    scores = hidden @ random.normal(size=(60, _CLASSES)) + random.gumbel(size=(n_rows, _CLASSES))
    return X, scores.argmax(axis=1)


def _read(folder: Path, number: int) -> tuple[Any, Any]:
    X, Y = (read_table(folder / f"{name}{number}") for name in "XY")
    return X, LabelMatrix(Y) if sp.issparse(Y) else Y


@command(
    problem=flag("logistic", choices=["logistic", "low-rank"]),
    rows=flag(100_000, "of the logistic problem"),
    kernel_rank=2000,
    share=flag(0.1, "of the low-rank problem's rows"),
    limit=flag(6000.0, "megabytes of a worker"),
    out=OUT,
)
def main(given: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_own_process(_write, folder, vars(given))
        with workers(megabytes=given.limit) as client:
            found = _measured(client, folder, given)
    print(_sentence(found))
    save(given.out, found)
