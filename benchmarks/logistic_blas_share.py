"""The share of a kernel logistic fit that is spent in the linear algebra library, and its rate.

Fits to ImCLEF07A (63 classes, RBF kernel, kept in double precision) with fixed hyper-parameters, flat
and with the tree, to a relative gap of 1e-4.  The seconds of matrix products are those within
``Workers.matmul`` and its kin, which hand panels to the library; with them go
the small transposes around the panels.  The rest are entrywise work on rows (softmax, inner
products, line search), eigenvectors of small matrices, and what is left.

The rate of a fit is the operations of its products over all its seconds.  It is given as
a share of the rate that the library reaches in a square product of 2,048 rows with as
many threads, measured before and after every fit.  Medians of the repeats.

Example: ``python -m benchmarks.logistic_blas_share --rows 2000 4000 6000``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.frame import RESULTS, flag, markdown, read_options, save
from benchmarks.gemm_clock import GemmClock, machine_rate
from benchmarks.logistic_fits import Prior, fit, kernel_matrix
from benchmarks.logistic_problems import ClassProblem, load_class_problem
from benchmarks.needed_data import needs_data
from benchmarks.problems import DEFAULT_DATA

_KINDS = ("products", "panels", "eigenvectors")
_COLUMNS = ("rows", "model", "threads", "seconds", "products", "share in BLAS", "entrywise", "share of rate")


@needs_data
def main() -> None:
    from labelweave.foundation.arrays import Workers

    arguments = read_options(
        __doc__,
        rows=[2000, 4000, 6000],
        threads=[1],
        scale=10.0,
        width=flag(1.0, "of the kernel, in units of the paper's"),
        tol=1e-4,
        repeats=3,
        data=DEFAULT_DATA,
        out=RESULTS / "logistic_blas_share.json",
    )
    whole = load_class_problem(f"imclef-{max(arguments.rows)}", arguments.data)
    found = []
    for threads in arguments.threads:
        with Workers(threads).running() as workers:
            for n_rows in arguments.rows:
                found += _measure(whole.first(n_rows), arguments, workers)
    table = _table(found)
    print("\n".join(table))
    settings = {name: getattr(arguments, name) for name in ("scale", "width", "tol", "repeats")}
    save(arguments.out, settings | {"fits": found, "table": table})


def _measure(problem: ClassProblem, arguments: argparse.Namespace, workers: Any) -> list[dict[str, Any]]:
    """Fit the flat and the hierarchical model in turns."""
    gram = kernel_matrix(problem, arguments.width, workers)
    runs: dict[str, list[dict[str, float]]] = {"flat": [], "tree": []}
    for _ in range(arguments.repeats):
        for model, made in runs.items():
            tree = problem.tree if model == "tree" else None
            made.append(_run(problem, gram, Prior(arguments.scale, 1.0, tree), arguments, workers))
    sizes = {"rows": len(problem.codes), "classes": len(problem.classes), "threads": workers.n_threads}
    results = [sizes | {"model": model} | _medians(made) | {"runs": made} for model, made in runs.items()]
    for result in results:
        print("{rows} rows, {model}: {seconds:.2f} s, in BLAS {blas_share:.0%}".format(**result), flush=True)
    return results


def _run(
    problem: ClassProblem, gram: Any, prior: Prior, arguments: argparse.Namespace, workers: Any
) -> dict[str, float]:
    from labelweave.problems.losses import SoftmaxLoss

    loss = SoftmaxLoss(problem.codes, len(problem.classes), np.ones((len(problem.codes), 1)))
    before, clock = machine_rate(workers.n_threads), GemmClock()
    with clock.running():
        made = fit(gram, prior, loss, workers, arguments.tol, classes=problem.classes)
    machine = (before + machine_rate(workers.n_threads)) / 2
    shares = {kind: clock.seconds[kind] / made.seconds for kind in _KINDS}
    return {
        "seconds": made.seconds,
        "kernel_products": made.products,
        "blas_share": shares["products"],
        "entrywise_share": shares["panels"],
        "eigenvector_share": shares["eigenvectors"],
        "gigaflops": clock.operations / made.seconds / 1e9,
        "machine_gigaflops": machine / 1e9,
        "rate_share": clock.operations / made.seconds / machine,
    }


def _medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: median(run[key] for run in runs) for key in runs[0]}


def _table(found: Sequence[dict[str, Any]]) -> list[str]:
    row = (
        "| {rows:,} | {model} | {threads} | {seconds:.2f} | {kernel_products:.0f} | {blas_share:.0%} | "
        "{entrywise_share:.0%} | {rate_share:.0%} ({gigaflops:.0f} of {machine_gigaflops:.0f} GFLOP/s) |"
    )
    return markdown(_COLUMNS) + [row.format(**result) for result in found]


if __name__ == "__main__":
    main()
