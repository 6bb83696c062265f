"""Any loss: over all entries or most of them, over listed ones only, or shifted by prior scores.

**Dense.**  Entries are processed as dense blocks of rows.

A product takes O(nLk) (Yu et al. 2014, section 3.2).  Where nearly every entry is observed, dense products of
a block's image with the fixed factor are faster than loops over entries.  Unobserved entries have weight 0.
Second derivatives are kept from one evaluation for all later products if they fit into memory, in single
precision: they determine the direction of a step, not its acceptance.

**Sampled.**  With missing labels (Yu et al. 2014, Algorithm 1) every operation loops over observed entries:
scores a_i . h_j by sampled products, gradients and curvatures entry by entry, and sums of the fixed factor by
sparse products.

**Shifted.**  With prior scores ``K = A B^T`` the loss is at ``a_i . h_j + K_ij``: the product of factors with
the columns of A and B appended, of which only the former are updated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import Workers, linear_algebra, namespace, panels
from labelweave.foundation.arrays.tables import WeighedColumns
from labelweave.problems.label_entries.base import EntryPoint, EntryWeights, GradientOperator, LabelEntries
from labelweave.problems.losses.entry_losses import EntryLoss

_DEVICE_BLOCK = 2**24  # entries
_BLOCK_ENTRIES, _LARGEST_BLOCK, _ROWS = 2**15, 2**18, 256  # sizes for caches; rows for efficient products
BUDGET = 2e9  # bytes of second derivatives that are kept
_TINY = 1e-25  # curvatures of a row below this leave the range of single precision


@dataclass(frozen=True)
class EntryTable:
    """The signs and weights of all entries, computed as dense blocks of rows.

    signs (rows, columns): +1 at positive entries; where ``lists_all``, -1 at negative ones, and unobserved
        ones are not stored.  A :class:`GradedEntryLoss` has 2 q - 1 at targets q.
    lists_all: whether negative entries are listed; if not, all that are not listed are negative.
    row_weights, column_weights (rows,): an entry's weight is the product of both.
    negative_weight: factor of the weights of negative entries.
    """

    signs: sp.csr_array
    lists_all: bool
    row_weights: Array
    column_weights: Array
    negative_weight: float
    factors: EntryWeights | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.signs.shape[0]), int(self.signs.shape[1])

    def turned(self) -> EntryTable:
        signs, factors = sp.csr_array(self.signs.T), self.factors and self.factors.turned()
        weights = self.column_weights, self.row_weights, self.negative_weight
        return EntryTable(signs, self.lists_all, *weights, factors)

    def block(self, rows: slice) -> tuple[Array, Array]:
        """Return dense signs and weights (r, columns) of some rows, the weights 0 where unobserved."""
        listed = self.signs[rows].toarray()
        signs = np.where(listed == 0, -1, listed).astype(self.row_weights.dtype)
        weights = np.multiply.outer(self.row_weights[rows], self.column_weights)
        if self.negative_weight != 1.0:
            weights[listed <= 0] *= self.negative_weight
        if self.factors is not None:
            weights *= self.factors.rows(rows).of_table(listed > 0).astype(weights.dtype)
        if self.lists_all:
            weights[listed == 0] = 0
        return signs, weights


class DenseEntries(WeighedColumns):
    """The loss over an entry table (rows, columns)."""

    has_uniform_curvature = False

    def __init__(self, loss: EntryLoss, table: EntryTable, workers: Workers, budget: float = BUDGET) -> None:
        self.loss, self.table, self.workers, self.budget = loss, table, workers, budget
        self.shape, self.is_quadratic = table.shape, loss.is_quadratic
        self.column_weights, self.takes_single = table.column_weights, not loss.is_quadratic
        sizes = (_BLOCK_ENTRIES, _LARGEST_BLOCK) if linear_algebra.HOME.get() is None else (_DEVICE_BLOCK, 0)
        rows, most = (entries // max(1, self.shape[1]) for entries in sizes)
        self.blocks = panels(self.shape[0], max(8, rows, min(_ROWS, most)))
        self._on_device: dict[int, tuple[Array, Array]] = {}

    @cached_property
    def transposed(self) -> DenseEntries:
        return DenseEntries(self.loss, self.table.turned(), self.workers, self.budget)

    def _block(self, block: slice, image: Array) -> tuple[Array, Array]:
        if block.start in self._on_device:
            return self._on_device[block.start]
        signs, weights = (linear_algebra.like(part, image) for part in self.table.block(block))
        if not linear_algebra.is_numpy(image) and 16 * math.prod(self.shape) <= self.budget:
            self._on_device[block.start] = signs, weights
        return signs, weights

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        n_rows, dtype, xp = image.shape[0], self.column_weights.dtype, namespace(image)
        values, gradients, means = np.empty(n_rows), xp.empty_like(image), np.empty(n_rows, dtype)
        keeps = dtype.itemsize * n_rows * self.shape[1] <= self.budget
        kept: dict[int, Array] = {}
        across = linear_algebra.contiguous(fixed.T)
        total = max(float(self.column_weights.sum(dtype=np.float64)), 1e-30)

        def one(block: slice) -> None:
            signs, weights = self._block(block, image)
            losses, slopes, curvature = self.loss.evaluate(signs, image[block, ...] @ across)
            values[block] = _row_sums(weights * losses, xp.float64)
            gradients[block, ...] = (weights * slopes) @ fixed
            curvature = weights * curvature
            sums = _row_sums(curvature)
            means[block] = sums / total
            is_held = self.takes_single and (sums[sums > 0] > _TINY).all()
            if keeps:
                kept[block.start] = linear_algebra.as_type(curvature, xp.float32) if is_held else curvature

        def curvature(block: slice) -> Array:
            if keeps:
                return kept[block.start]
            signs, weights = self._block(block, image)
            return weights * self.loss.curvature(signs, image[block, ...] @ across)

        def curve(direction: Array) -> Array:
            bent: Array = namespace(direction).empty_like(direction)
            forth, back = (linear_algebra.as_type(part, direction.dtype) for part in (across, fixed))

            def bend(block: slice) -> None:
                bent[block, ...] = (curvature(block) * (direction[block, ...] @ forth)) @ back

            self.workers.each(bend, self.blocks)
            return bent

        self.workers.each(one, self.blocks)
        return EntryPoint(values, gradients, curve, means)

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        values = np.empty(image.shape[0])
        across = linear_algebra.contiguous(fixed.T)

        def one(block: slice) -> None:
            signs, weights = self._block(block, image)
            losses = weights * self.loss.value(signs, image[block, ...] @ across)
            values[block] = _row_sums(losses, namespace(losses).float64)

        self.workers.each(one, self.blocks)
        return values

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        across = linear_algebra.contiguous(fixed.T)
        keeps = self.column_weights.dtype.itemsize * math.prod(self.shape) <= self.budget
        kept, xp = dict[int, Array](), namespace(image)

        def slopes(block: slice) -> tuple[Array, Array, Array]:
            signs, weights = self._block(block, image)
            return signs, weights, self.loss.gradient(signs, image[block, ...] @ across)

        def weighted(block: slice) -> Array:
            if block.start not in kept:
                _, weights, found = slopes(block)
                if not keeps:
                    return weights * found
                kept[block.start] = weights * found
            return kept[block.start]

        def matmul(right: Array) -> Array:
            return xp.concat(self.workers.map(lambda block: weighted(block) @ right, self.blocks))

        def adjoint(left: Array) -> Array:
            parts = self.workers.map(lambda block: weighted(block).T @ left[block, ...], self.blocks)
            return sum(parts[1:], parts[0])

        def conjugate(share: float) -> float:
            def losses(block: slice) -> float:
                signs, weights, found = slopes(block)
                return float(xp.sum(weights * self.loss.conjugate(signs, share * found), dtype=xp.float64))

            return float(sum(self.workers.map(losses, self.blocks)))

        return GradientOperator(matmul, adjoint, conjugate)


def _row_sums(table: Array, dtype: Any = None) -> Array:
    return linear_algebra.to_numpy(namespace(table).sum(table, axis=1, dtype=dtype))


class SampledEntries(WeighedColumns):
    """The loss over listed entries.

    signs (rows, columns): +1 or -1 at every observed entry; for a :class:`GradedEntryLoss` 2 q - 1.
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
        """Create the loss of a matrix of signs (n, L), with row weights in the type of the computation."""
        products = SparseProducts(signs, row_weights.dtype, workers)
        weights = np.repeat(row_weights, np.diff(signs.indptr))
        weights *= np.where(products.values > 0, 1.0, negative_weight).astype(weights.dtype)
        if factors is not None:
            weights *= factors.of_listed(signs).astype(weights.dtype)
        return cls(loss, products, weights)

    @cached_property
    def transposed(self) -> SampledEntries:
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


