"""Clique generation: solve, activate the cliques that violate the dual the most, solve again.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, Algorithm 1.  A round activates the cliques with the largest scores, even those of earlier rounds
(equation 9).  The algorithm ends when no such set violates a constraint, when two rounds have hardly lowered
the objective (supplement, A.3), or at the limit of rounds.  The first case is a global solution of the convex
relaxation (Theorem 1) up to the tolerance: a set of chosen cliques returns if it violates by more, and so
does any set once the last graph is solved to convergence.  ``relaxed_bound`` proves it.

A round of the solver frame is a pass of the inner solver, or the step from one graph to the next, so that a
run can be interrupted and resumed at every check of the duality gap.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from labelweave.solvers.frame import Round, Solver, State, Status, TraceRecord
from labelweave.solvers.passes import BlockFrankWolfe, PassProblem, PassState

Cliques = tuple[tuple[int, ...], ...]

_ALL = "all candidate cliques are in the graph"
_NONE = "no cliques outside the graph violate the optimum"


class Proposal(NamedTuple):
    """The cliques to activate next: the candidates with the highest scores.

    score: the sum of their scores.
    excess: the decrease of the dual objective at the point by their constraint; a violation if positive.
    is_whole: whether all candidates are in the graph.
    """

    cliques: Cliques
    score: float
    excess: float
    is_whole: bool = False


class CliqueProblem(Protocol):
    """The problem of clique generation; ``rounds`` are the cliques that each round activated."""

    def at(self, rounds: tuple[Cliques, ...]) -> PassProblem:
        """Return the problem for a graph."""

    def propose(self, rounds: tuple[Cliques, ...], point: Any) -> Proposal:
        """Return the cliques with the largest violation."""

    def activated(self, rounds: tuple[Cliques, ...], point: Any, cliques: Cliques) -> Any:
        """Return the equivalent point of the graph with an additional round."""

    def held_out_loss(self, rounds: tuple[Cliques, ...], point: Any) -> float:
        """Compute the loss on held-out rows; NaN if there are none."""


class GraphRecord(NamedTuple):
    """The measurements after one round.

    round: the round; round 0 has no cliques.
    cliques: the cliques of the round, possibly also in earlier rounds.
    score: the sum of their scores, before the round.
    n_iter: passes over the rows in the round.
    primal: the objective after the round.
    dual: the dual objective after the round.
    held_out_loss: the loss on held-out rows after the round, Hamming loss for entries; NaN if there are none.
    """

    round: int
    cliques: Cliques
    score: float
    time: float
    n_iter: int
    primal: float
    dual: float
    held_out_loss: float


State.plain_with(GraphRecord)


@dataclass(frozen=True, kw_only=True)
class GrowthState(State):
    """The state of clique generation.

    cliques: those that each round activated; the first round has none.
    score: the score of the last ones, before their activation.
    records: the solved rounds; their times are in the trace.
    reason: why no more cliques are activated; empty while more may be.
    """

    inner: PassState
    cliques: tuple[Cliques, ...] = ((),)
    score: float = 0.0
    records: tuple[GraphRecord, ...] = ()
    reason: str = ""

    _items: ClassVar[dict[str, Any]] = {**State._items, "records": GraphRecord}

    @property
    def is_due(self) -> bool:
        """Whether the graph is solved, and the next step is to grow or to end."""
        return not self.reason and len(self.records) == len(self.cliques)


class CliqueGeneration(Solver[CliqueProblem, GrowthState]):
    """The outer loop.

    inner: the solver of all rounds but the last.
    last: the solver of the last graph, once more.
    change_tol: the relative change of the objective over two rounds at which to stop, 0 for never.
    """

    max_iter = sys.maxsize  # the inner solvers have limits

    def __init__(
        self, inner: BlockFrankWolfe, last: BlockFrankWolfe, max_rounds: int, change_tol: float
    ) -> None:
        self.inner, self.last, self.tol = inner, last, last.tol
        self.max_rounds, self.change_tol = max_rounds, change_tol

    def start(self, problem: CliqueProblem) -> GrowthState:
        return GrowthState(inner=self.inner.start(problem.at(((),))))

    def state_template(self, problem: CliqueProblem, state: GrowthState) -> GrowthState:
        return GrowthState(inner=self.inner.start(problem.at(state.cliques)), cliques=state.cliques)

    def continued(self, problem: CliqueProblem, earlier: GrowthState) -> GrowthState | None:
        """Continue from the end of an earlier run, possibly on other data; None if it is incompatible."""
        if len(earlier.cliques) > self.max_rounds + 1:
            return None
        passes = problem.at(earlier.cliques)
        point = passes.continued(earlier.inner.point)
        if point is None:
            return None
        known = earlier.records[: len(earlier.cliques) - 1]
        return GrowthState(
            inner=self.inner.start(passes, point),
            cliques=earlier.cliques,
            score=earlier.score,
            records=tuple(record._replace(n_iter=0) for record in known),
        )

    def round(self, problem: CliqueProblem, state: GrowthState) -> Round[GrowthState]:
        if state.is_due:
            proposal = problem.propose(state.cliques, state.inner.point)
            if not (reason := self._reason(state, proposal)):
                return Round(self._joined(problem, state, proposal))
            inner = self.last.begun(problem.at(state.cliques), state.inner)
            return Round(replace(state, reason=reason, inner=inner))
        solver = self.last if state.reason else self.inner
        inner, record, status, _ = solver.round(problem.at(state.cliques), state.inner)
        state = replace(state, inner=inner, rounds=inner.rounds)
        if status is not None and not state.reason:
            return Round(self.noted(problem, state, record), record)
        if status is Status.CONVERGED and state.reason in (_ALL, _NONE) and self.inner.tol > self.tol:
            proposal = problem.propose(state.cliques, inner.point)
            if self._violates(state, proposal, self.tol) and len(state.records) <= self.max_rounds:
                return Round(self._joined(problem, replace(state, reason=""), proposal), record)
        return Round(state, record, status)

    def noted(self, problem: CliqueProblem, state: GrowthState, point: Any) -> GrowthState:
        """Record that the current graph is solved, with its final objectives."""
        passes = state.rounds - sum(record.n_iter for record in state.records)
        loss = problem.held_out_loss(state.cliques, state.inner.point)
        ends = np.nan, passes, point.primal, point.dual, loss
        record = GraphRecord(len(state.records), state.cliques[-1], state.score, *ends)
        return replace(state, records=(*state.records, record))

    def _joined(self, problem: CliqueProblem, state: GrowthState, proposal: Proposal) -> GrowthState:
        point = problem.activated(state.cliques, state.inner.point, proposal.cliques)
        cliques = (*state.cliques, proposal.cliques)
        inner = self.inner.begun(problem.at(cliques), replace(state.inner, point=point))
        return replace(state, cliques=cliques, score=proposal.score, inner=inner)

    def _reason(self, state: GrowthState, proposal: Proposal) -> str:
        rounds, known = state.records, {clique for cliques in state.cliques for clique in cliques}
        if not self._violates(state, proposal, self.tol if known.issuperset(proposal.cliques) else 0.0):
            return _ALL if proposal.is_whole else _NONE
        if len(rounds) > self.max_rounds:
            return "the limit of rounds was reached"
        if len(rounds) > 3:
            before, now = rounds[-3].primal, rounds[-1].primal
            if abs(before - now) <= self.change_tol * abs(before):
                return "two rounds changed the objective by little"
        return ""

    def _violates(self, state: GrowthState, proposal: Proposal, tol: float) -> bool:
        """Return whether a new round could lower the objective by more than this share."""
        is_new = all(set(cliques) != set(proposal.cliques) for cliques in state.cliques)
        return is_new and proposal.excess > tol * abs(state.records[-1].primal)

    def certify(
        self, problem: CliqueProblem, state: GrowthState, status: Status
    ) -> tuple[TraceRecord | None, Status]:
        return self.last.certify(problem.at(state.cliques), self._passes(state), status)

    def recover(self, problem: CliqueProblem, state: GrowthState) -> GrowthState:
        inner = self.last.recover(problem.at(state.cliques), self._passes(state))
        return replace(state, inner=replace(inner, trace=()), trace=inner.trace)

    @staticmethod
    def _passes(state: GrowthState) -> PassState:
        return replace(state.inner, trace=state.trace)
