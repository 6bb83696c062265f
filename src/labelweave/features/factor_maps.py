"""Map the rows of a factor to scores, ``image = Phi F``, and back.

A low-rank model scores with Phi W H^T.  An algorithm that moves a factor F of k columns needs Phi F, the
gradient of a function of Phi F, and the inner product of the space in which F is penalized.  These maps
provide the three for explicit features (Phi = X, Euclidean), for a Mercer kernel (F holds
coefficients of the training rows, Phi = K, inner product <F, K G>: the gradient needs no product) and
for the factor of the labels (Phi = 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import scipy.sparse.linalg as ssl

from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, namespace
from labelweave.foundation.arrays.linear_algebra import (
    HOME,
    as_type,
    is_double,
    is_numpy,
    like,
    placed,
    to_numpy,
)

if TYPE_CHECKING:
    from labelweave.features.gram.stored import Gram

_EIGENVALUES, _AXES_SAVE = 10, 25  # cost of eigenvectors in m^3; products with the table saved per fit
_RITZ_TOL = 1e-4
USUAL = 1e12  # up to this size squares in single precision are finite


def is_usual(table: Array) -> bool:
    """Return whether the square of the largest entry is finite in single precision."""
    return 1 / USUAL < float(namespace(table).max(abs(table))) < USUAL


class FactorMap:
    """The map from a factor of shape (m, k) to its image of shape (n, k): here the identity, with m = n."""

    def __init__(self, n_rows: int) -> None:
        self.shape = n_rows, n_rows

    def image(self, factor: Array) -> Array:
        """Map a factor (m, k) to its image (n, k)."""
        return factor

    def gradient(self, derivatives: Array) -> Array:
        """Convert derivatives (n, k) with respect to the image into the gradient (m, k) for the factor."""
        return derivatives

    def dual(self, factor: Array, image: Array) -> Array:
        """Return (m, k) with ``sum(other * dual) == <other, factor>``, given a factor and its image."""
        return factor

    @property
    def takes_single(self) -> bool:
        """Whether products in single precision are accurate enough, and faster."""
        return type(self) is FactorMap

    def squares(self, weights: PerRow) -> Array:
        """Return how much each row of a factor moves the image, for a preconditioner.

        Shape (m, 1): ``sum_i weights_i Phi_ij^2``, or a mean of it.
        """
        return weights[:, None]

    def axes(self, rank: int) -> tuple[Array, Array] | None:
        """Return principal axes (m, m) and fractions of squares (m,) on them, for a preconditioner.

        None if computing them costs more than they save at this rank.
        """
        return None

    def under(self, loss: Any, workers: Workers) -> tuple[Any, FactorMap]:
        """Return the entries of a ``RowsLoss`` of all rows, and the map from a factor to their input."""
        return loss.entries(workers), self


class SparseMap(FactorMap):
    """Explicit sparse features (n, d)."""

    def __init__(self, products: SparseProducts) -> None:
        self.products, self.shape = products, products.shape

    def image(self, factor: Array) -> Array:
        return self.products.matmul(factor)

    def gradient(self, derivatives: Array) -> Array:
        return self.products.adjoint(derivatives)

    def squares(self, weights: Array) -> Array:
        squared = self.products.csr_of(np.square(self.products.values))
        return np.asarray(squared.T @ weights)[:, None]


class DenseMap(FactorMap):
    """Explicit dense features (n, d)."""

    def __init__(self, table: Array, workers: Workers) -> None:
        self.table, self.workers, self.shape = table, workers, (table.shape[0], table.shape[1])

    @cached_property
    def takes_single(self) -> bool:
        return math.prod(self.shape) > 0 and is_usual(self.table)

    @cached_property
    def _single(self) -> Array:
        return as_type(self.table, namespace(self.table).float32)

    def _table(self, factor: Array) -> Array:
        return self.table if factor.dtype == self.table.dtype else self._single

    def image(self, factor: Array) -> Array:
        return self.workers.matmul(self._table(factor), factor)

    def gradient(self, derivatives: Array) -> Array:
        return self.workers.inner(self._table(derivatives), derivatives)

    def axes(self, rank: int) -> tuple[Array, Array] | None:
        n, m = self.shape
        pays = m <= n and m * (n + _EIGENVALUES * m) <= 4 * _AXES_SAVE * n * rank
        return self._axes if pays and is_double(self.table) else None  # single precision would amplify noise

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        values, axes = np.linalg.eigh(to_numpy(self.workers.inner(self.table, self.table)))
        return like(axes, self.table), np.maximum(values, 0.0) / max(
            float(values.sum()), np.finfo(float).tiny
        )

    def squares(self, weights: Array) -> Array:
        if is_numpy(self.table):
            return np.asarray(np.einsum("ij,ij,i->j", self.table, self.table, weights))[:, None]
        return to_numpy((self.table * self.table).T @ like(weights[:, None], self.table))


class KernelMap(FactorMap):
    """A kernel: the factor holds coefficients of the training rows."""

    def __init__(self, gram: Gram) -> None:
        self.gram, self.shape = gram, (gram.n_rows, gram.n_rows)
        self._mean = float(gram.diagonal().mean())

    def image(self, factor: Array) -> Array:
        return self.gram.product(factor)

    def dual(self, factor: Array, image: Array) -> Array:
        return image

    def squares(self, weights: Array) -> Array:
        return np.full((1, 1), self._mean * float(weights.mean()), weights.dtype)


def largest_root(
    forth: Callable[[Array], Array], back: Callable[[Array], Array], size: int, dtype: np.dtype[Any]
) -> float:
    """Compute the square root of the largest eigenvalue of ``back forth``, positive semi-definite.

    Both are scaled by a power of 2, so that squares of tiny or huge roots neither underflow nor overflow.
    Returns infinity if the iteration takes too long.
    """
    start = np.random.default_rng(0).standard_normal(size).astype(dtype)
    largest = float(np.abs(forth(start)).max(initial=0.0))
    if not largest:
        return 0.0
    power = int(np.frexp(largest)[1])

    def multiply(vector: Array) -> Array:
        return np.ldexp(back(np.ldexp(forth(vector), -power)), -power)

    if size < 3:
        columns = [multiply(column) for column in np.eye(size, dtype=dtype)]
        found = float(np.linalg.eigvalsh(np.array(columns, dtype=np.float64)).max(initial=0.0))
        return float(np.ldexp(np.sqrt(max(0.0, found)), power))
    operator = ssl.LinearOperator((size, size), matvec=multiply, dtype=dtype)
    try:
        values = ssl.eigsh(operator, k=1, which="LA", v0=start, tol=_RITZ_TOL, return_eigenvectors=False)
    except ssl.ArpackError:
        return np.inf
    return float(np.ldexp(np.sqrt(max(0.0, float(values[0]) * (1 + _RITZ_TOL))), power))


def explicit_map(table: Any, dtype: npt.DTypeLike, workers: Workers) -> FactorMap:
    """Return the map of explicit features (n, d), dense or CSR; a map is returned as it is."""
    if isinstance(table, FactorMap):
        return table
    if sp.issparse(table) and HOME.get() is None:
        return SparseMap(SparseProducts(table, dtype, workers))
    table = table.toarray() if sp.issparse(table) else table
    return DenseMap(placed(np.ascontiguousarray(table, dtype)), workers)
