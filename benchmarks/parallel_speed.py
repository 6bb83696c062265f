"""Fits with one and two threads, and by processes of a Dask cluster on this machine.

    python -m benchmarks.parallel_speed --repeats 5
    python -m benchmarks.parallel_speed --cluster --problems synthetic:200000,47236,101 \
        synthetic:200000,47236,200
    python -m benchmarks.parallel_speed --cluster --problems synthetic:1000000,50000,200 --repeats 1 \
        --partitions 8 --memory-budget 6000

Runs are interleaved, and medians are printed: seconds of ``fit`` only, with rows in the workers' memory and
compiled loops, and ratios to those of one thread just before; and CPU seconds, on the cluster those of the
busiest worker, which depend less on other programs.  Models of one and two threads are compared bit for bit.
With a small ``--memory-budget`` partitions stay separate, so that blocks of labels travel.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median
from typing import Any

import numpy as np

from benchmarks.frame import OUT, command, cost_of, flag, save
from benchmarks.problems import load_problem
from labelweave import MaxMarginClassifier, config_context


def compare(client: Any, name: str, given: Any) -> dict[str, Any]:
    X, Y = load_problem(name)

    def local(n_jobs: int) -> Any:
        return MaxMarginClassifier(solver="coordinate_ascent", n_jobs=n_jobs).fit(X, Y)

    fits: dict[str, Callable[[], Any]] = {"one thread": lambda: local(1), "two threads": lambda: local(2)}
    if client is not None:
        from benchmarks.clusters import on_cluster

        rows, labels = (on_cluster(client, table, given.partitions) for table in (X, Y))

        def shared() -> Any:
            with config_context(memory_budget=given.memory_budget):
                return MaxMarginClassifier().fit(rows, labels)

        fits["two workers"] = shared
    models = {kind: fit() for kind, fit in fits.items()}  # including compilation, not counted
    if not np.array_equal(models["one thread"].coef_, models["two threads"].coef_):
        raise RuntimeError("One and two threads gave different weights.")
    seconds: dict[str, list[float]] = {kind: [] for kind in fits}
    of_processor: dict[str, list[float]] = {kind: [] for kind in fits}
    for _ in range(given.repeats):
        for kind, fit in fits.items():
            taken, own = _timed(client if kind == "two workers" else None, fit)
            seconds[kind].append(taken)
            of_processor[kind].append(own)
    for kind, model in models.items():
        ratio = median(one / own for one, own in zip(seconds["one thread"], seconds[kind], strict=True))
        print(
            f"{name}, {kind}: {median(seconds[kind]):.2f} s, {ratio:.2f} times as fast as one thread, of the "
            f"processor {median(of_processor[kind]):.2f} s; {model.n_iter_} rounds, objective "
            f"{model.trace_[-1].primal / models['one thread'].trace_[-1].primal - 1:+.1e} of itself",
            flush=True,
        )
    ends = {kind: (model.n_iter_, model.trace_[-1].primal) for kind, model in models.items()}
    return {"problem": name, "seconds": seconds, "of_processor": of_processor, "rounds, objectives": ends}


def _timed(client: Any, fit: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds, and CPU seconds of this process or of the busiest worker."""
    before = {} if client is None else client.run(time.process_time)
    _, taken, own = cost_of(fit)
    after = {} if client is None else client.run(time.process_time)
    return taken, max([after[key] - before[key] for key in before], default=own)


@command(
    problems=["rcv1"],
    cluster=flag(False, "two workers too"),
    partitions=4,
    memory_budget=2000.0,
    repeats=3,
    out=OUT,
)
def main(given: Any) -> None:
    if given.cluster:
        from benchmarks.clusters import workers
    with workers() if given.cluster else nullcontext() as client:
        found = [compare(client, name, given) for name in given.problems]
    save(given.out, {"problems": found})