@dataclass
class ShiftedEntries(WeighedColumns):
    """The loss of scores plus ``A B^T``, A ``of_rows`` (rows, c) and B ``of_columns`` (columns, c)."""

    entries: LabelEntries
    of_rows: Array
    of_columns: Array

    def __post_init__(self) -> None:
        entries = self.entries
        self.shape, self.is_quadratic, self.least = entries.shape, entries.is_quadratic, entries.least
        self.has_uniform_curvature = entries.has_uniform_curvature
        self.column_weights = entries.column_weights

    @cached_property
    def transposed(self) -> ShiftedEntries:
        return ShiftedEntries(self.entries.transposed, self.of_columns, self.of_rows)

    def _wide(self, image: Array, fixed: Array) -> tuple[Array, Array]:
        pairs = (image, self.of_rows), (fixed, self.of_columns)
        wide = [namespace(own).concat([own, linear_algebra.like(added, own)], axis=1) for own, added in pairs]
        return wide[0], wide[1]

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        found, width = self.entries.at(*self._wide(image, fixed)), image.shape[1]
        still = np.zeros_like(self.of_rows)

        def curve(direction: Array) -> Array:
            wide = namespace(direction).concat([direction, linear_algebra.like(still, direction)], axis=1)
            return linear_algebra.contiguous(found.curve(wide)[:, :width])

        gradients = linear_algebra.contiguous(found.gradients[:, :width])
        return EntryPoint(found.values, gradients, curve, found.weights)

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        return self.entries.values(*self._wide(image, fixed))

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        """Return it; the conjugate of a shifted loss at g is the loss's, minus ``g`` times the shift."""
        found = self.entries.gradient_operator(*self._wide(image, fixed))
        product = found.matmul(linear_algebra.like(self.of_columns, fixed))
        along = linear_algebra.dot(product, linear_algebra.like(self.of_rows, product))
        return GradientOperator(
            found.matmul, found.adjoint, lambda share: found.conjugate(share) - share * along
        )
