"""Fits of the kernel logistic model: of hyper-parameters, and of rows with given ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from labelweave.array_types import Array, RowsByLabels
from labelweave.arrays import Workers
from labelweave.estimators.folds import LearningBlock
from labelweave.estimators.kernel_logistic.data import LikelihoodData
from labelweave.features import Kernel
from labelweave.features.gram import Gram, LowRankGram, Pivoting, choose_gram
from labelweave.hyperparameters import (
    CrossValidationLikelihood,
    FoldedData,
    InnerSettings,
    LearnedParameters,
    MeanCriterion,
    PriorFamily,
    RidgeCrossValidation,
    SearchRecord,
    SearchSettings,
    learn,
)
from labelweave.problems.coupled_gram import CoupledGram
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.problems.prior_grams import coupled_gram
from labelweave.problems.score_prior import ScorePrior
from labelweave.solvers import SolverResult, TraceRecord
from labelweave.solvers.exact_directions import ExactDirections
from labelweave.solvers.function_gradients import FunctionGradients
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState
from labelweave.solvers.newton_system import LinearSolver
from labelweave.solvers.symmetrized_gradients import SymmetrizedGradients

__all__ = ["FitSettings", "FittedLikelihood", "LikelihoodFit"]

Box = list[tuple[float | None, float | None]]

_FIRST_ROWS = 1000
_MANY = 3  # times that: rows enough for a first search on a part
# how far the first search goes, in logarithms of parameters: classes with few rows there may end anywhere
_REACH_OF_FIRST = 4.0
_NEARBY = 2.0  # how far the second search goes at a time
_MOST_MOVES = 5
_SHORT_STEP = 0.3


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    tol: the relative duality gap to reach.
    learning_iterations: evaluations in the search for hyper-parameters; 0 to keep those that are given.
    low_rank: columns of incomplete Cholesky factors that stand for the kernel matrices of the final fit.
    on_check: gets every record of the final fit; a true result ends it.
    on_search: gets every record of the search; a true result ends it.
    """

    tol: float
    max_iter: int
    learning_iterations: int
    solver: str
    rank: int
    low_rank: int | None
    memory_budget: float
    workers: Workers
    seed: int
    on_check: Callable[[TraceRecord], bool]
    on_search: Callable[[SearchRecord], bool]


@dataclass(frozen=True)
class FittedLikelihood:
    """A fitted model.

    prior: the prior, its hyper-parameters learned if asked.
    """

    prior: ScorePrior
    gram: CoupledGram
    dual: RowsByLabels
    result: SolverResult
    learned: LearnedParameters | None
    theta: Array


