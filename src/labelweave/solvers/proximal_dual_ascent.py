"""Passes of stochastic proximal dual coordinate ascent until the objective settles.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, Algorithm 2: steps are divided by a damping that starts at 2 and doubles when a pass raises the
objective; five passes that change the objective by little end the run.  That is no certificate: the
objective of the result is computed, a lower bound is not always known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.solvers.frame import Status
from labelweave.solvers.passes import PassProblem, PassRecord, PassSolver, PassState

__all__ = ["ProximalDualAscent", "ProximalProblem", "ProximalState"]

_FIRST_DAMPING = 2.0
_WINDOW = 5
_CHECK_EVERY = 10


@dataclass(frozen=True, kw_only=True)
class ProximalState(PassState):
    """Where proximal passes stand.

    damping: what steps are divided by.
    values: the objectives of the last passes of the present solve.
    """

    damping: float = _FIRST_DAMPING
    values: tuple[float, ...] = ()


class ProximalProblem(PassProblem, Protocol):
    """What the passes ask of their problem."""

    def ceiling(self, point: Any) -> float:
        """Give the objective of weights of zero."""

    def sweep(self, point: Any, order: npt.NDArray[np.int64], damping: float) -> float:
        """Take a step for every row.

        Returns the objective, each row's loss from when it was visited.
        """


class ProximalDualAscent(PassSolver[ProximalState]):
    """The solver; ``tol`` is of the relative change of the objective over five passes.

    It is stalled if the objective settled above that of weights of zero.
    """

    def first_state(self, point: Any, stream: dict[str, Any]) -> ProximalState:
        """Give the state before the first pass."""
        return ProximalState(point=point, stream=stream)

    def _again(self, state: ProximalState) -> ProximalState:
        return replace(super()._again(state), damping=_FIRST_DAMPING, values=())

    def one_pass(
        self, problem: ProximalProblem, state: ProximalState, random: np.random.RandomState
    ) -> tuple[ProximalState, PassRecord | None, Status | None]:
        """Take a step for every row."""
        order, done = random.permutation(problem.n_rows).astype(np.int64), state.rounds - state.begun
        values = (*state.values, problem.sweep(state.point, order, state.damping))[-1 - _WINDOW :]
        is_higher = done > 2 and values[-1] > values[-2]
        state = replace(state, values=values, damping=state.damping * (2.0 if is_higher else 1.0))
        is_settled = done > _WINDOW and abs(values[-1] - values[0]) <= self.tol * values[0]
        if not (is_settled or done % _CHECK_EVERY == 0 or self.is_last(state)):
            return state, None, None
        record = problem.evaluate(state.point)
        if not is_settled:
            return state, record, None
        is_stalled = record.primal > problem.ceiling(state.point)
        return state, record, Status.STALLED if is_stalled else Status.SETTLED
