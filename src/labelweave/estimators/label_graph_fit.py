"""Fits of structured models: with a given graph, or with one that grows."""

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
from labelweave.problems.structured_margin import MarginData, RidgePenalty, RoundPenalty, StructuredMargin
from labelweave.problems.structured_margin.clique_search import CliqueSearch
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import BlockFrankWolfe, PassRecord, PassResult
from labelweave.solvers.clique_generation import CliqueGeneration, GraphRecord

__all__ = ["FittedGraph", "GraphData", "GraphSettings", "fit_graph", "learn_graph"]

Array = npt.NDArray[Any]

_ROUND_TOL = 1e-2  # gap of a round that is followed by another
_ENOUGH = 1e-4  # share of the objective below which completing labels again is not worth it
_MOST_COMPLETIONS = 20


class GraphData(NamedTuple):
    """Rows and what is held out.

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
        Options of MAP inference.
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
    problem : StructuredMargin
        The problem at its last point.
    status : Status
        Why the last solve stopped.
    trace : list of PassRecord
        Every check of the duality gap.
    rounds : list of GraphRecord
        Every round of a learned graph.
    reason : str
        Why the graph stopped growing.
    """

    problem: StructuredMargin
    status: Status
    trace: list[PassRecord]
    rounds: list[GraphRecord]
    reason: str


def fit_graph(
    data: GraphData, graph: CliqueGraph, settings: GraphSettings, on_check: Callable[[PassRecord], bool]
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

    Returns
    -------
    FittedGraph
        The fit.
    """
    problem = _problem(data, graph, RidgePenalty(graph.n_cliques), settings)
    random = np.random.RandomState(settings.seed)
    solver = BlockFrankWolfe(settings.tol, settings.max_iter, random, on_check)
    result = _solve_completed(problem, solver)
    return FittedGraph(problem, result.status, result.trace, [], "")


def learn_graph(
    data: GraphData,
    settings: GraphSettings,
    search: dict[str, Any],
    held_out_loss: Callable[[StructuredMargin], float],
    on_round: Callable[[GraphRecord], bool],
) -> FittedGraph:
    """Learn a graph with its weights.

    Parameters
    ----------
    data : GraphData
        The rows.
    settings : GraphSettings
        What else matters.
    search : dict
        ``cliques_per_round``, ``clique_size``, ``max_rounds`` and ``graph_tol``.
    held_out_loss : callable
        Measures the problem's weights after a round.
    on_round : callable
        Gets every record; a true result ends the fit.

    Returns
    -------
    FittedGraph
        The fit.
    """
    problem = _problem(data, CliqueGraph.empty(data.labels.n_labels), RoundPenalty(), settings)
    random = np.random.RandomState(settings.seed)

    def solve(final: bool) -> PassResult:
        tol = settings.tol if final else max(settings.tol, _ROUND_TOL)
        return _solve_completed(problem, BlockFrankWolfe(tol, settings.max_iter, random))

    candidates = CliqueSearch(problem, search["cliques_per_round"], search["clique_size"], solve)
    generation = CliqueGeneration(
        search["max_rounds"], search["graph_tol"], lambda: held_out_loss(problem), on_round
    )
    result = generation.run(candidates)
    return FittedGraph(problem, result.status, result.trace, result.rounds, result.reason)


def _problem(data: GraphData, graph: CliqueGraph, penalty: Any, settings: GraphSettings) -> StructuredMargin:
    rows = MarginData(data.features, data.labels, data.weights, settings.costs)
    return StructuredMargin(
        rows, graph, penalty, settings.regularization, settings.inference, settings.capacity, settings.workers
    )


def _solve_completed(problem: StructuredMargin, solver: BlockFrankWolfe) -> PassResult:
    """Solve, and where labels are missing complete them and solve again until the objective stays."""
    cliques = problem.graph.n_cliques
    problem.complete()
    result = solver.run(problem, problem.data.n_rows, cliques)
    for _ in range(_MOST_COMPLETIONS):
        if result.status is Status.INTERRUPTED or not problem.complete():
            break
        before = result.trace[-1].primal
        later = solver.run(problem, problem.data.n_rows, cliques)
        result = PassResult(
            later.status, result.n_iter + later.n_iter, result.trace + _moved(later.trace, result.trace[-1])
        )
        if before - result.trace[-1].primal <= _ENOUGH * abs(before):
            break
    return result


def _moved(later: list[PassRecord], end: PassRecord) -> list[PassRecord]:
    return [
        record._replace(iteration=record.iteration + end.iteration, time=record.time + end.time)
        for record in later
    ]
