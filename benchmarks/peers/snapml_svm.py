"""IBM's Snap ML, ``SupportVectorMachine``, one fit a label.

Its objective is sum_i loss_i + regularizer / 2 ||z||^2, so that its regularizer is 1 / c.  Timed: the loop
of fits, each with Snap ML's own conversion of X; labels are made -1 and 1 before.
"""

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from snapml import SupportVectorMachine

from benchmarks.peers.exchange import PeerProblem, Solution, Trainer, serve

__all__ = ["prepare"]

_MAX_PASSES = 10_000


def _weights(machine: Any) -> npt.NDArray[np.float64]:
    return np.append(np.ravel(machine.coef_), np.ravel(machine.intercept_)[:1])


@serve
def prepare(problem: PeerProblem, _: str) -> Trainer:
    signs = np.where(problem.Y.toarray() > 0, 1.0, -1.0)

    def train(tolerance: float) -> Solution:
        machines = [
            SupportVectorMachine(
                regularizer=1.0 / problem.penalty,
                tol=tolerance,
                max_iter=_MAX_PASSES,
                n_jobs=problem.threads,
                fit_intercept=True,
                random_state=0,
            )
            for _ in range(signs.shape[1])
        ]
        start = time.perf_counter()
        for machine, column in zip(machines, signs.T, strict=True):
            machine.fit(problem.X, column)
        seconds = time.perf_counter() - start
        return Solution(seconds, np.stack([_weights(one) for one in machines], axis=1))

    return train
