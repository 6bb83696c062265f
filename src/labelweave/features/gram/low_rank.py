"""Kernel matrices of low rank: incomplete Cholesky factors, and the matrix that one stands for.

``K ~ G G^T + diag(K - G G^T)`` with few columns, of which only the active rows' columns of K are ever
computed (Seeger 2008, section 7.4.3): the diagonal is that of K, the rest what the active rows tell of it,
and a model keeps these only.  Pivots are the largest, or drawn at random, some at a time (Chen, Epperly,
Tropp and Webber, Communications on Pure and Applied Mathematics 78, 2025): proposals, accepted with the odds
of drawing them one by one (Epperly, Tropp and Webber, "Embrace rejection", 2024); the entries between
proposals settle that before any column is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.array_types import Array, RowsByClasses
from labelweave.arrays import Workers, panels
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import Gram, StreamedGram

_JITTER = 1e-8  # of the largest diagonal entry
_CANDIDATES = 128  # pivots that are proposed at once
_ROUNDING = 1e-10  # of the largest diagonal entry; a smaller residual is no pivot


@dataclass(frozen=True)
class IncompleteFactor:
    """An incomplete factor G of a kernel matrix K.

    factor (n, r): G; its rows at the pivots, in their order, are lower triangular.
    active_rows (r,): the pivots, in the order in which they were taken.
    left (n,): the diagonal of ``K - G G^T``, at least 0.
    """

    factor: Array
    active_rows: npt.NDArray[np.int64]
    left: npt.NDArray[np.float64]


def incomplete_cholesky(
    source: GramSource | Gram, rank: int, workers: Workers, seed: int = 0
) -> IncompleteFactor:
    """Factorise a positive semi-definite matrix incompletely.

    source: the matrix, or its entries; the factor of a matrix has its precision.
    rank: the largest number of pivots, which are drawn with odds proportional to the diagonal that is left.
    Returns the factor; of fewer columns than allowed if nothing but rounding is left.
    Raises ValueError if no pivot is allowed.
    """
    if rank < 1:
        raise ValueError(f"rank is {rank}; a low-rank kernel matrix needs at least 1 column.")
    gram = source if isinstance(source, Gram) else StreamedGram(source, 0.0, np.float64, workers)
    growing, generator = _GrowingFactor(gram, rank, workers), np.random.default_rng(seed)
    while growing.is_wanted():
        candidates = _drawn(growing.odds(), generator)
        growing.extend(candidates, generator.random(len(candidates)))
    return growing.finished()


def _drawn(odds: Array, generator: np.random.Generator) -> Array:
    count = min(_CANDIDATES, int(np.count_nonzero(odds)))
    return generator.choice(len(odds), count, p=odds / odds.sum())


class _GrowingFactor:
    """A factor that gets columns, some at a time."""

    def __init__(self, gram: Gram, rank: int, workers: Workers) -> None:
        self.gram, self.workers = gram, workers
        self.left = gram.diagonal().astype(np.float64)
        self.smallest_pivot = max(_ROUNDING, 10 * np.finfo(gram.dtype).eps) * self.left.max(initial=0.0)
        self.factor = np.empty((gram.n_rows, min(rank, gram.n_rows)), gram.dtype)
        self.active = np.empty(self.factor.shape[1], np.int64)
        self.is_open = np.ones(gram.n_rows, dtype=bool)
        self.rank = 0

    def odds(self) -> Array:
        """Give the diagonal that is left, 0 where it is rounding."""
        return np.where(self.is_open & (self.left > self.smallest_pivot), self.left, 0.0)

    def is_wanted(self) -> bool:
        """Tell whether another column may be added and would matter."""
        return bool(self.rank < self.factor.shape[1] and self.odds().sum() > 0)

    def extend(self, candidates: Array, thresholds: Array) -> None:
        """Add the columns of those candidates that are accepted."""
        known = self.factor[candidates, : self.rank].astype(np.float64)
        corner = self.gram.block(candidates) - known @ known.T
        self.is_open[candidates[corner.diagonal() <= self.smallest_pivot]] = False
        room = self.factor.shape[1] - self.rank
        accepted, triangle = _accepted(corner, self.smallest_pivot, thresholds, room)
        if len(accepted):
            self._append(candidates[accepted], triangle)

    def _append(self, pivots: Array, triangle: Array) -> None:
        """Add the columns of some pivots whose residual block is triangle triangle^T."""
        new = slice(self.rank, self.rank + len(pivots))
        columns, known = self.gram.columns(pivots), self.factor[pivots, : self.rank].copy()

        def one(rows: slice) -> None:
            residual = columns[rows] - self.factor[rows, : self.rank] @ known.T
            solved = sl.solve_triangular(triangle, residual.T, lower=True, check_finite=False).T
            self.factor[rows, new] = self._bounded(solved, rows)

        self.workers.each(one, panels(len(columns)))
        # at pivots the values are known, free of rounding
        self.factor[self.active[: self.rank], new] = 0
        self.factor[pivots, new] = triangle
        self.active[new] = pivots
        self.rank = new.stop
        self.is_open[pivots] = False

    def _bounded(self, solved: Array, rows: slice) -> Array:
        """Take the squares of new entries off what is left, and keep them within that.

        They are more if the matrix is not quite positive semi-definite, as one in single precision is.
        """
        squares = np.einsum("ij,ij->i", solved, solved, dtype=np.float64)
        limit = np.maximum(self.left[rows], 0.0) + self.smallest_pivot
        over = squares > limit
        solved[over] *= np.sqrt(limit[over] / squares[over])[:, None]
        self.left[rows] -= np.minimum(squares, limit)
        return solved

    def finished(self) -> IncompleteFactor:
        """Give the factor, with the diagonal that is left computed anew."""
        factor = self.factor[:, : self.rank]
        if self.rank < self.factor.shape[1]:
            factor = factor.copy()
        left = self.gram.diagonal() - np.einsum("ij,ij->i", factor, factor, dtype=np.float64)
        left[self.active[: self.rank]] = 0
        return IncompleteFactor(factor, self.active[: self.rank].copy(), np.maximum(left, 0.0))


def _accepted(corner: Array, smallest: float, thresholds: Array, room: int) -> tuple[list[int], Array]:
    """Choose pivots: a candidate is accepted if its residual is above its threshold's share of the first."""
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
    return accepted, factor[accepted, : len(accepted)]


