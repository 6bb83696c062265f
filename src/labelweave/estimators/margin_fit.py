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

from labelweave.arrays import Workers
from labelweave.features.gram import GramSource
from labelweave.problems import (
    GramMargins,
    MarginBox,
    MarginData,
    Resources,
    feature_bytes,
    feature_margins,
    kernel_margins,
    make_margin_dual,
)
from labelweave.solvers import (
    AlternatingDirections,
    DualCoordinateAscent,
    SolverResult,
    SplitState,
    Status,
    TraceRecord,
)

__all__ = ["MarginFit", "MarginSettings", "fit_explicit", "fit_kernel"]

Array = npt.NDArray[Any]

_SINGLE_PRECISION_TOL = 1e-5  # rounding in single precision hides gaps below this
_SINGLE_PRECISION_BOUND = 1e5  # ... and below the largest dual variable over this
_FEW_ROWS = 1000  # for so few, double precision costs nothing
_WIDEST = 2000  # features of which a square matrix is factorised
_LARGEST_SINGLE = 1e15  # squared norms beyond which products leave the range of float32


@dataclass(frozen=True)
class MarginSettings:
    """How to solve, as the estimator's parameters say.

    Parameters
    ----------
    solver : str
        "auto" or one by name.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        The largest number of rounds.
    precision : {"auto", "float32", "float64"}
        Arithmetic while solving.
    factorization : str
        Of the kernel matrix.
    memory_budget : float
        Megabytes for what grows with pairs of rows.
    n_threads : int
        Threads.
    seed : int
        Fixes what is random.
    on_check : callable
        Gets the trace records; a true result ends the fit.
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

    Parameters
    ----------
    result : SolverResult
        How the solver ended.
    intercepts : ndarray of float64, shape (L,)
        The intercepts.
    weights : ndarray of float64, shape (L, d), or None
        The weights of explicit features.
    dual_coefficients : ndarray of float64, shape (m, L), or None
        The coefficients of the support rows.
    support : ndarray of int, shape (m,), or None
        The support rows.
    """

    result: SolverResult
    intercepts: Array
    weights: Array | None = None
    dual_coefficients: Array | None = None
    support: Array | None = None


def fit_explicit(data: MarginData, source: GramSource, settings: MarginSettings) -> MarginFit:
    """Fit weights of explicit features.

    Parameters
    ----------
    data : MarginData
        The problem.
    source : GramSource
        The dot products of the features, for solvers that work on them.
    settings : MarginSettings
        How to solve.

    Returns
    -------
    MarginFit
        With ``weights``.
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

    Parameters
    ----------
    data : MarginData
        The problem.
    source : GramSource
        The kernel matrix.
    settings : MarginSettings
        How to solve.

    Returns
    -------
    MarginFit
        With ``dual_coefficients`` and ``support``.

    Raises
    ------
    ValueError
        If the solver needs explicit features, or the memory budget is too small.
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
    """Tell whether one factorisation serves: features are dense, and they or the rows are few."""
    if data.features.is_sparse:
        return False
    n, d = data.features.shape
    budget = 1e6 * settings.memory_budget
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
    box = MarginBox.make(data.labels, data.upper, data.margins)
    n, d = data.features.shape
    use_features = is_linear and d < n and d <= _WIDEST

    def problem(dtype: npt.DTypeLike) -> GramMargins:
        resources = Resources(
            workers, dtype, 1e6 * settings.memory_budget, settings.factorization, settings.seed
        )
        constant = float(data.intercept)
        if use_features:
            return feature_margins(box, data.features, constant, data.covariance, resources)
        return kernel_margins(box, source, constant, data.covariance, resources)

    with Workers(settings.n_threads).running() as workers:
        solved, result = _alternate(problem, settings, _first_precision(data, settings))
    return data.covariance.matmul(solved.result.kept), result


def _first_precision(data: MarginData, settings: MarginSettings) -> Any:
    if settings.precision != "auto":
        return np.dtype(settings.precision)
    few = len(data.features) <= _FEW_ROWS
    small = data.features.squared_norms().max(initial=0.0) < _LARGEST_SINGLE
    return np.float32 if settings.tol >= _SINGLE_PRECISION_TOL and small and not few else np.float64


def _alternate(
    problem: Callable[[npt.DTypeLike], GramMargins], settings: MarginSettings, dtype: npt.DTypeLike
) -> tuple[GramMargins, SolverResult]:
    """Solve, in double precision where rounding in single precision proves too coarse."""
    solver = AlternatingDirections(settings.tol, settings.max_iter, settings.on_check)
    first = problem(dtype)
    result, state = solver.solve(first)
    exhausted = result.status is not Status.STALLED or settings.precision != "auto"
    if exhausted or np.dtype(dtype) == np.float64:
        return first, result
    del first
    second = problem(np.float64)
    rest = AlternatingDirections(settings.tol, settings.max_iter - result.n_iter, settings.on_check)
    more, _ = rest.solve(second, _in_double_precision(state))
    return second, result.followed_by(more)


def _in_double_precision(state: SplitState) -> SplitState:
    free, boxed, shift = (part.astype(np.float64) for part in (state.free, state.boxed, state.shift))
    return SplitState(free, boxed, shift, state.penalty)
