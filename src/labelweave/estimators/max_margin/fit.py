"""Fits of the max-margin model: which solver, on which form of the problem.

What the feature side offers decides.  Sparse rows of explicit features are walked by
dual coordinate ascent.  A kernel matrix, or dense features of few dimensions, has one
factorisation that all labels share, and alternating directions take global steps with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, PerLabel
from labelweave.arrays import Workers
from labelweave.features import FeatureMatrix
from labelweave.features.gram.sources import GramSource, RowsOfSource
from labelweave.problems import (
    BlockMargins,
    GramMargins,
    MarginBox,
    MarginData,
    Resources,
    SettledMargins,
    WorkingSetMargins,
    feature_bytes,
    feature_margins,
    kernel_margins,
    make_margin_dual,
)
from labelweave.solvers import (
    AlternatingDirections,
    BlockAscent,
    DualCoordinateAscent,
    SolverResult,
    SplitState,
    Status,
    TraceRecord,
    WorkingSetAscent,
)

__all__ = ["MarginFit", "MarginSettings", "MarginTask", "fit_explicit", "fit_kernel"]


_SINGLE_PRECISION_TOL = 1e-5  # rounding in single precision hides gaps below this
_SINGLE_PRECISION_BOUND = 1e5  # ... and below the largest dual variable over this
_SINGLE_PRECISION_GAP = 5e-5  # what rounding leaves of the gap in steps of all variables together
_FEW_ROWS = 1000  # for so few, double precision costs nothing
_FEW_COUPLED_ROWS = 2500
_WIDEST = 2000  # features of which a square matrix is factorised
_LARGEST_SINGLE = 1e15  # squared norms beyond which products leave the range of float32


@dataclass(frozen=True)
class MarginSettings:
    """How to solve, as the estimator's parameters say.

    solver: "auto" or one by name.
    tol: the relative duality gap to reach.
    max_iter: the largest number of rounds.
    memory_budget: megabytes for what grows with pairs of rows.
    on_check: gets the trace records; a true result ends the fit.
    """

    solver: str
    tol: float
    max_iter: int
    precision: str
    factorization: str
    memory_budget: float
    n_threads: int
    seed: int
    on_check: Callable[[TraceRecord], bool]


@dataclass(frozen=True)
class MarginFit:
    """A fitted model.

    weights (L, d): the weights of explicit features.
    dual_coefficients (m, L): the coefficients of the support rows.
    Shapes: support (m,).
    """

    result: SolverResult
    intercepts: PerLabel
    weights: Array | None = None
    dual_coefficients: Array | None = None
    support: Array | None = None


@dataclass(frozen=True)
class MarginTask:
    """Rows to fit, with their kernel.

    source: the kernel matrix of the rows.
    explicit: the features that the kernel is the dot product of, if it has them.
    """

    data: MarginData
    source: GramSource
    explicit: FeatureMatrix | None
    settings: MarginSettings

    def part(self, kept: Array) -> MarginTask:
        """Keep some rows."""
        data = replace(
            self.data,
            features=self.data.features.rows(kept),
            labels=self.data.labels[kept],
            upper=self.data.upper[kept],
        )
        explicit = None if self.explicit is None else self.explicit.rows(kept)
        return replace(self, data=data, source=RowsOfSource(self.source, kept), explicit=explicit)

    def solve(self) -> MarginFit:
        """Fit them."""
        if self.explicit is None:
            return fit_kernel(self.data, self.source, self.settings)
        return fit_explicit(replace(self.data, features=self.explicit), self.source, self.settings)


def fit_explicit(data: MarginData, source: GramSource, settings: MarginSettings) -> MarginFit:
    """Fit weights of explicit features.

    source: the dot products of the features, for solvers that work on them.
    """
    solver = settings.solver
    if solver == "auto":
        solver = "alternating_directions" if _has_few_dimensions(data, settings) else "coordinate_ascent"
    if solver == "coordinate_ascent":
        return _fit_coordinates(data, settings)
    coefficients, result = _fit_on_gram(data, source, replace(settings, solver=solver), is_linear=True)
    features = data.features.data
    weights = np.asarray(features.T @ coefficients).T
    return MarginFit(result, data.intercept * coefficients.sum(axis=0), weights=np.ascontiguousarray(weights))


def fit_kernel(data: MarginData, source: GramSource, settings: MarginSettings) -> MarginFit:
    """Fit coefficients of support rows.

    Raises ValueError if the solver needs explicit features, or the memory budget is too small.
    """
    if settings.solver == "coordinate_ascent":
        raise ValueError(
            "solver='coordinate_ascent' walks explicit features, which this kernel does not have; use "
            "'alternating_directions', 'block_ascent' or 'working_set'."
        )
    solver = "alternating_directions" if settings.solver == "auto" else settings.solver
    coefficients, result = _fit_on_gram(data, source, replace(settings, solver=solver), is_linear=False)
    support = np.flatnonzero(coefficients.any(axis=1))
    intercepts = data.intercept * coefficients.sum(axis=0)
    return MarginFit(result, intercepts, dual_coefficients=coefficients[support], support=support)


def _has_few_dimensions(data: MarginData, settings: MarginSettings) -> bool:
    """Tell whether one factorisation serves: features or rows are few, and features dense or labels coupled.

    Sparse rows of coupled labels are slow by coordinates where R is ill-conditioned: 1,000 rows of
    RCV1 end at a gap of 2.5e-2 after 1,000 rounds, and at 1e-3 after seconds by global steps.
    """
    n, d = data.features.shape
    budget = 1e6 * settings.memory_budget
    if data.features.is_sparse:
        return not data.covariance.is_diagonal and n <= _FEW_COUPLED_ROWS and 36.0 * n * n <= budget
    if n <= d:
        return 16.0 * n * n <= budget
    return d <= _WIDEST and feature_bytes(n, d) <= budget


def _fit_coordinates(data: MarginData, settings: MarginSettings) -> MarginFit:
    largest = max(data.upper.max(initial=0.0) / _SINGLE_PRECISION_BOUND, _SINGLE_PRECISION_TOL)
    auto = np.float32 if settings.tol >= largest else np.float64
    dtype = auto if settings.precision == "auto" else np.dtype(settings.precision)
    dual = make_margin_dual(data, dtype)
    solver = DualCoordinateAscent(
        settings.tol, settings.max_iter, settings.n_threads, settings.seed, settings.on_check
    )
    result = solver.solve(dual)
    weights, intercepts = dual.solution()
    return MarginFit(result, intercepts, weights=weights)


def _fit_on_gram(
    data: MarginData, source: GramSource, settings: MarginSettings, *, is_linear: bool
) -> tuple[Array, SolverResult]:
    """Give the coefficients B R of all rows, shape (n, L)."""
    n, d = data.features.shape
    few_dimensions = is_linear and d < n and d <= _WIDEST
    with Workers(settings.n_threads).running() as workers:
        task = _GramTask(data, source, settings, workers, few_dimensions)
        solve = {
            "alternating_directions": task.alternate,
            "block_ascent": task.ascend_by_blocks,
            "working_set": task.ascend_by_pairs,
        }[settings.solver]
        settled, result = solve()
    return data.covariance.matmul(settled.kept), result


class _GramTask:
    """One fit on a kernel matrix, by any of the solvers that take one."""

    def __init__(
        self,
        data: MarginData,
        source: GramSource,
        settings: MarginSettings,
        workers: Workers,
        few_dimensions: bool,
    ) -> None:
        self.data, self.source, self.settings, self.workers = data, source, settings, workers
        self.few_dimensions, self.constant = few_dimensions, float(data.intercept)
        self.box = MarginBox.make(data.labels, data.upper, data.margins)

    def resources(self, dtype: npt.DTypeLike) -> Resources:
        settings = self.settings
        return Resources(
            self.workers, dtype, 1e6 * settings.memory_budget, settings.factorization, settings.seed
        )

    def alternate(self) -> tuple[SettledMargins, SolverResult]:
        """Take global steps, in double precision where rounding in single precision proves too coarse."""
        settings, dtype = self.settings, self.first_precision()
        coarse = dtype != np.float64 and settings.precision == "auto"
        solver = AlternatingDirections(
            settings.tol, settings.max_iter, settings.on_check, hands_over=coarse
        )  # fmt: skip
        first = self.split(dtype)
        result, state = solver.solve(first)
        if not (coarse and result.status in (Status.STALLED, Status.INDEFINITE)):
            return first.result, result
        del first
        second = self.split(np.float64)
        rest = AlternatingDirections(settings.tol, settings.max_iter - result.n_iter, settings.on_check)
        more, _ = rest.solve(second, _in_double_precision(state))
        return second.result, result.followed_by(more)

    def split(self, dtype: npt.DTypeLike) -> GramMargins:
        resources = self.resources(dtype)
        if self.few_dimensions:
            return feature_margins(
                self.box, self.data.features, self.constant, self.data.covariance, resources
            )
        return kernel_margins(self.box, self.source, self.constant, self.data.covariance, resources)

    def ascend_by_blocks(self) -> tuple[SettledMargins, SolverResult]:
        """Walk blocks of kernel rows."""
        settings, resources = self.settings, self.resources(self.first_precision())
        problem = BlockMargins(self.box, self.source, self.constant, self.data.covariance, resources)
        solver = BlockAscent(settings.tol, settings.max_iter, settings.seed, settings.on_check)
        result = solver.solve(problem)
        return problem.result, result

    def ascend_by_pairs(self) -> tuple[SettledMargins, SolverResult]:
        """Walk pairs of variables, the paper's Algorithm 1."""
        settings, resources = self.settings, self.resources(np.float64)
        problem = WorkingSetMargins(self.box, self.source, self.constant, self.data.covariance, resources)
        solver = WorkingSetAscent(settings.tol, settings.max_iter, settings.on_check)
        result = solver.solve(problem)
        return problem.result, result

    def first_precision(self) -> Any:
        data, settings = self.data, self.settings
        if settings.precision != "auto":
            return np.dtype(settings.precision)
        few = len(data.features) <= _FEW_ROWS
        small = data.features.squared_norms().max(initial=0.0) < _LARGEST_SINGLE
        # the gap that rounding leaves was seen to grow with the bound of the variables
        reachable = _SINGLE_PRECISION_GAP * max(1.0, data.upper.max(initial=0.0) / 2)
        single = settings.tol >= reachable and small and not few
        return np.dtype(np.float32 if single else np.float64)


def _in_double_precision(state: SplitState) -> SplitState:
    free, boxed, shift = (part.astype(np.float64) for part in (state.free, state.boxed, state.shift))
    return SplitState(free, boxed, shift, state.penalty)
