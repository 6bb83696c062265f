"""labelweave's ``MaxMarginClassifier`` behind the same face as its peers.

The tolerance is the relative duality gap itself.  One fit before the first
timed one loads or compiles the loops, so compilation is not timed; all else
that ``fit`` does is, validation and conversion of X and Y included.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve


def prepare(problem: PeerProblem) -> Trainer:
    """Fit once at a loose tolerance; the function returned fits at a given one."""
    from labelweave import MaxMarginClassifier

    def make(tolerance: float) -> MaxMarginClassifier:
        return MaxMarginClassifier(
            C=problem.penalty / 2.0, tol=tolerance, n_jobs=problem.threads, random_state=0
        )

    def train(tolerance: float) -> Solution:
        start = time.perf_counter()
        model = make(tolerance).fit(problem.X, problem.Y)
        seconds = time.perf_counter() - start
        weights = np.vstack([np.asarray(model.coef_).T, np.reshape(model.intercept_, (1, -1))])
        return Solution(
            tolerance, seconds, weights, dual=float(model.trace_[-1].dual), iterations=int(model.n_iter_)
        )

    make(0.1).fit(problem.X, problem.Y)
    return train


if __name__ == "__main__":
    serve(prepare)
