"""Fits of the low-rank model: by alternating minimisation, or exactly where that is cheaper."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.array_types import Array, PerLabel, PerRow
from labelweave.arrays import Workers
from labelweave.estimators.low_rank.label_starts import first_label_factor
from labelweave.features import FeatureMatrix
from labelweave.features.factor_maps import DenseMap, FactorMap, KernelMap, SparseMap
from labelweave.features.gram import Pivoting, choose_gram
from labelweave.features.gram.incomplete_cholesky import incomplete_cholesky
from labelweave.features.gram.sources import GramSource, RowsOfSource
from labelweave.features.sparse_products import SparseProducts
from labelweave.labels import LabelMatrix
from labelweave.problems.label_entries import LabelEntries, choose_entries
from labelweave.problems.low_rank_factors import LowRankFactors, Penalty
from labelweave.problems.reduced_rank_ridge import ReducedRankRidge, RidgeSizes
from labelweave.solvers import Status
from labelweave.solvers.alternating_minimization import AlternatingMinimization, RoundRecord

__all__ = [
    "FittedFactors",
    "LowRankData",
    "LowRankSettings",
    "ReadyRows",
    "fit_factors",
]


_INNER = 200  # iterations of conjugate gradients at most
_STEPS = 3  # Newton steps in a half step
_HUGE = {8: 1e100, 4: 1e12}  # entries whose squares, in sums over rows, may overflow; by bytes of an entry


@dataclass(frozen=True)
class LowRankSettings:
    """How to fit.

    loss: the loss of an entry.
    constant: the constant feature; 0 for none.
    negative_weight: weight of entries that are not positive.
    start: where the labels' factor starts.
    tol: share of the objective by which a round must lower it for another one.
    max_iter: the largest number of rounds.
    dtype: the type of the factors.
    low_rank: columns of an incomplete Cholesky factor that stands for a kernel matrix.
    memory_budget: megabytes for a kernel matrix.
    on_round: gets every record; a true result ends the fit.
    """

    rank: int
    loss: str
    penalty: Penalty
    regularization: float
    constant: float
    negative_weight: float
    start: str
    tol: float
    max_iter: int
    dtype: npt.DTypeLike
    low_rank: int | None
    memory_budget: float
    workers: Workers
    seed: int
    on_round: Callable[[RoundRecord], bool]


@dataclass(frozen=True)
class LowRankData:
    """The rows.

    explicit: features whose dot products are the kernel.
    source: the kernel matrix, if there are no such features.
    """

    labels: LabelMatrix
    weights: PerRow
    explicit: FeatureMatrix | None
    source: GramSource | None

    def rows(self, kept: Array) -> LowRankData:
        """Keep some rows."""
        explicit = None if self.explicit is None else self.explicit.rows(kept)
        source = None if self.source is None else RowsOfSource(self.source, kept)
        return LowRankData(self.labels[kept], self.weights[kept], explicit, source)


@dataclass(frozen=True)
class FittedFactors:
    """A fitted model: scores are ``(phi(x) W) H^T + intercepts``.

    feature_factor (m, k): W, for features or for the support rows of a kernel.
    support (m,): the support rows, for a kernel.
    lower_bound: A bound of the objective of factors of any rank; minus infinity if there is none.
    Shapes: label_factor (L, k).
    """

    feature_factor: Array
    label_factor: Array
    intercepts: PerLabel
    support: Array | None
    status: Status
    trace: list[RoundRecord]
    objective: float
    lower_bound: float


class ReadyRows:
    """What all fits to the same rows share, whatever their rank and regularisation; made when first used.

    settings: how to fit with the largest rank; the regularisation does not matter.
    is_kept: whether there will be more than one fit.
    """

    def __init__(self, data: LowRankData, settings: LowRankSettings, *, is_kept: bool) -> None:
        self.data, self.settings, self.is_kept = data, settings, is_kept
        self.explicit = data.explicit
        self.active: Array | None = None
        self.triangle: Array | None = None
        if data.explicit is None:
            self._read_source()
        else:
            _refuse_huge_entries(data.explicit, np.dtype(settings.dtype))

    def _read_source(self) -> None:
        source, settings = self.data.source, self.settings
        assert source is not None, "there are features or a kernel"
        self.active = np.arange(source.n_rows)
        if settings.low_rank is not None:
            pivoting = Pivoting(min(settings.low_rank, source.n_rows), seed=settings.seed)
            made = incomplete_cholesky(source, pivoting, settings.workers)
            self.explicit = FeatureMatrix(made.factor)
            self.active, self.triangle = made.active_rows, made.factor[made.active_rows]

    @cached_property
    def factor_map(self) -> FactorMap:
        """The features' side."""
        settings = self.settings
        workers, dtype, constant = settings.workers, settings.dtype, settings.constant
        if self.explicit is None:
            assert self.data.source is not None, "there are features or a kernel"
            gram = choose_gram(
                self.data.source, None, settings.rank, settings.memory_budget * 1e6, workers,
                dtype=dtype, constant=constant**2,
            )  # fmt: skip
            return KernelMap(gram)
        table = self.explicit.data
        if self.explicit.is_sparse:
            return SparseMap(SparseProducts(table, dtype, workers), constant, workers)
        return DenseMap(np.ascontiguousarray(table, dtype), constant, workers)

    @cached_property
    def entries(self) -> LabelEntries:
        """The loss."""
        settings = self.settings
        weights = np.asarray(self.data.weights, settings.dtype)
        return choose_entries(
            self.data.labels, settings.loss, weights, settings.negative_weight, settings.workers
        )

    @cached_property
    def ridge(self) -> ReducedRankRidge:
        """The problem as one that has an exact solution."""
        data, settings = self.data, self.settings
        return ReducedRankRidge.of(
            self.explicit, data.source, settings.constant, data.labels.positives, data.weights,
            settings.workers, is_kept=self.is_kept,
        )  # fmt: skip

    @cached_property
    def _sizes(self) -> RidgeSizes:
        n_labels = self.data.labels.n_labels
        return RidgeSizes.of(self.explicit, self.data.source, self.settings.constant, n_labels)

    @property
    def mean_square(self) -> float:
        """The mean squared length of a row, the constant feature included."""
        return self._sizes.trace / max(1, self._sizes.rows)

    def is_exact(self, settings: LowRankSettings) -> bool:
        """Tell whether a fit is solved exactly.

        Returns whether it is: the squared loss of labels that are all observed with the ridge penalty, if
            that is cheaper and fits into memory.
        """
        if settings.loss != "squared" or settings.penalty != "ridge" or settings.negative_weight != 1:
            return False
        budget = settings.memory_budget * 1e6
        return not self.data.labels.has_missing and self._sizes.suit(
            settings.regularization, self.settings.rank, budget, is_kept=self.is_kept
        )


