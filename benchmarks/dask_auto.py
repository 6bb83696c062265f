"""AutoLabelClassifier on a cluster of two workers: seconds, and the peak memory of each worker and the
client.

    python -m benchmarks.dask_auto --rows 50000 --local
    python -m benchmarks.dask_auto --out benchmarks/results/dask_auto.json
    python -m benchmarks.dask_auto --rows 10000 --features 50 --dense --members forest

Synthetic text-like rows are written by another process, one file per partition, and read by the workers.
``--local`` fits the same rows in memory too, in a separate process, and prints a digest of its bits.
``--dense`` makes rows of normal numbers, which suit forests.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import get_task_stream

import dask
import labelweave as lw
from benchmarks.clusters import read_table, workers, write_table
from benchmarks.frame import command, flag, write_json
from benchmarks.machine import describe_machine, in_own_process, peak_memory_bytes
from labelweave import AutoLabelClassifier, datasets

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
        write_table(folder / f"X{number}", X[rows])
        write_table(folder / f"Y{number}", Y[rows].astype(np.int8))


def read_parts(folder: Path, name: str, read: Callable[[Path], Any] = read_table) -> list[Any]:
    return [read(folder / f"{name}{number}") for number in range(_PARTS)]


def told(model: Any, folder: Path, begun: float) -> dict[str, Any]:
    seconds = time.perf_counter() - begun
    bits = model.predict_proba(read_table(folder / "X0")[:1000]).tobytes()
    return {
        "seconds": seconds,
        "client_megabytes": 1e-6 * peak_memory_bytes(),
        "foreseen_seconds": model.plan_["seconds"],
        "micro_f1": model.oof_score_,
        "members": [(one["name"], one["seconds"]) for one in model.members_],
        "bits": hashlib.sha256(bits).hexdigest()[:16],
    }


def fit_here(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    parts, Y = read_parts(folder, "X"), np.concatenate(read_parts(folder, "Y"))
    X = sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)
    begun = time.perf_counter()
    return told(AutoLabelClassifier(**given, verbose=1).fit(X, Y), folder, begun)


def fit_on_cluster(folder: Path, given: dict[str, Any], limit: float) -> dict[str, Any]:
    with workers(megabytes=limit) as client:
        before, begun = client.run(os.getpid), time.perf_counter()
        X, Y = (read_parts(folder, name, dask.delayed(read_table)) for name in "XY")
        with get_task_stream(client) as stream:
            model = lw.AutoLabelClassifier(**given, verbose=1).fit(X, Y)
        found = told(model, folder, begun)
        spans = [span for task in stream.data for span in task["startstops"] if span["action"] == "compute"]
        seconds = [span["stop"] - span["start"] for span in spans]
        found |= {"tasks": len(seconds), "task_seconds": sum(seconds), "longest_task": max(seconds)}
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
    local=flag(False, "fit in memory too"),
    out=flag(type=Path),
)
def main(given: Any) -> int:
    shape = given.rows, given.features, given.labels
    model = {"time_budget": given.time_budget, "members": given.members or "auto"}
    found: dict[str, Any] = {"machine": describe_machine(), "shape": shape, "limit": given.limit}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_own_process(write_rows, folder, *shape, given.dense)
        found["cluster"] = [fit_on_cluster(folder, model, given.limit)]
        print(found["cluster"][0], flush=True)
        if given.local:
            found["memory"] = in_own_process(fit_here, folder, model)
            print(found["memory"])
    if given.out is not None:
        write_json(given.out, found)
    return 0
