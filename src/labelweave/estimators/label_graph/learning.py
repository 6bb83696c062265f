"""Fits of structured models whose graph is learned, and how many rounds it should grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from labelweave.array_types import Array
from labelweave.arrays import panels
from labelweave.estimators.label_graph.data import FittedGraph, GraphData, GraphSettings
from labelweave.estimators.label_graph.fit import fit_graph, refuse_wide, solve_completed
from labelweave.estimators.label_graph.solver import MarginProblem, inner_solver, state_problem
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import RoundPenalty
from labelweave.problems.structured_margin.clique_search import CliqueSearch
from labelweave.solvers import Status
from labelweave.solvers.block_frank_wolfe import PassRecord, PassResult, moved_records
from labelweave.solvers.clique_generation import CliqueGeneration, GraphRecord, Proposal
from labelweave.splits import IterativeStratifiedShuffleSplit

__all__ = ["GraphSearch", "learn_graph", "learn_measured_graph", "refit_graph"]


_ROUND_TOL = 1e-2  # gap of a round that is followed by another
_SCORES_AT_ONCE = 16_000_000
_CHOSEN = "held-out rows chose the number of rounds"
_INTERRUPTED = "interrupted"


class GraphSearch(NamedTuple):
    """How a graph grows.

    cliques_per_round: cliques that a round activates.
    clique_size: the most labels in a clique.
    max_rounds: the largest number of rounds.
    graph_tol: the share of the objective that two rounds must change for another one.
    """

    cliques_per_round: int
    clique_size: int
    max_rounds: int
    graph_tol: float


def learn_graph(
    data: GraphData,
    settings: GraphSettings,
    search: GraphSearch,
    on_round: Callable[[GraphRecord], bool],
    held_out_loss: Callable[[MarginProblem], float] = lambda problem: float("nan"),
) -> FittedGraph:
    """Learn a graph with its weights; an interrupt leaves those after the last round.

    on_round: gets every record; a true result ends the fit.
    held_out_loss: measures the problem's weights after a round.
    Raises ValueError if the graph grows too wide for exact inference.
    """
    return _Growth(data, settings, on_round).run(search, held_out_loss)


def learn_measured_graph(
    data: GraphData,
    settings: GraphSettings,
    search: GraphSearch,
    on_round: Callable[[GraphRecord], bool],
    share: float,
    stops_early: bool,
) -> FittedGraph:
    """Learn a graph on a part of the rows, measure its rounds on the others, fit its weights on all.

    on_round: gets every record; a true result ends the fit.
    share: the share of rows to hold out.
    stops_early: whether to keep the rounds of least loss only.
    Returns the fit to all rows, with the rounds of the part; interrupted before that, the fit to the part.
    Raises ValueError if no label of the held-out rows is observed, or no rows are left.
    """
    train, held_out = _parts(data, share, settings.seed)
    part = learn_graph(data.rows(train), settings, search, on_round, _HeldOutLoss(data.rows(held_out)))
    if part.status is Status.INTERRUPTED:
        return part
    count, reason = len(part.rounds) - 1, part.reason
    if stops_early:
        count, reason = int(np.argmin([record.held_out_loss for record in part.rounds])), _CHOSEN
    try:
        whole = _fit_rounds(data, part.rounds[: count + 1], settings)
    except KeyboardInterrupt:
        return replace(part, status=Status.INTERRUPTED, reason=_INTERRUPTED)
    if whole.status is Status.INTERRUPTED:
        reason = _INTERRUPTED
    trace = part.trace + moved_records(whole.trace, part.trace)
    return replace(whole, trace=trace, rounds=part.rounds, reason=reason)


def refit_graph(data: GraphData, learned: FittedGraph, settings: GraphSettings) -> FittedGraph:
    """Fit the weights of a learned graph again, with the penalty of a given one.

    learned: the fit that learned the graph.
    Returns the new fit with the old rounds; the old one if it was interrupted.
    """
    if learned.status is Status.INTERRUPTED:
        return learned
    try:
        fitted = fit_graph(data, learned.graph, settings, lambda record: False)
    except KeyboardInterrupt:
        return replace(learned, status=Status.INTERRUPTED)
    trace = learned.trace + moved_records(fitted.trace, learned.trace)
    return replace(fitted, trace=trace, rounds=learned.rounds, reason=learned.reason)


def _parts(data: GraphData, share: float, seed: int) -> tuple[Array, Array]:
    """Draw the rows to learn from and those to hold out, stratified by labels."""
    n_rows = len(data.labels)
    if math.ceil(share * n_rows) >= n_rows:
        raise ValueError(
            f"Holding out a share of {share:g} of {n_rows} rows leaves none to learn from; give more rows, "
            "or validation_fraction=None and early_stopping=False."
        )
    splitter = IterativeStratifiedShuffleSplit(1, test_size=share, random_state=seed)
    train, held_out = next(splitter.split(np.zeros((n_rows, 1)), data.labels))
    if not data.labels[held_out].observed_counts().any():
        raise ValueError(
            f"None of the {len(held_out)} held-out rows has an observed label, so rounds cannot be measured; "
            "raise validation_fraction, or give validation_fraction=None and early_stopping=False."
        )
    return train, held_out


def _fit_rounds(data: GraphData, rounds: list[GraphRecord], settings: GraphSettings) -> FittedGraph:
    """Fit the cliques of given rounds, with the penalty that goes with these."""
    cliques = [clique for record in rounds for clique in record.cliques]
    groups = [place for place, record in enumerate(rounds[1:]) for _ in record.cliques]
    graph = CliqueGraph(data.labels.n_labels, cliques)
    return fit_graph(data, graph, settings, lambda record: False, RoundPenalty(groups))


class _Growth:
    """A run of clique generation that keeps the last round's model for when it is interrupted."""

    def __init__(
        self, data: GraphData, settings: GraphSettings, on_round: Callable[[GraphRecord], bool]
    ) -> None:
        empty = CliqueGraph.empty(data.labels.n_labels)
        self.problem = state_problem(data, empty, RoundPenalty(), settings)
        self.settings, self.on_round = settings, on_round
        self.random = np.random.RandomState(settings.seed)
        self.trace: list[PassRecord] = []
        self.rounds: list[GraphRecord] = []
        self.weights = np.zeros((0, 0))
        self.kept = (self.weights, 0)

    def run(self, search: GraphSearch, held_out_loss: Callable[[MarginProblem], float]) -> FittedGraph:
        """Grow the graph to its end."""
        generation = CliqueGeneration(
            search.max_rounds, search.graph_tol, lambda: held_out_loss(self.problem), self._note
        )
        candidates = _BudgetedSearch(self.problem, search, self._solve, self.settings.inference)
        try:
            result = generation.run(candidates)
        except KeyboardInterrupt:
            if not self.rounds:
                raise
            return self._so_far()
        return FittedGraph(
            self.problem.graph, self.weights, result.status, self.trace, result.rounds, result.reason
        )

    def _so_far(self) -> FittedGraph:
        """Give the model of the last round that ended."""
        cliques = [clique for record in self.rounds for clique in record.cliques]
        graph, (weights, n_checks) = CliqueGraph(self.problem.graph.n_labels, cliques), self.kept
        trace = self.trace[:n_checks]
        return FittedGraph(graph, weights, Status.INTERRUPTED, trace, self.rounds, _INTERRUPTED)

    def _solve(self, final: bool) -> PassResult:
        tol = self.settings.tol if final else max(self.settings.tol, _ROUND_TOL)
        solver = inner_solver(self.settings, tol, self.random)
        result, self.weights = solve_completed(self.problem, solver)
        self.trace += moved_records(result.trace, self.trace)
        return result

    def _note(self, record: GraphRecord) -> bool:
        self.rounds.append(record)
        self.kept = self.weights, len(self.trace)
        return self.on_round(record)


