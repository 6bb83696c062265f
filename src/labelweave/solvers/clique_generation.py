"""Clique generation: solve, activate the cliques that violate the dual the most, solve again.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, Algorithm 1.  It ends when no candidate violates a constraint (Theorem 1: a global solution of the
convex relaxation), when two rounds have lowered the objective by little (supplement, A.3), or at the limit
of rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from labelweave.solvers.block_frank_wolfe import PassRecord, PassResult, moved_records
from labelweave.solvers.result import Status

__all__ = ["CliqueGeneration", "CliqueProblem", "GenerationResult", "GraphRecord", "Proposal"]


class Proposal(NamedTuple):
    """The cliques to activate next.

    cliques: the cliques, highest score first; empty if no candidate is left.
    bound: the largest score of a round that is in the graph; no more than that is no violation.
    """

    cliques: tuple[tuple[int, ...], ...]
    score: float
    bound: float


class CliqueProblem(Protocol):
    """What clique generation asks of its problem."""

    def solve(self, final: bool) -> PassResult:
        """Solve with the present graph.

        final: whether to the last tolerance.
        """

    def propose(self) -> Proposal:
        """Find the cliques that violate the most."""

    def activate(self, proposal: Proposal) -> None:
        """Put them in the graph."""


class GraphRecord(NamedTuple):
    """What was known after one round.

    round: the round; round 0 has no cliques.
    cliques: the cliques that the round activated.
    score: their scores together, before the round.
    n_iter: passes over the rows in the round.
    primal: the objective after the round.
    dual: the dual objective after the round.
    held_out_loss: hamming loss on held-out rows after the round; NaN where none are held out.
    """

    round: int
    cliques: tuple[tuple[int, ...], ...]
    score: float
    time: float
    n_iter: int
    primal: float
    dual: float
    held_out_loss: float


class GenerationResult(NamedTuple):
    """The end of a run.

    status: why the last solve stopped.
    reason: why no more cliques were activated.
    trace: every check of the duality gap.
    """

    status: Status
    reason: str
    rounds: list[GraphRecord]
    trace: list[PassRecord]


class CliqueGeneration:
    """The outer loop.

    max_rounds: the largest number of rounds.
    change_tol: the relative change of the objective over two rounds at which to stop, 0 for never.
    held_out_loss: measures the model after a round.
    on_round: gets every record; a true result ends the run.
    """

    def __init__(
        self,
        max_rounds: int,
        change_tol: float,
        held_out_loss: Callable[[], float],
        on_round: Callable[[GraphRecord], bool],
    ) -> None:
        self.max_rounds, self.change_tol = max_rounds, change_tol
        self.held_out_loss, self.on_round = held_out_loss, on_round

    def run(self, problem: CliqueProblem) -> GenerationResult:
        """Learn a graph.

        problem: the problem, without cliques at first.
        """
        begin = time.perf_counter()
        rounds: list[GraphRecord] = []
        trace: list[PassRecord] = []
        proposal, reason = Proposal((), 0.0, 0.0), ""
        while not reason:
            result = problem.solve(final=False)
            trace += moved_records(result.trace, trace)
            point, seconds = result.trace[-1], time.perf_counter() - begin
            loss = self.held_out_loss()
            ends = result.n_iter, point.primal, point.dual, loss
            rounds.append(GraphRecord(len(rounds), proposal.cliques, proposal.score, seconds, *ends))
            stop = self.on_round(rounds[-1])
            if stop or result.status is Status.INTERRUPTED:
                return GenerationResult(Status.INTERRUPTED, "interrupted", rounds, trace)
            proposal = problem.propose()
            reason = self._reason(rounds, proposal)
            if not reason:
                problem.activate(proposal)
        result = problem.solve(final=True)
        trace += moved_records(result.trace, trace)
        return GenerationResult(result.status, reason, rounds, trace)

    def _reason(self, rounds: list[GraphRecord], proposal: Proposal) -> str:
        if not proposal.cliques:
            return "all candidate cliques are in the graph"
        if proposal.score <= proposal.bound:
            return "no candidate clique violates the optimum"
        if len(rounds) > self.max_rounds:
            return "the limit of rounds was reached"
        if len(rounds) > 3:
            before, now = rounds[-3].primal, rounds[-1].primal
            if abs(before - now) <= self.change_tol * abs(before):
                return "two rounds changed the objective by little"
        return ""
