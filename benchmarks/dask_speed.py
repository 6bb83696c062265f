"""Fits by processes of a Dask cluster on this machine compared with the same fit in memory, with one and two
threads.

    python -m benchmarks.dask_speed --problems rcv1 synthetic:200000,47236,101 --repeats 3

Runs are interleaved, and medians are printed: seconds of ``fit`` only, with rows in the workers' memory and
compiled loops; and CPU seconds, on the cluster those of the busiest worker, which depend less on other
programs.  With a small ``--memory-budget`` partitions stay separate, so that blocks of labels travel.
"""

from statistics import median
from typing import Any

from distributed import Client

from benchmarks.clusters import on_cluster, timed, workers
from benchmarks.frame import OUT, command, save
from benchmarks.problems import load_problem
from labelweave import MaxMarginClassifier, config_context


def compare(client: Client, name: str, given: Any) -> dict[str, Any]:
    X, Y = load_problem(name)
    rows, labels = (on_cluster(client, table, given.partitions) for table in (X, Y))

    def local(n_jobs: int) -> Any:
        return MaxMarginClassifier(solver="coordinate_ascent", n_jobs=n_jobs).fit(X, Y)

    def shared() -> Any:
        with config_context(memory_budget=given.memory_budget):
            return MaxMarginClassifier().fit(rows, labels)

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


@command(problems=["rcv1-subset1", "rcv1"], partitions=4, memory_budget=2000.0, repeats=3, out=OUT)
def main(given: Any) -> None:
    with workers() as client:
        found = [compare(client, name, given) for name in given.problems]
    save(given.out, {"problems": found})
