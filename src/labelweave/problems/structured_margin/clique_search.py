"""A structured margin whose graph grows: what clique generation asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from labelweave.array_types import Array
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin.candidates import grown_cliques, pair_scores, violations
from labelweave.problems.structured_margin.moments import DualMoments
from labelweave.problems.structured_margin.penalties import RoundPenalty
from labelweave.solvers.block_frank_wolfe import PassResult
from labelweave.solvers.clique_generation import Proposal

__all__ = ["CliqueSearch"]


class GrowingProblem(Protocol):
    """A problem whose graph can grow."""

    graph: CliqueGraph
    penalty: Any

    def moments(self) -> DualMoments:
        """Give the dual variables."""

    def regraph(self, graph: CliqueGraph, penalty: RoundPenalty) -> None:
        """Go on with a graph that has more cliques."""


class CliqueSearch:
    """The problem of clique generation.

    problem: the problem, with a penalty by rounds.
    per_round: cliques to activate in a round (r in the paper).
    clique_size: the largest number of labels in a clique; those above pairs are grown from chosen ones.
    solve: solves the problem; gets whether to the last tolerance.
    """

    def __init__(
        self, problem: GrowingProblem, per_round: int, clique_size: int, solve: Callable[[bool], PassResult]
    ) -> None:
        self.problem, self.per_round, self.clique_size = problem, per_round, clique_size
        self._solve = solve

    def solve(self, final: bool) -> PassResult:
        """Solve with the present graph.

        final: whether to the last tolerance.
        """
        return self._solve(final)

    def propose(self) -> Proposal:
        """Find the cliques of highest score that are not in the graph."""
        chosen = self.problem.graph.cliques
        scores = pair_scores(self.problem)
        for clique in chosen:
            if len(clique) == 2:
                scores[clique] = -1.0
        one, other = np.triu_indices(len(scores), 1)
        found: list[tuple[float, tuple[int, ...]]] = [
            (float(scores[j, k]), (int(j), int(k))) for j, k in self._largest(scores, one, other)
        ]
        if self.clique_size > 2:
            grown = grown_cliques(chosen, self.clique_size)
            found += list(zip(violations(self.problem, grown).tolist(), grown, strict=True))
        best = sorted((item for item in found if item[0] >= 0), key=lambda item: (-item[0], item[1]))
        best = best[: self.per_round]
        return Proposal(tuple(item[1] for item in best), sum(item[0] for item in best), self._bound())

    def _largest(self, scores: Array, one: Array, other: Array) -> list[tuple[int, int]]:
        order = np.argsort(-scores[one, other], kind="stable")[: self.per_round]
        return list(zip(one[order], other[order], strict=True))

    def _bound(self) -> float:
        squares = violations(self.problem, self.problem.graph.cliques)
        return float(self.problem.penalty.round_squares(squares).max(initial=0.0))

    def activate(self, proposal: Proposal) -> None:
        """Put the cliques in the graph."""
        graph, penalty = self.problem.graph, self.problem.penalty
        cliques = CliqueGraph(graph.n_labels, (*graph.cliques, *proposal.cliques))
        self.problem.regraph(cliques, penalty.grown(len(proposal.cliques)))
