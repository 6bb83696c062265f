"""AutoLabelClassifier on a cluster of two workers: seconds, and the peak memory of each worker and the
client.

    python -m benchmarks.dask_auto --rows 50000 --local
    python -m benchmarks.dask_auto --out benchmarks/results/dask_auto.json

Synthetic text-like rows are written by another process, one file per partition, and read by the workers.
``--local`` fits the same rows in memory too, in a separate process, and prints a digest of its bits.
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
from benchmarks.clusters import read_table, workers, write_table
from benchmarks.frame import OUT, command, flag, write_json
from benchmarks.machine import describe_machine, in_own_process, peak_memory_bytes
from labelweave import AutoLabelClassifier, datasets

_PARTS, _LIMIT = 20, 8000.0  # files, and megabytes of a worker


def write_rows(folder: Path, n_rows: int, n_features: int, n_labels: int) -> None:
    data = datasets.make_text_like(n_rows, n_features, n_labels)
    Y = data.Y.to_dense().astype(np.int8)
    for number, rows in enumerate(np.array_split(np.arange(n_rows), _PARTS)):
        write_table(folder / f"X{number}", data.X[rows])
        write_table(folder / f"Y{number}", Y[rows])


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


def fit_here(folder: Path) -> dict[str, Any]:
    X, Y = sp.csr_array(sp.vstack(read_parts(folder, "X"))), np.concatenate(read_parts(folder, "Y"))
    begun = time.perf_counter()
    return told(AutoLabelClassifier(verbose=1).fit(X, Y), folder, begun)


def fit_on_cluster(folder: Path) -> dict[str, Any]:
    with workers(megabytes=_LIMIT) as client:
        before, begun = client.run(os.getpid), time.perf_counter()
        X, Y = (read_parts(folder, name, dask.delayed(read_table)) for name in "XY")
        with get_task_stream(client) as stream:
            model = AutoLabelClassifier(verbose=1).fit(X, Y)
        found = told(model, folder, begun)
        spans = [span for task in stream.data for span in task["startstops"] if span["action"] == "compute"]
        seconds = [span["stop"] - span["start"] for span in spans]
        found |= {"tasks": len(seconds), "task_seconds": sum(seconds), "longest_task": max(seconds)}
        found["worker_megabytes"] = [1e-6 * peak for peak in client.run(peak_memory_bytes).values()]
        found["workers_died"] = len(set(before.values()) - set(client.run(os.getpid).values()))
    return found


@command(rows=1_000_000, features=50_000, labels=20, local=flag(False, "fit in memory too"), out=OUT)
def main(given: Any) -> int:
    shape = given.rows, given.features, given.labels
    found: dict[str, Any] = {"machine": describe_machine(), "shape": shape, "limit": _LIMIT}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_own_process(write_rows, folder, *shape)
        found["cluster"] = [fit_on_cluster(folder)]
        print(found["cluster"][0], flush=True)
        if given.local:
            found["memory"] = in_own_process(fit_here, folder)
            print(found["memory"])
    if given.out is not None:
        write_json(given.out, found)
    return 0
