"""Fits of structured models with a given graph, and what all fits share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import (
    CliquePenalty,
    MarginData,
    RidgePenalty,
    StructuredMargin,
)
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import BlockFrankWolfe, PassRecord, PassResult
from labelweave.solvers.clique_generation import GraphRecord

__all__ = [
    "FittedGraph",
    "GraphData",
    "GraphSettings",
    "fit_graph",
    "moved_records",
    "refuse_wide",
    "solve_completed",
    "structured_margin",
]

Array = npt.NDArray[Any]

_ENOUGH = 1e-4  # share of the objective below which completing labels again is not worth it
_MOST_COMPLETIONS = 20


class GraphData(NamedTuple):
    """The rows to fit.

    Parameters
    ----------
    features : FeatureMatrix of shape (n, d)
        Features, with the constant one.
    labels : LabelMatrix of shape (n, L)
        Labels.
    weights : ndarray of shape (n,)
        Row weights.
    """

    features: FeatureMatrix
    labels: LabelMatrix
    weights: Array

    def rows(self, which: Array) -> GraphData:
        """Keep some rows.

        Parameters
        ----------
        which : ndarray of int
            The rows.

        Returns
        -------
        GraphData
            Those rows.
        """
        return GraphData(self.features.rows(which), self.labels[which], self.weights[which])


@dataclass(frozen=True)
class GraphSettings:
    """What a fit depends on beside the data.

    Parameters
    ----------
    regularization : float
        lambda.
    costs : ndarray of shape (2, L)
        Costs of a false positive and of a false negative label.
    inference : dict
        Options of MAP inference: ``method``, ``exact_width`` and ``max_nodes``.
    capacity : int
        Labelings kept for a row and component.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The largest number of passes in one solve.
    seed : int
        Fixes the order of rows.
    workers : Workers
        Threads.
    """

    regularization: float
    costs: Array
    inference: dict[str, Any]
    capacity: int
    tol: float
    max_iter: int
    seed: int
    workers: Workers


@dataclass(frozen=True)
class FittedGraph:
    """The end of a fit.

    Parameters
    ----------
    graph : CliqueGraph
        The graph.
    weights : ndarray of shape (d, L + states)
        The weights of labels, then of the states of cliques.
    status : Status
        Why the last solve stopped.
    trace : list of PassRecord
        Every check of the duality gap.
    rounds : list of GraphRecord
        Every round of a learned graph.
    reason : str
        Why the graph stopped growing.
    """

    graph: CliqueGraph
    weights: Array
    status: Status
    trace: list[PassRecord]
    rounds: list[GraphRecord]
    reason: str


def fit_graph(
    data: GraphData,
    graph: CliqueGraph,
    settings: GraphSettings,
    on_check: Callable[[PassRecord], bool],
    penalty: CliquePenalty | None = None,
) -> FittedGraph:
    """Fit the weights of a given graph.

    Parameters
    ----------
    data : GraphData
        The rows.
    graph : CliqueGraph
        The graph.
    settings : GraphSettings
        What else matters.
    on_check : callable
        Gets every record; a true result ends the fit.
    penalty : CliquePenalty or None, default=None
        The penalty of the cliques' weights; None for the squares of all.

    Returns
    -------
    FittedGraph
        The fit.

    Raises
    ------
    ValueError
        If the graph is too wide for exact inference.
    """
    refuse_wide(graph, settings.inference, "leave out edges")
    problem = structured_margin(data, graph, penalty or RidgePenalty(graph.n_cliques), settings)
    random = np.random.RandomState(settings.seed)
    solver = BlockFrankWolfe(settings.tol, settings.max_iter, random, on_check)
    result, weights = solve_completed(problem, solver)
    return FittedGraph(graph, weights, result.status, result.trace, [], "")


def refuse_wide(graph: CliqueGraph, inference: dict[str, Any], advice: str) -> None:
    """Refuse a graph that exact inference cannot solve within its budget.

    Parameters
    ----------
    graph : CliqueGraph
        The graph.
    inference : dict
        The options of inference.
    advice : str
        How to have a narrower graph.

    Raises
    ------
    ValueError
        If the graph is too wide.
    """
    budget = inference["exact_width"]
    if inference["method"] != "exact" or graph.width <= budget:
        return
    raise ValueError(
        f"The graph of {graph.n_cliques} cliques has width {graph.width}, above exact_width={budget}; raise "
        f'exact_width (up to 20), {advice}, or give inference="auto", which proves what it can and says '
        "for every row whether its labels are proven best."
    )


def structured_margin(
    data: GraphData, graph: CliqueGraph, penalty: CliquePenalty, settings: GraphSettings
) -> StructuredMargin:
    """State the problem.

    Parameters
    ----------
    data : GraphData
        The rows.
    graph : CliqueGraph
        The graph.
    penalty : CliquePenalty
        The penalty of the cliques' weights.
    settings : GraphSettings
        What else matters.

    Returns
    -------
    StructuredMargin
        The problem at its first point.
    """
    rows = MarginData(data.features, data.labels, data.weights, settings.costs)
    return StructuredMargin(
        rows, graph, penalty, settings.regularization, settings.inference, settings.capacity, settings.workers
    )


def solve_completed(problem: StructuredMargin, solver: BlockFrankWolfe) -> tuple[PassResult, Array]:
    """Solve, and where labels are missing complete them and solve again until the objective stays.

    Parameters
    ----------
    problem : StructuredMargin
        The problem; changed.
    solver : BlockFrankWolfe
        The solver.

    Returns
    -------
    result : PassResult
        How it ended, with the passes and checks of all solves.
    weights : ndarray of shape (d, L + states)
        The weights.
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
        result = _followed_by(result, solver.run(problem, problem.data.n_rows, problem.graph.n_cliques))
        weights = problem.weights().copy()
        if before - result.trace[-1].primal <= _ENOUGH * abs(before):
            break
    return result, weights


def _followed_by(first: PassResult, second: PassResult) -> PassResult:
    trace = first.trace + moved_records(second.trace, first.trace)
    return PassResult(second.status, first.n_iter + second.n_iter, trace)


def moved_records(later: list[PassRecord], before: list[PassRecord]) -> list[PassRecord]:
    """Count passes and seconds on from where earlier records end.

    Parameters
    ----------
    later : list of PassRecord
        The records of a run.
    before : list of PassRecord
        Those of the run before it.

    Returns
    -------
    list of PassRecord
        The later ones.
    """
    if not before:
        return later
    end = before[-1]
    return [
        record._replace(iteration=record.iteration + end.iteration, time=record.time + end.time)
        for record in later
    ]
