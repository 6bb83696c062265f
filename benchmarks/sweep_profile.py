"""Where the time of linear max-margin fits to sparse rows goes, and the least that memory traffic allows.

Phases are seconds of the processor on one thread, labels one after the other: what ``fit`` does before and
after solving, sweeps, measured gaps, and the certificate with the weights that are returned.

The bound is of the sweeps.  A visit reads, for each non-zero of its row, the weights of that feature for 16
labels, and writes them again if it takes a step (how many do is counted in runs of their own).  Rows of
weights come at the rate at which our own product reads rows at random from each cache, the frequent features
from the nearest one; in "sweeps / bound" visits move no other byte.

Example: ``OPENBLAS_NUM_THREADS=1 python -m benchmarks.sweep_profile --problem rcv1 --tol 1e-2 1e-3 1e-4``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.frame import command, timed
from benchmarks.problems import DEFAULT_DATA, load_problem
from benchmarks.product_limits import LEVELS, Limits, level_sizes, measure_limits, row_rate
from labelweave import MaxMarginClassifier
from labelweave.foundation.loops import WIDTH
from labelweave.problems.swept_margins import IndependentMargins

__all__ = ["main"]

_PHASES = {"sweeps": "round", "gaps": "measure", "certificate": "certify"}


class Profile:
    """Seconds of the phases of a fit, and the visits of its sweeps."""

    def __init__(self, X: Any, Y: Any, C: float, tol: float) -> None:
        self.seconds = dict.fromkeys(_PHASES, 0.0)
        self.visits = 0
        model = MaxMarginClassifier(C=C, tol=tol, n_jobs=1, solver="coordinate_ascent")
        patches = [
            patch.object(IndependentMargins, method, self._timed(phase, getattr(IndependentMargins, method)))
            for phase, method in _PHASES.items()
        ]
        for one in patches:
            one.start()
        start = time.process_time()
        try:
            self.model = model.fit(X, Y)
        finally:
            for one in patches:
                one.stop()
        self.seconds["whole fit"] = time.process_time() - start

    def _timed(self, phase: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            found, seconds = timed(method, *arguments, **options)
            self.seconds[phase] += seconds
            if phase == "sweeps":
                self.visits += found[2]
            return found

        return call


def _bound(limits: Limits, rates: dict[str, float], X: Any, visits: float) -> float:
    """Return the seconds in which rows of weights are read for so many visits of rows like those of X."""
    counts = np.bincount(X.indices, minlength=X.shape[1]) * (visits / X.shape[0])
    return limits.gather_seconds(counts, 4 * WIDTH, 0.0, 2.0 * WIDTH * counts.sum(), rates)


@command(problem="rcv1", data=DEFAULT_DATA, tol=[1e-2, 1e-3, 1e-4], repeats=5)
def main(options: Any) -> None:
    X, Y = load_problem(options.problem, options.data)
    limits = measure_limits(np.float32)
    rates = {level: row_rate(level_sizes()[level], WIDTH, np.dtype(np.float32)) for level in LEVELS}
    print("rows of 64 bytes at random, GB/s:", {name: round(rate / 1e9, 1) for name, rate in rates.items()})
    Profile(X, Y, 0.5, 0.1)  # reads or compiles the loops
    for tol in options.tol:
        fits = [Profile(X, Y, 0.5, tol) for _ in range(options.repeats)]
        seconds = {name: median(fit.seconds[name] for fit in fits) for name in fits[0].seconds}
        rest = seconds.pop("whole fit") - sum(seconds.values())
        bound = _bound(limits, rates, X, fits[0].visits)
        told = ", ".join(f"{name} {took:.3f} s" for name, took in seconds.items())
        n_blocks = -(-Y.shape[1] // WIDTH)
        print(
            f"gap {tol:g}: {told}, the rest {rest:.3f} s; {fits[0].model.n_iter_} rounds, "
            f"{fits[0].visits / n_blocks / X.shape[0]:.1f} visits a row and block; "
            f"reading weights takes {bound:.3f} s, sweeps / bound {seconds['sweeps'] / bound:.2f}",
            flush=True,
        )
