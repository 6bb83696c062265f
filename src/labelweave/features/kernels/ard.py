"""The RBF kernel with a width a feature (automatic relevance determination)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels.distances import RBFKernel, are_same
from labelweave.features.kernels.kernel import Kernel, is_number
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import numbers_of
from labelweave.model_files import storable
from labelweave.model_files.schema import LARGEST_WIDTH, LEAST_WIDTH, WIDTH, Maybe, Numbers


@storable(
    "ARDKernel", {"gamma": WIDTH, "weights": Maybe(Numbers("d", least=LEAST_WIDTH, most=LARGEST_WIDTH))}
)
class ARDKernel(Kernel):
    """``exp(-gamma sum_f weights_f (x_f - x'_f)^2)``: features of little weight matter little.

    Parameters
    ----------
    gamma : float, default=1.0
        The inverse squared width of a feature of weight 1, > 0.
    weights : array-like of shape (d,) or None, default=None
        One number > 0 a feature; None for 1, which is :class:`RBFKernel`.
    """

    _may_overflow = False

    def __init__(self, gamma: Any = 1.0, weights: Any = None) -> None:
        self.gamma = gamma
        self.weights = weights

    def _check_parameters(self) -> None:
        if not is_number(self.gamma) or not self.gamma > 0:
            raise ValueError(f"ARDKernel has gamma={self.gamma!r}; it must be a number > 0.")
        if self.weights is None:
            return
        weights = numbers_of(self.weights, "The weights of an ARDKernel").astype(np.float64)
        if weights.ndim != 1 or not ((weights > 0) & (weights <= LARGEST_WIDTH)).all():
            raise ValueError("ARDKernel has weights that are not one finite number > 0 for each feature.")

    def _parameter_names(self) -> list[str]:
        features = 0 if self.weights is None else len(self.weights)
        return ["gamma", *(f"weights[{feature}]" for feature in range(features))]

    def to_state(self) -> dict[str, Any]:
        """Return what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""
        weights = None if self.weights is None else np.asarray(self.weights, np.float64)
        return {"gamma": self.gamma, "weights": weights}

    def _parameter_values(self) -> list[float]:
        return [float(self.gamma), *([] if self.weights is None else map(float, self.weights))]

    def _with_values(self, values: dict[str, float]) -> Self:
        gamma, *weights = values.values()
        return type(self)(gamma, None if self.weights is None else np.array(weights))

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        return type(self)(self.gamma, None if self.weights is None else np.array(self.weights, np.float64))

    def _scaled(self, rows: FeatureMatrix, columns: FeatureMatrix) -> tuple[FeatureMatrix, FeatureMatrix]:
        """Scale the features so that the kernel is an RBF kernel of width 1 / gamma."""
        if self.weights is None:
            return rows, columns
        roots = np.sqrt(np.asarray(self.weights, np.float64))
        if len(roots) != rows.shape[1]:
            raise ValueError(f"ARDKernel has {len(roots)} weights, but there are {rows.shape[1]} features.")
        first = _times(rows, roots)
        return first, first if are_same(rows, columns) else _times(columns, roots)

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        return RBFKernel(self.gamma)._block(*self._scaled(rows, columns))

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return np.ones(len(rows))

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        left, right = self._scaled(rows, columns)
        rbf = RBFKernel(self.gamma)
        values = rbf._block(left, right)
        found = {"gamma": rbf._derivatives(left, right)["gamma"]}
        for feature, name in enumerate(self._parameter_names()[1:]):
            first, second = (_column(part, feature) for part in (left, right))
            found[name] = -float(self.gamma) * values * np.subtract.outer(first, second) ** 2
        return found

    def gradient(self, rows: FeatureMatrix, columns: FeatureMatrix, weights: Array) -> Array:
        """Add the weighted derivatives by products of matrices; see :meth:`Kernel.gradient`.

        With M the kernel times the weights, ``sum M_ij (z_i - z'_j)^2`` is made of row sums, column sums and
        ``z^T M z'`` for every feature z; dense features are moved near 0 first, against cancellation.
        """
        if self.weights is None:
            return super().gradient(rows, columns, weights)
        left, right = (part.data for part in self._scaled(rows, columns))
        products = self.block(rows, columns) * weights
        if not (rows.is_sparse or columns.is_sparse):
            middle = right.mean(axis=0) if len(right) else 0.0
            left, right = left - middle, right - middle
        across = left * (products @ right)
        squares = (left * left).T @ products.sum(axis=1) + (right * right).T @ products.sum(axis=0)
        by_weights = -float(self.gamma) * (squares - 2.0 * np.asarray(across.sum(axis=0)).ravel())
        return np.append(by_weights.sum(), by_weights)


def _times(features: FeatureMatrix, factors: Array) -> FeatureMatrix:
    table = features.data
    factors = factors.astype(table.dtype)
    return FeatureMatrix(sp.csr_array(table * factors) if features.is_sparse else table * factors)


def _column(features: FeatureMatrix, feature: int) -> Array:
    column = features.data[:, [feature]]
    return np.asarray(column.toarray() if features.is_sparse else column).ravel()
