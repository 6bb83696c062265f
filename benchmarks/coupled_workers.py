"""Coupled labels on two workers of a Dask cluster, at two places at once and at one place after the other.

    python -m benchmarks.coupled_workers --problems synthetic:100000,10000,101 --partitions 4 --tol 1e-3

The covariance is that of the labels' correlations.  Rows are kept apart by a small memory budget.  Runs are
interleaved: seconds of ``fit``, and seconds of the processor of both workers together.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

from distributed import Client

from benchmarks.clusters import of_processors, on_cluster, workers
from benchmarks.frame import read_options
from benchmarks.problems import load_problem
from labelweave import LabelCovariance
from labelweave.dask import MaxMarginClassifier, graphs
from labelweave.problems import travelling_margins


def _set_caution(value: float) -> None:
    travelling_margins._CAUTION = value


def timed(client: Client, model: Any, *data: Any) -> tuple[float, float]:
    """Fit; give seconds, and seconds of the processor of all workers."""
    before, begun = of_processors(client), time.perf_counter()
    model.fit(*data)
    taken, after = time.perf_counter() - begun, of_processors(client)
    return taken, sum(after[key] - before[key] for key in before)


def measure(client: Client, name: str, given: argparse.Namespace) -> None:
    """Measure one problem."""
    X, Y = load_problem(name)
    rows, labels = (on_cluster(client, table, given.partitions) for table in (X, Y))
    settings = {
        "C": given.C, "label_covariance": LabelCovariance.from_labels(Y), "tol": given.tol,
        "memory_budget": max(0.9 * 24e-6 * X.nnz, 8e-6 * X.shape[1] * Y.shape[1]),
    }  # fmt: skip
    kinds = {"at once": (travelling_margins.ABREAST, travelling_margins._CAUTION), "in turn": (1, 1.0)}
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for number in range(given.repeats + 1):
        for kind, (abreast, caution) in kinds.items():
            graphs.ABREAST = abreast
            client.run(_set_caution, caution)
            n_rounds = given.max_iter if number else 2  # loops are compiled first
            model = MaxMarginClassifier(client, max_iter=n_rounds, **settings)
            taken = timed(client, model, rows, labels)
            if number:
                found[kind].append(taken)
                print(
                    f"{name}, {kind}: {taken[0]:.1f} s, {taken[1]:.1f} s of the processor, "
                    f"{model.n_iter_} rounds, a gap of {model.duality_gap_:.1e}",
                    flush=True,
                )
    for kind, times in found.items():
        taken, own = (median(values) for values in zip(*times, strict=True))
        print(f"{name}, {kind}, medians: {taken:.1f} s, {own:.1f} s of the processor", flush=True)


def main() -> None:
    given = read_options(
        __doc__,
        problems=["synthetic:100000,10000,101"],
        partitions=4,
        C=1.0,
        tol=1e-3,
        max_iter=1000,
        repeats=3,
    )
    with workers() as client:
        for name in given.problems:
            measure(client, name, given)


if __name__ == "__main__":
    main()
