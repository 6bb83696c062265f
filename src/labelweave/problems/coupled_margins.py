"""The max-margin dual when a label covariance couples the labels.

Blocks are swept one after the other (Gauss-Seidel).  Within a block the sweep
follows every step through the block's own part of R; what it moved, D = X^T change,
reaches the other blocks when their turn comes, through Z_b = V R[:, b] with
V = X^T B.  This is the delayed update of equations 41 to 43 of the M3L paper with a
block in place of a label, and it is a matrix product.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave._loops.coordinate_ascent import scatter_block, sweep_coupled
from labelweave._loops.wide_rows import WIDTH
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.margin_dual import Array, MarginData, MarginDual

__all__ = ["CoupledMargins"]


class _Products:
    """V = X^T B, a row a feature (the constant one last), and its products with columns of R."""

    def __init__(self, dual: MarginDual, dtype: npt.DTypeLike) -> None:
        self.dual, self.dtype = dual, np.dtype(dtype)
        data = dual.data
        self.covariance = data.covariance
        self.V = np.zeros((data.features.shape[1] + 1, data.labels.n_labels), dtype)
        factor = data.covariance.factor if isinstance(data.covariance, FactorCovariance) else None
        self.factor = None if factor is None else factor.astype(dtype)
        self.VF = None if factor is None else np.zeros((len(self.V), factor.shape[1]), dtype)

    def add(self, labels: Array, moved: Array) -> None:
        """Add what a sweep moved, shape (d + 1, k)."""
        self.V[:, labels] += moved
        if self.factor is not None:
            self.VF += moved @ self.factor[labels]

    def weights(self, labels: Array) -> Array:
        """Return Z for some labels, padded: shape (d + 1, WIDTH)."""
        wide = np.zeros((len(self.V), WIDTH), self.dtype)
        if isinstance(self.covariance, FactorCovariance):
            own = self.covariance.own_variance[labels].astype(self.dtype)
            wide[:, : len(labels)] = self.VF @ self.factor[labels].T + self.V[:, labels] * own
        else:
            every = np.arange(self.V.shape[1])
            wide[:, : len(labels)] = self.V @ self.covariance.block(every, labels).astype(self.dtype)
        return wide


class CoupledMargins(MarginDual):
    """The dual with any label covariance.

    Parameters
    ----------
    data : MarginData
        The problem.
    dtype : dtype
        float32 or float64.
    """

    blocks_are_independent = False

    def __init__(self, data: MarginData, dtype: npt.DTypeLike) -> None:
        super().__init__(data, dtype)
        self.products = _Products(self, self.dtype)
        self.bias = self.dtype.type(1.0 if data.intercept else 0.0)
        self.inner = [self._padded_block(state.labels) for state in self.blocks]

    def _padded_block(self, labels: Array) -> Array:
        inner = np.zeros((WIDTH, WIDTH), self.dtype)
        inner[: len(labels), : len(labels)] = self.data.covariance.block(labels, labels)
        return inner

    def sweep(self, block: int, rows: Array, threshold: float) -> float:
        """Visit rows of one block and pass on what moved."""
        state = self.blocks[block]
        weights = self.products.weights(state.labels)
        moved = np.zeros_like(weights)
        gap = sweep_coupled(
            rows, *self.rows, self.squared_norms, state.signs, state.beta, self.upper, state.margins,
            weights[:-1], moved[:-1], weights[-1], moved[-1], self.bias, self.inner[block],
            state.gains, threshold,
        )  # fmt: skip
        self.products.add(state.labels, moved[:, : len(state.labels)])
        return float(gap)

    def weights(self, block: int, dtype: npt.DTypeLike) -> tuple[Array, Array]:
        """Recompute the weights of a block from all variables."""
        wide = self._recomputed(dtype).weights(self.blocks[block].labels)
        return wide[:-1], self.bias * wide[-1]

    def solution(self) -> tuple[Array, Array]:
        """Collect the weights of all labels; see :meth:`MarginDual.solution`."""
        products = self._recomputed(np.float64)
        Z = self.data.covariance.matmul(products.V)
        return Z[:-1], float(self.bias) * Z[-1]

    def measure(self) -> tuple[Array, Array]:
        """Return primal and dual values by block at the weights in use."""
        return self._values(self.products)

    def certify(self) -> tuple[Array, Array]:
        """Return primal and dual values by block, recomputed in double precision."""
        return self._values(self._recomputed(np.float64))

    def _recomputed(self, dtype: npt.DTypeLike) -> _Products:
        products = _Products(self, dtype)
        rows = self.data.features.sparse_rows(dtype)
        for state in self.blocks:
            wide = np.zeros((len(products.V), WIDTH), dtype)
            scatter_block(*rows, state.beta, wide[:-1])
            wide[-1] = self.bias * state.beta.sum(axis=0, dtype=np.float64)
            products.add(state.labels, wide[:, : len(state.labels)])
        return products

    def _values(self, products: _Products) -> tuple[Array, Array]:
        primal, dual = np.empty(self.n_blocks), np.empty(self.n_blocks)
        for number, state in enumerate(self.blocks):
            wide = products.weights(state.labels)
            hinge, linear, quadratic = self.sums(state, wide[:-1], self.bias * wide[-1])
            primal[number] = (quadratic / 2 + hinge).sum()
            dual[number] = (linear - quadratic / 2).sum()
        return primal, dual
