"""The max-margin dual when a label covariance couples the labels.

All labels of an example are visited together, so there is one block.  The
weights Z = X^T B R of all labels are held, in slabs of ``WIDTH`` labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops import WIDTH
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.independent_margins import IndependentMargins
from labelweave.problems.margin_dual import LabelBlock, MarginData, MarginDual, MarginPoint, OrderedRows

_LARGEST_DENSE = 4096  # labels up to which R is written out: 64 MiB in float32


class CoupledMargins(MarginDual):
    """The dual with any label covariance."""

    blocks_are_independent = False

    def __init__(
        self, data: MarginData | OrderedRows, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> None:
        super().__init__(data, dtype, workers)
        self.bias: Any = self.dtype.type(self.data.intercept)
        self._sweep, self._structure = self._compiled_structure()

    def _compiled_structure(self) -> tuple[Callable[..., float], tuple[Array | int, ...]]:
        """Choose the loop that fits the covariance, and lay out its arrays in the order of the blocks."""
        from labelweave.foundation.loops.coupled_ascent import sweep_dense_covariance, sweep_factor_covariance

        order, width = self.label_order, len(self.label_blocks) * WIDTH
        covariance = self.data.covariance.columns(order)
        if isinstance(covariance, FactorCovariance) and len(order) > _LARGEST_DENSE:
            factor = sp.csr_array(covariance.factor).astype(self.dtype)
            factor.resize(width, factor.shape[1])
            own = np.zeros(width, self.dtype)
            own[: len(order)] = covariance.own_variance
            arrays = (factor.indptr.astype(np.int64), factor.indices.astype(np.int64), factor.data)
            return sweep_factor_covariance, (own, *arrays, factor.shape[1])
        dense = np.zeros((width, width), self.dtype)
        dense[: len(order), : len(order)] = covariance.to_dense()
        return sweep_dense_covariance, (dense,)

    def follow(self, point: MarginPoint) -> None:
        for slab, (wide, constants) in enumerate(self._weights(list(point.beta))):
            point.weights[slab], point.intercepts[slab] = wide, constants

    def sweep(self, point: MarginPoint, block: int, rows: Array, threshold: float) -> float:
        return float(
            self._sweep(
                rows, *self.rows, self.squared_norms, self.signs, point.beta, self.upper, self.margins,
                point.weights, point.intercepts.reshape(-1), self.bias, *self._structure, point.gains[0],
                threshold,
            )
        )  # fmt: skip

    def measure(self, point: MarginPoint, block: int) -> tuple[float, float]:
        slabs = zip(point.weights, point.intercepts, strict=True)
        return self._values(self.label_blocks, list(point.beta), slabs)

    def certify(self, point: MarginPoint, block: int) -> tuple[float, float]:
        betas = [self.exact_beta(point, number) for number in range(len(self.label_blocks))]
        weights = self._weights(betas)
        self.certified = dict(enumerate(weights))
        return self._values(self.exact_blocks, betas, weights)

    def _weights(self, betas: list[Array]) -> list[tuple[Array, Array]]:
        """Compute X^T B R in double precision, a slab of labels at a time, and its constant row."""
        Z = self.data.covariance.matmul(self._products(betas))
        slabs: list[tuple[Array, Array]] = []
        for part in self.label_blocks:
            wide = np.zeros((len(Z), WIDTH))
            wide[:, : len(part.labels)] = Z[:, part.labels]
            own = wide[:-1] if self.known is None else wide[:-1] + self.known[len(slabs)]
            slabs.append((np.ascontiguousarray(own), float(self.bias) * wide[-1]))
        return slabs

    def _products(self, betas: Iterable[Array]) -> Array:
        """Compute X^T B, a row a feature with the constant one last, in double precision."""
        products = np.zeros((self.data.features.shape[1] + 1, self.data.labels.n_labels))
        for part, beta in zip(self.label_blocks, betas, strict=True):
            k = len(part.labels)
            products[:-1, part.labels] = self.product(beta)[:, :k]
            products[-1, part.labels] = float(self.bias) * beta.sum(axis=0)[:k]
        return products

    def _values(
        self, blocks: list[LabelBlock], betas: list[Array], slabs: Iterable[tuple[Array, Array]]
    ) -> tuple[float, float]:
        sums = [self.sums(block, beta, *slab) for block, beta, slab in zip(blocks, betas, slabs, strict=True)]
        known = sum(float(self.known_sums(number, beta).sum()) for number, beta in enumerate(betas))
        hinge, linear, quadratic = np.sum(sums, axis=(0, 2))
        squared = quadratic - known
        return float(squared / 2 + hinge), float(linear - known - squared / 2)


def make_margin_dual(data: MarginData, dtype: npt.DTypeLike, workers: Workers | None = None) -> MarginDual:
    """Choose the form of the dual that the label covariance allows."""
    if not data.covariance.is_diagonal:
        return CoupledMargins(data, dtype, workers)
    return IndependentMargins(OrderedRows(data, dtype, as_table=data.is_walked_as_table), dtype, workers)
