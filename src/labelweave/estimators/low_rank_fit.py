"""Fits of the low-rank model: the features' side, the labels' side, a start, and alternating minimisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from labelweave.arrays import Workers
from labelweave.features import FeatureMatrix
from labelweave.features.factor_maps import DenseMap, FactorMap, KernelMap, SparseMap
from labelweave.features.gram import Pivoting, choose_gram
from labelweave.features.gram.incomplete_cholesky import incomplete_cholesky
from labelweave.features.gram_sources import GramSource
from labelweave.features.sparse_products import SparseProducts
from labelweave.labels import LabelMatrix
from labelweave.problems.label_entries import choose_entries
from labelweave.problems.low_rank_factors import LowRankFactors, Penalty
from labelweave.solvers import Status
from labelweave.solvers.alternating_minimization import AlternatingMinimization, RoundRecord

__all__ = ["FittedFactors", "LowRankData", "LowRankSettings", "fit_factors", "largest_rank"]

Array = npt.NDArray[Any]

_INNER = 200  # iterations of conjugate gradients at most
_STEPS = 8  # Newton steps in a half step


@dataclass(frozen=True)
class LowRankSettings:
    """How to fit.

    Parameters
    ----------
    rank : int
        Columns of the factors.
    loss : {"squared", "logistic", "squared_hinge"}
        The loss of an entry.
    penalty : {"trace_norm", "ridge"}
        What is penalised.
    regularization : float
        lambda.
    constant : float
        The constant feature; 0 for none.
    negative_weight : float
        Weight of entries that are not positive.
    start : {"svd", "random"}
        Where the labels' factor starts.
    tol : float
        Share of the objective by which a round must lower it for another one.
    max_iter : int
        The largest number of rounds.
    dtype : dtype
        The type of the factors.
    low_rank : int or None
        Columns of an incomplete Cholesky factor that stands for a kernel matrix.
    memory_budget : float
        Megabytes for a kernel matrix.
    workers : Workers
        The threads.
    seed : int
        Fixes what is random.
    on_round : callable
        Gets every record; a true result ends the fit.
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

    Parameters
    ----------
    labels : LabelMatrix of n rows
        The labels.
    weights : ndarray of float64, shape (n,)
        The rows' weights.
    explicit : FeatureMatrix of n rows, or None
        Features whose dot products are the kernel.
    source : GramSource or None
        The kernel matrix, if there are no such features.
    """

    labels: LabelMatrix
    weights: Array
    explicit: FeatureMatrix | None
    source: GramSource | None


@dataclass(frozen=True)
class FittedFactors:
    """A fitted model: scores are ``(phi(x) W) H^T + intercepts``.

    Parameters
    ----------
    feature_factor : ndarray of shape (m, k)
        W, for features or for the support rows of a kernel.
    label_factor : ndarray of shape (L, k)
        H.
    intercepts : ndarray of shape (L,)
        The intercepts.
    support : ndarray of int, shape (m,), or None
        The support rows, for a kernel.
    status : Status
        Why the fit ended.
    trace : list of RoundRecord
        Every round.
    objective : float
        The objective.
    lower_bound : float
        A bound of the objective of factors of any rank; minus infinity if there is none.
    """

    feature_factor: Array
    label_factor: Array
    intercepts: Array
    support: Array | None
    status: Status
    trace: list[RoundRecord]
    objective: float
    lower_bound: float


def largest_rank(n_rows: int, n_features: int | None, n_labels: int, fit_intercept: bool) -> int:
    """Say which rank a product of factors can have at most.

    Parameters
    ----------
    n_rows : int
        Rows of the data.
    n_features : int or None
        Explicit features; None for a kernel.
    n_labels : int
        Labels.
    fit_intercept : bool
        Whether there is a constant feature.

    Returns
    -------
    int
        The rank; more columns make no other models.
    """
    width = n_rows if n_features is None else min(n_rows, n_features + fit_intercept)
    return max(1, min(width, n_labels))


def fit_factors(data: LowRankData, settings: LowRankSettings, start: Array | None = None) -> FittedFactors:
    """Fit.

    Parameters
    ----------
    data : LowRankData
        The rows.
    settings : LowRankSettings
        How to fit.
    start : ndarray of shape (L, k), default=None
        The labels' factor of an earlier fit to go on from.

    Returns
    -------
    FittedFactors
        The model.
    """
    factor_map, active, triangle = _factor_map(data, settings)
    weights = np.asarray(data.weights, settings.dtype)
    entries = choose_entries(data.labels, settings.loss, weights, settings.negative_weight, settings.workers)
    begin = _start(data.labels, settings) if start is None else start.astype(settings.dtype)
    pair = LowRankFactors(
        entries, factor_map, settings.penalty, settings.regularization, begin, settings.workers
    )
    solver = AlternatingMinimization(settings.tol, settings.max_iter, _INNER, _STEPS, settings.on_round)
    status, trace = solver.run(pair)
    pair.refresh()
    features, constant_row = _split(pair, settings)
    if triangle is not None:
        features = sl.solve_triangular(triangle, features.astype(np.float64), lower=True, trans="T")
    return FittedFactors(
        feature_factor=np.asarray(features, settings.dtype),
        label_factor=pair.label_factor,
        intercepts=np.asarray(constant_row @ pair.label_factor.T, np.float64),
        support=active,
        status=status,
        trace=trace,
        objective=pair.objective(),
        lower_bound=pair.lower_bound(),
    )


def _factor_map(data: LowRankData, settings: LowRankSettings) -> tuple[FactorMap, Array | None, Array | None]:
    """Give the features' side; for a kernel its support rows too, and what turns weights to their coefficients."""
    workers, dtype = settings.workers, settings.dtype
    if data.explicit is not None:
        table = data.explicit.data
        if data.explicit.is_sparse:
            return SparseMap(SparseProducts(table, dtype, workers), settings.constant, workers), None, None
        return DenseMap(np.ascontiguousarray(table, dtype), settings.constant, workers), None, None
    assert data.source is not None, "there are features or a kernel"
    if settings.low_rank is None:
        gram = choose_gram(
            data.source, None, settings.rank, settings.memory_budget * 1e6, workers,
            dtype=dtype, constant=settings.constant**2,
        )  # fmt: skip
        return KernelMap(gram), np.arange(data.source.n_rows), None
    pivoting = Pivoting(min(settings.low_rank, data.source.n_rows), seed=settings.seed)
    made = incomplete_cholesky(data.source, pivoting, workers)
    table = np.ascontiguousarray(made.factor, dtype)
    return DenseMap(table, settings.constant, workers), made.active_rows, made.factor[made.active_rows]


