"""A kernel matrix of low rank beside its diagonal (Seeger 2008, section 7.4.3).

    K ~ G G^T + diag(K - G G^T),

G an incomplete Cholesky factor: the diagonal is that of K, the rest what the active rows tell of it.
A model keeps the active rows only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from labelweave.array_types import Array, RowsByClasses
from labelweave.arrays import Workers
from labelweave.features.gram.incomplete_cholesky import IncompleteFactor, Pivoting, incomplete_cholesky
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import Gram

_JITTER = 1e-8  # of the largest diagonal entry


class LowRankGram(Gram):
    """The matrix ``G G^T + diag(left) + constant``.

    incomplete: G, the active rows and the diagonal that G leaves.
    constant: added to every entry; it is no part of what G approximates.
    dtype: the precision in which G is held.
    active_rows (r,): the rows whose columns of the matrix made G.
    triangle (r, r): G at the active rows, lower triangular.
    left (n,): what is added to the diagonal of ``G G^T``.
    Shapes: factor (n, r).
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
    def from_source(
        cls, source: GramSource, constant: float, dtype: npt.DTypeLike, workers: Workers, pivoting: Pivoting
    ) -> LowRankGram:
        """Factorise a kernel matrix incompletely, in double precision.

        source: the matrix; its diagonal and r of its columns are computed.
        dtype: the precision in which the factor is held.
        pivoting: how many pivots, and which.
        """
        return cls(incomplete_cholesky(source, pivoting, workers), constant, dtype, workers)

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
        """Turn coefficients of all rows into those of the active ones.

        Scores at new points are ``K(x, I) @ coefficients + constant * dual.sum(axis=0)``, I being the
        active rows: the kernel of new points with row j is taken as ``K(x, I) triangle^-T G_j^T``.

        Returns (r, C): coefficients of the active rows, in the order of ``active_rows``.
        """
        inner = self.workers.inner(self.factor, dual, np.float64)
        if not len(inner):
            return np.zeros(inner.shape)
        return np.asarray(sl.solve_triangular(self.triangle, inner, lower=True, trans="T"))
