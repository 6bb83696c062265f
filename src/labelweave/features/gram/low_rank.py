"""Low-rank kernel matrices: incomplete Cholesky factors, and the matrix approximated by one.

``K ~ G G^T + diag(K - G G^T)`` with few columns; only the columns of K at the active rows are computed
(Seeger 2008, section 7.4.3): the diagonal is exact, the rest follows from the active rows, and a model stores
only these.  Pivots are the largest, or drawn at random in batches (Chen, Epperly,
Tropp and Webber, Communications on Pure and Applied Mathematics 78, 2025): proposals, accepted with the odds
of drawing them one by one (Epperly, Tropp and Webber, "Embrace rejection", 2024); the entries between
proposals decide that before any column is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.features.factor_maps import explicit_map
from labelweave.features.feature_matrix import FeatureMatrix, dense_rows
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import Gram, StreamedGram
from labelweave.foundation.array_types import Array, RowsByClasses
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.arrays.linear_algebra import copied, empty, is_numpy, like, rows_of, to_numpy

_JITTER = 1e-8  # of the largest diagonal entry
_CANDIDATES = 128  # pivots proposed at once
COLUMNS_APART = 2000  # of factors of rows on a cluster, without a given rank
_ROUNDING = 1e-10  # of the largest diagonal entry; smaller residuals are not pivots


@dataclass(frozen=True)
class IncompleteFactor:
    """An incomplete factor G of a kernel matrix K.

    features (n, r): G, as features of the rows, which may be on a cluster.
    triangle (r, r): its rows at the pivots, in their order, lower triangular.
    active_rows (r,): the pivots, in the order of selection.
    left (n,): the diagonal of ``K - G G^T``, at least 0.
    """

    features: FeatureMatrix
    triangle: Array
    active_rows: npt.NDArray[np.int64]
    left: npt.NDArray[np.float64]

    @property
    def factor(self) -> Array:
        return np.asarray(self.features.data)


class GrowingRows(ABC):
    """The rows of a factor that grows by columns, and the matrix entries that they need."""

    n_rows: int
    dtype: Any

    @abstractmethod
    def diagonal(self) -> npt.NDArray[np.float64]:
        """Compute the diagonal of the matrix, shape (n,)."""

    @abstractmethod
    def corner(self, which: Array) -> Array:
        """Compute the entries between k rows, shape (k, k)."""

    @abstractmethod
    def known(self, which: Array) -> Array:
        """Return k rows of the current factor, shape (k, r)."""

    @abstractmethod
    def append(self, pivots: Array, triangle: Array, slack: float) -> npt.NDArray[np.float64]:
        """Add the columns of k pivots, whose residual block is triangle triangle^T.

        slack: by how much the square of a new entry may exceed the residual diagonal.
        Returns the residual diagonal, shape (n,).
        """

    @abstractmethod
    def finished(self) -> FeatureMatrix:
        """Return the factor."""

    def of_rows(self, kept: Array) -> GramSource:
        """Return the matrix of some rows, with an empty factor."""
        raise NotImplementedError


def incomplete_cholesky(
    source: GramSource | Gram, rank: int, workers: Workers, seed: int = 0
) -> IncompleteFactor:
    """Compute an incomplete Cholesky factorization of a positive semi-definite matrix.

    source: the matrix, whose precision the factor has, or its entries; for rows on a cluster
        :class:`GrowingRows`.
    rank: the maximum number of pivots, drawn with odds proportional to the residual diagonal.
    Returns the factor; with fewer columns if the residual is only rounding.
    Raises ValueError if no pivot is allowed.
    """
    if rank < 1:
        raise ValueError(f"rank is {rank}; pass at least 1, for one column of the low-rank kernel matrix.")
    if isinstance(source, GrowingRows):
        rows: GrowingRows = source
    else:
        gram = source if isinstance(source, Gram) else StreamedGram(source, 0.0, np.float64, workers)
        rows = _RowsInMemory(gram, rank, workers)
    growing, generator = _GrowingFactor(rows, rank), np.random.default_rng(seed)
    while len(growing.active) < growing.most and (odds := growing.odds()).any():
        count = min(_CANDIDATES, int(np.count_nonzero(odds)))
        candidates = generator.choice(len(odds), count, p=odds / odds.sum())
        growing.extend(candidates, generator.random(len(candidates)))
    return growing.finished()


class _GrowingFactor:
    """Chooses the pivots of a factor."""

    def __init__(self, rows: GrowingRows, rank: int) -> None:
        self.rows, self.left = rows, rows.diagonal()
        self.smallest_pivot = max(_ROUNDING, 10 * np.finfo(rows.dtype).eps) * self.left.max(initial=0.0)
        self.active = np.empty(0, np.int64)
        self.is_open = np.ones(rows.n_rows, dtype=bool)
        self.most = min(rank, rows.n_rows)

    def odds(self) -> Array:
        """Return the residual diagonal, 0 where it is rounding."""
        return np.where(self.is_open & (self.left > self.smallest_pivot), self.left, 0.0)

    def extend(self, candidates: Array, thresholds: Array) -> None:
        known = self.rows.known(candidates).astype(np.float64)
        corner = self.rows.corner(candidates) - known @ known.T
        self.is_open[candidates[corner.diagonal() <= self.smallest_pivot]] = False
        room = self.most - len(self.active)
        accepted, triangle = _accepted(candidates, corner, self.smallest_pivot, thresholds, room)
        if not len(accepted):
            return
        pivots = candidates[accepted]
        self.left = self.rows.append(pivots, triangle, self.smallest_pivot)
        self.active = np.concatenate([self.active, pivots])
        self.is_open[pivots] = False

    def finished(self) -> IncompleteFactor:
        triangle = self.rows.known(self.active)
        features = self.rows.finished()
        left = self.rows.diagonal() - features.squared_norms()
        left[self.active] = 0
        return IncompleteFactor(features, triangle, self.active, np.maximum(left, 0.0))


class _RowsInMemory(GrowingRows):
    def __init__(self, gram: Gram, rank: int, workers: Workers) -> None:
        self.gram, self.workers = gram, workers
        self.n_rows, self.dtype = gram.n_rows, gram.dtype
        self.left = gram.diagonal().astype(np.float64)
        self.factor = empty((gram.n_rows, min(rank, gram.n_rows)), gram.dtype)  # at home until finished
        self.active = np.empty(0, np.int64)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self.gram.diagonal().astype(np.float64)

    def corner(self, which: Array) -> Array:
        return self.gram.block(which)

    def known(self, which: Array) -> Array:
        return to_numpy(rows_of(self.factor, which)[:, : len(self.active)])

    def append(self, pivots: Array, triangle: Array, slack: float) -> npt.NDArray[np.float64]:
        rank = len(self.active)
        new = slice(rank, rank + len(pivots))
        columns, known = self.gram.columns(pivots), rows_of(self.factor, pivots)[:, :rank]
        entries = np.empty((self.n_rows, len(pivots)), self.dtype)

        def one(rows: slice) -> None:
            residual = to_numpy(columns[rows, ...] - self.factor[rows, :rank] @ known.T)
            entries[rows] = new_entries(residual, triangle, self.left[rows], slack)

        self.workers.each(one, panels(self.n_rows) if is_numpy(columns) else [slice(0, self.n_rows)])
        # at pivots the values are exact
        entries[self.active] = 0
        entries[pivots] = triangle
        self.factor[:, new] = like(entries, self.factor)
        self.active = np.concatenate([self.active, pivots])
        return self.left

    def finished(self) -> FeatureMatrix:
        rank = len(self.active)
        table = self.factor if rank == self.factor.shape[1] else copied(self.factor[:, :rank])
        return FeatureMatrix._unchecked(to_numpy(table))


def new_entries(residual: Array, triangle: Array, left: Array, slack: float) -> Array:
    """Solve for new entries of rows, clip them to the residual, and subtract their squares from it.

    They exceed it if the matrix is not quite positive semi-definite, as in single precision.
    left (n,): changed in place.
    slack: by how much the squares may exceed it.
    Shapes: residual (n, k), triangle (k, k).
    """
    solved: Array = sl.solve_triangular(triangle, residual.T, lower=True, check_finite=False).T
    squares = np.einsum("ij,ij->i", solved, solved, dtype=np.float64)
    limit = np.maximum(left, 0.0) + slack
    over = squares > limit
    solved[over] *= np.sqrt(limit[over] / squares[over])[:, None]
    left -= np.minimum(squares, limit)
    return solved


def _accepted(
    candidates: Array, corner: Array, smallest: float, thresholds: Array, room: int
) -> tuple[list[int], Array]:
    """Accept pivots whose residual exceeds their threshold times the residual at the start."""
    corner = corner.copy()
    least = np.maximum(smallest, thresholds * corner.diagonal())
    factor, accepted = np.zeros_like(corner), list[int]()
    for turn in range(len(corner)):
        if corner[turn, turn] > least[turn] and len(accepted) < room:
            column = corner[:, turn] / np.sqrt(corner[turn, turn])
            column[accepted] = 0
            corner -= np.outer(column, column)
            factor[:, len(accepted)] = column
            accepted.append(turn)
            again = np.flatnonzero(candidates == candidates[turn])
            corner[again, again] = 0.0  # rounding may leave more where gamma is huge
    return accepted, factor[accepted, : len(accepted)]


class FactorGram(Gram):
    """The matrix ``G G^T + diag(left) + constant``, with features G of the rows, possibly on a cluster.

    constant: added to every entry; not part of the matrix that G approximates.
    dtype: the precision of G.
    """

    def __init__(
        self,
        features: FeatureMatrix,
        left: npt.NDArray[np.float64],
        constant: float,
        dtype: npt.DTypeLike,
        workers: Workers,
    ) -> None:
        self.constant, self.left, self.workers = constant, left, workers
        self.dtype, self.n_rows = np.dtype(dtype), len(features)
        self._diagonal: npt.NDArray[np.float64] = features.squared_norms() + left + constant
        self.features = features.astype(self.dtype)
        self.map = explicit_map(self.features.data, self.dtype, workers)

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self._diagonal.copy()

    def _rows(self, which: Array) -> Array:
        return np.asarray(self.features.mapped(dense_rows, which, max(1, len(which))))

    def columns(self, which: Array) -> Array:
        found = self.map.image(np.ascontiguousarray(self._rows(which).T))
        found[which, np.arange(len(which))] += self.left[which].astype(self.dtype)
        found += self.dtype.type(self.constant)
        return found

    def block(self, rows: Array) -> Array:
        chosen = self._rows(rows).astype(np.float64)
        # a repeated row has the residual at all its pairs
        return chosen @ chosen.T + self.constant + np.where(rows[:, None] == rows, self.left[rows], 0.0)

    def product(self, vectors: Array) -> Array:
        kind = vectors.dtype
        product = self.map.image(self.map.gradient(vectors))
        if self.left.any():
            product += self.left.astype(kind)[:, None] * vectors
        if self.constant:
            product += kind.type(self.constant) * vectors.sum(axis=0)
        return product


class LowRankGram(FactorGram):
    """The matrix of an incomplete factor, lower triangular at the active rows, with the true diagonal."""

    def __init__(
        self, incomplete: IncompleteFactor, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> None:
        super().__init__(incomplete.features, incomplete.left, constant, dtype, workers)
        self.active_rows, self.triangle = incomplete.active_rows, incomplete.triangle

    @property
    def factor(self) -> Array:
        return np.asarray(self.features.data)

    @classmethod
    def at_rows(cls, source: GramSource, active_rows: Array, workers: Workers) -> LowRankGram:
        """Approximate through given active rows, so that the matrix is a smooth function of the kernel.

        The matrix of the active rows gets a small multiple of the identity, as it may be singular.
        """
        across = source.block(np.arange(source.n_rows), active_rows, np.float64)
        corner = across[active_rows].copy()
        corner[np.diag_indices_from(corner)] += _JITTER * max(
            float(corner.diagonal().max(initial=0.0)), 1e-300
        )
        triangle = np.linalg.cholesky(corner)
        solved = sl.solve_triangular(triangle, across.T, lower=True, check_finite=False)
        factor = np.ascontiguousarray(solved.T)
        left = np.maximum(source.diagonal() - np.einsum("ij,ij->i", factor, factor), 0.0)
        features = FeatureMatrix._unchecked(factor)
        return cls(IncompleteFactor(features, triangle, active_rows, left), 0.0, np.float64, workers)

    def by_entries(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """Differentiate ``<left, K right>`` with respect to the exact entries that define this matrix.

        Those between all rows and the active ones, those among the active ones, and the diagonal; with
        ``B = G triangle^-1`` and M = left right^T without its diagonal s they are ``(M + M^T) B``,
        ``-B^T M B`` and s.
        """
        blend = sl.solve_triangular(self.triangle, self.factor.T, lower=True, trans="T", check_finite=False).T
        own = np.einsum("ij,ij->i", left, right)
        of_left, of_right = (self.workers.inner(part, blend, np.float64) for part in (left, right))
        across = left @ of_right + right @ of_left - 2.0 * own[:, None] * blend
        among = self.workers.inner(blend, own[:, None] * blend) - of_left.T @ of_right
        return across, among, own

    def active_coefficients(self, dual: RowsByClasses) -> npt.NDArray[np.float64]:
        """Convert coefficients of all rows to those of the active ones, in their order: shape (r, C).

        Scores at new points are ``K(x, I) @ coefficients + constant * dual.sum(axis=0)`` for the active rows
        I: the kernel of new points with row j is approximated by ``K(x, I) triangle^-T G_j^T``.
        """
        inner = self.map.gradient(dual)
        if not len(inner):
            return np.zeros(inner.shape)
        return np.asarray(sl.solve_triangular(self.triangle, inner, lower=True, trans="T"))
