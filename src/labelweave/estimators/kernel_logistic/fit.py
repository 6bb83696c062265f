"""Fits of the kernel logistic model: of hyper-parameters, and of rows with given ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelweave.array_types import Array, RowsByLabels
from labelweave.arrays import Workers
from labelweave.estimators.folds import LearningBlock
from labelweave.estimators.journal import Journal
from labelweave.estimators.kernel_logistic.data import LikelihoodData
from labelweave.features import Kernel
from labelweave.features.gram import Gram, LowRankGram, Pivoting, choose_gram
from labelweave.hyperparameters import (
    CrossValidationLikelihood,
    EvaluationLog,
    FoldedData,
    InnerSettings,
    LearnedParameters,
    MeanCriterion,
    PriorFamily,
    RidgeCrossValidation,
    SearchRecord,
    SearchSettings,
    SearchState,
    StagedSearch,
)
from labelweave.problems.coupled_gram import CoupledGram, ScorePrior
from labelweave.problems.kernel_likelihood import KernelLikelihood
from labelweave.solvers import SolverResult
from labelweave.solvers.newton import NewtonConjugateGradient, NewtonState
from labelweave.solvers.newton_system import FunctionGradients, LinearSolver

__all__ = ["FitSettings", "FittedLikelihood", "LikelihoodFit"]

_FIRST_ROWS = 1000
_MANY = 3  # times that: rows enough for a first search on a part


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    learning_iterations: evaluations in the search for hyper-parameters; 0 to keep those that are given.
    low_rank: columns of incomplete Cholesky factors that stand for kernel matrices.
    on_check, on_search: get every record of the final fit and of the search; a true result ends it.
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
    on_check: Callable[[Any], bool]
    on_search: Callable[[SearchRecord], bool]
    journal: Journal = field(default_factory=Journal)


@dataclass(frozen=True)
class FittedLikelihood:
    """A fitted model: its prior, with learned hyper-parameters if asked, and its dual variables."""

    prior: ScorePrior
    gram: CoupledGram
    dual: RowsByLabels
    result: SolverResult


class LikelihoodFit:
    """One fit."""

    def __init__(self, family: PriorFamily, data: LikelihoodData, settings: FitSettings) -> None:
        self.family, self.data, self.settings = family, data, settings
        self.ties_labels = family.ties_labels or data.codes is not None
        self.n_terms = len(family.prior(family.start).terms)

    def part(self, kept: Array) -> LikelihoodFit:
        """Give a fit of some rows."""
        return LikelihoodFit(self.family, self.data.rows(kept), self.settings)

    def fit(self, stage: str, theta: Array, start: Array | None) -> FittedLikelihood:
        """Fit all rows, as a stage of the journal.

        start (n, groups, columns): dual variables to start from.
        """
        settings, prior = self.settings, self.family.prior(theta)
        gram = prior.operator(self._final_gram, settings.workers, ties_labels=self.ties_labels)
        loss = self.data.loss(self.data.weights[:, None], ties_labels=self.ties_labels)
        problem = KernelLikelihood(gram, loss, settings.rank, settings.seed)
        state = None if start is None or start.shape != problem.shape else NewtonState.at(start)
        solver = NewtonConjugateGradient(settings.tol, settings.max_iter, directions=self._directions())
        result, state = settings.journal.run(
            stage, solver, problem, state, lambda record, _: settings.on_check(record)
        )
        return FittedLikelihood(prior, gram, state.dual.reshape(len(state.dual), -1), result)

    def _directions(self) -> LinearSolver:
        if self.settings.solver == "exact":
            from labelweave.solvers.exact_directions import ExactDirections

            return ExactDirections()
        if self.settings.solver == "symmetrized_gradients":
            from labelweave.solvers.symmetrized_gradients import SymmetrizedGradients

            return SymmetrizedGradients()
        return FunctionGradients()

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

    def learn(
        self, blocks: list[LearningBlock], start: Array | None = None
    ) -> tuple[LearnedParameters, Array | None]:
        """Search for hyper-parameters, as a stage of the journal.

        blocks: rows on which hyper-parameters are learned, and how they are cross-validated.
        start: hyper-parameters that an earlier search found.
        Gives with the result dual variables for a fit of all rows to start from, if all took part.
        """
        settings = self.settings
        journal, known = settings.journal, settings.journal.states.get("search")
        assert known is None or isinstance(known, SearchState), "the search notes states of its own"
        log = EvaluationLog(known, lambda state: journal.note("search", state))
        search = StagedSearch(
            self.family,
            self._criterion,
            self._first_rows(blocks),
            blocks,
            SearchSettings(max_iter=settings.learning_iterations, on_record=settings.on_search, log=log),
            start,
        )
        learned, criterion, met = search.run()
        state, (first, *_) = criterion.inner_states[0], met
        if state is None or len(first.rows) < len(self.data.weights):
            return learned, None
        return learned, _mean_over_fits(state, first.held_out, self.ties_labels)

    def _first_rows(self, blocks: list[LearningBlock]) -> list[LearningBlock] | None:
        """Give a part of the first block, where there are many rows."""
        if sum(len(block.rows) for block in blocks) < _MANY * _FIRST_ROWS:
            return None
        order = np.random.default_rng(self.settings.seed).permutation(len(blocks[0].rows))
        return [blocks[0].part(np.sort(order[:_FIRST_ROWS]))]

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


def _mean_over_fits(dual: Array, held_out: Array, ties_labels: bool) -> Array:
    """Average every row's dual variables over the fits that trained on it."""
    fits = held_out.shape[1]
    by_fit = dual.reshape(len(dual), fits, -1)
    trained = np.maximum(1, fits - held_out.sum(axis=1))
    mean = by_fit.sum(axis=1) / trained[:, None]
    return np.ascontiguousarray(mean[:, None, :] if ties_labels else mean[:, :, None])
