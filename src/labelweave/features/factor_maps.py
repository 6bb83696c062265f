"""How the rows of a factor become scores: ``image = Phi F``, and back.

A low-rank model scores with Phi W H^T.  An algorithm that moves a factor F of k columns needs Phi F, the
gradient of a function of Phi F, and the inner product of the space in which F is penalised.  These maps
give the three for explicit features (Phi = X, Euclidean), for a Mercer kernel (F holds
coefficients of the training rows, Phi = K, inner product <F, K G>: the gradient needs no product) and
for the factor of the labels (Phi = 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.array_types import Array, PerRow
from labelweave.arrays import Workers
from labelweave.arrays.linear_algebra import is_numpy, like, to_numpy
from labelweave.features.sparse_products import SparseProducts

if TYPE_CHECKING:
    from labelweave.features.gram.stored import Gram


class FactorMap:
    """The map from a factor of shape (m, k) to its image of shape (n, k): here the identity, with m = n."""

    def __init__(self, n_rows: int) -> None:
        self.shape = n_rows, n_rows

    def image(self, factor: Array) -> Array:
        """Map a factor.

        Shapes: factor (m, k), result (n, k).
        """
        return factor

    def gradient(self, derivatives: Array) -> Array:
        """Turn derivatives at the image into the gradient in the space of the factor.

        derivatives (n, k): of the objective by the entries of the image.
        Shapes: result (m, k).
        """
        return derivatives

    def dual(self, factor: Array, image: Array) -> Array:
        """Give what the entries of another factor are multiplied with in an inner product.

        Returns (m, k): ``<other, factor>`` is ``sum(other * dual)``.
        Shapes: factor (m, k), image (n, k).
        """
        return factor

    def squares(self, weights: PerRow) -> Array:
        """Say how much each row of a factor moves the image, for a preconditioner.

        weights: weights of the rows of the image.
        Returns (m, 1): ``sum_i weights_i Phi_ij^2``, or a mean of it.
        """
        return weights[:, None]

    def under(self, loss: Any, workers: Workers) -> tuple[Any, FactorMap]:
        """Give the entries of a loss of all rows, and the map from a factor to what they see of it.

        loss: a ``RowsLoss`` of ``labelweave.problems.label_entries``.
        """
        return loss.entries(workers), self


class SparseMap(FactorMap):
    """Explicit sparse features.

    Shapes: products (n, d).
    """

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
    """Explicit dense features.

    Shapes: table (n, d).
    """

    def __init__(self, table: Array, workers: Workers) -> None:
        self.table, self.workers, self.shape = table, workers, (table.shape[0], table.shape[1])

    def image(self, factor: Array) -> Array:
        return self.workers.matmul(self.table, factor)

    def gradient(self, derivatives: Array) -> Array:
        return self.workers.inner(self.table, derivatives)

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


def explicit_map(table: Any, dtype: npt.DTypeLike, workers: Workers) -> FactorMap:
    """Give the map of explicit features (n, d), dense or CSR; a map is one already."""
    if isinstance(table, FactorMap):
        return table
    if sp.issparse(table):
        return SparseMap(SparseProducts(table, dtype, workers))
    return DenseMap(np.ascontiguousarray(table, dtype), workers)
