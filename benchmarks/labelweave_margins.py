"""labelweave's ``MaxMarginClassifier``, linear or with the RBF kernel, with the same interface as its peers.

The tolerance is the relative duality gap itself.  A fit before the first timed one loads or compiles the
loops, so compilation is not timed; everything else in ``fit`` is: validation, conversion of X and Y, and the
kernel matrix.  The memory that a problem allows for kernel values is ``memory_budget``.
"""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.frame import timed
from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

_WARM_UP_ROWS = 300  # with a kernel


def coefficients_of(model: Any, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Arrange the dual coefficients of all rows, and the intercepts, as in the peers' files."""
    coefficients = np.zeros((shape[0] + 1, shape[1]))
    coefficients[model.support_] = model.dual_coef_
    coefficients[-1] = model.intercept_
    return coefficients


@serve
def prepare(problem: PeerProblem, _: str) -> Trainer:
    """Fit at a loose tolerance; the function returned fits all rows at a given one."""
    from labelweave import MaxMarginClassifier, set_config

    kernel: dict[str, Any] = {}
    if not problem.is_linear:
        kernel = {"kernel": "rbf", "gamma": problem.gamma}
        set_config(memory_budget=problem.kernel_megabytes)

    def make(tolerance: float) -> MaxMarginClassifier:
        return MaxMarginClassifier(C=problem.penalty / 2.0, tol=tolerance, n_jobs=problem.threads, **kernel)

    def train(tolerance: float) -> Solution:
        model, seconds = timed(make(tolerance).fit, problem.X, problem.Y, clock=time.perf_counter)
        if not problem.is_linear:
            weights = coefficients_of(model, problem.Y.shape)
        else:
            weights = np.vstack([np.asarray(model.coef_).T, np.reshape(model.intercept_, (1, -1))])
        dual, rounds = float(model.trace_[-1].dual), int(model.n_iter_)
        return Solution(seconds, weights, dual=dual, iterations=rounds)

    rows = slice(None if problem.is_linear else _WARM_UP_ROWS)
    make(0.1).fit(problem.X[rows], problem.Y[rows])
    return train
