"""A label covariance of low rank, plus a diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array
from labelweave.labels.covariance.base import LabelCovariance
from labelweave.labels.covariance.checks import (
    check_amount,
    checked_factor,
    checked_own_variance,
    number_type,
)
from labelweave.labels.covariance.spectra import check_writable, dense_spectrum, factor_spectrum
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable

__all__ = ["FactorCovariance"]


@storable("FactorCovariance")
class FactorCovariance(LabelCovariance):
    """A diagonal plus a factor times its transpose; the factor may be sparse.

    Shapes: factor (L, r), diagonal (L,).
    """

    def __init__(
        self, factor: Any, diagonal: Any = 0.0, label_names: Sequence[str] | Array | None = None
    ) -> None:
        self.factor: Any = checked_factor(factor)
        self.n_labels = int(self.factor.shape[0])
        self.own_variance = checked_own_variance(diagonal, self.n_labels)
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

    def matmul(self, vectors: Array) -> Array:
        kind = number_type(vectors)
        factor = self.factor.astype(kind)
        return np.asarray(vectors * self.own_variance.astype(kind) + (vectors @ factor) @ factor.T)

    def shrink(self, amount: float) -> FactorCovariance:
        check_amount(amount)
        mean = self.diagonal().sum() / max(1, self.n_labels)
        own = (1.0 - amount) * self.own_variance + amount * mean
        return FactorCovariance(self.factor * np.sqrt(1.0 - amount), own)._named(self.label_names)

    def scaled(self, scale: float) -> FactorCovariance:
        return FactorCovariance(self.factor * np.sqrt(scale), self.own_variance * scale)._named(
            self.label_names
        )

    def spectrum(self) -> tuple[Array, Array]:
        """Compute eigenvalues and eigenvectors; see :meth:`LabelCovariance.spectrum`.

        Without own variances and with fewer columns than labels the factor is
        enough, and nothing of size L x L is made.
        """
        if not self.own_variance.any() and self.factor.shape[1] < self.n_labels:
            return factor_spectrum(self.factor.toarray() if sp.issparse(self.factor) else self.factor)
        check_writable(self.n_labels, "The spectrum of this covariance")
        return dense_spectrum(self.to_dense())
