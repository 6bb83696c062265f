"""Fits by processes of a Dask cluster on this machine compared with the same fit in memory, with one and two
threads.

    python -m benchmarks.dask_speed --problems rcv1 synthetic:200000,47236,101 --repeats 3

Runs are interleaved, and medians are printed: seconds of ``fit`` only, with rows in the workers' memory and
compiled loops; and CPU seconds, on the cluster those of the busiest worker, which depend less on other
programs.  With a small ``--memory-budget`` partitions stay separate, so that blocks of labels travel.
``--calibrated`` calibrates probabilities around each fit: this takes one more fit to a part of the rows; the
difference of the probabilities is printed.
"""

import argparse
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from distributed import Client

from benchmarks.clusters import on_cluster, timed, workers
from benchmarks.frame import command, flag, save
from benchmarks.problems import DEFAULT_DATA, load_problem
from labelweave import CalibratedLabelClassifier, MaxMarginClassifier, config_context


def compare(client: Client, name: str, given: argparse.Namespace) -> dict[str, Any]:
    X, Y = load_problem(name, given.data)
    rows, labels = (on_cluster(client, table, given.partitions) for table in (X, Y))

    def local(n_jobs: int) -> Any:
        model = MaxMarginClassifier(solver="coordinate_ascent", tol=given.tol, n_jobs=n_jobs)
        return (CalibratedLabelClassifier(model) if given.calibrated else model).fit(X, Y)

    def shared() -> Any:
        model = MaxMarginClassifier(tol=given.tol)
        with config_context(memory_budget=given.memory_budget):
            return (CalibratedLabelClassifier(model) if given.calibrated else model).fit(rows, labels)

    fits = {"one thread": lambda: local(1), "two threads": lambda: local(2), "two workers": shared}
    seconds: dict[str, list[float]] = {kind: [] for kind in fits}
    of_processor: dict[str, list[float]] = {kind: [] for kind in fits}
    models = {kind: fit() for kind, fit in fits.items()}  # including compilation, not counted
    for _ in range(given.repeats):
        for kind, fit in fits.items():
            taken, own, models[kind] = timed(client, fit, is_local=kind != "two workers")
            seconds[kind].append(taken)
            of_processor[kind].append(own)
    own_seconds = {kind: median(times) for kind, times in of_processor.items()}
    found = {kind: median(times) for kind, times in seconds.items()}
    if given.calibrated:
        here, there = (models[kind].predict_proba(X) for kind in ("one thread", "two workers"))
        apart = np.abs(here - there)
        print(f"  probabilities differ by {apart.mean():.1e} on average, by {apart.max():.1e} at most")
        models = {kind: model.estimator_ for kind, model in models.items()}
    n_rounds = {kind: model.n_iter_ for kind, model in models.items()}
    objectives = {kind: model.trace_[-1].primal for kind, model in models.items()}
    excess = objectives["two workers"] / objectives["one thread"] - 1
    each = (f"{kind} {taken:.2f} s ({n_rounds[kind]} rounds)" for kind, taken in found.items())
    taken = found["two workers"]
    faster, longer = found["one thread"] / taken, taken / found["two threads"]
    print(f"{name}: {', '.join(each)}")
    print(
        f"  two workers: {faster:.2f} times as fast as one thread, {longer:.2f} times as long as two; "
        f"objective {excess:+.1e} of itself"
    )
    each = (f"{kind} {own:.2f} s" for kind, own in own_seconds.items())
    faster = own_seconds["one thread"] / own_seconds["two workers"]
    said = f"the busiest worker {faster:.2f} times as fast as one thread"
    print(f"  of the processor: {', '.join(each)}; {said}", flush=True)
    return {
        "problem": name,
        "seconds": seconds,
        "of_processor": of_processor,
        "rounds": n_rounds,
        "objectives": objectives,
    }


@command(
    problems=["rcv1-subset1", "rcv1"],
    partitions=4,
    memory_budget=2000.0,
    tol=1e-3,
    calibrated=False,
    repeats=3,
    data=DEFAULT_DATA,
    out=flag(type=Path),
)
def main(given: argparse.Namespace) -> None:
    with workers() as client:
        found = [compare(client, name, given) for name in given.problems]
    save(given.out, {"problems": found})
