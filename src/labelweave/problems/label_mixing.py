"""Products with a label covariance on the columns of scores, whatever its structure.

Arrays have the shape (rows, groups, columns).  Where labels are tied together a group is a fit
and its columns are all labels.  Where they are not every label is a group with one
column, and group g is label g modulo L.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, GroupedColumns
from labelweave.arrays import RowPanels, Workers
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance.factor import FactorCovariance

__all__ = ["LabelMixing", "make_mixing"]

Product = Callable[[Array], Array]

_SPARSE_WORK = 10  # of an entry of a sparse factor, in entries of a dense matrix


class LabelMixing(ABC):
    """One covariance R and a way to compute ``K V R``."""

    @abstractmethod
    def around(self, product: Product, vectors: GroupedColumns, groups: Array) -> GroupedColumns:
        """Compute ``K V R`` with as few columns in the kernel product as R allows.

        product: computes K times an array of shape (n, columns).
        """

    @abstractmethod
    def alone(self, vectors: Array) -> Array:
        """Compute ``V R`` for tied labels.

        Shapes: vectors (n, groups, L), result (n, groups, L).
        """


class _Diagonal(LabelMixing):
    """Variances, one a label; labels without one are left out of kernel products."""

    def __init__(self, variances: Array, *, is_separate: bool) -> None:
        self.variances, self.is_separate = variances, is_separate
        self.kept = np.flatnonzero(variances)

    def around(self, product: Product, vectors: Array, groups: Array) -> Array:
        some: tuple[Any, Any, Any]
        if not self.is_separate:
            some, scales = (slice(None), slice(None), self.kept), self.variances[self.kept]
        else:
            labels = groups % len(self.variances)
            chosen = np.flatnonzero(self.variances[labels])
            some, scales = (slice(None), chosen, slice(None)), self.variances[labels[chosen]][:, None]
        if len(self.kept) == len(self.variances):
            result = _flat_product(product, vectors)
            result *= scales
            return result
        result = np.zeros_like(vectors)
        result[some] = _flat_product(product, np.ascontiguousarray(vectors[some])) * scales
        return result

    def alone(self, vectors: Array) -> Array:
        return vectors * self.variances


class _Dense(LabelMixing):
    """A matrix over all labels."""

    def __init__(self, matrix: Array, workers: Workers) -> None:
        self.matrix, self.workers = matrix, workers

    def around(self, product: Product, vectors: Array, groups: Array) -> Array:
        return self.alone(_flat_product(product, vectors))

    def alone(self, vectors: Array) -> Array:
        flat = vectors.reshape(-1, vectors.shape[2])
        return self.workers.matmul(flat, self.matrix).reshape(vectors.shape)


class _Factor(LabelMixing):
    """A thin factor times its transpose: the kernel product is of the factor's width."""

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def _times(self, vectors: Array, factor: Any) -> Array:
        flat = vectors.reshape(-1, vectors.shape[2])
        return np.asarray(flat @ factor).reshape(*vectors.shape[:2], factor.shape[1])

    def around(self, product: Product, vectors: Array, groups: Array) -> Array:
        return self._times(_flat_product(product, self._times(vectors, self.factor)), self.factor.T)

    def alone(self, vectors: Array) -> Array:
        return self._times(self._times(vectors, self.factor), self.factor.T)


class _SparseRoot(LabelMixing):
    """A sparse factor times its transpose, wider than there are labels, as a tree has it."""

    def __init__(self, factor: Any, workers: Workers) -> None:
        self.factor, self.turned, self.workers = sp.csr_array(factor), sp.csr_array(factor.T), workers

    def around(self, product: Product, vectors: Array, groups: Array) -> Array:
        return self.alone(_flat_product(product, vectors))

    def alone(self, vectors: Array) -> Array:
        flat = vectors.reshape(-1, vectors.shape[2])
        mixed = np.empty(flat.shape)

        def one(rows: slice) -> None:
            mixed[rows] = (self.factor @ (self.turned @ flat[rows].T)).T

        RowPanels(self.workers, len(flat), flat.shape[1]).each(one)
        return mixed.reshape(vectors.shape)


def _flat_product(product: Product, vectors: Array) -> Array:
    return product(vectors.reshape(len(vectors), -1)).reshape(vectors.shape)


def make_mixing(covariance: LabelCovariance, workers: Workers, *, is_separate: bool) -> LabelMixing:
    """Choose how to multiply by a covariance.

    is_separate: whether every label is a group of its own, which needs a diagonal R.
    """
    if has_separate_labels(covariance):
        return _Diagonal(covariance.diagonal(), is_separate=is_separate)
    if isinstance(covariance, FactorCovariance) and not covariance.own_variance.any():
        used = _used_columns(covariance.factor)
        if used.shape[1] < covariance.n_labels:
            return _Factor(used)
        if sp.issparse(used) and _SPARSE_WORK * used.nnz <= covariance.n_labels**2:
            return _SparseRoot(used, workers)
    return _Dense(covariance.to_dense(), workers)


def has_separate_labels(covariance: LabelCovariance) -> bool:
    """Tell whether a covariance ties no two labels together."""
    if not isinstance(covariance, FactorCovariance):
        return covariance.is_diagonal
    factor = covariance.factor
    # only a column that two labels share ties them together
    holders = np.bincount(factor.indices) if sp.issparse(factor) else np.count_nonzero(factor, axis=0)
    return bool((holders <= 1).all())


def _used_columns(factor: Any) -> Any:
    used = np.unique(factor.indices) if sp.issparse(factor) else np.flatnonzero(factor.any(axis=0))
    return factor[:, used]
