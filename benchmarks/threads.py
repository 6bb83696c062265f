"""The speedup of two threads over one, with independent labels.

Fits with one and two threads alternate; the median of the ratios of neighbors is printed, and the models are
compared bit for bit.
"""

import statistics
import time
from typing import Any

import numpy as np

from benchmarks.frame import OUT, command, save, timed
from benchmarks.problems import load_problem


def _fit(X: Any, Y: Any, jobs: int) -> tuple[float, Any]:
    from labelweave import MaxMarginClassifier

    model = MaxMarginClassifier(C=0.5, n_jobs=jobs)
    _, seconds = timed(model.fit, X, Y, clock=time.perf_counter)
    return seconds, model.coef_


@command(problem="rcv1", repeats=5, out=OUT)
def main(arguments: Any) -> None:
    X, Y = load_problem(arguments.problem)
    _fit(X, Y, 2)  # compiles
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(arguments.repeats):
        one, two = (_fit(X, Y, jobs) for jobs in (1, 2))
        if not np.array_equal(one[1], two[1]):
            raise RuntimeError("One and two threads gave different weights.")
        seconds[1].append(one[0])
        seconds[2].append(two[0])
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    ratio = statistics.median(ratios)
    medians = {jobs: statistics.median(times) for jobs, times in seconds.items()}
    print(f"one thread {medians[1]:.2f} s, two threads {medians[2]:.2f} s, ratio {ratio:.2f}, same bits")
    times = {str(jobs): values for jobs, values in seconds.items()}
    results = {"problem": arguments.problem, "tol": 1e-3, "ratio": ratio, "ratios": ratios}
    save(arguments.out, results | {"seconds": times})
