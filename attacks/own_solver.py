"""A custom solver as a user writes it, accelerated projected gradients, for some contracts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.model_files import StoredParameters, storable
from labelweave.solvers import Round, Solver, State, Status, TraceRecord

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FistaState(State):
    """The state of a run: variables, the extrapolated point, the step size, and the momentum."""

    dual: Array
    ahead: Array
    step: float
    momentum: float = 1.0


@storable("attacks.Fista", {})
class Fista(StoredParameters, Solver[Any, FistaState]):
    """Beck and Teboulle (2009)."""

    def __repr__(self) -> str:
        return "Fista()"

    def start(self, problem: Any, dual: Array | None = None) -> FistaState:
        direction = np.random.default_rng(0).normal(size=problem.targets.shape)
        for _ in range(20):  # the largest eigenvalue, by powers
            (image,) = problem.scores(direction / (np.linalg.norm(direction) + 1e-300))
            direction = image
        dual = np.zeros_like(problem.targets) if dual is None else dual
        return FistaState(dual=dual, ahead=dual, step=float(0.9 / (np.linalg.norm(direction) + 1e-300)))

    def round(self, problem: Any, state: FistaState) -> Round[FistaState]:
        (scores,) = problem.scores(state.ahead)
        dual = np.clip(state.ahead + state.step * (problem.targets - scores), problem.lower, problem.upper)
        is_astray = np.vdot(state.ahead - dual, dual - state.dual) > 0  # O'Donoghue and Candes (2015)
        before = 1.0 if is_astray else state.momentum
        momentum = (1 + float(np.sqrt(1 + 4 * before**2))) / 2
        ahead = dual + (before - 1) / momentum * (dual - state.dual)
        after = replace(state, rounds=state.rounds + 1, dual=dual, ahead=ahead, momentum=momentum)
        if after.rounds % 10:
            return Round(after)
        record = TraceRecord.of(*problem.objectives(dual))
        return Round(after, record, Status.CONVERGED if record.gap <= self.tol else None, dual)

    def certify(self, problem: Any, state: FistaState, status: Status) -> tuple[None, Status, Array]:
        return None, status, state.dual