class _BudgetedSearch(CliqueSearch):
    """A search that ends with a plain word where the graph gets too wide for exact inference."""

    def __init__(
        self,
        problem: MarginProblem,
        search: GraphSearch,
        solve: Callable[[bool], PassResult],
        inference: dict[str, Any],
    ) -> None:
        super().__init__(problem, search.cliques_per_round, search.clique_size, solve)
        self.inference = inference

    def activate(self, proposal: Proposal) -> None:
        graph = self.problem.graph
        wider = CliqueGraph(graph.n_labels, (*graph.cliques, *proposal.cliques))
        refuse_wide(wider, self.inference, "lower max_rounds or cliques_per_round")
        super().activate(proposal)


class _HeldOutLoss:
    """The Hamming loss of a problem's weights on other rows; unobserved labels do not count."""

    def __init__(self, data: GraphData) -> None:
        self.data = data

    def __call__(self, problem: MarginProblem) -> float:
        """Measure."""
        weights = problem.weights()
        at_once = max(1, _SCORES_AT_ONCE // weights.shape[1])
        parts = [self._counts(problem, weights, rows) for rows in panels(len(self.data.labels), at_once)]
        wrong, seen = np.sum(parts, axis=0)
        return float(wrong / seen)

    def _counts(self, problem: MarginProblem, weights: Array, rows: slice) -> tuple[float, float]:
        n_labels = problem.graph.n_labels
        scores = self.data.features.rows(rows).matmul(weights)
        unary, tables = np.ascontiguousarray(scores[:, :n_labels]), np.ascontiguousarray(scores[:, n_labels:])
        labels = problem.map.solve(unary, tables, workers=problem.workers).labels
        signs = self.data.labels[rows].to_signs()
        seen = (signs != 0) * self.data.weights[rows, None]
        return float((seen * (labels != (signs > 0))).sum()), float(seen.sum())
