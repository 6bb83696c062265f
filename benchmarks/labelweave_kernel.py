"""labelweave's ``MaxMarginClassifier(kernel="rbf")`` behind the same face as its peers.

The tolerance is the relative duality gap itself.  A fit of a few rows before the
first timed one loads or compiles the loops; all else that ``fit`` does is timed,
validation and the kernel matrix included.  The memory that the problem grants is
``memory_budget``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_WARM_UP_ROWS = 300


def prepare(problem: PeerProblem) -> Trainer:
    """Fit a few rows; the function returned fits all of them at a tolerance."""
    from labelweave import MaxMarginClassifier

    def make(tolerance: float) -> MaxMarginClassifier:
        return MaxMarginClassifier(
            C=problem.penalty / 2.0,
            kernel="rbf",
            gamma=problem.gamma,
            tol=tolerance,
            memory_budget=problem.kernel_megabytes,
            n_jobs=problem.threads,
        )

    def train(tolerance: float) -> Solution:
        start = time.perf_counter()
        model = make(tolerance).fit(problem.X, problem.Y)
        seconds = time.perf_counter() - start
        coefficients = coefficients_of(model, problem.Y.shape)
        dual, rounds = float(model.trace_[-1].dual), int(model.n_iter_)
        return Solution(tolerance, seconds, coefficients, dual=dual, iterations=rounds)

    make(0.1).fit(problem.X[:_WARM_UP_ROWS], problem.Y[:_WARM_UP_ROWS])
    return train


def coefficients_of(model: Any, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Lay out a model's coefficients as :mod:`benchmarks.peers.exchange` says.

    model: fitted with a kernel.
    shape: rows and labels.
    Returns: the coefficients of all rows, and the intercepts.
    """
    coefficients = np.zeros((shape[0] + 1, shape[1]))
    coefficients[model.support_] = model.dual_coef_
    coefficients[-1] = model.intercept_
    return coefficients


if __name__ == "__main__":
    serve(prepare)