def fit_factors(
    data: LowRankData,
    settings: LowRankSettings,
    start: Array | None = None,
    ready: ReadyRows | None = None,
) -> FittedFactors:
    """Fit.

    start (L, k): the labels' factor of an earlier fit to go on from.
    ready: the same rows, for more than one fit.
    """
    ready = ReadyRows(data, settings, is_kept=False) if ready is None else ready
    if ready.is_exact(settings):
        return _fit_exactly(ready, settings)
    if start is None:
        start = first_label_factor(data.labels, settings.rank, settings.start, settings.seed, data.weights)
    pair = LowRankFactors(
        ready.entries, ready.factor_map, settings.penalty, settings.regularization,
        start.astype(settings.dtype), settings.workers,
    )  # fmt: skip
    solver = AlternatingMinimization(settings.tol, settings.max_iter, _INNER, _STEPS, settings.on_round)
    status, trace = solver.run(pair)
    pair.refresh()
    pair.settle()
    features, constant_row = _split(pair.feature_factor, ready, settings)
    return FittedFactors(
        feature_factor=np.asarray(features, settings.dtype),
        label_factor=pair.label_factor,
        intercepts=np.asarray(constant_row @ pair.label_factor.T, np.float64),
        support=ready.active,
        status=status,
        trace=trace,
        objective=pair.objective(),
        lower_bound=pair.lower_bound(),
    )


def _fit_exactly(ready: ReadyRows, settings: LowRankSettings) -> FittedFactors:
    begin = time.perf_counter()
    found = ready.ridge.fit(settings.regularization, settings.rank)
    features, constant_row = _split(found.features, ready, settings)
    seconds = time.perf_counter() - begin
    record = RoundRecord(1, seconds, found.objective, np.inf, 0, 0)
    settings.on_round(record)
    return FittedFactors(
        feature_factor=np.asarray(features, settings.dtype),
        label_factor=np.asarray(found.labels, settings.dtype),
        intercepts=constant_row @ found.labels.T,
        support=ready.active,
        status=Status.CONVERGED,
        trace=[record],
        objective=found.objective,
        lower_bound=-np.inf,
    )


def _split(factor: Array, ready: ReadyRows, settings: LowRankSettings) -> tuple[Array, Array]:
    """Part the features' factor from what makes intercepts; turn it to coefficients of support rows."""
    constant = settings.constant
    if ready.explicit is None:
        return factor, constant**2 * factor.sum(axis=0, dtype=np.float64)
    constant_row = np.zeros(factor.shape[1])
    if constant:
        factor, constant_row = factor[:-1], constant * factor[-1].astype(np.float64)
    if ready.triangle is not None:
        factor = sl.solve_triangular(ready.triangle, factor.astype(np.float64), lower=True, trans="T")
    return factor, constant_row


def _refuse_huge_entries(features: FeatureMatrix, dtype: np.dtype[Any]) -> None:
    entries = features.data.data if features.is_sparse else features.data
    largest = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
    if largest > _HUGE[dtype.itemsize]:
        raise ValueError(
            f"X has entries up to {largest:.1e} in size, whose squares may overflow {dtype}; entries up to "
            f"{_HUGE[dtype.itemsize]:.0e} are allowed, so scale the features."
        )
