"""One fit to many synthetic rows, in memory or on two workers of a Dask cluster: seconds, memory, quality.

    python -m benchmarks.large_fits rcv1
    OMP_NUM_THREADS=1 python -m benchmarks.large_fits dense --rows 20000
    python -m benchmarks.large_fits classes --cluster 6000

- rcv1: text of the shape of RCV1-v2's test part (781,265 rows, 47,236 features, about 75 non-zeros per row,
  103 labels, 3.2 of them per row), not its words; a linear max-margin model to a gap of 1e-3.
- bumps: 50,000 rows of 20 normal features and 20 labels, whose kernel matrix would take 10 GB in float32; a
  max-margin model with the RBF kernel to a gap of 1e-3, with the default memory budget.  A label's score is a
  sum of 40 Gaussian bumps at random places with random heights, plus noise; its positives are the rows with
  the largest scores, between 5 and 50 percent of them.  Its error is compared with that of the scores without
  noise.
- wikipedia: the shape of the paper's Wikipedia problem (Yu et al. 2014, Table 3): 881,805 rows of 147 words
  among 366,932, and 213,707 labels, 7.1 per row; a low-rank model of rank 250, squared loss, five rounds (the
  paper: 9,932 s on 32 cores).
- classes: kernel logistic regression of 100,000 rows of 20 features and one of 10 classes, an RBF kernel with
  a factor of 2,000 columns.
- dense: AutoLabelClassifier on 200,000 rows of 500 features and 50 labels that depend on sums and products of
  few features.
- texts: AutoLabelClassifier on 1,000,000 texts of 50,000 words, with 20 labels.

Texts are those of ``datasets.make_text_like``, so accuracy applies to no real set.  The time is that of the
complete ``fit``, on two threads; in memory a small fit before it loads or compiles the loops.  Memory is the
largest resident size of the process.  With ``--cluster`` rows are made by another process and read from files
by the workers, and memory and CPU seconds are those of the client and of each worker.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

import labelweave as lw
from benchmarks.frame import RESULTS, command, cost_of, flag, quiet, save, timed
from benchmarks.machine import in_own_process, peak_memory_bytes
from labelweave import metrics
from labelweave.datasets import make_text_like

_PARTS, _N_TEST = 16, 5_000  # files of a cluster's rows; other rows


class Problem(NamedTuple):
    """The number of rows, how they are made, a model, and the measures of the fitted model on other rows.

    few: a model of a few rows, where the same would not do.
    """

    rows: int
    make: Callable[[int], tuple[Any, Any]]
    model: Any
    judge: Callable[[Any, Any, Any, int], dict[str, Any]]
    few: Any = None


def _texts(*shape: int, **sizes: float) -> Callable[[int], tuple[Any, Any]]:
    def make(n: int) -> tuple[Any, Any]:
        data = make_text_like(n, *shape, **sizes, random_state=0)
        return data.X, data.Y.positives

    return make


def _dense_labels(n: int) -> tuple[Any, Any]:
    X, Y = _texts(50_000, 20)(n)
    return X, Y.toarray().astype(np.int8)


def bumps(n: int, noise: float = 0.3) -> tuple[Any, Any]:
    """Draw scores with noise, a share of their standard deviation, and find each label's largest ones."""
    rng, n_features, n_labels, n_bumps = np.random.default_rng(0), 20, 20, 40
    X = rng.standard_normal((n, n_features))
    scores = np.empty((n, n_labels))
    for label in range(n_labels):
        centers = rng.standard_normal((n_bumps, n_features))
        scores[:, label] = rbf_kernel(X, centers, gamma=0.5 / n_features) @ rng.standard_normal(n_bumps)
    scores /= scores.std(axis=0)
    scores += noise * rng.standard_normal(scores.shape)
    shares = np.linspace(0.05, 0.5, n_labels)
    limits = [np.quantile(column, 1 - share) for column, share in zip(scores.T, shares, strict=True)]
    return X, (scores > limits).astype(np.int8)


def classes(n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 20))
    hidden = np.tanh(X @ random.normal(size=(20, 60)) / 2)
    scores = hidden @ random.normal(size=(60, 10)) + random.gumbel(size=(n, 10))
    return X, scores.argmax(axis=1)


