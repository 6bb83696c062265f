"""A label covariance of low rank, plus a diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, PerLabel
from labelweave.foundation.arrays import RowPanels, Workers, namespace, numbers_of
from labelweave.foundation.arrays.linear_algebra import is_numpy, like
from labelweave.labels.covariance.base import LabelCovariance
from labelweave.labels.covariance.spectra import (
    check_amount,
    check_scale,
    check_writable,
    dense_spectrum,
    factor_spectrum,
)
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable
from labelweave.model_files.schema import Names, Numbers, Optional

_SPARSE_WORK = 10  # of an entry of a sparse factor, in entries of a dense matrix


@storable(
    "FactorCovariance",
    {
        "factor": Numbers("L r", sparse=True),
        "diagonal": Numbers("L", least=0),
        "label_names": Optional(Names("L")),
    },
)
class FactorCovariance(LabelCovariance):
    """A diagonal plus a factor times its transpose; the factor may be sparse.

    Shapes: factor (L, r), diagonal (L,).  The structure of a sparse factor that a user gave is checked in
    :meth:`LabelCovariance.low_rank`, that of one in a model file when the file is read.
    """

    def __init__(
        self, factor: Any, diagonal: Any = 0.0, label_names: Sequence[str] | Array | None = None
    ) -> None:
        self.factor: Any = _checked_factor(factor)
        self.n_labels = int(self.factor.shape[0])
        self.own_variance = _checked_own_variance(diagonal, self.n_labels)
        self.label_names = checked_names(label_names, self.n_labels)

    def to_state(self) -> dict[str, Any]:
        return {"factor": self.factor, "diagonal": self.own_variance, **self._names_state()}

    @property
    def kind(self) -> str:
        """The structure in a few words."""
        return f"rank {self.factor.shape[1]}" + (" plus diagonal" if self.own_variance.any() else "")

    def columns(self, labels: Array) -> LabelCovariance:
        kept = FactorCovariance(self.factor[labels], self.own_variance[labels])
        return kept._named(self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        rows, columns = np.asarray(rows), np.asarray(columns)
        product = self.factor[rows] @ self.factor[columns].T
        dense = product.toarray() if sp.issparse(product) else np.asarray(product)
        return dense + np.where(rows[:, None] == columns[None, :], self.own_variance[rows][:, None], 0.0)

    def diagonal(self) -> Array:
        return np.asarray((self.factor * self.factor).sum(axis=1)).ravel() + self.own_variance

    @cached_property
    def ties_labels(self) -> bool:
        """Whether two labels covary: only a column of the factor that two labels share ties them."""
        return bool((self._holders > 1).any())

    @cached_property
    def _holders(self) -> Array:
        """How many labels have a share in each column of the factor."""
        is_sparse = sp.issparse(self.factor)
        return np.bincount(self.factor.indices) if is_sparse else np.count_nonzero(self.factor, axis=0)

    @cached_property
    def _root(self) -> Any:
        """The factor's columns that are not 0; None where a matrix over all labels is the cheaper one.

        They are few, or sparse and wider than there are labels, as a tree has them.
        """
        used = np.flatnonzero(self._holders)
        is_cheap = sp.issparse(self.factor) and _SPARSE_WORK * self.factor.nnz <= self.n_labels**2
        return self.factor[:, used] if is_cheap or len(used) < self.n_labels else None

    @cached_property
    def _matrix(self) -> Array:
        return self.to_dense()

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        xp = namespace(vectors)
        flat: Any = xp.reshape(vectors, (-1, self.n_labels))
        own = like(self.own_variance, vectors)
        if workers is None:
            factor = _factor_like(self.factor, vectors)
            product = flat * own + (flat @ factor) @ factor.T
        elif not self.ties_labels:
            product = flat * like(self.diagonal(), vectors)
        elif self._root is None:
            product = workers.matmul(flat, like(self._matrix, vectors))
        else:
            product = self._through_root(flat, _factor_like(self._root, vectors), workers)
            if self.own_variance.any():
                product += flat * own
        result: Array = xp.reshape(product, vectors.shape)
        return result

    def _through_root(self, flat: Array, root: Any, workers: Workers) -> Array:
        if not sp.issparse(root):
            through: Array = (flat @ root) @ root.T
            return through
        product, root, turned = np.empty(flat.shape, root.dtype), sp.csr_array(root), sp.csr_array(root.T)

        def one(rows: slice) -> None:
            product[rows] = (root @ (turned @ flat[rows].T)).T

        RowPanels(workers, flat).each(one)
        return product

    def around(self, product: Callable[[Array], Array], vectors: Array, workers: Workers) -> Array:
        """Compute ``K V R``; see :meth:`LabelCovariance.around`.

        The product with K is as wide as a thin factor, and leaves out labels without variance.
        """
        if not self.ties_labels:
            variances = like(self.diagonal(), vectors)
            if not is_numpy(vectors) or variances.all():
                whole = product(vectors)
                whole *= variances
                return whole
            kept = np.flatnonzero(variances)
            padded = np.zeros(vectors.shape, variances.dtype)
            some = np.ascontiguousarray(vectors[..., kept])
            padded[..., kept] = product(some) * variances[kept]
            return padded
        root = self._root
        if root is None or root.shape[1] >= self.n_labels or self.own_variance.any():
            return self.matmul(product(vectors), workers)
        xp, root = namespace(vectors), _factor_like(root, vectors)
        mixed = xp.reshape(vectors, (-1, self.n_labels)) @ root
        mixed = product(xp.reshape(mixed, (*vectors.shape[:-1], root.shape[1])))
        result: Array = xp.reshape(xp.reshape(mixed, (-1, root.shape[1])) @ root.T, vectors.shape)
        return result

    def shrink(self, amount: float) -> FactorCovariance:
        check_amount(amount)
        mean = self.diagonal().sum() / max(1, self.n_labels)
        own = (1.0 - amount) * self.own_variance + amount * mean
        return FactorCovariance(self.factor * np.sqrt(1.0 - amount), own)._named(self.label_names)

    def scaled(self, scale: float) -> FactorCovariance:
        check_scale(scale)
        scale = float(scale)
        scaled = FactorCovariance(self.factor * np.sqrt(scale), self.own_variance * scale)
        return scaled._named(self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        """Compute eigenvalues and eigenvectors; see :meth:`LabelCovariance.spectrum`.

        Without own variances and with fewer columns than labels the factor is
        enough, and nothing of size L x L is made.
        """
        if not self.own_variance.any() and self.factor.shape[1] < self.n_labels:
            return factor_spectrum(self.factor.toarray() if sp.issparse(self.factor) else self.factor)
        check_writable(self.n_labels, "The spectrum of this covariance")
        return dense_spectrum(self.to_dense())


def _factor_like(factor: Any, vectors: Array) -> Any:
    """Give a factor, sparse or not, in the precision of some vectors; a sparse one stays with SciPy."""
    if sp.issparse(factor):
        return factor.astype(np.float32 if vectors.dtype == np.float32 else np.float64)
    return like(factor, vectors)


def _checked_factor(factor: Any) -> Any:
    """Read a factor, without duplicates if sparse."""
    given = sp.csr_array(factor) if sp.issparse(factor) else numbers_of(factor, "The covariance factor")
    table: Any = given.astype(np.float64, copy=True)
    if table.ndim != 2:
        raise ValueError(f"A covariance factor has shape {table.shape}; it needs two, (labels, rank).")
    if sp.issparse(table) and not table.has_canonical_format:
        table.sum_duplicates()
    if not np.isfinite(table.data if sp.issparse(table) else table).all():
        listed = sp.coo_array(table)
        bad = int(np.flatnonzero(~np.isfinite(listed.data))[0])
        raise ValueError(
            f"The covariance factor at label {listed.row[bad]}, column {listed.col[bad]} is "
            f"{listed.data[bad]}; it must be finite."
        )
    return table


def _checked_own_variance(diagonal: Any, n_labels: int) -> PerLabel:
    """Read the variances that labels have alone."""
    own = numbers_of(diagonal, "The covariance diagonal").astype(np.float64)
    if own.shape not in ((), (1,), (n_labels,)):
        raise ValueError(
            f"The covariance diagonal has shape {own.shape}; give one number, or one for each of "
            f"{n_labels} labels."
        )
    own = np.broadcast_to(own, (n_labels,)).copy()
    bad = np.flatnonzero(~np.isfinite(own) | (own < 0))
    if len(bad):
        raise ValueError(f"The covariance diagonal at label {bad[0]} is {own[bad[0]]}; it must be >= 0.")
    return own