class LikelihoodFit:
    """One fit."""

    def __init__(self, family: PriorFamily, data: LikelihoodData, settings: FitSettings) -> None:
        self.family, self.data, self.settings = family, data, settings
        self.ties_labels = family.ties_labels or data.codes is not None
        self.evaluations_left = settings.learning_iterations
        self.n_terms = len(family.prior(family.start).terms)

    def part(self, kept: Array) -> LikelihoodFit:
        """Keep some rows.

        Returns A fit of these rows.
        """
        return LikelihoodFit(self.family, self.data.rows(kept), self.settings)

    def fit(self, learned: LearnedParameters | None, start: Array | None) -> FittedLikelihood:
        """Fit all rows.

        learned: the hyper-parameters; None for those that are given.
        start (n, groups, columns): dual variables to start from.
        """
        theta = self.family.start if learned is None else learned.theta
        prior = self.family.prior(theta)
        gram = coupled_gram(prior, self._final_gram, self.settings.workers, ties_labels=self.ties_labels)
        loss = self.data.loss(self.data.weights[:, None], ties_labels=self.ties_labels)
        problem = KernelLikelihood(gram, loss, self.settings.rank, self.settings.seed)
        state = None if start is None else NewtonState.at(start)
        solver = NewtonConjugateGradient(
            self.settings.tol,
            self.settings.max_iter,
            on_check=self.settings.on_check,
            directions=self._directions(),
        )
        solved, state = solver.solve(problem, state)
        dual = state.dual.reshape(len(state.dual), -1)
        return FittedLikelihood(prior, gram, dual, solved.result, learned, theta)

    def _directions(self) -> LinearSolver:
        if self.settings.solver == "exact":
            return ExactDirections()
        is_paper = self.settings.solver == "symmetrized_gradients"
        return SymmetrizedGradients() if is_paper else FunctionGradients()

    def _gram(self, data: LikelihoodData, kernel: Kernel | None, fits: int) -> Gram:
        explicit = None if kernel is None else kernel.explicit_features(data.features)
        budget = self.settings.memory_budget * 1e6 / self.n_terms
        columns = fits * data.n_labels
        return choose_gram(data.source(kernel), explicit, columns, budget, self.settings.workers)

    def _final_gram(self, kernel: Kernel | None) -> Gram:
        settings = self.settings
        if settings.low_rank is None:
            return self._gram(self.data, kernel, 1)
        pivoting = Pivoting(min(settings.low_rank, len(self.data.weights)), seed=settings.seed)
        source = self.data.source(kernel)
        return LowRankGram.from_source(source, 0.0, np.float64, settings.workers, pivoting)

    def learn(self, blocks: list[LearningBlock]) -> tuple[LearnedParameters, Array | None]:
        """Search in stages.

        Hyper-parameters that are apart are first learned as if they were tied, and with many rows on a
        part of them.  That costs little, and many hyper-parameters find a good optimum from there.

        blocks: rows on which hyper-parameters are learned, and how they are cross-validated.
        start (n, groups, columns): dual variables for a fit of all rows to start from, if all took part.
        """
        theta, box, first_step = None, None, 1.0
        criterion: MeanCriterion | None = None
        met: list[LearningBlock] = []
        trace: list[SearchRecord] = []
        for stage, (family, part) in enumerate(self._stages(blocks), 1):
            states = criterion.inner_states if criterion is not None and met is part else None
            criterion, met = self._criterion(family, part), part
            if states is not None:
                criterion.start_from(states)
            start = family.start if theta is None else _carried(family, theta)
            reach = _NEARBY if part is blocks else _REACH_OF_FIRST
            box = (
                family.bounds if theta is None and reach == _NEARBY else _around(start, family.bounds, reach)
            )
            learned = self._search(criterion, start, box, first_step)
            if part is blocks:
                learned = self._moved_on(criterion, learned, box, first_step)
            learned = learned.after(trace, stage)
            trace, theta, first_step = learned.trace, learned.theta, _SHORT_STEP
            if learned.status == "interrupted" or self.evaluations_left < 1:
                break
        assert criterion is not None, "there is at least one stage"
        learned = replace(learned, theta=_carried(self.family, learned.theta))
        return learned, self._first_dual(criterion.inner_states[0], met)

    def _first_dual(self, state: Array | None, blocks: list[LearningBlock]) -> Array | None:
        """Give dual variables for the final fit to start from, if the fits to the folds had all its rows."""
        if state is None or len(blocks[0].rows) < len(self.data.weights):
            return None
        return _mean_over_fits(state, blocks[0].held_out, self.ties_labels)

    def _stages(self, blocks: list[LearningBlock]) -> list[tuple[PriorFamily, list[LearningBlock]]]:
        """List families and rows of the searches, the cheap ones first."""
        coarse = self.family.coarser()
        stages = [(self.family, blocks)] if coarse is None else [(coarse, blocks), (self.family, blocks)]
        if sum(len(block.rows) for block in blocks) < _MANY * _FIRST_ROWS:
            return stages
        order = np.random.default_rng(self.settings.seed).permutation(len(blocks[0].rows))
        return [(stages[0][0], [blocks[0].part(np.sort(order[:_FIRST_ROWS]))]), *stages]

    def _moved_on(
        self, criterion: MeanCriterion, learned: LearnedParameters, box: Box, first_step: float
    ) -> LearnedParameters:
        """Search on while the result lies on the edge of the box."""
        bounds = criterion.family.bounds
        for _ in range(_MOST_MOVES):
            is_done = learned.status != "converged" or self.evaluations_left < 1
            if is_done or not _is_at_edge(learned.theta, box, bounds):
                break
            box = _around(learned.theta, bounds, _NEARBY)
            learned = learned.followed_by(self._search(criterion, learned.theta, box, first_step))
        return learned

    def _criterion(self, family: PriorFamily, blocks: list[LearningBlock]) -> MeanCriterion:
        return MeanCriterion([self._part(family, block) for block in blocks])

    def _part(
        self, family: PriorFamily, block: LearningBlock
    ) -> CrossValidationLikelihood | RidgeCrossValidation:
        part = self.data.rows(block.rows)
        folded = FoldedData(
            part.features,
            lambda weights: part.loss(weights, ties_labels=self.ties_labels),
            part.weights,
            block.held_out,
            lambda kernel: self._gram(part, kernel, block.held_out.shape[1]),
            self.ties_labels,
        )
        inner = InnerSettings(rank=self.settings.rank, seed=self.settings.seed, directions=self._directions())
        return CrossValidationLikelihood(family, folded, self.settings.workers, inner)

    def _search(
        self, criterion: MeanCriterion, start: Array, box: Box, first_step: float
    ) -> LearnedParameters:
        settings = SearchSettings(
            max_iter=self.evaluations_left, first_step=first_step, on_record=self.settings.on_search
        )
        found = learn(criterion, start, box, settings, retreat=criterion.family.retreated)
        self.evaluations_left -= len(found.trace)
        return found


def _carried(family: PriorFamily, theta: Array) -> Array:
    """Give a family's hyper-parameters from its own or those of its coarser form."""
    return theta if len(theta) == len(family.start) else family.from_coarser(theta)


def _around(start: Array, box: Box, reach: float) -> Box:
    """Keep to the neighbourhood of a point, so that no step leads far off."""
    return [
        (
            value - reach if low is None else max(low, value - reach),
            value + reach if high is None else min(high, value + reach),
        )
        for value, (low, high) in zip(start.tolist(), box, strict=True)
    ]


def _is_at_edge(theta: Array, box: Box, widest: Box) -> bool:
    """Tell whether a point lies on a side of a box that could be moved out."""
    return any(
        side is not None and side != limit and abs(value - side) < 1e-6
        for value, sides, limits in zip(theta.tolist(), box, widest, strict=True)
        for side, limit in zip(sides, limits, strict=True)
    )


def _mean_over_fits(dual: Array, held_out: Array, ties_labels: bool) -> Array:
    """Average every row's dual variables over the fits that trained on it."""
    fits = held_out.shape[1]
    by_fit = dual.reshape(len(dual), fits, -1)
    trained = np.maximum(1, fits - held_out.sum(axis=1))
    mean = by_fit.sum(axis=1) / trained[:, None]
    return np.ascontiguousarray(mean[:, None, :] if ties_labels else mean[:, :, None])
