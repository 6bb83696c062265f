"""Squared loss over all entries, none missing, in time proportional to the positive ones.

This is Algorithm 2 of Yu et al. (2014).  With weights ``u_i v_j`` times 1 at positive entries and
``background`` b elsewhere the loss of row i is

    u_i [ b/2 a_i^T G a_i  -  a_i . p_i  +  sum over listed j of v_j ((e_ij - b)/2 s_ij^2 + e_ij q_ij/2) ],

with G = sum_j v_j h_j h_j^T and p_i the sum of v_j e_ij q_ij h_j over the entries of targets q_ij other than
0, where e_ij is 1 above one half and b below: no array of all entries is needed.  Uncertain targets
have the loss q (s - 1)^2 / 2 + (1 - q) s^2 / 2.  b < 1 is for labels of which only positive ones are observed
(absent means unknown).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.tables import WeighedColumns, row_inner
from labelweave.problems.label_entries.base import EntryPoint, GradientOperator


@dataclass(eq=False)
class QuadraticEntries(WeighedColumns):
    """The squared loss of all entries.

    positives (rows, columns): the targets of entries that are positive or uncertain.
    background: b, the weight of an entry that is not positive.
    Shapes: row_weights (rows,), column_weights (columns,).
    """

    is_quadratic = True

    positives: SparseProducts
    row_weights: Array
    column_weights: Array
    background: float
    workers: Workers

    def __post_init__(self) -> None:
        self.shape, dtype = self.positives.shape, self.row_weights.dtype
        weights, targets = self.column_weights[self.positives.indices], self.positives.values
        own = np.where(targets > 0.5, 1.0, self.background).astype(dtype)
        self.weighted = self.positives.with_values(weights * own * targets)
        self.extra = self.positives.with_values(weights * (own - self.background).astype(dtype))
        self._constants = 0.5 * self.weighted.matmul(np.ones((self.shape[1], 1), dtype))[:, 0]
        least = self.positives.csr_of(0.5 * self.weighted.values * (1.0 - targets.astype(np.float64)))
        self.least = float(self.row_weights @ least.sum(axis=1))  # where every score is its target
        self.has_uniform_curvature = self.background == 1.0 and bool((self.column_weights == 1).all())

    @classmethod
    def from_pattern(
        cls, positives: sp.csr_array, weights: PerRow, background: float, workers: Workers
    ) -> QuadraticEntries:
        """Create the loss of targets (n, L), 1 where positive, with row weights."""
        products = SparseProducts(positives, weights.dtype, workers)
        return cls(products, weights, np.ones(positives.shape[1], weights.dtype), background, workers)

    @cached_property
    def transposed(self) -> QuadraticEntries:
        weights, turned = (self.column_weights, self.row_weights), self.positives.transposed
        return QuadraticEntries(turned, *weights, self.background, self.workers)

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        gram = self._gram(fixed)
        scale = self.row_weights[:, None]
        values, pulled = self._values(image, fixed, gram)
        gradients = self.workers.matmul(image, gram)
        gradients -= pulled
        if self.background != 1.0:
            gradients += self._on_positives(image, fixed)
        gradients *= scale

        def curve(direction: Array) -> Array:
            bent = self.workers.matmul(direction, gram)
            if self.background != 1.0:
                bent += self._on_positives(direction, fixed)
            bent *= scale
            return bent

        return EntryPoint(values, gradients, curve, self._mean_curvature())

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        return self._values(image, fixed, self._gram(fixed))[0]

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        scores = self.positives.sampled(image, fixed)
        b = self.background
        correction = self.positives.with_values(self.extra.values * scores - self.weighted.values)
        rows, columns = self.row_weights[:, None], self.column_weights[:, None]

        def matmul(right: Array) -> Array:
            inner = self.workers.inner(fixed, np.ascontiguousarray(columns * right))
            return np.asarray(rows * (b * self.workers.matmul(image, inner) + correction.matmul(right)))

        def adjoint(left: Array) -> Array:
            scaled = np.ascontiguousarray(rows * left)
            inner = self.workers.inner(image, scaled)
            return np.asarray(columns * b * self.workers.matmul(fixed, inner) + correction.adjoint(scaled))

        exact = scores.astype(np.float64)
        return GradientOperator(matmul, adjoint, lambda share: self._conjugate(share, image, fixed, exact))

    def _conjugate(self, share: float, image: Array, fixed: Array, scores: Array) -> float:
        b = self.background
        # weight b, gradient t s: b (t s)^2 / 2, which a row's Gram matrix sums over all entries
        bent = self.workers.matmul(image, self._gram(fixed))
        every = 0.5 * share**2 * row_inner(bent, image, self.workers)
        # weight e, gradient t (s - q) of the target q
        targets = self.positives.values.astype(np.float64)
        gradients = share * (scores - targets)
        own = gradients * (0.5 * gradients + targets) + 0.5 * targets * (targets - 1)
        own = np.where(targets > 0.5, 1.0, b) * own - 0.5 * b * np.square(share * scores)
        rows = self.positives.csr_of(self.column_weights[self.positives.indices] * own)
        return float((self.row_weights * (every + rows.sum(axis=1))).sum(dtype=np.float64))

    def _gram(self, fixed: Array) -> Array:
        return (self.background * self.gram(fixed, self.workers)).astype(fixed.dtype)

    def _values(self, image: Array, fixed: Array, gram: Array) -> tuple[npt.NDArray[np.float64], Array]:
        """Compute the loss of each row, and the sums of the fixed factor over positive entries."""
        pulled = self.weighted.matmul(fixed)
        bent = self.workers.matmul(image, gram)
        values = 0.5 * row_inner(bent, image, self.workers) - row_inner(pulled, image, self.workers)
        values += self._constants
        if self.background != 1.0:
            own = self._on_positives(image, fixed)
            values += 0.5 * row_inner(own, image, self.workers)
        return self.row_weights * values, pulled

    def _on_positives(self, image: Array, fixed: Array) -> Array:
        """Return the listed entries' excess over the background: (e_ij - b) times their v_j s_ij h_j."""
        scores = self.positives.sampled(image, fixed)
        scores *= self.extra.values
        return self.positives.with_values(scores).matmul(fixed)

    def _mean_curvature(self) -> Array:
        total = max(float(self.column_weights.sum(dtype=np.float64)), 1e-30)
        extra = self.extra.matmul(np.ones((self.shape[1], 1), self.row_weights.dtype))[:, 0] / total
        return np.asarray(self.row_weights * (self.background + extra), self.row_weights.dtype)