def _split(pair: LowRankFactors, settings: LowRankSettings) -> tuple[Array, Array]:
    """Part the features' factor from the row that makes intercepts."""
    factor, constant = pair.feature_factor, settings.constant
    if not constant:
        return factor, np.zeros(factor.shape[1])
    if isinstance(pair.map, KernelMap):
        return factor, constant**2 * factor.sum(axis=0, dtype=np.float64)
    return factor[:-1], constant * factor[-1].astype(np.float64)


def _start(labels: LabelMatrix, settings: LowRankSettings) -> Array:
    """Give the labels' factor to start from: right singular vectors of the positive entries, or random numbers."""
    rng = np.random.default_rng(settings.seed)
    n_labels, rank = labels.n_labels, settings.rank
    random = rng.standard_normal((n_labels, rank))
    if settings.start == "random":
        return random.astype(settings.dtype)
    positives = labels.positives.astype(np.float64)
    if min(positives.shape) <= max(500, 2 * rank):
        _, sizes, vectors = _small_svd(positives)
    else:
        _, sizes, vectors = randomized_svd(positives, rank, n_iter=4, random_state=settings.seed)
    found = min(rank, len(sizes))
    start = np.zeros((n_labels, rank))
    start[:, :found] = vectors[:found].T * np.sqrt(sizes[:found])
    # a column of zeros would stay one
    empty = np.linalg.norm(start, axis=0) <= 1e-6 * max(1.0, float(sizes.max(initial=0.0)))
    start[:, empty] = 1e-3 * random[:, empty]
    return start.astype(settings.dtype)


def _small_svd(positives: sp.csr_array) -> tuple[Array, Array, Array]:
    """Decompose by the smaller of the two Gram matrices."""
    if positives.shape[1] <= positives.shape[0]:
        squares, vectors = np.linalg.eigh((positives.T @ positives).toarray())
        order = np.argsort(-squares)
        return vectors, np.sqrt(np.maximum(squares[order], 0.0)), vectors[:, order].T
    left, sizes, right = np.linalg.svd(positives.toarray(), full_matrices=False)
    return left, sizes, right
