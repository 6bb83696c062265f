"""Any solver of a box-constrained dual, such as a user's, with a certificate by the problem.

Callbacks receive the objectives that such a solver reports.  The result is measured here, in double precision
and at the returned variables, so that the duality gap of a fit is independent of the solver.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from labelweave.foundation.array_types import RowsByLabels
from labelweave.solvers.box_dual import BoxProblem, Settled
from labelweave.solvers.frame import Certificate, Round, Solver, State, Status, TraceRecord, checked_round


class MeasuredSolver(Solver[BoxProblem, State]):
    """Run a solver that returns dual variables (n, L), to a tolerance and limit that are passed to it.

    A run has converged if the measured gap is small enough, and continues if only the gap reported by the
    solver is.
    """

    def __init__(self, own: Solver[Any, Any], tol: float, max_iter: int) -> None:
        self.own, self.tol, self.max_iter = copy(own), tol, max_iter
        for name, value in (("tol", tol), ("max_iter", max_iter)):
            object.__setattr__(self.own, name, value)  # also of a frozen dataclass
        self.name = type(own).__name__

    def start(self, problem: BoxProblem, dual: RowsByLabels | None = None) -> State:
        """Start at dual variables (n, L), by default those of the solver."""
        own: Any = self.own
        state = own.start(problem) if dual is None else own.start(problem, self._variables(problem, dual))
        if not isinstance(state, State):
            raise TypeError(f"{self.name}.start returned a {type(state).__name__}; it must return a State.")
        return state

    def state_template(self, problem: BoxProblem, state: State) -> State:
        return self.own.state_template(problem, state)

    def recover(self, problem: BoxProblem, state: State) -> State:
        recover: State = self.own.recover(problem, state)
        return recover

    def round(self, problem: BoxProblem, state: State) -> Round[State]:
        done = state.rounds
        found = checked_round(self.own, self.own.round(problem, state))
        if found.status is None and found.state.rounds != done + 1:
            raise ValueError(
                f"{self.name}.round returned a state with rounds={found.state.rounds} after {done}; add one "
                "per round."
            )
        if found.status is not Status.CONVERGED:
            return found
        record, status, settled = self._measured(problem, found.answer, None)
        return found._replace(record=record, status=status, answer=settled)

    def certify(self, problem: BoxProblem, state: State, status: Status) -> Certificate:
        found = self.own.certify(problem, state, status)
        if not isinstance(found, tuple) or len(found) != 3:
            raise TypeError(f"{self.name}.certify must return (record, status, answer).")
        return self._measured(problem, found[2], status)

    def _measured(self, problem: BoxProblem, answer: Any, otherwise: Any) -> Certificate:
        variables = self._variables(problem, answer)
        settled: Settled = problem.settled(variables, variables, self.tol)
        record = TraceRecord.of(*settled.values())
        return Certificate(record, Status.CONVERGED if record.gap <= self.tol else otherwise, settled)

    def _variables(self, problem: BoxProblem, answer: Any) -> RowsByLabels:
        shape = problem.targets.shape
        if not isinstance(answer, np.ndarray) or answer.shape != shape or answer.dtype.kind != "f":
            kind = getattr(answer, "shape", None) or type(answer).__name__
            raise TypeError(
                f"{self.name} returned {kind} as answer; it must be the dual variables, a float array "
                f"{shape}."
            )
        if not np.isfinite(answer).all():
            raise ValueError(f"{self.name} returned an answer that is not finite.")
        return np.clip(answer, problem.lower, problem.upper)
