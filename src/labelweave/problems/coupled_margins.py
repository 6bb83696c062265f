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

from labelweave._loops.coupled_ascent import sweep_dense_covariance, sweep_factor_covariance
from labelweave._loops.wide_rows import WIDTH
from labelweave.array_types import Array
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.margin_dual import LabelBlock, MarginData, MarginDual

__all__ = ["CoupledMargins"]

_LARGEST_DENSE = 4096  # labels up to which R is written out: 64 MiB in float32


class CoupledMargins(MarginDual):
    """The dual with any label covariance."""

    n_blocks = 1
    blocks_are_independent = False

    def __init__(self, data: MarginData, dtype: npt.DTypeLike) -> None:
        super().__init__(data, dtype)
        self.order = np.concatenate([block.labels for block in self.label_blocks])
        n_slabs = len(self.label_blocks)
        self.slabs = np.zeros((n_slabs, data.features.shape[1], WIDTH), self.dtype)
        self.intercept = np.zeros(n_slabs * WIDTH, self.dtype)
        self.bias: Any = self.dtype.type(data.intercept)
        self.row_gains = np.zeros(self.n_rows, self.dtype)
        self._sweep, self._structure = self._compiled_structure()

    def _compiled_structure(self) -> tuple[Callable[..., float], tuple[Array | int, ...]]:
        """Choose the loop that fits the covariance, and lay out its arrays in the order of the blocks."""
        width = len(self.intercept)
        covariance = self.data.covariance.columns(self.order)
        if isinstance(covariance, FactorCovariance) and len(self.order) > _LARGEST_DENSE:
            factor = sp.csr_array(covariance.factor).astype(self.dtype)
            factor.resize(width, factor.shape[1])
            own = np.zeros(width, self.dtype)
            own[: len(self.order)] = covariance.own_variance
            arrays = (factor.indptr.astype(np.int64), factor.indices.astype(np.int64), factor.data)
            return sweep_factor_covariance, (own, *arrays, factor.shape[1])
        dense = np.zeros((width, width), self.dtype)
        dense[: len(self.order), : len(self.order)] = covariance.to_dense()
        return sweep_dense_covariance, (dense,)

    def sweep(self, block: int, rows: Array, threshold: float) -> float:
        return float(
            self._sweep(
                rows,
                *self.rows,
                self.squared_norms,
                self.signs,
                self.beta,
                self.upper,
                self.margins,
                self.slabs,
                self.intercept,
                self.bias,
                *self._structure,
                self.row_gains,
                threshold,
            )
        )

    def gains(self, block: int) -> Array:
        return self.row_gains

    def measure(self, block: int) -> tuple[float, float]:
        parts = np.array_split(self.intercept, len(self.label_blocks))
        return self._values(self.label_blocks, zip(self.slabs, parts, strict=True))

    def certify(self, block: int) -> tuple[float, float]:
        exact = [self.exact(part) for part in self.label_blocks]
        products = self._products(exact)
        Z = self.data.covariance.matmul(products)
        self.certified = []
        for part in exact:
            wide = np.zeros((len(Z), WIDTH))
            wide[:, : len(part.labels)] = Z[:, part.labels]
            self.certified.append((np.ascontiguousarray(wide[:-1]), float(self.bias) * wide[-1]))
        return self._values(exact, self.certified)

    def _products(self, blocks: Iterable[LabelBlock]) -> Array:
        """Compute X^T B, a row a feature with the constant one last, in double precision."""
        products = np.zeros((self.data.features.shape[1] + 1, self.data.labels.n_labels))
        for part in blocks:
            k = len(part.labels)
            products[:-1, part.labels] = self.product(part)[:, :k]
            products[-1, part.labels] = float(self.bias) * part.beta.sum(axis=0)[:k]
        return products

    def _values(
        self, blocks: Iterable[LabelBlock], slabs: Iterable[tuple[Array, Array]]
    ) -> tuple[float, float]:
        sums = [self.sums(block, *slab) for block, slab in zip(blocks, slabs, strict=True)]
        hinge, linear, quadratic = np.sum(sums, axis=(0, 2))
        return float(quadratic / 2 + hinge), float(linear - quadratic / 2)
