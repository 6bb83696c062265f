"""Any loss over listed entries only: missing labels (Yu et al. 2014, Algorithm 1).

Every operation walks the observed entries: scores a_i . h_j by sampled products, gradients and curvatures
entry by entry, and sums of the fixed factor by sparse products.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.tables import WeighedColumns
from labelweave.problems.label_entries.base import EntryPoint, EntryWeights, GradientOperator
from labelweave.problems.losses.entry_losses import EntryLoss


class SampledEntries(WeighedColumns):
    """The loss.

    loss: the loss of an entry.
    signs (rows, columns): +1 or -1 at every observed entry; of a :class:`GradedEntryLoss` 2 q - 1.
    weights (nnz,): weights of the entries, in the order of ``signs``.
    """

    has_uniform_curvature = False

    def __init__(self, loss: EntryLoss, signs: SparseProducts, weights: Array) -> None:
        self.loss, self.signs, self.weights = loss, signs, weights
        self.shape, self.is_quadratic = signs.shape, loss.is_quadratic
        sums = np.bincount(signs.indices, weights, minlength=self.shape[1])
        self.column_weights: Array = sums.astype(weights.dtype)
        self._total = max(float(sums.sum()), 1e-30)

    @classmethod
    def from_signs(
        cls,
        loss: EntryLoss,
        signs: sp.csr_array,
        row_weights: PerRow,
        negative_weight: float,
        workers: Workers,
        factors: EntryWeights | None = None,
    ) -> SampledEntries:
        """Make the loss of a matrix of signs (n, L), with weights of the rows in the type to compute in."""
        products = SparseProducts(signs, row_weights.dtype, workers)
        weights = np.repeat(row_weights, np.diff(signs.indptr))
        weights *= np.where(products.values > 0, 1.0, negative_weight).astype(weights.dtype)
        if factors is not None:
            weights *= factors.of_listed(signs).astype(weights.dtype)
        return cls(loss, products, weights)

    @cached_property
    def transposed(self) -> SampledEntries:
        """The same entries, rows and columns exchanged."""
        weights = self.signs.with_values(self.weights).transposed.values
        return SampledEntries(self.loss, self.signs.transposed, weights)

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        scores = self.signs.sampled(image, fixed)
        gradients = self.signs.with_values(self.weights * self.loss.gradient(self.signs.values, scores))
        curvature = self.weights * self.loss.curvature(self.signs.values, scores)

        def curve(direction: Array) -> Array:
            moved = self.signs.sampled(direction, fixed)
            moved *= curvature
            return self.signs.with_values(moved).matmul(fixed)

        weights = self._row_sums(curvature) / self._total
        return EntryPoint(self._values(scores), gradients.matmul(fixed), curve, weights.astype(image.dtype))

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        return self._values(self.signs.sampled(image, fixed))

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        signs = self.signs.values
        gradients = self.loss.gradient(signs, self.signs.sampled(image, fixed))
        matrix = self.signs.with_values(self.weights * gradients)

        def conjugate(share: float) -> float:
            values = self.weights * self.loss.conjugate(signs, share * gradients)
            return float(values.sum(dtype=np.float64))

        return GradientOperator(matrix.matmul, matrix.adjoint, conjugate)

    def _values(self, scores: Array) -> npt.NDArray[np.float64]:
        return self._row_sums(self.weights * self.loss.value(self.signs.values, scores))

    def _row_sums(self, values: Array) -> npt.NDArray[np.float64]:
        return np.asarray(self.signs.csr_of(values.astype(np.float64)).sum(axis=1)).ravel()
