"""The members of an automatic model, each with out-of-fold scores.

Ridge regressions and trees regress 0 and 1 on the features, with parameters of least out-of-fold squared
error; max-margin models are chosen by that of their probabilities, as all members are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, Literal

import numpy as np
import scipy.linalg as sl
from joblib import effective_n_jobs

from labelweave.decisions.automatic import plan
from labelweave.decisions.automatic.combination import cross_fitted
from labelweave.decisions.automatic.given import (
    best_estimator,
    check_member,
    estimator_fit,
    estimator_scores,
    some_scores,
)
from labelweave.decisions.automatic.scorers import ForestScorer
from labelweave.decisions.automatic.table import Member, TrainingTable
from labelweave.estimators.journal import FitProgress
from labelweave.estimators.scorers import Scorer, kernel_scorer
from labelweave.features import FeatureMatrix, ForestKernel, Kernel, LinearKernel, RBFKernel, ScaledKernel
from labelweave.features.forest import BinnedRows, Forest
from labelweave.features.gram import incomplete_cholesky
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.array_types import Array, Floats, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import placed, to_numpy
from labelweave.foundation.config import PartInterrupted, note_interrupt
from labelweave.problems.hyperparameters.out_of_fold import OutOfFoldFactorRidge, OutOfFoldRidge, product

_WIDTHS = 2.0 ** np.arange(-8, 9)  # times the gamma of "scale"
_PENALTIES = np.logspace(-3, 2, 11)  # of kernels whose values are at most 1
_MARGIN_C = 0.1, 0.3, 0.9, 2.7  # of rows whose mean squared length is 1
_WEIGHTED_MARGIN_C = 0.3, 0.9  # where classes are balanced
_MARGIN_TOL = 1e-2
_ROWS_FOR_PENALTY, _LABELS_TO_CHOOSE_BY = 4000, 100
_SECONDS_TO_GAIN, _LEAST_GAIN = 1000.0, 0.02  # of members that were not requested: to lower the error to 0
# of the combination that follows: table entries per second, and how often few rows are processed
_ENTRIES, _PARTS, _LEAST_SECONDS = 2e5, 5, 0.5


@dataclass
class Members:
    """Fits the members of one table; what several of them need is computed once.

    What is fitted to the rows of a fold is a function of the table and small values, so that it may be
    computed in another process; then the table here needs no features.
    given: estimators by member name.
    """

    table: TrainingTable
    on_step: Callable[[str], object] = str
    given: dict[str, Any] = field(default_factory=dict)

    def make_some(self, names: Sequence[str], progress: FitProgress) -> tuple[list[Member], list[float], str]:
        """Fit one member after another, until all are complete or an interrupt or a callback stops it.

        Return the members, the seconds of each, and the status.
        """
        members, seconds = list[Member](), list[float]()

        def on_step(name: str) -> None:
            if progress.subtask(name) and members:
                raise PartInterrupted

        self.on_step = on_step
        try:
            for name in names:
                begin = time.perf_counter()
                members.append(self.make(name))
                seconds.append(time.perf_counter() - begin)
        except KeyboardInterrupt as interrupt:
            if not members:
                raise
            note_interrupt(interrupt)
            return members, seconds, getattr(interrupt, "status", "interrupted")
        return members, seconds, "complete"

    def make(self, name: str) -> Member:
        return self.made(name, *self.begin(name))

    def begin(self, name: str) -> tuple[list[Any], Any]:
        """Start to fit a member: scores of each fold's rows, and a scorer of new rows, with words."""
        if (estimator := self.given.get(name)) is not None:
            check_member(name, estimator, self.table)
            return self._estimators(name, [estimator], 1)
        if name == "linear":
            return self._ridge(name, LinearKernel())
        if name == "rbf":
            return self._ridge(name, self._width)
        if name == "rbf+forest":
            return self._ridge(name, self._width, self._forests)
        if name == "max-margin":
            return self._estimators(name, self.submit(margin_machines), len(margin_settings(self.table)))
        forests = self._forests
        folds = list(zip(self._folds, forests[:-1], strict=True))
        return [self.submit(forest_scores, *one) for one in folds], self.submit(forest_fit, forests[-1])

    def submit(self, function: Callable[..., Any], *given: Any, step: str = "") -> Any:
        found = function(self.table, *given)
        if step:
            self.on_step(step)
        return found

    def made(self, name: str, folds: list[RowsByLabels], whole: tuple[Scorer, str]) -> Member:
        scores = np.empty_like(self.table.targets)
        for part, (_, held) in zip(folds, self.table.splits(), strict=True):
            scores[held] = part
        return Member(name, scores, *whole)

    @property
    def _folds(self) -> list[int]:
        return [int(fold) for fold in np.unique(self.table.folds)]

    @cached_property
    def _width(self) -> Any:
        return self.submit(choose_width, step="width")

    @cached_property
    def _binned(self) -> Any:
        return self.submit(binned)

    @cached_property
    def _forests(self) -> list[Any]:
        """Return forests grown without the rows of each fold, and last the trees of all of them."""
        grown = [self._forest(place, fold) for place, fold in enumerate(self._folds)]
        return [*grown, self.submit(in_one_forest, grown)]

    def _forest(self, place: int, fold: int) -> Any:
        n = -(-self.table.n_trees // len(self._folds))
        targets = self.submit(tree_targets, fold)
        return self.submit(grow, self._binned, targets, fold, place * n, n, step="forest")

    def _ridge(self, name: str, kernel: Any, forests: list[Any] | None = None) -> tuple[list[Any], Any]:
        """Fit ridge regressions, with one penalty for all folds."""
        folds = self._folds
        forests = forests or [None] * (len(folds) + 1)
        near = self.submit(likely_penalties, folds[0], kernel, forests[0])
        shared = self.submit(factored, kernel) if forests[0] is None else None
        tables = [
            self.submit(ridge_scores, fold, kernel, forest, near, shared, step=name)
            for fold, forest in zip(folds, forests[:-1], strict=True)
        ]
        errors = [self.submit(squared_errors, *one) for one in zip(folds, tables, strict=True)]
        best = self.submit(least, errors)
        scores = [self.submit(picked, one, best) for one in tables]
        del tables  # several times as large
        return scores, self.submit(ridge_fit, near, best, kernel, forests[-1], shared, step=name)

    def _estimators(self, name: str, candidates: Any, n_candidates: int) -> tuple[list[Any], Any]:
        """Fit estimators to the other rows of every fold, and the best of them to all rows.

        With many rows one fold decides which is the best.
        """
        folds, best = self._folds, 0
        first = folds[:1] if n_candidates > 1 and len(self.table.targets) > plan.ROWS_TO_CROSS_FIT else folds
        tables = [self.submit(estimator_scores, candidates, fold, step=name) for fold in first]
        if n_candidates > 1:
            some = [self.submit(some_scores, *one) for one in zip(first, tables, strict=True)]
            best = self.submit(best_estimator, first, some)
        scores = [self.submit(picked, one, best) for one in tables]
        for fold in folds[len(first) :]:
            table = self.submit(estimator_scores, candidates, fold, best, step=name)
            scores.append(self.submit(picked, table, 0))
        return scores, self.submit(estimator_fit, candidates, best, step=name)


def maker_of(table: TrainingTable, given: dict[str, Any], begin: float, seconds: float | None) -> Members:
    return Members(table, given=given) if seconds is None else TimedMembers(table, given, begin, seconds)


class TimeIsUp(PartInterrupted):
    """A member and the combination would not be complete before the time limit."""

    status = "time_limit"


class TimedMembers(Members):
    """Fits the first member, and others that can be complete and combined within a number of seconds."""

    def __init__(self, table: TrainingTable, given: dict[str, Any], begin: float, seconds: float) -> None:
        super().__init__(table, given=given)
        parts = _PARTS if len(table.targets) <= plan.ROWS_TO_CROSS_FIT else 1
        self._combination = _LEAST_SECONDS + table.targets.size * parts / _ENTRIES
        self._until, self._begin = begin + seconds, (time.perf_counter(), time.process_time())
        self._seconds, self._has_one = dict[Any, float](), False

    def make(self, name: str) -> Member:
        member = super().make(name)
        self._has_one = True
        return member

    def submit(self, function: Callable[..., Any], *given: Any, step: str = "") -> Any:
        begin, spent = time.perf_counter(), time.process_time() - self._begin[1]
        slowness = max(1.0, (begin - self._begin[0]) / max(spent, 1e-3))  # where other processes use the CPUs
        ends = begin + self._seconds.get(function, 0.0) + slowness * self._combination
        if self._has_one and ends > self._until:
            raise TimeIsUp
        found = super().submit(function, *given, step=step)
        self._seconds[function] = time.perf_counter() - begin
        return found


def choose_width(table: TrainingTable) -> Kernel:
    """Choose the width of the RBF kernel by leave-one-out or cross-validated error."""
    some = sample(table, min(plan.ROWS_FOR_WIDTH, table.pivots))
    folds = some.folds if table.leaves_folds_out else None
    usual = RBFKernel("scale").resolved(table.features)
    assert isinstance(usual, RBFKernel), "a number took the place of a name"
    filled = filled_targets(some)  # whose error is not used
    kernels, features = [RBFKernel(float(usual.gamma * width)) for width in _WIDTHS], some.features.placed()

    @cache
    def loss(place: int) -> float:
        ridge = OutOfFoldRidge(kernels[place].block(features, features), some.weights)
        return min(some.loss(ridge.scores(filled, penalty, folds)) for penalty in _PENALTIES)

    return kernels[lowest(loss, len(kernels))]


def sample(table: TrainingTable, most_rows: int, most_labels: int = _LABELS_TO_CHOOSE_BY) -> TrainingTable:
    """Sample some rows, and keep the labels that vary most."""
    rows, (n, n_labels) = np.arange(len(table.targets)), table.targets.shape
    if n > most_rows:
        rows = np.sort(np.random.default_rng(table.seed).choice(n, most_rows, replace=False))
    some = table.rows(rows)
    if n_labels > most_labels:
        kept = np.sort(np.argsort(-filled_targets(some).var(axis=0), kind="stable")[:most_labels])
        some = replace(some, targets=some.targets[:, kept])
    return some


def lowest(loss: Callable[[int], float], n_places: int) -> int:
    """Find a local minimum of the loss, from the middle on."""
    place, step = n_places // 2, 1
    for step in (1, -1):
        while 0 <= place + step < n_places and loss(place + step) < loss(place):
            place += step
    return place


def margin_settings(table: TrainingTable) -> list[tuple[float, Literal["balanced"] | None]]:
    """Return values of C and class weights, with balanced ones where labels are rare."""
    weighted = _WEIGHTED_MARGIN_C if table.rare_labels().any() else ()
    return [*((C, None) for C in _MARGIN_C), *((C, "balanced") for C in weighted)]


def margin_machines(table: TrainingTable) -> list[Any]:
    from labelweave.estimators.max_margin import MaxMarginClassifier

    length = float(table.features.squared_norms().mean()) or 1.0  # any if all rows are zero
    given: dict[str, Any] = {"tol": _MARGIN_TOL, "n_jobs": table.n_jobs, "random_state": table.seed}
    settings = margin_settings(table)
    return [MaxMarginClassifier(C=C / length, class_weight=weight, **given) for C, weight in settings]


def likely_penalties(table: TrainingTable, fold: int, kernel: Kernel, forest: Forest | None) -> Floats:
    """Choose penalties around the one with the least error on a fold, by a sample of the rows."""
    some = replace(sample(table, _ROWS_FOR_PENALTY), pivots=min(table.pivots, _ROWS_FOR_PENALTY // 4))
    train, held = (some.rows(rows) for rows in some.split(fold))
    ridge = KernelRidge(_blended(kernel, forest), train)

    @cache
    def error(place: int) -> float:
        return held.squared_error(ridge.scores(held.features, _PENALTIES[place : place + 1])[0])

    best = lowest(error, len(_PENALTIES))
    return _PENALTIES[max(0, best - 2) : best + 3]


def max_margin_pays(table: TrainingTable, shape: plan.Shape) -> bool:
    """Return whether the member is cheap, or lowers the error of a sample by a thousandth per second.

    With sparse rows it is the first member, and not in question.
    """
    least = shape.of_max_margin() / _SECONDS_TO_GAIN
    if shape.is_sparse or least < _LEAST_GAIN:
        return True
    some = sample(table.with_few_folds(), plan.ROWS_FOR_TRIAL, plan.MOST_TARGETS)
    some = replace(some, pivots=min(table.pivots, plan.PIVOTS_FOR_TRIAL))
    makes = Members(some)
    first = makes.make("rbf").scores
    alone = some.loss(cross_fitted(some, [first]))
    return some.loss(cross_fitted(some, [first, makes.make("max-margin").scores])) < (1.0 - least) * alone


@dataclass(frozen=True)
class KernelFactor:
    """A low-rank factor of a kernel matrix, which no label has an influence on: all folds share it.

    factor (n, r): its rows of ``support`` (r,) are the lower triangle.
    products: weighted inner products of its columns over the rows of each fold, (r, r).
    """

    support: Array
    factor: Array
    products: dict[int, Array]

    def ridge(self, table: TrainingTable, fold: int | None) -> OutOfFoldFactorRidge:
        """Return ridge regressions on the rows of the other folds, or of all for None."""
        rows = slice(None) if fold is None else table.split(fold)[0]
        ridge = OutOfFoldFactorRidge(placed(self.factor[rows]), table.weights[rows])
        products = [one for key, one in self.products.items() if key != fold]
        ridge.use_products(placed(np.sum(products, axis=0)))
        return ridge


def factored(table: TrainingTable, kernel: Kernel) -> KernelFactor | None:
    """Factor the kernel matrix of more rows than pivots."""
    if len(table.targets) <= table.pivots:
        return None
    source = KernelSource(kernel, table.features.placed())
    found = incomplete_cholesky(source, table.pivots, Workers(), table.seed)
    products = {}
    for fold in np.unique(table.folds).tolist():
        rows = np.flatnonzero(table.folds == fold)
        part = placed(np.sqrt(table.weights[rows])[:, None] * found.factor[rows])
        products[fold] = to_numpy(part.T @ part)
    return KernelFactor(found.active_rows, found.factor, products)


def ridge_scores(
    table: TrainingTable, fold: int, kernel: Kernel, forest: Forest | None, penalties: Floats,
    shared: KernelFactor | None,
) -> Array:  # fmt: skip
    """Score the rows of a fold with ridge regressions on the others: shape (penalties, n, L)."""
    train, held = table.split(fold)
    if shared is None:
        alone = KernelRidge(_blended(kernel, forest), table.rows(train))
        return alone.scores(table.features.rows(held), penalties)
    targets, ridge = table.targets[train], shared.ridge(table, fold)
    fits = (ridge.coefficients(targets, float(penalty)) for penalty in penalties)
    block = placed(shared.factor[held])
    return np.stack([product(block, found) + intercepts for found, intercepts in fits])


def squared_errors(table: TrainingTable, fold: int, scores: Array) -> Array:
    """Sum the squared errors of each table of scores of a fold's rows."""
    part = table.without_features().rows(table.split(fold)[1])
    return np.array([part.squared_error(one) for one in scores])


def least(_: TrainingTable, errors: list[Array]) -> int:
    return int(np.argmin(np.sum(errors, axis=0)))


def picked(_: TrainingTable, scores: Array, best: int) -> RowsByLabels:
    kept: RowsByLabels = scores[best].copy()
    return kept


def ridge_fit(
    table: TrainingTable, penalties: Floats, best: int, kernel: Kernel, forest: Forest | None,
    shared: KernelFactor | None,
) -> tuple[Scorer, str]:  # fmt: skip
    """Fit ridge regressions to all rows; also return the kernel and penalty, in words."""
    words = "linear kernel" if isinstance(kernel, LinearKernel) else f"{kernel}"
    if forest is not None:
        words = f"half of {words} and of the share of trees in one leaf"
    penalty = float(penalties[best])
    ridge = KernelRidge(_blended(kernel, forest), table, shared)
    return ridge.scorer(penalty), f"{words}, penalty {penalty:.3g}"


def _blended(kernel: Kernel, forest: Forest | None) -> Kernel:
    return kernel if forest is None else ScaledKernel(kernel, 0.5) + ScaledKernel(ForestKernel(forest), 0.5)


def forest_scores(table: TrainingTable, fold: int, forest: Forest) -> RowsByLabels:
    """Score the rows of a fold with the labels of the others in the leaves of a forest."""
    train, held = table.split(fold)
    return _leaves(forest, table.rows(train)).scores(table.features.rows(held))


def forest_fit(table: TrainingTable, forest: Forest) -> tuple[Scorer, str]:
    return _leaves(forest, table), f"{forest.n_trees} trees"


class KernelRidge:
    """Ridge regressions of all labels, exact for few rows, else on some columns of the kernel matrix."""

    def __init__(self, kernel: Kernel, table: TrainingTable, shared: KernelFactor | None = None) -> None:
        self.kernel, self.table = kernel, table
        found = shared or factored(table, kernel)
        if found is None:
            features = table.features.placed()
            self.support, self.triangle = np.arange(len(table.targets)), None
            self.ridge: OutOfFoldRidge = OutOfFoldRidge(kernel.block(features, features), table.weights)
            return
        self.support, self.triangle = found.support, found.factor[found.support]
        self.ridge = found.ridge(table, None)

    def _coefficients(self, penalty: float) -> tuple[Array, Array]:
        found, intercepts = self.ridge.coefficients(self.table.targets, penalty)
        if self.triangle is not None:
            found = sl.solve_triangular(self.triangle, found, lower=True, trans="T")
        return found, intercepts

    def scores(self, features: FeatureMatrix, penalties: Floats) -> Array:
        """Score rows with each penalty: shape (penalties, n, L)."""
        support = self.table.features.rows(self.support)
        block = self.kernel.block(features.placed(), support.placed())
        fits = (self._coefficients(float(penalty)) for penalty in penalties)
        return np.stack([product(block, coefficients) + intercepts for coefficients, intercepts in fits])

    def scorer(self, penalty: float) -> Scorer:
        coefficients, intercepts = self._coefficients(penalty)
        vectors = self.table.features.rows(self.support).data
        return kernel_scorer([self.kernel], intercepts, [coefficients], self.support, vectors)


def filled_targets(table: TrainingTable) -> RowsByLabels:
    known = ~np.isnan(table.targets)
    means = np.where(known, table.targets, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, table.targets, means)


def tree_targets(table: TrainingTable, fold: int) -> Array:
    """Return the targets of trees: all labels, projected if many, with missing entries at their means.

    Those of the fold's rows are 0.
    """
    rows = table.split(fold)[0]
    targets = filled_targets(table.rows(rows))
    targets = targets - targets.mean(axis=0)
    if targets.shape[1] > plan.MOST_TARGETS:
        is_wide = targets.shape[1] > len(targets)  # then the Gram matrix of rows is smaller
        values, vectors = sl.eigh(targets @ targets.T if is_wide else targets.T @ targets)
        values, vectors = values[-plan.MOST_TARGETS :], vectors[:, -plan.MOST_TARGETS :]
        targets = vectors * np.sqrt(np.maximum(values, 0.0)) if is_wide else targets @ vectors
    found = np.zeros((len(table.targets), targets.shape[1]), np.float32)
    found[rows] = targets
    return found


def binned(table: TrainingTable) -> BinnedRows:
    return BinnedRows.of_rows(table.features.data)


def grow(
    table: TrainingTable, binned: BinnedRows, targets: Array, fold: int, first: int, n_trees: int
) -> Forest:
    """Grow some trees of a forest without the rows of a fold, starting at number ``first``."""
    weights = np.where(table.folds == fold, 0.0, table.weights)
    seeds = np.random.RandomState(table.seed).randint(2**31 - 1, size=first + n_trees)[first:].tolist()
    with Workers(effective_n_jobs(table.n_jobs)).running() as workers:
        return Forest.joined(workers.map(partial(binned.grown, targets, weights), seeds))


def in_one_forest(_: TrainingTable, parts: list[Forest]) -> Forest:
    return Forest.joined(parts)


def _leaves(forest: Forest, table: TrainingTable) -> ForestScorer:
    return ForestScorer.of_rows(forest, table.features.data, table.targets, table.weights)
