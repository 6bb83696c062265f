"""Kernels that decay with distance: RBF (Gaussian), also with one width per feature, and Laplacian."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix, Moments
from labelweave.features.kernels.kernel import Kernel, is_number, number_of, value_type
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import namespace, numbers_of, panels
from labelweave.foundation.arrays.linear_algebra import (
    as_type,
    beside,
    is_foreign,
    is_numpy,
    like,
    numpy_type,
    set_diagonal,
    to_numpy,
    write_exponential,
    write_lesser,
)
from labelweave.foundation.sklearn_compat import sparse_matmul_to_dense
from labelweave.model_files import storable
from labelweave.model_files.schema import LARGEST_WIDTH, LEAST_WIDTH, WIDTH, Maybe, Numbers

_CACHE_ENTRIES = 2**15  # with a second array of the same size, within a core's cache
_MEMORY_ENTRIES = 2**20  # 8 MiB in float64, small enough to be reallocated without page faults
_CSR_PARTS = ("data", "indices", "indptr")


def are_same(rows: FeatureMatrix, columns: FeatureMatrix) -> bool:
    """Return whether two features are one object or share memory, which no model's do."""
    if columns.kept is not None or rows.is_sparse != columns.is_sparse or rows.shape != columns.shape:
        return rows is columns
    left, right = rows.data, columns.data
    if not rows.is_sparse:
        return _is_one_array(left, right)
    return all(_is_one_array(getattr(left, part), getattr(right, part)) for part in _CSR_PARTS)


def _is_one_array(left: Array, right: Array) -> bool:
    if not (is_numpy(left) and is_numpy(right)):
        return left is right
    return left.__array_interface__ == right.__array_interface__  # address, shape, strides and type


