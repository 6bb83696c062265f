"""How the rows of a factor become scores: ``image = Phi F``, and back.

A low-rank model scores with Phi W H^T.  An algorithm that moves a factor F of k columns needs Phi F, the
gradient of a function of Phi F, and the inner product of the space in which F is penalised.  These maps
give the three for explicit features (Phi = X, Euclidean), for a Mercer kernel (F holds
coefficients of the training rows, Phi = K, inner product <F, K G>: the gradient needs no product) and
for the factor of the labels (Phi = 1).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, PerRow
from labelweave.arrays import Workers, namespace
from labelweave.arrays.linear_algebra import is_numpy, like, to_numpy
from labelweave.features.gram.stored import Gram
from labelweave.features.sparse_products import SparseProducts

__all__ = ["DenseMap", "FactorMap", "IdentityMap", "KernelMap", "SparseMap"]


class FactorMap(Protocol):
    """The map from a factor of shape (m, k) to its image of shape (n, k)."""

    shape: tuple[int, int]

    def image(self, factor: Array) -> Array:
        """Map a factor.

        Shapes: factor (m, k), result (n, k).
        """

    def gradient(self, derivatives: Array) -> Array:
        """Turn derivatives at the image into the gradient in the space of the factor.

        derivatives (n, k): of the objective by the entries of the image.
        Shapes: result (m, k).
        """

    def dual(self, factor: Array, image: Array) -> Array:
        """Give what the entries of another factor are multiplied with in an inner product.

        Returns (m, k): ``<other, factor>`` is ``sum(other * dual)``.
        Shapes: factor (m, k), image (n, k).
        """

    def squares(self, weights: PerRow) -> Array:
        """Say how much each row of a factor moves the image, for a preconditioner.

        weights: weights of the rows of the image.
        Returns (m, 1): ``sum_i weights_i Phi_ij^2``, or a mean of it.
        """


class IdentityMap:
    """The factor is its own image."""

    def __init__(self, n_rows: int) -> None:
        self.shape = n_rows, n_rows

    def image(self, factor: Array) -> Array:
        return factor

    def gradient(self, derivatives: Array) -> Array:
        return derivatives

    def dual(self, factor: Array, image: Array) -> Array:
        return factor

    def squares(self, weights: Array) -> Array:
        return weights[:, None]


class SparseMap:
    """Explicit sparse features and, if asked, a constant one behind them.

    constant: the constant feature; 0 for none.
    Shapes: products (n, d).
    """

    def __init__(self, products: SparseProducts, constant: float, workers: Workers) -> None:
        self.products = _with_constant_column(products, constant, workers) if constant else products
        self.shape = self.products.shape

    def image(self, factor: Array) -> Array:
        return self.products.matmul(factor)

    def gradient(self, derivatives: Array) -> Array:
        return self.products.adjoint(derivatives)

    def dual(self, factor: Array, image: Array) -> Array:
        return factor

    def squares(self, weights: Array) -> Array:
        squared = self.products.csr_of(np.square(self.products.values))
        return np.asarray(squared.T @ weights)[:, None]


class DenseMap:
    """Explicit dense features and, if asked, a constant one behind them.

    constant: the constant feature; 0 for none.
    Shapes: table (n, d).
    """

    def __init__(self, table: Array, constant: float, workers: Workers) -> None:
        column = like(np.full((table.shape[0], 1), constant), table)
        self.table: Array = namespace(table).concat([table, column], axis=1) if constant else table
        self.workers, self.shape = workers, (table.shape[0], self.table.shape[1])

    def image(self, factor: Array) -> Array:
        return self.workers.matmul(self.table, factor)

    def gradient(self, derivatives: Array) -> Array:
        return self.workers.inner(self.table, derivatives)

    def dual(self, factor: Array, image: Array) -> Array:
        return factor

    def squares(self, weights: Array) -> Array:
        if is_numpy(self.table):
            return np.asarray(np.einsum("ij,ij,i->j", self.table, self.table, weights))[:, None]
        return to_numpy((self.table * self.table).T @ like(weights[:, None], self.table))


class KernelMap:
    """A kernel: the factor holds coefficients of the training rows."""

    def __init__(self, gram: Gram) -> None:
        self.gram, self.shape = gram, (gram.n_rows, gram.n_rows)
        self._mean = float(gram.diagonal().mean())

    def image(self, factor: Array) -> Array:
        return self.gram.product(factor)

    def gradient(self, derivatives: Array) -> Array:
        return derivatives

    def dual(self, factor: Array, image: Array) -> Array:
        return image

    def squares(self, weights: Array) -> Array:
        return np.full((1, 1), self._mean * float(weights.mean()), weights.dtype)


def _with_constant_column(products: SparseProducts, constant: float, workers: Workers) -> SparseProducts:
    """Store a constant last in every row."""
    n_rows, width = products.shape
    ends = np.asarray(products.indptr[1:])
    values = np.insert(products.values, ends, constant)
    indices = np.insert(products.indices, ends, width)
    indptr = products.indptr + np.arange(n_rows + 1, dtype=products.indptr.dtype)
    matrix = sp.csr_array((values, indices, indptr), shape=(n_rows, width + 1))
    return SparseProducts(matrix, products.dtype, workers)
