"""Whether an own solver is one that estimators can run."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.extending.checks import ContractError, require, through_file
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.solvers.box_dual import Settled, dual_value, primal_value
from labelweave.solvers.frame import Solver, SolverResult, State
from labelweave.solvers.measured import MeasuredSolver

_TOL, _ROUNDS = 1e-3, 20_000


@checked
def check_solver(solver: Solver) -> None:  # type: ignore[type-arg]
    """Check that a solver does what ``solver=`` of :class:`MaxMarginClassifier` relies on.

    These are tried on small duals, of labels on their own, of labels that covary, and with entries that were
    not observed: that ``start``, ``round`` and ``certify`` give what they must; that the answer reaches the
    optimum, to a relative duality gap of 1e-3, which is measured; that a run which goes on from a state that
    was written out ends with the same bits; and, for a class that is registered for model files, that it
    comes back from one.

    Parameters
    ----------
    solver : Solver
        The solver; its ``tol`` and ``max_iter`` are set.

    Raises
    ------
    ContractError
        If something is wrong; the message says what.
    """
    name = type(solver).__name__
    for is_coupled in (False, True):
        problem, run = SmallDual(is_coupled=is_coupled), MeasuredSolver(solver, _TOL, _ROUNDS)
        first: list[State] = []

        def on_check(record: Any, state: State, first: list[State] = first) -> bool:
            if not first:
                first.append(State.from_plain(state.to_plain()))
            return False

        whole = _solved(run, problem, on_check=on_check)
        require(
            whole.converged,
            f"{name} ended after {whole.n_iter} rounds at a relative duality gap of {whole.gap:.2g}; it must "
            f"reach {_TOL:g}.",
        )
        again = _solved(run, problem, first[0])
        there = _solved(run, problem, dual=whole.answer.boxed)
        require(there.converged, f"{name} does not reach the optimum from {name}.start(problem, dual).")
        same = np.array_equal(again.answer.boxed, whole.answer.boxed)
        require(same, f"{name} ends elsewhere when it goes on from a state that was written out.")
    other = through_file(solver)
    require(other is None or type(other) is type(solver), f"{name} comes back as another one from a file.")


def _solved(
    run: MeasuredSolver,
    problem: SmallDual,
    state: State | None = None,
    on_check: Any = None,
    dual: Array | None = None,
) -> SolverResult:
    try:
        return run.solve(problem, state if dual is None else run.start(problem, dual), on_check)[0]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ContractError(f"{run.name} failed: {error}") from error


class SmallDual:
    """The dual of 30 rows and 3 labels, written out; a label has one row, and a row is not observed."""

    def __init__(self, *, is_coupled: bool) -> None:
        random = np.random.default_rng(0)
        rows = random.normal(size=(30, 6)) * np.array([3.0, 2, 1, 1, 0.3, 0.1])
        signs = np.where(rows @ random.normal(size=(6, 3)) + random.normal(size=(30, 3)) > 0, 1.0, -1.0)
        signs[4], signs[1:, 2] = 0, 0
        self.targets, self.upper, self.lower = signs, np.maximum(2 * signs, 0), np.minimum(2 * signs, 0)
        self.kernel, self.covariance = rows @ rows.T, np.eye(3) + (0.9 * (1 - np.eye(3)) if is_coupled else 0)

    def scores(self, *variables: Array) -> tuple[Array, ...]:
        return tuple(self.kernel @ some @ self.covariance for some in variables)

    def objectives(self, variables: Array) -> tuple[float, float]:
        (scores,) = self.scores(variables)
        return primal_value(self, variables, scores), dual_value(self, variables, scores)

    def settled(self, free: Array, boxed: Array, tol: float, weights: Array | None = None) -> Settled:
        scores = self.scores(free, boxed)
        return Settled(self.targets, self.lower, self.upper, free, scores[0], boxed, scores[1])
