"""Any loss over all entries, or most of them, in blocks of rows (Yu et al. 2014, section 3.2: O(nLk) a product).

Where nearly every entry is observed, dense products of a block's image with the fixed factor beat walks
over entries by far.  Unobserved entries have weight 0.  Second derivatives are kept from one evaluation
for all products that follow if they fit into memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.arrays import Workers, panels
from labelweave.losses.entry_losses import EntryLoss
from labelweave.problems.label_entries.base import EntryPoint, SlopeOperator

__all__ = ["DenseEntries"]

Array = npt.NDArray[Any]

_BLOCK_ENTRIES = 2**18


class DenseEntries:
    """The loss.

    Parameters
    ----------
    loss : EntryLoss
        The loss of an entry.
    signs : csr_array of int8, shape (rows, columns)
        +1 at positive entries; -1 at negative ones where ``lists_all``, which then leaves out unobserved ones.
    lists_all : bool
        Whether negative entries are listed; if not, all that are not positive are negative.
    row_weights, column_weights : ndarray of shape (rows,) and (columns,)
        An entry's weight is the product of both.
    negative_weight : float
        What the weights of negative entries are multiplied with.
    workers : Workers
        The threads.
    budget : float
        Bytes for second derivatives.
    """

    has_uniform_curvature = False

    def __init__(
        self,
        loss: EntryLoss,
        signs: sp.csr_array,
        lists_all: bool,
        row_weights: Array,
        column_weights: Array,
        negative_weight: float,
        workers: Workers,
        budget: float = 2e9,
    ) -> None:
        self.loss, self.signs, self.lists_all = loss, signs, lists_all
        self.row_weights, self.column_weights = row_weights, column_weights
        self.negative_weight, self.workers, self.budget = negative_weight, workers, budget
        self.shape, self.is_quadratic = (int(signs.shape[0]), int(signs.shape[1])), loss.is_quadratic
        self.blocks = panels(self.shape[0], max(8, _BLOCK_ENTRIES // max(1, self.shape[1])))
        self._transposed: DenseEntries | None = None

    @property
    def transposed(self) -> DenseEntries:
        """The same entries, rows and columns exchanged."""
        if self._transposed is None:
            turned = sp.csr_array(self.signs.T)
            self._transposed = DenseEntries(
                self.loss,
                turned,
                self.lists_all,
                self.column_weights,
                self.row_weights,
                self.negative_weight,
                self.workers,
                self.budget,
            )
            self._transposed._transposed = self
        return self._transposed

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        """Evaluate to second order; see :meth:`LabelEntries.at`."""
        n_rows, dtype = len(image), image.dtype
        values, slopes, weights = np.empty(n_rows), np.empty_like(image), np.empty(n_rows, dtype)
        keeps = dtype.itemsize * n_rows * self.shape[1] <= self.budget
        kept: dict[int, Array] = {}
        across = np.ascontiguousarray(fixed.T)

        def one(block: slice) -> None:
            signs, entry_weights = self._entries(block, dtype)
            scores = image[block] @ across
            values[block] = (entry_weights * self.loss.value(signs, scores)).sum(axis=1, dtype=np.float64)
            slopes[block] = (entry_weights * self.loss.slope(signs, scores)) @ fixed
            curvature = entry_weights * self.loss.curvature(signs, scores)
            weights[block] = curvature.mean(axis=1)
            if keeps:
                kept[block.start] = curvature

        def curve(direction: Array) -> Array:
            bent = np.empty_like(direction)

            def bend(block: slice) -> None:
                curvature = kept.get(block.start)
                if curvature is None:
                    signs, entry_weights = self._entries(block, dtype)
                    curvature = entry_weights * self.loss.curvature(signs, image[block] @ across)
                moved = direction[block] @ across
                moved *= curvature
                bent[block] = moved @ fixed

            self.workers.each(bend, self.blocks)
            return bent

        self.workers.each(one, self.blocks)
        return EntryPoint(values, slopes, curve, weights)

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        """Compute the loss of each row; see :meth:`LabelEntries.values`."""
        values = np.empty(len(image))
        across = np.ascontiguousarray(fixed.T)

        def one(block: slice) -> None:
            signs, weights = self._entries(block, image.dtype)
            losses = weights * self.loss.value(signs, image[block] @ across)
            values[block] = losses.sum(axis=1, dtype=np.float64)

        self.workers.each(one, self.blocks)
        return values

    def slope_operator(self, image: Array, fixed: Array) -> SlopeOperator:
        """Give the matrix of slopes, made anew block by block; see :meth:`LabelEntries.slope_operator`."""
        across = np.ascontiguousarray(fixed.T)

        def slopes(block: slice) -> tuple[Array, Array, Array]:
            signs, weights = self._entries(block, image.dtype)
            return signs, weights, self.loss.slope(signs, image[block] @ across)

        def matmul(right: Array) -> Array:
            product = np.empty((self.shape[0], right.shape[1]), right.dtype)

            def one(block: slice) -> None:
                _, weights, slope = slopes(block)
                product[block] = (weights * slope) @ right

            self.workers.each(one, self.blocks)
            return product

        def adjoint(left: Array) -> Array:
            parts: dict[int, Array] = {}

            def one(block: slice) -> None:
                _, weights, slope = slopes(block)
                parts[block.start] = (weights * slope).T @ left[block]

            self.workers.each(one, self.blocks)
            zero = np.zeros((self.shape[1], left.shape[1]), left.dtype)
            return np.asarray(sum((parts[block.start] for block in self.blocks), zero))

        def conjugate(share: float) -> float:
            parts: dict[int, float] = {}

            def one(block: slice) -> None:
                signs, weights, slope = slopes(block)
                values = weights * self.loss.conjugate(signs, share * slope)
                parts[block.start] = float(values.sum(dtype=np.float64))

            self.workers.each(one, self.blocks)
            return sum(parts[block.start] for block in self.blocks)

        return SlopeOperator(matmul, adjoint, conjugate)

    def _entries(self, block: slice, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Write out signs and weights of a block of rows."""
        listed = self.signs[block].toarray()
        signs = np.where(listed > 0, 1, -1).astype(dtype)
        weights = np.multiply.outer(self.row_weights[block], self.column_weights)
        if self.negative_weight != 1.0:
            weights[listed <= 0] *= self.negative_weight
        if self.lists_all:
            weights[listed == 0] = 0
        return signs, weights
