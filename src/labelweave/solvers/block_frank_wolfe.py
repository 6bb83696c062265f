"""Passes of block-coordinate Frank-Wolfe until the duality gap is small.

Lacoste-Julien, Jaggi, Schmidt and Pletscher, "Block-coordinate Frank-Wolfe optimization for structural
SVMs", ICML 2013.  The gaps that blocks had when they were visited sum to an estimate of the duality gap; the gap
itself, which costs as much as a pass, is computed when the estimate is near the tolerance, and now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.solvers.result import Status

__all__ = ["BlockFrankWolfe", "PassRecord", "PassResult", "PassProblem"]

_CHECK_EVERY = 10
_CONFIDENCE = 1.0  # the estimate, as a share of the tolerance, at which the gap is computed
_REFRESH_EVERY = 200  # passes after which rounding is taken out


class PassProblem(Protocol):
    """What the passes ask of their problem."""

    def sweep(self, order: npt.NDArray[np.int64]) -> float:
        """Improve the dual point row by row.

        Parameters
        ----------
        order : ndarray of int64
            The rows to visit.

        Returns
        -------
        float
            The gaps that they had.
        """

    def rebalance(self) -> None:
        """Adapt the penalty to the point."""

    def recompute(self) -> None:
        """Take out rounding."""

    def evaluate(self) -> Any:
        """Compute ``primal``, ``dual``, ``gap`` and ``missed`` at the point."""


class PassRecord(NamedTuple):
    """What was known at one check of the duality gap.

    Parameters
    ----------
    iteration : int
        Passes over the rows so far.
    time : float
        Seconds since the solver started.
    primal : float
        Objective at the current weights: an upper bound of the optimum.
    dual : float
        Dual objective: a lower bound of the optimum; NaN where the solver has none.
    gap : float
        (primal - dual) / max(1, abs(primal)).
    n_cliques : int
        Cliques in the graph.
    """

    iteration: int
    time: float
    primal: float
    dual: float
    gap: float
    n_cliques: int


class PassResult(NamedTuple):
    """The end of a run.

    Parameters
    ----------
    status : Status
        Why it stopped.
    n_iter : int
        Passes done.
    trace : list of PassRecord
        Every check, the last one at the result.
    """

    status: Status
    n_iter: int
    trace: list[PassRecord]

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        """The relative duality gap at the result."""
        return self.trace[-1].gap


class BlockFrankWolfe:
    """The solver.

    Parameters
    ----------
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The largest number of passes.
    random_state : numpy.random.RandomState
        Draws the order of rows.
    on_check : callable or None, default=None
        Gets every record; a true result ends the run.
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

    def run(self, problem: PassProblem, n_rows: int, n_cliques: int) -> PassResult:
        """Improve a problem's dual point.

        Parameters
        ----------
        problem : PassProblem
            The problem, changed.
        n_rows : int
            Its rows.
        n_cliques : int
            Its cliques, for the records.

        Returns
        -------
        PassResult
            How it ended.
        """
        begin, trace, done = time.perf_counter(), [], 0
        status = Status.ITERATION_LIMIT
        try:
            while done < self.max_iter:
                estimate = problem.sweep(self.random_state.permutation(n_rows).astype(np.int64))
                problem.rebalance()
                done += 1
                if done % _REFRESH_EVERY == 0:
                    problem.recompute()
                if not self._is_due(done, estimate, trace):
                    continue
                trace.append(_record(problem, done, begin, n_cliques))
                stop = self.on_check(trace[-1])
                if trace[-1].gap <= self.tol:
                    return PassResult(Status.CONVERGED, done, trace)
                if stop:
                    return PassResult(Status.INTERRUPTED, done, trace)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if not trace or trace[-1].iteration < done:
            trace.append(_record(problem, done, begin, n_cliques))
        return PassResult(status, done, trace)

    def _is_due(self, done: int, estimate: float, trace: list[PassRecord]) -> bool:
        scale = max(1.0, abs(trace[-1].primal)) if trace else 1.0
        near = estimate <= _CONFIDENCE * self.tol * scale
        return near or done % _CHECK_EVERY == 0 or done == self.max_iter


def _record(problem: PassProblem, done: int, begin: float, n_cliques: int) -> PassRecord:
    point = problem.evaluate()
    return PassRecord(done, time.perf_counter() - begin, point.primal, point.dual, point.gap, n_cliques)
