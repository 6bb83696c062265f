"""The covariance of independent labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.labels.covariance.base import LabelCovariance
from labelweave.labels.covariance.spectra import check_amount, check_writable
from labelweave.labels.label_matrix import checked_names
from labelweave.model_files import storable

__all__ = ["IdentityCovariance"]


@storable("IdentityCovariance")
class IdentityCovariance(LabelCovariance):
    """Independent labels, one-versus-all."""

    def __init__(self, n_labels: int, label_names: Sequence[str] | Array | None = None) -> None:
        self.n_labels = int(n_labels)
        self.label_names = checked_names(label_names, self.n_labels)

    def to_state(self) -> dict[str, Any]:
        return {"n_labels": self.n_labels, **self._names_state()}

    @property
    def is_diagonal(self) -> bool:
        """Whether labels are independent a priori."""
        return True

    @property
    def kind(self) -> str:
        """The structure in a few words."""
        return "independent"

    def columns(self, labels: Array) -> LabelCovariance:
        return IdentityCovariance(len(labels))._named(self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        return np.equal.outer(rows, columns).astype(np.float64)

    def diagonal(self) -> Array:
        return np.ones(self.n_labels)

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        return vectors

    def around(self, product: Callable[[Array], Array], vectors: Array, workers: Workers) -> Array:
        return product(vectors)

    def shrink(self, amount: float) -> IdentityCovariance:
        check_amount(amount)
        return self

    def scaled(self, scale: float) -> LabelCovariance:
        return self.low_rank(np.empty((self.n_labels, 0)), scale)._named(self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        check_writable(self.n_labels, "The spectrum of independent labels")
        return np.ones(self.n_labels), np.eye(self.n_labels)
