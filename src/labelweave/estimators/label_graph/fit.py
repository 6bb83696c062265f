"""Fits of structured models: with a given graph, or one that grows; on all rows, or with held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from labelweave.estimators.held_out import hold_out
from labelweave.estimators.journal import Journal, interrupts_later
from labelweave.estimators.kernel_classifier import ParameterGroup
from labelweave.estimators.parameters import COUNT, NON_NEGATIVE, keep_parameters
from labelweave.features import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, Floats, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.config import note_interrupt
from labelweave.foundation.sklearn_compat import Interval
from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.model_files import storable
from labelweave.problems.structured_margin import (
    LARGEST_WIDTH,
    MOST_CANDIDATES,
    Blocks,
    CliquePenalty,
    GrowingMargin,
    RidgePenalty,
    RoundPenalty,
    StructuredMargin,
    StructuredRows,
    all_cliques,
    n_cliques,
    round_graph,
    set_losses,
    set_steps,
)
from labelweave.solvers import SolverResult, State, Status
from labelweave.solvers.clique_generation import CliqueGeneration, Cliques, GraphRecord, GrowthState
from labelweave.solvers.frame import relative_gap
from labelweave.solvers.passes import BlockFrankWolfe, PassState

LARGEST_CANDIDATE = 8  # labels, of 2^8 - 1 sets of labels
SOLVERS = ("frank_wolfe", "proximal")
# of the paper's 2 / epsilon: with epsilon half the tolerance, smoothing takes half of the tolerance
_SMOOTHNESS = 4.0
_ROUND_TOL = 1e-2  # gap of a round that is followed by another
_SCORES_AT_ONCE = 16_000_000
_CHOSEN = "held-out rows chose the number of rounds"
_INTERRUPTED = "interrupted"
_UNSCORED = "; larger cliques were only scored if grown from chosen ones"


@storable("GraphGrowth")
class GraphGrowth(ParameterGroup):
    """Settings for learning a graph of label cliques (CGM, Tan et al. 2015, Algorithm 1).

    Pass it as ``graph`` of :class:`LabelGraphClassifier`, where "learn" is short for one without
    arguments.

    Parameters
    ----------
    cliques_per_round : int, default=1
        Number of cliques that a round activates, r in the paper.
    max_rounds : int, default=50
        Maximum number of rounds, 1 or more.
    graph_tol : float, default=0.01
        The graph is complete when two rounds change the objective by less than this share (supplement, A.3,
        with 0.05), or when no candidate violates the dual; 0 leaves only the second criterion.
    clique_size : int, default=2
        The most labels in a clique, 2 to 8.  All cliques up to that size are candidates if there are at most
        25,000 (the triples of 53 labels).  If there are more, larger ones are grown from chosen pairs and the
        others are not scored; ``relaxation_gap_`` is NaN and ``graph_reason_`` states this.
    candidates : list of tuple or None, default=None
        The only cliques to choose from, tuples of 2 to 8 label names or numbers; None for all cliques up to
        ``clique_size``.
    validation_fraction : float or None, default=None
        Share of the rows that are held out to measure the loss after every round while the graph grows on the
        others; the weights are then fitted to all rows.
    early_stopping : bool, default=False
        Whether to keep only the rounds up to the lowest held-out loss; without ``validation_fraction`` a
        tenth of the rows is held out.
    refit : bool, default=False
        Whether to refit the weights of a learned graph with the squared penalty of given graphs,
        which shrinks cliques less at the same lambda.

    Examples
    --------
    >>> from labelweave import GraphGrowth, LabelGraphClassifier
    >>> model = LabelGraphClassifier(GraphGrowth(max_rounds=10, early_stopping=True))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cliques_per_round": [COUNT],
        "max_rounds": [Integral],
        "graph_tol": [NON_NEGATIVE],
        "clique_size": [Interval(Integral, 2, LARGEST_CANDIDATE, closed="both")],
        "candidates": [list, tuple, None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "early_stopping": ["boolean"],
        "refit": ["boolean"],
    }

    def __init__(
        self, *, cliques_per_round: int = 1, max_rounds: int = 50, graph_tol: float = 0.01,
        clique_size: int = 2, candidates: Sequence[tuple[Any, ...]] | None = None,
        validation_fraction: float | None = None, early_stopping: bool = False, refit: bool = False,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _refuse_together(self) -> None:
        if self.max_rounds < 1:
            raise ParameterError(
                f"`max_rounds` is {self.max_rounds}; a learned graph needs at least one round: pass 1 or "
                'more, or `graph="none"` for independent labels.'
            )
        if self.candidates is not None and self.clique_size > 2:
            raise ParameterError(
                f"`clique_size` is {self.clique_size} and candidates are given, which define all cliques; "
                "leave one of them out."
            )


USUAL_GROWTH = GraphGrowth()


def every_candidate(growth: GraphGrowth, n_labels: int) -> Cliques:
    """List all cliques that a growth may choose, where each clique has its own features."""
    if (count := n_cliques(n_labels, growth.clique_size)) > MOST_CANDIDATES:
        raise ParameterError(
            f"CliqueFeatures must be computed for every candidate clique, and {n_labels} labels have "
            f"{count} of them, above {MOST_CANDIDATES}; pass candidates, or a graph."
        )
    return all_cliques(n_labels, growth.clique_size)


class GraphData(NamedTuple):
    """The rows to fit: features (n, d), with the constant one; costs of errors (n, L), or another loss.

    blocks: the features of labels and of each clique, where these have features of their own.
    """

    features: FeatureMatrix
    labels: LabelMatrix
    weights: PerRow
    costs: RowsByLabels
    loss: str = "hamming"
    blocks: Blocks | None = None

    def rows(self, which: Array) -> GraphData:
        features, labels = self.features.rows(which), self.labels[which]
        return type(self)(features, labels, self.weights[which], self.costs[which], *self[4:])

    def posed(self) -> Callable[..., StructuredMargin]:
        """Return a function that states the problem of a graph over these rows, from all that is not data."""
        return partial(StructuredMargin, StructuredRows(*self))


class FittedGraph(NamedTuple):
    """The result of a fit.

    weights (d, L + states): the weights of labels, then of the states of cliques.
    reason: why the graph stopped growing.
    relaxation_gap: an upper bound on the share of the objective by which other candidate cliques could lower
        it, of the fit that found the graph; NaN if unknown.
    """

    graph: CliqueGraph
    weights: Floats
    result: SolverResult
    rounds: tuple[GraphRecord, ...] = ()
    reason: str = ""
    relaxation_gap: float = math.nan

    @property
    def is_interrupted(self) -> bool:
        return self.result.status is Status.INTERRUPTED

    def followed_by(self, later: FittedGraph) -> FittedGraph:
        result = self.result.followed_by(later.result)
        return later._replace(result=result, rounds=self.rounds, reason=self.reason)


@dataclass(frozen=True)
class GraphFit:
    """How to fit, besides the data.

    options: has the parameters of the classifier.
    inference: options of MAP inference: ``method``, ``exact_width`` and ``max_nodes``.
    share: of the rows, to measure rounds on; None for none.
    seed: determines the order of rows.
    candidates: the cliques to choose from; None for all of ``clique_size``.
    earlier: the states of an earlier fit for a warm start.
    """

    options: Any
    growth: GraphGrowth
    alpha: float
    inference: dict[str, Any]
    share: float | None
    seed: int
    workers: Workers
    candidates: Cliques | None = None
    journal: Journal = field(default_factory=Journal)
    earlier: Mapping[str, State] = field(default_factory=dict)

    def given(
        self, data: GraphData, graph: CliqueGraph, on_check: Callable[..., bool] = lambda *_: False,
        *, stage: str = "weights", penalty: RoundPenalty | None = None,
    ) -> FittedGraph:  # fmt: skip
        """Fit the weights of a given graph, by default with the sum of squares as the penalty.

        on_check: receives every record, and a function that makes the model; returning true ends the fit.
        penalty: that of the rounds in which the graph grew, whose relaxation then bounds the objective.
        """
        state_problem = self._problem(data, "leave out edges")
        problem = state_problem(graph, penalty or RidgePenalty(graph.n_cliques))
        solver, start, known = self._passes(self.options.tol), None, self.earlier.get(stage)
        if isinstance(known, PassState):
            point = problem.continued(known.point)
            start = None if point is None else solver.start(problem, point)

        def made(result: SolverResult, state: PassState) -> FittedGraph:
            return FittedGraph(graph, state.point.weights(), result)

        result, state = self.journal.run(stage, solver, problem, start, on_check, made)
        gap = math.nan
        if penalty is not None and result.status is not Status.INTERRUPTED:
            gap = _relaxation_gap(self._growing(data, state_problem), problem, state.point, result)
        return made(result, state)._replace(relaxation_gap=gap)

    def _problem(
        self, data: GraphData, otherwise: str = "lower `max_rounds` or `cliques_per_round`"
    ) -> Callable[[CliqueGraph, CliquePenalty], StructuredMargin]:
        """Return what states the problem of a graph, and refuses too wide ones, with what to do instead."""
        pose, is_smooth = data.posed(), self.options.solver == "proximal"

        def state_problem(graph: CliqueGraph, penalty: CliquePenalty) -> StructuredMargin:
            _refuse_wide(graph, self.inference, otherwise, data.loss)
            if is_smooth and isinstance(penalty, RoundPenalty):
                penalty = RoundPenalty(penalty.rounds, _SMOOTHNESS / self.options.tol, penalty.members)
            return pose(graph, penalty, self.alpha, self.inference, self.workers)

        return state_problem

    def _passes(self, tol: float) -> BlockFrankWolfe:
        sweeps = {"most_sweeps": 0} if self.options.solver == "proximal" else {}
        return BlockFrankWolfe(tol, self.options.max_iter, self.seed, **sweeps)

    def learned(self, data: GraphData, on_round: Callable[[Any], bool]) -> FittedGraph:
        """Learn a graph on rows not held out, then weights on all; an interrupt leaves the model so far."""
        if self.share is None:
            fitted = self._grown(data, on_round)
        else:
            fitted = self._measured(data, self.share, on_round)
        if not self._growing(data, self._problem(data)).scores_all:
            fitted = fitted._replace(reason=fitted.reason + _UNSCORED)
        if not self.growth.refit or fitted.is_interrupted:
            return fitted
        try:
            refitted = fitted.followed_by(self.given(data, fitted.graph, stage="refit"))
            return refitted._replace(relaxation_gap=fitted.relaxation_gap)
        except KeyboardInterrupt as interrupt:
            return _interrupted(fitted, interrupt)

    def _grown(
        self, data: GraphData, on_round: Callable[[Any], bool], others: GraphData | None = None
    ) -> FittedGraph:
        told = 0

        def on_check(record: Any, state: GrowthState) -> bool:
            nonlocal told
            if len(state.records) == told:
                return False
            told = len(state.records)
            return on_round(state.records[-1]._replace(time=record.time))

        def measure(problem: StructuredMargin, point: Any) -> float:
            return math.nan if others is None else _held_out_loss(others, problem, point)

        options, growth = self.options, self.growth
        problem = self._growing(data, self._problem(data), measure)
        inner, last = self._passes(max(options.tol, _ROUND_TOL)), self._passes(options.tol)
        solver = CliqueGeneration(inner, last, growth.max_rounds, growth.graph_tol)
        start, known = None, self.earlier.get("graph")
        if isinstance(known, GrowthState):
            last_label = max((max(clique) for cliques in known.cliques for clique in cliques), default=0)
            start = solver.continued(problem, known) if last_label < data.labels.n_labels else None
        result, state = self.journal.run("graph", solver, problem, start, on_check)
        with interrupts_later() as caught:
            if not state.reason and len(state.records) < len(state.cliques):  # interrupted before its end
                state = solver.noted(problem, state, result.trace[-1])
            reason = _INTERRUPTED if result.status is Status.INTERRUPTED else state.reason
            graph, _ = round_graph(data.labels.n_labels, state.cliques)
            timed, gap = _timed(state, result), math.nan
            if reason != _INTERRUPTED:
                gap = _relaxation_gap(problem, problem.at(state.cliques), state.inner.point, result)
            found = FittedGraph(graph, state.inner.point.weights(), result, timed, reason, gap)
        return _interrupted(found, caught[0]) if caught else found

    def _growing(
        self, data: GraphData, state_problem: Callable[..., StructuredMargin],
        measure: Callable[[StructuredMargin, Any], float] = lambda *_: math.nan,
    ) -> GrowingMargin[Any]:  # fmt: skip
        growth = self.growth
        return GrowingMargin(
            data.labels.n_labels, state_problem, growth.cliques_per_round, growth.clique_size,
            self.candidates, measure,
        )  # fmt: skip

    def _measured(self, data: GraphData, share: float, on_round: Callable[[Any], bool]) -> FittedGraph:
        train, held_out = _parts(data, share, self.seed)
        part = self._grown(data.rows(train), on_round, data.rows(held_out))
        if part.is_interrupted:
            return part
        rounds = part.rounds
        if self.growth.early_stopping:
            count = int(np.argmin([record.held_out_loss for record in rounds]))
            rounds, part = rounds[: count + 1], part._replace(reason=_CHOSEN)
        try:
            graph, penalty = round_graph(data.labels.n_labels, tuple(record.cliques for record in rounds))
            whole = part.followed_by(self.given(data, graph, penalty=penalty))
        except KeyboardInterrupt as interrupt:
            return _interrupted(part, interrupt)
        return whole._replace(reason=_INTERRUPTED) if whole.is_interrupted else whole


def _relaxation_gap(
    growing: GrowingMargin[Any], problem: StructuredMargin, point: Any, result: SolverResult
) -> float:
    """Bound the share of the objective by which other cliques could lower it."""
    last = result.trace[-1]
    return relative_gap(last.primal, growing.relaxed_bound(problem, point, last.dual))


def _interrupted(fitted: FittedGraph, caught: KeyboardInterrupt) -> FittedGraph:
    note_interrupt(caught)
    return fitted._replace(result=replace(fitted.result, status=Status.INTERRUPTED), reason=_INTERRUPTED)


def _timed(state: GrowthState, result: SolverResult) -> tuple[GraphRecord, ...]:
    times = {record.iteration: record.time for record in result.trace}
    ends = np.cumsum([record.n_iter for record in state.records]).tolist()
    return tuple(
        record._replace(time=times.get(end, 0.0)) for record, end in zip(state.records, ends, strict=True)
    )


def _refuse_wide(graph: CliqueGraph, inference: dict[str, Any], advice: str, loss: str) -> None:
    """Raise for a graph that exact inference cannot solve, with advice on a narrower one."""
    budget = inference["exact_width"]
    if loss != "hamming" and (width := set_steps(graph).width) > LARGEST_WIDTH:
        raise ParameterError(
            f"The worst label set of `loss={loss!r}` in the graph of {graph.n_cliques} cliques needs all "
            f"values of {width} labels at once, above {LARGEST_WIDTH}; {advice}, or leave `loss` at "
            '"hamming".'
        )
    if inference["method"] != "exact" or graph.width <= budget:
        return
    raise ParameterError(
        f"The graph of {graph.n_cliques} cliques has width {graph.width}, above `exact_width={budget}`; "
        f'raise `exact_width` (up to 20), {advice}, or use `inference="auto"`, which '
        "reports for each row whether its labels are proven optimal."
    )


def _parts(data: GraphData, share: float, seed: int) -> tuple[Array, Array]:
    """Draw the rows to learn from and those to hold out, stratified by labels."""
    n_rows = len(data.labels)
    if math.ceil(share * n_rows) >= n_rows:
        raise ParameterError(
            f"Holding out a share of {share:g} of {n_rows} rows leaves none for training; pass more rows "
            "with observed labels, or leave out `validation_fraction` and `early_stopping`."
        )
    train, held_out = hold_out(data.labels, share, seed)
    if not data.labels[held_out].observed_counts().any():
        raise ParameterError(
            f"None of the {len(held_out)} held-out rows has an observed label to measure rounds; raise "
            "`validation_fraction`, or leave it and `early_stopping` out."
        )
    return train, held_out


def _held_out_loss(data: GraphData, problem: StructuredMargin, point: Any) -> float:
    """Compute the mean loss of weights on other rows; unobserved labels do not count."""
    weights, n_labels = point.weights(), data.labels.n_labels
    inference, workers = problem.map, problem.workers

    def best_labels(features: FeatureMatrix) -> Array:
        scores = features.matmul(weights)
        unary, tables = np.ascontiguousarray(scores[:, :n_labels]), np.ascontiguousarray(scores[:, n_labels:])
        return inference.solve(unary, tables, workers=workers).labels

    wrong = seen = 0.0
    size = max(1, _SCORES_AT_ONCE // weights.shape[1])
    for rows in panels(len(data.labels), size):
        labels = data.features.mapped(best_labels, np.arange(rows.start, rows.stop), size)
        signs = data.labels[rows].to_signs()
        if data.loss != "hamming":
            losses = set_losses(data.loss, labels, signs > 0, signs != 0)
            wrong += float(data.weights[rows] @ losses)
            seen += float(data.weights[rows].sum())
            continue
        counts = (signs != 0) * data.weights[rows, None]
        wrong += float((counts * (labels != (signs > 0))).sum())
        seen += float(counts.sum())
    return wrong / seen
