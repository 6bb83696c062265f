"""AutoLabelClassifier on a cluster of two workers: seconds, and the peak memory of each worker and the
client.

    python -m benchmarks.dask_auto --rows 50000 --local
    python -m benchmarks.dask_auto --out benchmarks/results/dask_auto.json
    python -m benchmarks.dask_auto --rows 10000 --features 50 --dense --members forest --trees-a-task 25 300

Synthetic text-like rows are written by another process, one file per partition, and read by the workers.
``--local`` fits the same rows in memory too, in a separate process, and prints a digest of its bits.
``--dense`` makes rows of normal numbers, which suit forests; ``--trees-a-task`` splits forests accordingly.
"""

import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import get_task_stream

import dask
import labelweave as lw
from benchmarks.clusters import workers
from benchmarks.frame import command, flag, write_json
from benchmarks.machine import describe_machine, in_own_process, peak_memory_bytes
from labelweave import AutoLabelClassifier, datasets
from labelweave.dask.automatic import _MembersOnWorkers

_PARTS = 20


def write_rows(folder: Path, n_rows: int, n_features: int, n_labels: int, is_dense: bool) -> None:
    if is_dense:
        random = np.random.default_rng(0)
        X = random.normal(size=(n_rows, n_features))
        Y = X @ random.normal(size=(n_features, n_labels)) > random.normal(size=(n_rows, n_labels))
    else:
        data = datasets.make_text_like(n_rows, n_features, n_labels)
        X, Y = data.X, data.Y.to_dense()
    for number, rows in enumerate(np.array_split(np.arange(n_rows), _PARTS)):
        sp.save_npz(folder / f"X{number}.npz", sp.csr_array(X[rows]))
        np.save(folder / f"Y{number}.npy", Y[rows].astype(np.int8))


def read_rows(folder: Path, number: int) -> Any:
    rows = sp.load_npz(folder / f"X{number}.npz")
    return rows.toarray() if rows.nnz == rows.shape[0] * rows.shape[1] else rows


def read_labels(folder: Path, number: int) -> Any:
    return np.load(folder / f"Y{number}.npy")


def told(model: Any, folder: Path, begun: float) -> dict[str, Any]:
    seconds = time.perf_counter() - begun
    bits = model.predict_proba(read_rows(folder, 0)[:1000]).tobytes()
    return {
        "seconds": seconds,
        "client_megabytes": 1e-6 * peak_memory_bytes(),
        "foreseen_seconds": model.plan_["seconds"],
        "micro_f1": model.oof_score_,
        "members": [(one["name"], one["seconds"]) for one in model.members_],
        "bits": hashlib.sha256(bits).hexdigest()[:16],
    }


def fit_here(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    parts = [read_rows(folder, number) for number in range(_PARTS)]
    X = sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)
    Y = np.concatenate([read_labels(folder, number) for number in range(_PARTS)])
    begun = time.perf_counter()
    return told(AutoLabelClassifier(**given, verbose=1).fit(X, Y), folder, begun)


def fit_on_cluster(folder: Path, given: dict[str, Any], limit: float, trees: int) -> dict[str, Any]:
    _MembersOnWorkers.trees_a_task = trees
    with workers(megabytes=limit) as client:
        before, begun = client.run(os.getpid), time.perf_counter()
        X, Y = (
            [dask.delayed(read)(folder, number) for number in range(_PARTS)]
            for read in (read_rows, read_labels)
        )
        with get_task_stream(client) as stream:
            model = lw.AutoLabelClassifier(**given, verbose=1).fit(X, Y)
        found = told(model, folder, begun)
        spans = [span for task in stream.data for span in task["startstops"] if span["action"] == "compute"]
        seconds = [span["stop"] - span["start"] for span in spans]
        found |= {"tasks": len(seconds), "task_seconds": sum(seconds), "longest_task": max(seconds)}
        found["trees_a_task"] = trees
        found["worker_megabytes"] = [1e-6 * peak for peak in client.run(peak_memory_bytes).values()]
        found["workers_died"] = len(set(before.values()) - set(client.run(os.getpid).values()))
    return found


@command(
    rows=1_000_000,
    features=50_000,
    labels=20,
    time_budget=flag(type=float),
    limit=flag(8000.0, "megabytes of a worker"),
    dense=flag(False, "rows of normal numbers"),
    members=flag(nargs="+"),
    trees_a_task=[_MembersOnWorkers.trees_a_task],
    local=flag(False, "fit in memory too"),
    out=flag(type=Path),
)
def main(given: Any) -> int:
    shape = given.rows, given.features, given.labels
    model = {"time_budget": given.time_budget, "members": given.members or "auto"}
    found: dict[str, Any] = {"machine": describe_machine(), "shape": shape, "limit": given.limit}
    found["cluster"] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_own_process(write_rows, folder, *shape, given.dense)
        for trees in given.trees_a_task:
            found["cluster"].append(fit_on_cluster(folder, model, given.limit, trees))
            print(found["cluster"][-1], flush=True)
            if given.out is not None:
                write_json(given.out, found)
        if given.local:
            found["memory"] = in_own_process(fit_here, folder, model)
            print(found["memory"])
    if given.out is not None:
        write_json(given.out, found)
    return 0