class LowRankGram(Gram):
    """The matrix ``G G^T + diag(left) + constant``.

    constant: added to every entry; it is no part of what G approximates.
    dtype: the precision in which G is held.
    triangle (r, r): G at the active rows, lower triangular.
    """

    def __init__(
        self, incomplete: IncompleteFactor, constant: float, dtype: npt.DTypeLike, workers: Workers
    ) -> None:
        self.constant, self.workers = constant, workers
        self.dtype, self.n_rows = np.dtype(dtype), len(incomplete.factor)
        self.active_rows, self.left = incomplete.active_rows, incomplete.left
        self.triangle = incomplete.factor[self.active_rows]
        squares: Array = np.einsum("ij,ij->i", incomplete.factor, incomplete.factor)
        self._diagonal: npt.NDArray[np.float64] = squares + self.left + constant
        self.factor = np.ascontiguousarray(incomplete.factor, dtype=self.dtype)

    @classmethod
    def at_rows(cls, source: GramSource, active_rows: Array, workers: Workers) -> LowRankGram:
        """Approximate through given active rows, so that the matrix is a smooth function of the kernel.

        The matrix of the active rows gets a little more on its diagonal, as it may be singular.
        """
        across = source.block(np.arange(source.n_rows), active_rows, np.float64)
        corner = across[active_rows].copy()
        corner[np.diag_indices_from(corner)] += _JITTER * max(
            float(corner.diagonal().max(initial=0.0)), 1e-300
        )
        triangle = np.linalg.cholesky(corner)
        factor = sl.solve_triangular(triangle, across.T, lower=True, check_finite=False).T
        left = source.diagonal() - np.einsum("ij,ij->i", factor, factor)
        made = cls(IncompleteFactor(factor, active_rows, np.maximum(left, 0.0)), 0.0, np.float64, workers)
        made.triangle = triangle
        return made

    def diagonal(self) -> npt.NDArray[np.float64]:
        return self._diagonal.copy()

    def columns(self, which: Array) -> Array:
        found = self.workers.matmul(self.factor, np.ascontiguousarray(self.factor[which].T))
        found[which, np.arange(len(which))] += self.left[which].astype(self.dtype)
        found += self.dtype.type(self.constant)
        return found

    def product(self, vectors: Array) -> Array:
        kind = vectors.dtype
        inner = self.workers.inner(self.factor, vectors, kind)
        product = self.workers.matmul(self.factor, inner)
        product += self.left.astype(kind)[:, None] * vectors
        if self.constant:
            product += kind.type(self.constant) * vectors.sum(axis=0)
        return product

    def by_entries(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """Differentiate ``<left, K right>`` by the entries of the true matrix that this one is made of.

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
        """Turn coefficients of all rows into those of the active ones, in their order: shape (r, C).

        Scores at new points are ``K(x, I) @ coefficients + constant * dual.sum(axis=0)``, I being the
        active rows: the kernel of new points with row j is taken as ``K(x, I) triangle^-T G_j^T``.
        """
        inner = self.workers.inner(self.factor, dual, np.float64)
        if not len(inner):
            return np.zeros(inner.shape)
        return np.asarray(sl.solve_triangular(self.triangle, inner, lower=True, trans="T"))
