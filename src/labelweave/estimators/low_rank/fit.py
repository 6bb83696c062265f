"""Fits of the low-rank model: by alternating minimization, or exactly where that is cheaper."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp

from labelweave.estimators.journal import Journal
from labelweave.estimators.low_rank.starts import Start, continued, first_label_factor
from labelweave.estimators.seen_rows import carried_columns
from labelweave.features import FeatureMatrix
from labelweave.features.factor_maps import FactorMap, KernelMap, explicit_map
from labelweave.features.gram import choose_gram
from labelweave.features.gram.low_rank import COLUMNS_APART, GrowingRows, incomplete_cholesky
from labelweave.features.gram.sources import GramSource, RowsOfSource
from labelweave.foundation.array_types import Array, PerLabel, PerRow
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import placed, to_numpy
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.covariance import FactorCovariance
from labelweave.labels.targets import TargetForm
from labelweave.problems.label_entries import EntryWeights, LabelEntries
from labelweave.problems.losses.entry_losses import EntryLoss
from labelweave.problems.low_rank_factors import LowRankFactors, Penalty, RowsLoss, make_entry_loss
from labelweave.problems.reduced_rank_ridge import ReducedRankRidge, RidgeSizes
from labelweave.solvers import Status, TraceRecord
from labelweave.solvers.alternating_minimization import AlternatingMinimization, AlternatingState

_INNER = 200  # maximum of conjugate gradient iterations
_STEPS = 3  # Newton steps in a half step
_HUGE = {8: 1e100, 4: 1e12}  # entries whose squares, in sums over rows, may overflow; by bytes of an entry
_USUAL_SIZE = 1e4  # of features: starts of size 1 suffice between its inverse and it
_NO_VARIANCE = 1e-12  # of the largest eigenvalue of a label covariance


def columns_for_rank(rank: Any, n_labels: int) -> int:
    """Convert a rank, a number of columns (int) or a share of the labels (float), to at least one column."""
    return int(rank) if isinstance(rank, Integral) else max(1, round(rank * n_labels))


def largest_rank(n_rows: int, n_features: int | None, n_labels: int, fit_intercept: bool) -> int:
    """Return the largest possible rank of a product of factors; n_features is None for a kernel."""
    width = n_rows if n_features is None else min(n_rows, n_features + fit_intercept)
    return max(1, min(width, n_labels))


@dataclass(frozen=True)
class LowRankSettings:
    """How to fit.

    constant: the constant feature; 0 for none.
    tol: the share of the objective by which a round must decrease it to be followed by another one.
    kernel_rank: columns of an incomplete Cholesky factor that approximates a kernel matrix.
    memory_budget: megabytes for a kernel matrix.
    most: the upper bound of the trace norm.
    on_round: receives every record, and a function that makes the model; returning true ends the fit.
    """

    rank: int
    loss: str | EntryLoss
    penalty: Penalty
    alpha: float
    constant: float
    negative_weight: float
    init: str
    tol: float
    max_iter: int
    dtype: npt.DTypeLike
    kernel_rank: int | None
    memory_budget: float
    workers: Workers
    seed: int
    on_round: Callable[..., bool]
    journal: Journal
    most: float = np.inf


@dataclass(frozen=True)
class LowRankData:
    """The rows.

    explicit: features whose dot products are the kernel.
    factors: further factors of the entries' weights.
    covariance: of the label factor; None where labels are independent.
    known: factors of prior scores, of rows (n, c) and of labels (L, c).
    """

    labels: LabelMatrix
    weights: PerRow
    explicit: FeatureMatrix | None
    source: GramSource | None
    factors: EntryWeights | None = None
    covariance: LabelCovariance | None = None
    known: tuple[Array, Array] | None = None

    @property
    def has_row_coefficients(self) -> bool:
        return self.explicit is None

    @cached_property
    def root(self) -> Any:
        """U with R = U U^T, of shape (L, q), sparse for a tree; None where labels are independent."""
        covariance = self.covariance
        if covariance is None:
            return None
        if isinstance(covariance, FactorCovariance) and sp.issparse(covariance.factor):
            own = np.sqrt(covariance.own_variance)
            kept = np.flatnonzero(own)
            alone = sp.csr_array((own[kept], (kept, np.arange(len(kept)))), (len(own), len(kept)))
            return sp.csr_array(sp.hstack([covariance.factor, alone]))
        values, vectors = covariance.spectrum()
        there = values > _NO_VARIANCE * values.max(initial=0.0)
        return np.ascontiguousarray(vectors[:, there] * np.sqrt(values[there]))

    def first_factor(self, rank: int, init: str, seed: int) -> Array:
        """Return the initial label factor of a fit without a warm start."""
        first = first_label_factor(self.labels, rank, init, seed, self.weights)
        return first if self.root is None else np.asarray(self.root.T @ first)

    def rows(self, kept: Array) -> LowRankData:
        return replace(
            self,
            labels=self.labels[kept],
            weights=self.weights[kept],
            explicit=None if self.explicit is None else self.explicit.rows(kept),
            source=None if self.source is None else _some_of(self.source, kept),
            factors=None if self.factors is None else self.factors.rows(kept),
            known=None if self.known is None else (self.known[0][kept], self.known[1]),
        )


@dataclass(frozen=True)
class FittedFactors:
    """A fitted model: scores are ``(phi(x) W) H^T + intercepts``.

    feature_factor (m, k): W, for features or for the support rows of a kernel.
    support (m,): the support rows, for a kernel.
    end: the state for a warm start.
    lower_bound: a bound of the objective of factors of any rank, or of this rank where the solution is
        exact; minus infinity if there is none.
    size: with a bound of the trace norm, its value without the bound.
    Shapes: label_factor (L, k).
    """

    feature_factor: Array
    label_factor: Array
    intercepts: PerLabel
    support: Array | None
    status: Status
    trace: list[TraceRecord]
    end: Start
    objective: float
    lower_bound: float = -np.inf
    size: float = np.nan

    def spread(self, rows: Array, n_rows: int) -> FittedFactors:
        """Return the model for more rows, where these are ``rows``; others get coefficients of 0."""
        if self.support is None:
            return self
        return replace(self, support=rows[self.support], end=self.end.spread(rows, n_rows))


def _some_of(source: GramSource, kept: Array) -> GramSource:
    if isinstance(source, GrowingRows):
        return source.of_rows(kept)
    return RowsOfSource(source, kept)


class ReadyRows:
    """What all fits to the same rows share, whatever their rank and penalty; computed on first use.

    settings: how to fit with the largest rank; the regularization is ignored.
    is_kept: whether there will be more than one fit.
    """

    def __init__(self, data: LowRankData, settings: LowRankSettings, *, is_kept: bool) -> None:
        self.data, self.settings, self.is_kept = data, settings, is_kept
        self.explicit = data.explicit
        self.active: Array | None = None
        self.triangle: Array | None = None
        dtype = np.dtype(settings.dtype)
        if settings.constant > (most := _HUGE[dtype.itemsize]):
            raise ValueError(
                f"fit_intercept is {settings.constant:.1e}, whose square may overflow {dtype}; use a number "
                f"up to {most:.0e}."
            )
        if data.explicit is None:
            self._read_source()
        else:
            _refuse_huge_entries(data.explicit, dtype)

    def _read_source(self) -> None:
        source, settings = self.data.source, self.settings
        assert source is not None, "there are features or a kernel"
        self.active = np.arange(source.n_rows)
        rank = settings.kernel_rank
        if rank is None and isinstance(source, GrowingRows):
            rank = COLUMNS_APART
        if rank is not None:
            made = incomplete_cholesky(source, rank, settings.workers, settings.seed)
            self.explicit, self.active, self.triangle = made.features, made.active_rows, made.triangle

    @cached_property
    def factor_map(self) -> FactorMap:
        settings = self.settings
        workers, dtype, constant = settings.workers, settings.dtype, settings.constant
        if self.explicit is None:
            assert self.data.source is not None, "there are features or a kernel"
            gram = choose_gram(
                self.data.source, None, settings.rank, settings.memory_budget * 1e6, workers,
                dtype=dtype, constant=constant**2,
            )  # fmt: skip
            return KernelMap(gram)
        explicit = self.explicit.astype(dtype)
        return explicit_map((explicit.with_constant(constant) if constant else explicit).data, dtype, workers)

    @cached_property
    def sides(self) -> tuple[LabelEntries, FactorMap]:
        """The loss, and the map from the feature factor to its scores."""
        data, settings = self.data, self.settings
        if self._size**2 < np.finfo(settings.dtype).tiny:
            raise ValueError(
                f"X has entries up to {self._size:.1e}, whose squares are 0 in {np.dtype(settings.dtype)}; "
                "scale the features up."
            )
        loss = RowsLoss(
            data.labels, data.weights, settings.loss, settings.negative_weight, settings.dtype,
            data.factors, data.known,
        )  # fmt: skip
        return self.factor_map.under(loss, settings.workers)

    def first_factor(self, rank: int) -> Array:
        """Return the initial label factor of a fit without a warm start.

        Features s times as large have an optimal pair of factors that are 1 / sqrt(s) times as large; from
        other starts a trace norm would lead to 0 first.
        """
        first = self.data.first_factor(rank, self.settings.init, self.settings.seed)
        is_usual = 1 / _USUAL_SIZE <= self._size <= _USUAL_SIZE
        return first if is_usual else first / np.sqrt(self._size)

    @cached_property
    def _size(self) -> float:
        """The largest entry of a row, including the constant feature, or for a kernel the longest row."""
        if self.explicit is not None:
            largest = self.explicit.largest_entry()
        else:
            assert self.data.source is not None, "there are features or a kernel"
            largest = float(np.sqrt(np.max(self.data.source.diagonal(), initial=0.0)))
        return max(largest, self.settings.constant) or 1.0

    @cached_property
    def label_map(self) -> FactorMap | None:
        """The map of the label side; None where scores are linear in the label factor itself."""
        root, settings = self.data.root, self.settings
        return None if root is None else explicit_map(root, settings.dtype, settings.workers)

    @cached_property
    def ridge(self) -> ReducedRankRidge:
        """The problem in a form with an exact solution."""
        data, settings = self.data, self.settings
        return ReducedRankRidge.of(
            self.explicit, data.source, settings.constant, data.labels.expected_positives, data.weights,
            settings.workers, is_kept=self.is_kept,
        )  # fmt: skip

    @cached_property
    def _sizes(self) -> RidgeSizes:
        n_labels = self.data.labels.n_labels
        return RidgeSizes.of(self.explicit, self.data.source, self.settings.constant, n_labels)

    @property
    def mean_square(self) -> float:
        """The mean squared length of a row, including the constant feature."""
        return self._sizes.trace / max(1, self._sizes.rows)

    def largest_alpha(self) -> float:
        """Compute the least lambda at which the trace norm forces all weights to 0; infinity if not found."""
        width = self.data.labels.n_labels if self.label_map is None else self.label_map.shape[1]
        zero, workers = placed(np.zeros((width, 1), self.settings.dtype)), self.settings.workers
        problem = LowRankFactors(*self.sides, "trace_norm", 1.0, zero, workers, self.label_map)
        return problem.gradient_length(problem.start())

    def is_exact(self, settings: LowRankSettings) -> bool:
        """Whether a fit is solved exactly: squared loss, ridge penalty, fully observed, and cheaper."""
        if settings.loss != "squared_error" or settings.penalty != "ridge" or settings.negative_weight != 1:
            return False
        data = self.data
        if not (data.factors is None and data.covariance is None and data.known is None):
            return False
        budget = settings.memory_budget * 1e6
        return not self.data.labels.has_missing and self._sizes.suit(
            settings.alpha, self.settings.rank, budget, is_kept=self.is_kept
        )


def fit_factors(
    ready: ReadyRows, settings: LowRankSettings, start: Start | None = None, stage: str = "all rows"
) -> FittedFactors:
    """Fit rows, as a stage of the journal; an exact fit is no stage, and needs no start."""
    if ready.is_exact(settings):
        return _fit_exactly(ready, settings)
    start = (start or Start(ready.first_factor(settings.rank))).at_rank(settings.rank)
    problem = LowRankFactors(
        *ready.sides, settings.penalty, settings.alpha,
        placed(start.labels.astype(settings.dtype)), settings.workers, ready.label_map,
    )  # fmt: skip
    features, start = start.features, None
    solver = AlternatingMinimization(settings.tol, settings.max_iter, _INNER, _STEPS)

    def made(state: AlternatingState, status: Status) -> FittedFactors:
        pair, size = problem.settled(problem.refreshed(state.pair)), np.nan
        if settings.most < np.inf:
            size = problem.loss_and_penalty(pair)[1] / settings.alpha
            pair = problem.within(pair, settings.most)
        end = Start(*map(to_numpy, (problem.label_factor(pair), pair.features)))
        end = end if ready.triangle is None else replace(end, features=None)
        is_convex = make_entry_loss(settings.loss).is_convex
        bound = problem.lower_bound(pair, settings.most) if is_convex else -np.inf
        factors = to_numpy(pair.features), to_numpy(pair.labels)
        found = _fitted(ready, settings, *factors, status, list(state.trace), end)
        loss, penalty = problem.loss_and_penalty(pair)
        objective = loss + penalty if settings.most == np.inf else loss
        return replace(found, objective=objective, lower_bound=bound, size=size)

    def on_check(record: TraceRecord, state: AlternatingState) -> bool:
        return settings.on_round(record, lambda: made(state, Status.INTERRUPTED))

    begin = None
    if features is not None:
        pair = problem.pair_of(placed(features.astype(settings.dtype)))
        pair = problem.revived(pair, lambda: ready.first_factor(settings.rank))
        begin = AlternatingState(pair=pair, last=problem.objective(pair))
    result, state = settings.journal.run(stage, solver, problem, begin, on_check)
    return made(state, result.status)


def _fit_exactly(ready: ReadyRows, settings: LowRankSettings) -> FittedFactors:
    begin = time.perf_counter()
    found = ready.ridge.fit(settings.alpha, settings.rank, settings.dtype)
    found = replace(found, features=to_numpy(found.features), labels=to_numpy(found.labels))
    largest = float(np.abs(found.features).max(initial=0.0))
    if not largest <= float(np.finfo(settings.dtype).max):
        raise ValueError(
            f"The fit has weights up to {largest:.1e}, above the range of {np.dtype(settings.dtype)}; scale "
            "X or alpha, or use dtype='float64'."
        )
    seconds = time.perf_counter() - begin
    record = TraceRecord(
        1, seconds, found.objective, decrease=np.inf, feature_iterations=0, label_iterations=0
    )
    settings.on_round(record)
    end = Start(found.labels)
    fitted = _fitted(ready, settings, found.features, found.labels, Status.SETTLED, [record], end)
    return replace(fitted, lower_bound=found.objective - found.rounding)


def _fitted(
    ready: ReadyRows,
    settings: LowRankSettings,
    factor: Array,
    labels: Array,
    status: Status,
    trace: list[TraceRecord],
    end: Start,
) -> FittedFactors:
    """Separate the feature factor from the intercepts; convert it to coefficients of support rows."""
    constant, labels = settings.constant, np.array(labels, settings.dtype)
    if ready.label_map is None:
        labels[ready.data.labels.observed_counts() == 0] = 0.0  # exactly: what is left would be predicted
    if ready.explicit is None:
        constant_row = constant**2 * factor.sum(axis=0, dtype=np.float64)
    elif constant:
        factor, constant_row = factor[:-1], constant * factor[-1].astype(np.float64)
    else:
        constant_row = np.zeros(factor.shape[1])
    if ready.triangle is not None:
        factor = sl.solve_triangular(ready.triangle, factor.astype(np.float64), lower=True, trans="T")
    return FittedFactors(
        np.asarray(factor, settings.dtype), labels,
        np.asarray(constant_row @ labels.T, np.float64), ready.active, status, trace, end,
        trace[-1].objective if trace else np.nan,
    )  # fmt: skip


def _refuse_huge_entries(features: FeatureMatrix, dtype: np.dtype[Any]) -> None:
    largest = features.largest_entry()
    if largest > _HUGE[dtype.itemsize]:
        raise ValueError(
            f"X has entries up to {largest:.1e}, whose squares may overflow {dtype}; scale the features to "
            f"at most {_HUGE[dtype.itemsize]:.0e}."
        )


@dataclass(frozen=True)
class End:
    """The end of the last fit; ``rows`` is how many had coefficients, None where factors are of features."""

    start: Start
    form: TargetForm
    rows: int | None

    def spread(self, kept: Array, n_rows: int) -> End:
        if self.rows is None:
            return self
        return replace(self, start=self.start.spread(kept, n_rows), rows=n_rows)

    def carried(self, data: LowRankData, form: TargetForm, settings: LowRankSettings) -> Start | None:
        """Return the start of a fit to other data, with new labels and rows at 0; None if labels differ."""
        columns, labels = carried_columns(self.form, form), self.start.labels
        size = data.labels.n_labels if data.root is None else data.root.shape[1]
        fits = len(labels) == size or (data.root is None and len(labels) < size)
        if columns is None or not fits:
            return None
        wider = np.zeros((size, labels.shape[1]), labels.dtype)
        wider[columns if data.root is None else slice(None)] = labels
        features = self.start.features
        if features is not None and (self.rows is not None) == data.has_row_coefficients:
            width = len(data.labels) if data.explicit is None else data.explicit.shape[1]
            width += settings.constant != 0 and data.explicit is not None
            missing = width - len(features)
            if missing == 0 or (missing > 0 and self.rows is not None):
                more = np.zeros((missing, features.shape[1]), features.dtype)
                return Start(wider, np.vstack([features, more]) if missing else features)
        first = data.first_factor(settings.rank, settings.init, settings.seed)
        return Start(continued(wider, first, settings.rank))
