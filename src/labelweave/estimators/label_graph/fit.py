"""Fits of structured models with a given graph, and what all fits share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.estimators.label_graph.data import FittedGraph, GraphData, GraphSettings
from labelweave.estimators.label_graph.solver import InnerSolver, MarginProblem, inner_solver, state_problem
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import CliquePenalty, RidgePenalty
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import PassRecord, PassResult

__all__ = ["fit_graph", "refuse_wide", "solve_completed"]


_ENOUGH = 1e-4  # share of the objective below which completing labels again is not worth it
_MOST_COMPLETIONS = 20


def fit_graph(
    data: GraphData,
    graph: CliqueGraph,
    settings: GraphSettings,
    on_check: Callable[[PassRecord], bool],
    penalty: CliquePenalty | None = None,
) -> FittedGraph:
    """Fit the weights of a given graph.

    on_check: gets every record; a true result ends the fit.
    penalty: the penalty of the cliques' weights; None for the squares of all.
    Raises ValueError if the graph is too wide for exact inference.
    """
    refuse_wide(graph, settings.inference, "leave out edges")
    problem = state_problem(data, graph, penalty or RidgePenalty(graph.n_cliques), settings)
    solver = inner_solver(settings, settings.tol, np.random.RandomState(settings.seed), on_check)
    result, weights = solve_completed(problem, solver)
    return FittedGraph(graph, weights, result.status, result.trace, [], "")


def refuse_wide(graph: CliqueGraph, inference: dict[str, Any], advice: str) -> None:
    """Refuse a graph that exact inference cannot solve within its budget.

    advice: how to have a narrower graph.
    Raises ValueError if the graph is too wide.
    """
    budget = inference["exact_width"]
    if inference["method"] != "exact" or graph.width <= budget:
        return
    raise ValueError(
        f"The graph of {graph.n_cliques} cliques has width {graph.width}, above exact_width={budget}; raise "
        f'exact_width (up to 20), {advice}, or give inference="auto", which proves what it can and says '
        "for every row whether its labels are proven best."
    )


def solve_completed(problem: MarginProblem, solver: InnerSolver) -> tuple[PassResult, Array]:
    """Solve, and where labels are missing complete them and solve again until the objective stays.

    result: how it ended, with the passes and checks of all solves.
    Shapes: weights (d, L + states).
    """
    problem.complete()
    result = solver.run(problem, problem.data.n_rows, problem.graph.n_cliques)
    weights = problem.weights().copy()
    for _ in range(_MOST_COMPLETIONS):
        try:
            if result.status is Status.INTERRUPTED or not problem.complete():
                break
        except KeyboardInterrupt:
            return result._replace(status=Status.INTERRUPTED), weights
        before = result.trace[-1].primal
        result = result.followed_by(solver.run(problem, problem.data.n_rows, problem.graph.n_cliques))
        weights = problem.weights().copy()
        if before - result.trace[-1].primal <= _ENOUGH * abs(before):
            break
    return result, weights
