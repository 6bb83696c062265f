"""The speedup of two threads over one, with independent labels.

Fits with one and two threads alternate; the median of the ratios of neighbors is printed, and the models are
compared bit for bit.

Example: ``python -m benchmarks.threads --problem rcv1``.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import command, flag, save, timed
from benchmarks.problems import DEFAULT_DATA, load_problem


def _fit(X: Any, Y: Any, jobs: int, arguments: argparse.Namespace) -> tuple[float, Any]:
    from labelweave import MaxMarginClassifier

    model = MaxMarginClassifier(C=arguments.penalty / 2, tol=arguments.tol, n_jobs=jobs)
    _, seconds = timed(model.fit, X, Y, clock=time.perf_counter)
    return seconds, model.coef_


@command(
    problem="rcv1",
    penalty=flag(1.0, "twice labelweave's C"),
    tol=1e-3,
    repeats=5,
    data=DEFAULT_DATA,
    out=flag(type=Path),
)
def main(arguments: argparse.Namespace) -> None:
    X, Y = load_problem(arguments.problem, arguments.data)
    _fit(X, Y, 2, arguments)  # compiles
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(arguments.repeats):
        one, two = (_fit(X, Y, jobs, arguments) for jobs in (1, 2))
        if not np.array_equal(one[1], two[1]):
            raise RuntimeError("One and two threads gave different weights.")
        seconds[1].append(one[0])
        seconds[2].append(two[0])
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    ratio = statistics.median(ratios)
    medians = {jobs: statistics.median(times) for jobs, times in seconds.items()}
    print(f"one thread {medians[1]:.2f} s, two threads {medians[2]:.2f} s, ratio {ratio:.2f}, same bits")
    times = {str(jobs): values for jobs, values in seconds.items()}
    results = {"problem": arguments.problem, "tol": arguments.tol, "ratio": ratio, "ratios": ratios}
    save(arguments.out, results | {"seconds": times})
