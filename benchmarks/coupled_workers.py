"""Coupled labels on two workers of a Dask cluster, at two places at once and at one place after the other.

    python -m benchmarks.coupled_workers --problems synthetic:100000,10000,101 --partitions 4 --tol 1e-3

The covariance is that of the labels' correlations.  Rows are kept apart by a small memory budget.  Runs are
interleaved, and medians given: seconds of ``fit``, and seconds of the processor of both workers.
"""

from __future__ import annotations

import argparse
import logging
import time
from statistics import median
from typing import Any

from distributed import Client, LocalCluster

from benchmarks.dask_speed import on_cluster
from benchmarks.problems import load_problem
from labelweave import LabelCovariance
from labelweave import MaxMarginClassifier as LocalMaxMarginClassifier
from labelweave.dask import MaxMarginClassifier, graphs
from labelweave.problems import travelling_margins


def _set_caution(value: float) -> None:
    travelling_margins._CAUTION = value


def timed(client: Client, fit: Any) -> tuple[float, list[float], Any]:
    """Fit; give seconds, seconds of each worker's processor, and the model."""
    before, begun = client.run(time.process_time), time.perf_counter()
    model = fit()
    taken, after = time.perf_counter() - begun, client.run(time.process_time)
    return taken, [after[key] - before[key] for key in before], model


def measure(client: Client, name: str, given: argparse.Namespace) -> None:
    """Measure one problem."""
    X, Y = load_problem(name)
    covariance = LabelCovariance.from_labels(Y)
    rows, labels = (on_cluster(client, table, given.partitions) for table in (X, Y))
    budget = 0.9 * 24e-6 * X.nnz
    settings = {"C": given.C, "label_covariance": covariance, "tol": given.tol}
    kinds = {"together": (2, travelling_margins._CAUTION), "one after the other": (1, 1.0)}
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    own: dict[str, list[float]] = {kind: [] for kind in kinds}
    models = {}
    for number in range(given.repeats + 1):
        for kind, (abreast, caution) in kinds.items():
            graphs.ABREAST = abreast
            _set_caution(caution)
            client.run(_set_caution, caution)
            model = MaxMarginClassifier(client, memory_budget=max(budget, 8e-6 * X.shape[1] * Y.shape[1]), **settings)
            model.max_iter = given.max_iter if number else 2  # loops are compiled
            taken, of_processor, models[kind] = timed(client, lambda: model.fit(rows, labels))
            if number:
                seconds[kind].append(taken)
                own[kind].append(sum(of_processor))
                print(f"  {kind}: {taken:.1f} s, of the processor {of_processor}, {models[kind].n_iter_} rounds, gap {models[kind].duality_gap_:.1e}", flush=True)
    for kind, model in models.items():
        print(
            f"{name}, {kind}: {median(seconds[kind]):.1f} s, {median(own[kind]):.1f} s of the processor, "
            f"{model.n_iter_} rounds, a gap of {model.duality_gap_:.1e}",
            flush=True,
        )
    if given.local:
        begun = time.process_time()
        model = LocalMaxMarginClassifier(solver="coordinate_ascent", n_jobs=1, **settings).fit(X, Y)
        print(f"{name}, one thread: {time.process_time() - begun:.1f} s, {model.n_iter_} rounds", flush=True)


def main() -> None:
    """Measure every problem that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--problems", nargs="+", default=["synthetic:100000,10000,101"])
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-iter", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--local", action="store_true")
    given = parser.parse_args()
    parts = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(silence_logs=logging.ERROR, **parts) as cluster, Client(cluster) as client:
        for name in given.problems:
            measure(client, name, given)


if __name__ == "__main__":
    main()