def dense(n: int, n_features: int = 500, n_labels: int = 50) -> tuple[Any, Any]:
    fixed, random = np.random.default_rng(12345), np.random.default_rng(0)
    weights = fixed.normal(size=(n_features, n_labels)) * (fixed.random((n_features, n_labels)) < 0.05)
    one, other = fixed.integers(0, n_features, (2, 3, n_labels))
    levels = fixed.uniform(0.4, 1.3, n_labels)
    X = random.normal(size=(n, n_features)).astype(np.float32)
    scores = X @ (weights / np.linalg.norm(weights, axis=0)).astype(np.float32)
    for first, second in zip(one, other, strict=True):
        scores += 0.4 * X[:, first] * X[:, second]
    scores += random.normal(0, 0.5, scores.shape).astype(np.float32)
    return X, (scores > levels * np.sqrt(1.73)).astype(np.int8)


def _errors(model: Any, X: Any, Y: Any, n: int) -> dict[str, Any]:
    clean = bumps(n, 0.0)[1][-len(Y) :]
    return {
        "support_rows": len(model.support_),
        "error_percent": 100 * float((model.predict(X) != Y).mean()),
        "error_percent_of_clean_scores": 100 * float((clean != Y).mean()),
    }


def _precisions(model: Any, X: Any, Y: Any, _: int) -> dict[str, Any]:
    (labels, _), seconds = timed(model.predict_top, X, 5, clock=time.perf_counter)
    rows = zip(labels, Y.indptr[:-1], Y.indptr[1:], strict=True)
    hits = np.array([np.isin(best, Y.indices[low:high]) for best, low, high in rows])
    precisions = {f"precision_at_{k}": float(hits[:, :k].mean()) for k in (1, 3, 5)}
    return {"seconds_to_predict_5000_rows": seconds} | precisions


def _accuracy(model: Any, X: Any, y: Any, _: int) -> dict[str, Any]:
    return {"accuracy": float(np.mean(model.predict(X) == y))}


def _of_one_call(model: Any, X: Any, Y: Any, _: int) -> dict[str, Any]:
    predicted, seconds = timed(model.predict, X, clock=time.perf_counter)
    return {
        "predict_seconds": seconds,
        "plan": model.plan_,
        "members": model.members_,
        "out_of_fold_micro_f1": model.oof_score_,
        "standard_error": model.oof_standard_error_,
        "test_micro_f1": float(metrics.f1_score(Y, predicted, average="micro")),
        "bits": hashlib.sha256(model.predict_proba(X[:1000]).tobytes()).hexdigest()[:16],
    }


_ONE_CALL, _QUICK = lw.AutoLabelClassifier(n_jobs=2, verbose=1), lw.AutoLabelClassifier(time_budget=1)
_LOW_RANK = {"max_iter": 5, "dtype": "float32"}
PROBLEMS = {
    "rcv1": Problem(
        781_265,
        _texts(47_236, 103, labels_per_row=3.2, words_per_row=75),
        lw.MaxMarginClassifier(n_jobs=2, random_state=0),
        _precisions,
    ),
    "bumps": Problem(50_000, bumps, lw.MaxMarginClassifier(kernel="rbf", n_jobs=2), _errors),
    "wikipedia": Problem(
        881_805,
        _texts(366_932, 213_707, labels_per_row=7.1, words_per_row=147),
        lw.LowRankClassifier(250, tol=0.0, n_jobs=2, **_LOW_RANK),
        _precisions,
        lw.LowRankClassifier(10, **_LOW_RANK),
    ),
    "classes": Problem(
        100_000,
        classes,
        lw.KernelLogisticClassifier(kernel_rank=2000, hyperparameters="fixed"),
        _accuracy,
        lw.KernelLogisticClassifier(kernel_rank=100, hyperparameters="fixed"),
    ),
    "dense": Problem(200_000, dense, _ONE_CALL, _of_one_call, _QUICK),
    "texts": Problem(1_000_000, _dense_labels, lw.AutoLabelClassifier(verbose=1), _of_one_call, _QUICK),
}


def _labels(Y: Any) -> Any:
    return lw.LabelMatrix(Y) if sp.issparse(Y) else Y


