"""Max-margin models with a low-rank factor of the kernel matrix: seconds and accuracy by the number of
columns.

    python -m benchmarks.kernel_rank --problems satimage usps
    python -m benchmarks.kernel_rank --problems usps --ranks 500 --dask 2000 60

RBF kernels of scaled rows, one class per row.  Times are CPU seconds, on one thread, medians of interleaved
rounds.  ``--dask`` fits by two processes of a cluster, with each memory budget (megabytes): with all rows on
each worker, or with rows that stay in partitions.  The data are those of a folder of public sets.
"""

import time
from pathlib import Path
from statistics import median
from typing import Any

import dask.array as da
import numpy as np

import labelweave as lw
from benchmarks.clusters import on_cluster, timed, workers
from benchmarks.frame import command, flag, write_json
from benchmarks.machine import describe_machine
from benchmarks.problems import DEFAULT_DATA
from labelweave import MaxMarginClassifier

_PARTS = 8
_SATIMAGE_ROWS = 4435


def load(name: str, data: Path) -> tuple[Any, Any, Any, Any]:
    if name == "satimage":
        with np.load(data / "satimage" / "satimage.npz") as file:
            X, y = file["X"].astype(np.float64), file["y"]
        order = np.random.default_rng(0).permutation(_SATIMAGE_ROWS)  # so that each part is a fair sample
        return X[order], y[order], X[_SATIMAGE_ROWS:], y[_SATIMAGE_ROWS:]
    with np.load(data / "usps" / "usps.npz") as file:
        parts = [file[f"{kind}_{part}"] for part in ("train", "test") for kind in ("X", "y")]
    return parts[0] / 1000.0 - 1, parts[1], parts[2] / 1000.0 - 1, parts[3]


def in_memory(rows: tuple[Any, ...], ranks: list[int | None], repeats: int) -> list[dict[str, Any]]:
    X, y, X_test, y_test = rows
    seconds: dict[int | None, list[float]] = {rank: [] for rank in ranks}
    models = {}
    for _ in range(repeats):
        for rank in ranks:
            begun = time.process_time()
            models[rank] = MaxMarginClassifier(kernel="rbf", kernel_rank=rank, n_jobs=1).fit(X, y)
            seconds[rank].append(time.process_time() - begun)
    return [
        {"rank": rank, "seconds": median(seconds[rank])} | _result(models[rank], X_test, y_test)
        for rank in ranks
    ]


def _result(model: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    return {
        "rounds": model.n_iter_,
        "gap": model.duality_gap_,
        "objective": model.trace_[-1].primal,
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
    }


def on_workers(rows: tuple[Any, ...], ranks: list[int | None], budgets: list[float]) -> list[dict[str, Any]]:
    X, y, X_test, y_test = rows
    found = []
    with workers() as client:
        features = on_cluster(client, X, _PARTS)
        classes = da.from_array(y, chunks=(features.chunks[0],))
        for budget in budgets:
            for rank in ranks:
                lw.set_config(memory_budget=budget)
                model = lw.MaxMarginClassifier(kernel="rbf", kernel_rank=rank)
                taken, own, fitted = timed(client, lambda model=model: model.fit(features, classes))
                result = _result(fitted, X_test, y_test)
                found.append({"rank": rank, "budget": budget, "seconds": taken, "of_a_worker": own} | result)
                print(found[-1], flush=True)
    return found


@command(
    data=DEFAULT_DATA,
    problems=flag(["satimage"], choices=["satimage", "usps"]),
    ranks=[50, 200, 500, 1000],
    repeats=3,
    dask=flag([], "memory budgets of fits by workers", nargs="*", type=float),
    out=flag(type=Path),
)
def main(given: Any) -> None:
    found: dict[str, Any] = {"machine": describe_machine(), "problems": {}}
    for name in given.problems:
        rows = load(name, given.data)
        found["problems"][name] = {"memory": in_memory(rows, [*given.ranks, None], given.repeats)}
        for line in found["problems"][name]["memory"]:
            print(name, line, flush=True)
        if given.dask:
            found["problems"][name]["dask"] = on_workers(rows, given.ranks, given.dask)
    if given.out is not None:
        write_json(given.out, found)
