"""Passes of stochastic proximal dual coordinate ascent until the objective settles.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, Algorithm 2: steps are divided by a damping that starts at 2 and doubles when a pass raises the
objective; five passes that change the objective by little end the run.  That is no certificate: the
objective of the result is computed, a lower bound is not always known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.solvers.block_frank_wolfe import PassRecord, PassResult
from labelweave.solvers.result import Status

__all__ = ["ProximalDualAscent", "ProximalProblem"]

_FIRST_DAMPING = 2.0
_WINDOW = 5
_CHECK_EVERY = 10


class ProximalProblem(Protocol):
    """What the passes ask of their problem.

    ceiling: the objective of weights of zero.
    """

    @property
    def ceiling(self) -> float:
        """The objective of weights of zero."""

    def sweep(self, order: npt.NDArray[np.int64], damping: float) -> float:
        """Take a step for every row.

        damping: what the steps are divided by.
        Returns the objective, each row's loss from when it was visited.
        """

    def rebalance(self) -> None:
        """Bring the weights up to date."""

    def evaluate(self) -> Any:
        """Compute ``primal``, ``dual`` and ``gap`` at the point."""


class ProximalDualAscent:
    """The solver.

    tol: the relative change of the objective over five passes at which to stop.
    max_iter: the largest number of passes.
    random_state: draws the order of rows.
    on_check: gets every record; a true result ends the run.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        random_state: np.random.RandomState,
        on_check: Callable[[PassRecord], bool] | None = None,
    ) -> None:
        self.tol, self.max_iter, self.random_state = tol, max_iter, random_state
        self.on_check = on_check or (lambda record: False)

    def run(self, problem: ProximalProblem, n_rows: int, n_cliques: int) -> PassResult:
        """Improve a problem's weights.

        n_cliques: its cliques, for the records.
        Returns how it ended; stalled if the objective settled above that of weights of zero.
        """
        begin, status = time.perf_counter(), Status.ITERATION_LIMIT
        trace: list[PassRecord] = []
        values: list[float] = []
        damping = _FIRST_DAMPING
        try:
            while len(values) < self.max_iter and status is Status.ITERATION_LIMIT:
                order = self.random_state.permutation(n_rows).astype(np.int64)
                values.append(problem.sweep(order, damping))
                if len(values) > 2 and values[-1] > values[-2]:
                    damping *= 2.0
                if self._is_settled(values):
                    status = Status.SETTLED
                elif len(values) % _CHECK_EVERY == 0:
                    trace.append(_record(problem, len(values), begin, n_cliques))
                    status = Status.INTERRUPTED if self.on_check(trace[-1]) else status
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            problem.rebalance()
        if not trace or trace[-1].iteration < len(values):
            trace.append(_record(problem, len(values), begin, n_cliques))
            self.on_check(trace[-1])
        if status is Status.SETTLED and trace[-1].primal > problem.ceiling:
            status = Status.STALLED
        return PassResult(status, len(values), trace)

    def _is_settled(self, values: list[float]) -> bool:
        if len(values) <= _WINDOW:
            return False
        before = values[-1 - _WINDOW]
        return abs(values[-1] - before) <= self.tol * before


def _record(problem: ProximalProblem, done: int, begin: float, n_cliques: int) -> PassRecord:
    point = problem.evaluate()
    return PassRecord(done, time.perf_counter() - begin, point.primal, point.dual, point.gap, n_cliques)