def _in_memory(problem: Problem, n: int) -> dict[str, Any]:
    X, Y = problem.make(n + _N_TEST)
    model, few = problem.model, problem.few or problem.model
    with quiet(Warning):  # the number of rounds may be fixed, not convergence
        few.fit(X[:500], _labels(Y[:500]))
        before, (_, seconds, spent) = peak_memory_bytes(), cost_of(model.fit, X[:n], _labels(Y[:n]))
    found = {"seconds": seconds, "cpu_seconds": spent, "peak_gigabytes_before_fit": before / 1e9}
    found["peak_gigabytes"] = peak_memory_bytes() / 1e9
    return _sizes(X, Y, n) | found | _of_model(model) | problem.judge(model, X[n:], Y[n:], n + _N_TEST)


def _sizes(X: Any, Y: Any, n: int) -> dict[str, Any]:
    found = {"rows": n, "features": X.shape[1], "labels": Y.shape[1] if Y.ndim == 2 else int(Y.max()) + 1}
    return found | ({"non_zeros": int(X.nnz)} if sp.issparse(X) else {})


def _of_model(model: Any) -> dict[str, Any]:
    if not hasattr(model, "duality_gap_"):
        return {}
    trace = [record._asdict() for record in model.trace_]
    found = {"rounds": int(model.n_iter_), "gap": float(model.duality_gap_), "status": model.status_}
    return found | {"seconds_in_solver": float(model.trace_[-1].time), "trace": trace}


def _on_cluster(name: str, n: int, megabytes: float) -> dict[str, Any]:
    from distributed import get_task_stream

    import dask
    from benchmarks.clusters import Watched, read_table, workers

    problem, read = PROBLEMS[name], dask.delayed(read_table, pure=False)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        in_own_process(_write, folder, name, n)
        with workers(megabytes=megabytes) as client:
            parts = [[read(folder / f"{kind}{number}") for number in range(_PARTS)] for kind in "XY"]
            before = client.run(os.getpid)
            pids = [os.getpid(), *before.values()]
            with Watched(pids) as watched, quiet(Warning), get_task_stream(client) as stream:
                model, seconds = timed(problem.model.fit, *parts, clock=time.perf_counter)
            died = len(set(before.values()) - set(client.run(os.getpid).values()))
        X, Y = (read_table(folder / f"{kind}{_PARTS}") for kind in "XY")
    spans = [span for task in stream.data for span in task["startstops"] if span["action"] == "compute"]
    tasks = [span["stop"] - span["start"] for span in spans]
    found = {
        "seconds": seconds,
        "limit": megabytes,
        "gigabytes": [watched.most[pid] / 1e9 for pid in pids],
        "processor_seconds": [watched.seconds[pid] for pid in pids],
        "workers_died": died,
        "tasks": len(tasks),
        "task_seconds": sum(tasks),
        "longest_task": max(tasks),
    }
    return _sizes(X, Y, n) | found | _of_model(model) | problem.judge(model, X, Y, n + _N_TEST)


def _write(folder: Path, name: str, n: int) -> None:
    from benchmarks.clusters import write_table

    X, Y = PROBLEMS[name].make(n + _N_TEST)
    cuts = [*np.linspace(0, n, _PARTS + 1).astype(int).tolist(), n + _N_TEST]
    for number, (first, end) in enumerate(pairwise(cuts)):
        write_table(folder / f"X{number}", X[first:end])
        write_table(folder / f"Y{number}", Y[first:end])


@command(
    problem=flag("rcv1", choices=list(PROBLEMS), nargs="?", has_name=False),
    rows=flag(help="fewer for a shorter run", type=int),
    cluster=flag(help="fit on two workers with so many megabytes each", type=float),
    out=flag(help="a JSON file; default results/large_PROBLEM[_cluster][_ROWS].json", type=Path),
)
def main(arguments: Any) -> None:
    name, whole = arguments.problem, PROBLEMS[arguments.problem].rows
    n = arguments.rows or whole
    megabytes = arguments.cluster
    found = _on_cluster(name, n, megabytes) if megabytes else _in_memory(PROBLEMS[name], n)
    for key, value in found.items():
        if key != "trace":
            print(f"{key:26} {value:.5g}" if isinstance(value, float) else f"{key:26} {value}")
    ending = ("_cluster" if megabytes else "") + ("" if n == whole else f"_{n}")
    save(arguments.out or RESULTS / f"large_{name}{ending}.json", found)
