"""The models that an automatic one tries, each with scores of rows by fits to other rows.

Ridge regressions and trees regress 0 and 1 on the features, and the squared error of left-out rows chooses
their numbers; max-margin models are chosen by that of their probabilities, as all members are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sl

from labelweave.array_types import Array, RowsByLabels
from labelweave.arrays import Workers
from labelweave.automatic.plan import ROWS_FOR_WIDTH
from labelweave.automatic.scorers import ForestScorer
from labelweave.automatic.table import Member, TrainingTable
from labelweave.estimators.scorers import Scorer, kernel_scorer
from labelweave.features import FeatureMatrix, ForestKernel, Kernel, LinearKernel, RBFKernel, ScaledKernel
from labelweave.features.forest import Forest, single
from labelweave.features.gram import incomplete_cholesky
from labelweave.features.gram.sources import KernelSource
from labelweave.hyperparameters.left_out import LeftOutFactorRidge, LeftOutRidge

_WIDTHS = 2.0 ** np.arange(-4, 4)  # times the gamma that "scale" is
_PENALTIES = np.logspace(-3, 2, 11)  # of kernels whose values are 1 at most
_MARGIN_C = 0.1, 0.3, 0.9, 2.7  # of rows whose mean squared length is 1
_MARGIN_TOL = 1e-2
_MOST_TARGETS = 16  # that trees are grown on; more are projected


@dataclass
class Members:
    """Makes the members of one table; what several of them need is made once.

    given: estimators by the names of members that are such.
    """

    table: TrainingTable
    on_step: Callable[[str], object] = str
    given: dict[str, Any] = field(default_factory=dict)
    forests: list[Forest] = field(default_factory=list)

    def make(self, name: str) -> Member:
        """Fit a member by its name, and score every row by fits to other folds."""
        if self.given.get(name) is not None:
            return self._estimators(name, [self.given[name]])
        makers = {"linear": self._linear, "max-margin": self._max_margin, "rbf": self._rbf,
                  "forest": self._forest, "rbf+forest": self._both}  # fmt: skip
        return makers[name]()

    def _estimators(self, name: str, candidates: list[Any]) -> Member:
        from labelweave.automatic.given import fit_best

        return fit_best(name, candidates, self.table, self.on_step)

    @cached_property
    def _width(self) -> Kernel:
        """Choose the width of the RBF kernel by the error of rows left out."""
        table, rows = self.table, np.arange(len(self.table.targets))
        most = min(ROWS_FOR_WIDTH, table.pivots)
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(table.seed).choice(len(rows), most, replace=False))
        some = table.rows(rows)
        usual = RBFKernel("scale").resolved(table.features)
        assert isinstance(usual, RBFKernel), "a number took the place of a name"
        filled = filled_targets(some)  # whose error is not looked at
        best, kernel = np.inf, usual
        for width in _WIDTHS:
            one = RBFKernel(float(usual.gamma * width))
            ridge = LeftOutRidge(one.block(some.features, some.features), some.weights)
            loss = min(some.loss(ridge.scores(filled, penalty)) for penalty in _PENALTIES)
            if loss < best:
                best, kernel = loss, one
        self.on_step("width")
        return kernel

    def _max_margin(self) -> Member:
        from labelweave.estimators.max_margin import MaxMarginClassifier

        table = self.table
        length = float(table.features.squared_norms().mean()) or 1.0  # of rows that are all zero, any
        given: dict[str, Any] = {"tol": _MARGIN_TOL, "n_jobs": table.n_jobs, "random_state": table.seed}
        machines = [MaxMarginClassifier(C=C / length, **given) for C in _MARGIN_C]
        return self._estimators("max-margin", machines)

    def _linear(self) -> Member:
        return self._ridge("linear", lambda fold: LinearKernel(), "linear kernel")

    def _rbf(self) -> Member:
        return self._ridge("rbf", lambda fold: self._width, f"{self._width}")

    def _both(self) -> Member:
        self._grow()

        def kernel_of(fold: int) -> Kernel:
            half, other = ScaledKernel(self._width, 0.5), ScaledKernel(ForestKernel(self.forests[fold]), 0.5)
            return half + other

        words = f"half of {self._width} and of the share of trees in one leaf"
        return self._ridge("rbf+forest", kernel_of, words)

    def _forest(self) -> Member:
        self._grow()
        table = self.table
        scores = np.empty_like(table.targets)
        for forest, (train, held) in zip(self.forests, table.splits(), strict=False):
            scores[held] = _leaves(forest, table.rows(train)).scores(table.features.rows(held))
        return Member("forest", scores, _leaves(self.forests[-1], table), f"{table.n_trees} trees")

    def _grow(self) -> None:
        """Grow the forests of all folds, and that of all rows as the last one."""
        if self.forests:
            return
        grown = []
        for train, _ in (*self.table.splits(), (np.arange(len(self.table.targets)), None)):
            grown.append(grow(self.table.rows(train)))
            self.on_step("forest")
        self.forests = grown

    def _ridge(self, name: str, kernel_of: Callable[[int], Kernel], words: str) -> Member:
        """Fit ridge regressions with a kernel a fold, the last one for all rows."""
        table = self.table
        scores = np.empty((len(_PENALTIES), *table.targets.shape))
        for fold, (train, held) in enumerate(table.splits()):
            ridge = KernelRidge(kernel_of(fold), table.rows(train))
            scores[:, held] = ridge.scores(table.features.rows(held))
            self.on_step(name)
        best = int(np.argmin([table.loss(one) for one in scores]))
        scorer = KernelRidge(kernel_of(-1), table).scorer(_PENALTIES[best])
        self.on_step(name)
        return Member(name, scores[best].copy(), scorer, f"{words}, penalty {_PENALTIES[best]:.3g}")


class KernelRidge:
    """Ridge regressions of all labels, exact for few rows, else on some columns of the kernel matrix."""

    def __init__(self, kernel: Kernel, table: TrainingTable) -> None:
        self.kernel, self.table = kernel, table
        features, n = table.features, len(table.targets)
        if n <= table.pivots:
            self.support, self.triangle = np.arange(n), None
            self.ridge: LeftOutRidge = LeftOutRidge(kernel.block(features, features), table.weights)
            return
        found = incomplete_cholesky(KernelSource(kernel, features), table.pivots, Workers(), table.seed)
        self.support, self.triangle = found.active_rows, found.factor[found.active_rows]
        self.ridge = LeftOutFactorRidge(found.factor, table.weights)

    def _coefficients(self, penalty: float) -> tuple[Array, Array]:
        """Give coefficients of the support rows, and intercepts."""
        found, intercepts = self.ridge.coefficients(self.table.targets, penalty)
        if self.triangle is not None:
            found = sl.solve_triangular(self.triangle, found, lower=True, trans="T")
        return found, intercepts

    def scores(self, features: FeatureMatrix) -> Array:
        """Score rows with every penalty: shape (penalties, n, L)."""
        block = self.kernel.block(features, self.table.features.rows(self.support))
        fits = (self._coefficients(penalty) for penalty in _PENALTIES)
        return np.stack([block @ coefficients + intercepts for coefficients, intercepts in fits])

    def scorer(self, penalty: float) -> Scorer:
        """Make what scores new rows."""
        coefficients, intercepts = self._coefficients(penalty)
        vectors = self.table.features.rows(self.support).data
        return kernel_scorer([self.kernel], intercepts, [coefficients], self.support, vectors)


def filled_targets(table: TrainingTable) -> RowsByLabels:
    """Put the labels' means where targets are missing."""
    known = ~np.isnan(table.targets)
    means = np.where(known, table.targets, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, table.targets, means)


def grow(table: TrainingTable) -> Forest:
    """Grow a forest on all labels together, missing ones at their means, many projected to few."""
    from sklearn.ensemble import RandomForestRegressor

    targets = filled_targets(table)
    targets = targets - targets.mean(axis=0)
    if targets.shape[1] > _MOST_TARGETS:
        _, vectors = sl.eigh(targets.T @ targets)
        targets = targets @ vectors[:, -_MOST_TARGETS:]
    trees = RandomForestRegressor(
        table.n_trees, max_features="sqrt", random_state=table.seed, n_jobs=table.n_jobs
    )
    trees.fit(
        single(table.features.data),
        targets.squeeze(axis=1) if targets.shape[1] == 1 else targets,
        table.weights,
    )
    return Forest.of_trees([tree.tree_ for tree in trees.estimators_])


def _leaves(forest: Forest, table: TrainingTable) -> ForestScorer:
    return ForestScorer.of_rows(forest, table.features.data, table.targets, table.weights)
