"""Alternating minimisation over two factors (Yu et al. 2014, section 3).

Each round lowers the objective by the features' factor and then by the labels' factor, so it never rises.
Half steps go on from where the last ones ended, so each need only take off a good part of its gradient.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from labelweave.solvers.result import Status
from labelweave.solvers.trust_region_newton import FactorSolution, TrustRegionNewton

__all__ = ["AlternatingMinimization", "AlternatingResult", "FactorPair", "RoundRecord"]

# Half steps need not be exact.  Products with the features until the objective is within 1e-3 of the best,
# on bibtex with rank 0.4 L and the trace norm, by the share of the gradient that a half step leaves:
# squared loss, 2,000 rows: 64 (0.3), 100 (0.1), 149 (0.01); a fifth of the labels observed: 141, 254, 685;
# logistic loss, 700 rows: 174 (0.3), 195 (0.1); with steps solved to a share of 0.1, 288 (0.1), 545 (0.01);
# squared hinge loss, 1,200 rows: about the same for all, fewest at first with 0.3.
_SHARE = 0.3
_FORCING = 0.3


class FactorPair(Protocol):
    """Two factors that can be improved in turn."""

    def improve_features(self, solver: TrustRegionNewton) -> FactorSolution:
        """Lower the objective by the features' factor."""

    def improve_labels(self, solver: TrustRegionNewton) -> FactorSolution:
        """Lower the objective by the labels' factor."""

    def objective(self) -> float:
        """Compute the objective."""


class RoundRecord(NamedTuple):
    """What is known after a round.

    decrease: by how much the round lowered it, as a share of its value; infinite in the first one.
    feature_iterations: iterations of conjugate gradients for the features' factor.
    label_iterations: iterations of conjugate gradients for the labels' factor.
    """

    iteration: int
    time: float
    objective: float
    decrease: float
    feature_iterations: int
    label_iterations: int


class AlternatingResult(NamedTuple):
    """How a run ended."""

    status: Status
    trace: list[RoundRecord]


class AlternatingMinimization:
    """The solver.

    tol: the share of the objective by which a round must lower it for another one.
    max_iter: the largest number of rounds.
    max_inner: iterations of conjugate gradients in a Newton step.
    max_steps: newton steps in a half step where the loss is not quadratic.
    on_round: gets every record; a true result ends the run.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        max_inner: int,
        max_steps: int,
        on_round: Callable[[RoundRecord], bool] | None = None,
    ) -> None:
        self.tol, self.max_iter = tol, max_iter
        self.max_inner, self.max_steps = max_inner, max_steps
        self.on_round = on_round or (lambda record: False)

    def run(self, pair: FactorPair) -> AlternatingResult:
        """Improve a pair of factors."""
        trace: list[RoundRecord] = []
        begin, last = time.perf_counter(), np.inf
        solver = TrustRegionNewton(_SHARE, self.max_steps, self.max_inner, _FORCING)
        try:
            while len(trace) < self.max_iter:
                features, labels = pair.improve_features(solver), pair.improve_labels(solver)
                objective = pair.objective()
                decrease = (last - objective) / max(abs(objective), 1e-300)
                seconds = time.perf_counter() - begin
                trace.append(
                    RoundRecord(len(trace) + 1, seconds, objective, decrease, features.n_iter, labels.n_iter)
                )
                if self.on_round(trace[-1]):
                    return AlternatingResult(Status.INTERRUPTED, trace)
                if decrease <= self.tol:
                    return AlternatingResult(Status.CONVERGED, trace)
                last = objective
        except KeyboardInterrupt:
            return AlternatingResult(Status.INTERRUPTED, trace)
        return AlternatingResult(Status.ITERATION_LIMIT, trace)
