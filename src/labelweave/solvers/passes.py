"""What solvers that pass over rows share: their state, records, limits, and completions of what is unknown.

A solve ends at the tolerance or at the limit of passes.  Then targets that are not known are completed
by the best ones at the present weights, and if that changed some, another solve follows, until the objective
stays (the concave-convex procedure of Yu and Joachims, "Learning structural SVMs with latent variables",
ICML 2009).
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from labelweave.solvers.frame import Round, Solver, State
from labelweave.solvers.result import Status

__all__ = ["PassProblem", "PassRecord", "PassSolver", "PassState"]

_ENOUGH = 1e-4  # share of the objective below which completing again is not worth it
_MOST_COMPLETIONS = 20


class PassRecord(NamedTuple):
    """What was known at one check of the duality gap.

    iteration: passes over the rows so far.
    time: seconds since the solver started.
    primal: objective at the current weights: an upper bound of the optimum.
    dual: dual objective: a lower bound of the optimum; NaN where the solver has none.
    gap: (primal - dual) / max(1, abs(primal)).
    """

    iteration: int
    time: float
    primal: float
    dual: float
    gap: float
    n_cliques: int


@dataclass(frozen=True, kw_only=True)
class PassState(State):
    """Where passes stand.

    point: the problem's own arrays, in which the passes work.
    stream: draws the order of rows.
    begun: the passes before the present solve.
    level: the objective at the last check of the present solve, 1 at first.
    completed: the objective before the last completion, and how many there were.
    """

    point: Any
    stream: dict[str, Any]
    begun: int = 0
    level: float = 1.0
    completed: tuple[float, int] = (np.nan, 0)


State.plain_with(PassRecord)
AnyPasses = TypeVar("AnyPasses", bound=PassState)


class PassProblem(Protocol):
    """What all solvers by passes ask of a problem; every method may change the point that it is given."""

    n_rows: int

    def first_point(self) -> Any:
        """Give the point of weights of zero."""

    def continued(self, point: Any) -> Any:
        """Take up a point of an earlier fit, maybe to other data; None if it does not fit."""

    def mend(self, point: Any) -> None:
        """Make consistent what an interrupt has left, and take out rounding."""

    def evaluate(self, point: Any) -> PassRecord:
        """Compute the objective and its bound."""

    def complete(self, point: Any) -> bool:
        """Put the best targets where they are not known; return whether one has changed."""


class PassSolver(Solver[Any, AnyPasses], Generic[AnyPasses]):
    """A solver by passes.

    max_passes: the largest number in one solve.
    seed: draws the order of rows.
    """

    max_iter = sys.maxsize  # a completion begins to count anew

    def __init__(self, tol: float, max_passes: int, seed: int) -> None:
        self.tol, self.max_passes, self.seed = tol, max_passes, seed

    @abstractmethod
    def first_state(self, point: Any, stream: dict[str, Any]) -> AnyPasses:
        """Give the state before the first pass."""

    @abstractmethod
    def one_pass(
        self, problem: Any, state: AnyPasses, random: np.random.RandomState
    ) -> tuple[AnyPasses, PassRecord | None, Status | None]:
        """Pass over the rows once; measure if it is time for that, or if :meth:`is_last`."""

    def start(self, problem: Any, point: Any = None) -> AnyPasses:
        """Give the state to begin with, at weights of zero or at a given point."""
        stream = np.random.RandomState(self.seed).get_state(legacy=False)
        point = problem.first_point() if point is None else point
        return self.begun(problem, self.first_state(point, stream))

    def begun(self, problem: Any, state: AnyPasses) -> AnyPasses:
        """Begin another solve where a state is."""
        problem.complete(state.point)
        return self._again(replace(state, completed=(np.nan, 0)))

    def _again(self, state: AnyPasses) -> AnyPasses:
        return replace(state, begun=state.rounds, level=1.0)

    def is_last(self, state: AnyPasses) -> bool:
        """Tell whether the limit of passes is reached."""
        return state.rounds - state.begun >= self.max_passes

    def round(self, problem: Any, state: AnyPasses) -> Round[AnyPasses]:
        """Pass over the rows once."""
        random = _random_at(state.stream)
        state, record, status = self.one_pass(problem, replace(state, rounds=state.rounds + 1), random)
        state = replace(state, stream=random.get_state(legacy=False))
        if record is not None:
            state = replace(state, level=record.primal)
        if status is None and self.is_last(state):
            status = Status.ITERATION_LIMIT
        return Round(state, record) if status is None else self._ended(problem, state, record, status)

    def _ended(
        self, problem: Any, state: AnyPasses, record: PassRecord | None, status: Status
    ) -> Round[AnyPasses]:
        """End, or complete targets and go on."""
        (before, count), now = state.completed, state.level
        is_same = before - now <= _ENOUGH * abs(before)
        if is_same or count == _MOST_COMPLETIONS or not problem.complete(state.point):
            return Round(state, record, status)
        return Round(self._again(replace(state, completed=(now, count + 1))), record)

    def certify(self, problem: Any, state: AnyPasses, status: Status) -> tuple[PassRecord | None, Status]:
        """Measure a state that was not measured yet."""
        is_measured = bool(state.trace) and state.trace[-1].iteration == state.rounds
        return (None if is_measured else problem.evaluate(state.point)), status

    def mended(self, problem: Any, state: AnyPasses) -> AnyPasses:
        """Make the point of an interrupted pass consistent; what was measured before it holds no more."""
        problem.mend(state.point)
        trace = tuple(record for record in state.trace if record.iteration < state.rounds)
        return replace(state, trace=trace)


def _random_at(stream: dict[str, Any]) -> np.random.RandomState:
    random = np.random.RandomState(0)
    random.set_state(stream)
    return random
