"""The two inner solvers of structured models, each with the problem as it sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from labelweave.estimators.label_graph.data import GraphData, GraphSettings
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import (
    CliquePenalty,
    MarginData,
    ProximalMargin,
    StructuredMargin,
)
from labelweave.solvers.block_frank_wolfe import BlockFrankWolfe, PassRecord, PassResult
from labelweave.solvers.proximal_dual_ascent import ProximalDualAscent

__all__ = ["SOLVERS", "InnerSolver", "MarginProblem", "inner_solver", "state_problem"]

SOLVERS = ("frank_wolfe", "proximal")
_SMOOTHING = 0.005  # share of the objective at zero by which smoothing may raise it, the paper's epsilon

MarginProblem = StructuredMargin | ProximalMargin


class InnerSolver(Protocol):
    """What improves a problem that :func:`state_problem` has stated for it."""

    def run(self, problem: Any, n_rows: int, n_cliques: int) -> PassResult:
        """Improve the problem's weights."""


def state_problem(
    data: GraphData, graph: CliqueGraph, penalty: CliquePenalty, settings: GraphSettings
) -> MarginProblem:
    """State the problem as the inner solver sees it.

    penalty: the penalty of the cliques' weights.
    Returns the problem at its first point.
    """
    rows = MarginData(data.features, data.labels, data.weights, settings.costs)
    problem = rows, graph, penalty, settings.regularization, settings.inference
    if settings.solver == "proximal":
        return ProximalMargin(*problem, _SMOOTHING, settings.workers)
    return StructuredMargin(*problem, settings.capacity, settings.workers)


def inner_solver(
    settings: GraphSettings,
    tol: float,
    random: np.random.RandomState,
    on_check: Callable[[PassRecord], bool] | None = None,
) -> InnerSolver:
    """Make the inner solver.

    settings: which solver, and its limit of passes.
    random: draws the order of rows.
    on_check: gets every record; a true result ends the run.
    """
    kind: Callable[..., InnerSolver]
    kind = ProximalDualAscent if settings.solver == "proximal" else BlockFrankWolfe
    return kind(tol, settings.max_iter, random, on_check)