def cache_slices(table: Array) -> list[slice]:
    """Split an array into blocks of rows that fit in the processor's cache; on a device it is one block."""
    entries = _CACHE_ENTRIES if is_numpy(table) else math.prod(table.shape)
    return panels(table.shape[0], max(1, entries // max(1, table.shape[1])))


def memory_slices(shape: tuple[int, int]) -> list[slice]:
    return panels(shape[0], max(1, _MEMORY_ENTRIES // max(1, shape[1])))


def dot_products(rows: FeatureMatrix, columns: FeatureMatrix, kind: npt.DTypeLike) -> Array:
    """Compute the dot products of all pairs of rows in float32 or float64, a new array of shape (m, n)."""
    if not (rows.is_sparse or columns.is_sparse):
        left = as_type(rows.data, kind)
        # the product of an array with its own transpose is symmetric, and half the work
        right = left if are_same(rows, columns) else as_type(columns.data, kind)
        return left @ right.T
    products = np.empty((len(rows), len(columns)), dtype=kind)
    for some, values in dot_product_blocks(rows, columns, kind):
        products[some] = values
    return products


def dot_product_blocks(
    rows: FeatureMatrix, columns: FeatureMatrix, kind: npt.DTypeLike
) -> Iterator[tuple[slice, Array]]:
    """Yield the dot products of blocks of rows with all columns, in order."""
    multiply = _multiplication(rows.is_sparse, columns, kind)
    for some in memory_slices((len(rows), len(columns))):
        part = rows.data[some].astype(kind, copy=False)
        yield some, multiply(narrow_csr(part) if rows.is_sparse else part)


def _multiplication(
    rows_are_sparse: bool, columns: FeatureMatrix, kind: npt.DTypeLike
) -> Callable[[Any], Array]:
    """Prepare the columns once for all products; those of a model once for all calls."""
    right = columns.data.astype(kind, copy=False)
    if columns.is_sparse and rows_are_sparse:
        flat = columns.once(("turned", np.dtype(kind).str), lambda: narrow_csr(right.T.tocsr()))
        return lambda part: np.asarray(sparse_matmul_to_dense(part, flat))
    if columns.is_sparse:
        return lambda part: np.ascontiguousarray(np.asarray(right @ part.T).T)
    turned = np.ascontiguousarray(right.T) if rows_are_sparse else right.T
    return lambda part: np.asarray(part @ turned)


def narrow_csr(rows: Any) -> Any:
    """Convert rows to CSR with 32-bit indices if possible, as scikit-learn's loops expect."""
    csr = sp.csr_array(rows)
    if max(csr.nnz, *csr.shape) > np.iinfo(np.int32).max:
        return csr
    parts = csr.data, csr.indices.astype(np.int32, copy=False), csr.indptr.astype(np.int32, copy=False)
    return sp.csr_array(parts, shape=csr.shape)


# Distances from norms lose to cancellation about epsilon * norm^2.  Up to this gamma * norm^2
# float32 keeps the exponent right to about 2e-5.
_FARTHEST_IN_SINGLE = 80.0
_LARGEST_IN_SINGLE = 1e30  # for gamma and squared norms
_LARGEST_EXPONENT = 1e300


class GammaKernel(Kernel):
    """A kernel with a width ``gamma``: a number > 0, "scale" or "auto"."""

    gamma: Any

    def _check_parameters(self) -> None:
        if isinstance(self.gamma, str):
            allowed = self.gamma in ("scale", "auto")
        else:
            allowed = is_number(self.gamma) and 0 < self.gamma < np.inf
        if not allowed:
            raise ValueError(
                f"{type(self).__name__} has gamma={self.gamma!r}; pass a number > 0, 'scale' or 'auto'."
            )

    def _parameter_names(self) -> list[str]:
        return ["gamma"]

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        other = copy(self)
        if isinstance(self.gamma, str):
            other.gamma = _gamma_from_data(self.gamma, features)
        return other

    def _gamma(self) -> float:
        return number_of(self, "gamma", self.gamma)


def _gamma_from_data(gamma: str, features: FeatureMatrix) -> float:
    """Compute the width like :class:`sklearn.svm.SVC`; 1.0 where its formula divides by zero."""
    scatter = features.shape[1] * (1.0 if gamma == "auto" else _variance(features))
    # for features below 1e-150 it would be infinite, for those above 1e150 zero
    return float(np.clip(1.0 / scatter, LEAST_WIDTH, LARGEST_WIDTH)) if scatter > 0 else 1.0


def _variance(features: FeatureMatrix) -> float:
    if 0 in features.shape:
        return 0.0
    if features.is_distributed or features.is_sparse:
        return float(features.summed(Moments.of).of_all_entries)
    return float(features.data.var(dtype=np.float64))


class _ExponentialKernel(GammaKernel):
    """``exp(-gamma distance)``; subclasses define the distance."""

    _may_overflow = False

    def __init__(self, gamma: float | str = "scale") -> None:
        self.gamma = gamma

    @abstractmethod
    def _block(
        self, rows: FeatureMatrix, columns: FeatureMatrix, write: Callable[[Array], Any] = write_exponential
    ) -> Array:
        """Apply an in-place function to all ``-gamma distance``, in blocks of rows."""

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return np.ones(len(rows))

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        return {"gamma": self._block(rows, columns, _derivative)}


def _derivative(exponents: Array) -> None:
    exponents *= namespace(exponents).exp(exponents)


@storable("RBFKernel", {"gamma": WIDTH})
class RBFKernel(_ExponentialKernel):
    """``exp(-gamma |x - x'|^2)``, with the Euclidean distance.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default="scale"
        The inverse squared width, > 0.  As in :class:`sklearn.svm.SVC`, "scale" is
        ``1 / (d * variance of all entries)`` and "auto" is ``1 / d``, for d features;
        :meth:`~Kernel.resolved` computes them.

    Notes
    -----
    The squared distances come from one matrix product and the squared norms.  Where that would cancel too
    many digits, dense features are centered first, or float32 features multiplied in float64.
    """

    def _block(
        self, rows: FeatureMatrix, columns: FeatureMatrix, write: Callable[[Array], Any] = write_exponential
    ) -> Array:
        gamma, kind = self._gamma(), value_type(rows, columns)
        pair = _Pair.of(rows, columns)
        if gamma * pair.largest > _FARTHEST_IN_SINGLE:
            pair = pair.centered(kind)
        far = gamma * pair.largest > _FARTHEST_IN_SINGLE or max(gamma, pair.largest) > _LARGEST_IN_SINGLE
        through_double = far and kind is np.float32
        if pair.is_sparse or (through_double and is_numpy(rows.data)):
            return pair.through_double(gamma, kind, write)
        values = dot_products(pair.rows, pair.columns, np.float64 if through_double else kind)
        pair.finish(values, slice(0, len(rows)), gamma, write)
        return as_type(values, kind)


@dataclass(frozen=True)
class _Pair:
    """Two feature matrices and their squared norms."""

    rows: FeatureMatrix
    columns: FeatureMatrix
    row_norms: Array
    column_norms: Array

    @classmethod
    def of(cls, rows: FeatureMatrix, columns: FeatureMatrix) -> _Pair:
        row_norms = rows.squared_norms()
        column_norms = row_norms if are_same(rows, columns) else columns.once("norms", columns.squared_norms)
        pair = cls(rows, columns, row_norms, column_norms)
        if not np.isfinite(pair.largest):
            raise ValueError("The squared norm of a row is too large for float64; scale the features down.")
        return pair

    @property
    def largest(self) -> float:
        return float(max(self.row_norms.max(initial=0.0), self.column_norms.max(initial=0.0)))

    @property
    def is_sparse(self) -> bool:
        return self.rows.is_sparse or self.columns.is_sparse

    def centered(self, kind: npt.DTypeLike) -> _Pair:
        """Center dense features by the rows' mean, if that makes them clearly shorter."""
        if self.is_sparse or len(self.rows) == 0:
            return self
        mean = _mean(self.rows)
        if 2 * (mean @ mean) < self.row_norms.mean():
            return self
        # distances do not change with the subtracted point, so it may be rounded
        moved = _less(self.rows, mean.astype(kind))
        if are_same(self.rows, self.columns):
            return _Pair.of(moved, moved)
        return _Pair.of(moved, _less(self.columns, mean.astype(kind)))

    def through_double(self, gamma: float, kind: npt.DTypeLike, write: Callable[[Array], Any]) -> Array:
        values = np.empty((len(self.rows), len(self.columns)), dtype=kind)
        for some, products in dot_product_blocks(self.rows, self.columns, np.float64):
            self.finish(products, some, gamma, write)
            values[some] = products
        return values

    def finish(self, products: Array, some: slice, gamma: float, write: Callable[[Array], Any]) -> None:
        """Convert the dot products of some rows to a function of the exponents, in place."""
        # an exponent may be so low that its exponential is 0, but must not be infinite
        gamma = min(gamma, _LARGEST_EXPONENT / max(self.largest, 1.0))
        left, right = (like(gamma * norms, products) for norms in (self.row_norms[some], self.column_norms))
        same = are_same(self.rows, self.columns)
        for few in cache_slices(products):
            part = products[few, ...]
            part *= 2 * gamma
            part -= left[few, None] + right[None, :]  # added first, so that the result is symmetric
            write_lesser(part, 0.0)
            if same:
                set_diagonal(part[:, some.start + few.start :], np.zeros(part.shape[0]))
            write(part)


def _mean(features: FeatureMatrix) -> Array:
    table = features.data
    if is_numpy(table):
        return np.asarray(table.mean(axis=0, dtype=np.float64))
    return to_numpy(namespace(table).mean(as_type(table, np.float64), axis=0))


def _less(features: FeatureMatrix, point: Array) -> FeatureMatrix:
    return FeatureMatrix.of_any_library(features.data - beside(point, features.data))


@storable("LaplacianKernel", {"gamma": WIDTH})
class LaplacianKernel(_ExponentialKernel):
    """``exp(-gamma |x - x'|_1)``, with the sum of absolute differences.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default="scale"
        The inverse width, > 0; see :class:`RBFKernel` for "scale" and "auto".
    """

    def _block(
        self, rows: FeatureMatrix, columns: FeatureMatrix, write: Callable[[Array], Any] = write_exponential
    ) -> Array:
        gamma = self._gamma()
        if is_foreign(rows.data):
            distances = _summed_differences(rows.data, columns.data, _LARGEST_IN_SINGLE / max(gamma, 1.0))
            distances *= -gamma
            write(distances)
            return distances
        values = np.empty((len(rows), len(columns)), dtype=value_type(rows, columns))
        one_is_sparse = rows.is_sparse or columns.is_sparse
        left, right = (narrow_csr(each.data) if one_is_sparse else each.data for each in (rows, columns))
        for some in memory_slices(values.shape):
            exponents = _manhattan(left[some], right)
            write_lesser(exponents, _LARGEST_EXPONENT / gamma)
            exponents *= -gamma
            write(exponents)
            values[some] = exponents
        return values


def _summed_differences(rows: Array, columns: Array, most: float) -> Array:
    xp = namespace(rows)
    distances: Array = xp.zeros((rows.shape[0], columns.shape[0]), dtype=rows.dtype, device=rows.device)
    for feature in range(rows.shape[1]):
        distances += xp.abs(rows[:, feature, None] - columns[None, :, feature])
    write_lesser(distances, most)
    return distances


def _manhattan(rows: Any, columns: Any) -> Array:
    from sklearn import config_context
    from sklearn.metrics.pairwise import manhattan_distances

    if 0 in (*rows.shape, *columns.shape):  # refused by scikit-learn
        return np.zeros((rows.shape[0], columns.shape[0]))
    with config_context(assume_finite=True):
        return np.asarray(manhattan_distances(rows, columns))


@storable(
    "ARDKernel", {"gamma": WIDTH, "weights": Maybe(Numbers("d", least=LEAST_WIDTH, most=LARGEST_WIDTH))}
)
class ARDKernel(Kernel):
    """``exp(-gamma sum_f weights_f (x_f - x'_f)^2)``: one relevance weight per feature.

    Parameters
    ----------
    gamma : float, default=1.0
        The inverse squared width of a feature with weight 1, > 0.
    weights : array-like of shape (d,) or None, default=None
        One number > 0 per feature; None for 1, which is :class:`RBFKernel`.
    """

    _may_overflow = False

    def __init__(self, gamma: Any = 1.0, weights: Any = None) -> None:
        self.gamma = gamma
        self.weights = weights

    def _check_parameters(self) -> None:
        if not is_number(self.gamma) or not self.gamma > 0:
            raise ValueError(f"ARDKernel has gamma={self.gamma!r}; pass a number > 0.")
        if self.weights is None:
            return
        weights = numbers_of(self.weights, "The weights of an ARDKernel").astype(np.float64)
        if weights.ndim != 1 or not ((weights > 0) & (weights <= LARGEST_WIDTH)).all():
            raise ValueError("ARDKernel has invalid weights; pass one finite number > 0 per feature.")

    def _parameter_names(self) -> list[str]:
        features = 0 if self.weights is None else len(self.weights)
        return ["gamma", *(f"weights[{feature}]" for feature in range(features))]

    def to_state(self) -> dict[str, Any]:
        """Return the state for a model file; see :meth:`labelweave.model_files.Storable.to_state`."""
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
            raise ValueError(f"ARDKernel has {len(roots)} weights; pass {rows.shape[1]}, one per feature.")
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
            found[name] = -float(self.gamma) * values * (first[:, None] - second[None, :]) ** 2
        return found

    def gradient(self, rows: FeatureMatrix, columns: FeatureMatrix, weights: Array) -> Array:
        """Sum the weighted derivatives by matrix products; see :meth:`Kernel.gradient`.

        With M the kernel times the weights, ``sum M_ij (z_i - z'_j)^2`` follows from row sums, column sums
        and ``z^T M z'`` for every feature z; dense features are centered first, against cancellation.
        """
        if self.weights is None:
            return super().gradient(rows, columns, weights)
        left, right = (part.data for part in self._scaled(rows, columns))
        products = self.block(rows, columns) * weights
        xp = namespace(products)
        if not (rows.is_sparse or columns.is_sparse):
            middle = xp.mean(right, axis=0) if right.shape[0] else 0.0
            left, right = left - middle, right - middle
        across = left * (products @ right)
        squares = (left * left).T @ xp.sum(products, axis=1) + (right * right).T @ xp.sum(products, axis=0)
        own = np.asarray(across.sum(axis=0)).ravel() if sp.issparse(across) else xp.sum(across, axis=0)
        by_weights = -float(self.gamma) * (to_numpy(squares) - 2.0 * to_numpy(own))
        return np.append(by_weights.sum(), by_weights)


def _times(features: FeatureMatrix, factors: Array) -> FeatureMatrix:
    table = features.data
    scaled = table * beside(factors.astype(numpy_type(table)), table)
    return FeatureMatrix.of_any_library(sp.csr_array(scaled) if features.is_sparse else scaled)


def _column(features: FeatureMatrix, feature: int) -> Array:
    table = features.data[:, [feature]].toarray() if features.is_sparse else features.data
    return table[:, 0 if features.is_sparse else feature]
