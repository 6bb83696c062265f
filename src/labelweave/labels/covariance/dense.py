"""A label covariance that is written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.array_types import Array, LabelsByLabels
from labelweave.arrays import Workers
from labelweave.labels.covariance.base import LabelCovariance
from labelweave.labels.covariance.checks import check_amount, checked_semidefinite, number_type
from labelweave.labels.covariance.spectra import dense_spectrum
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable

__all__ = ["DenseCovariance"]


@storable("DenseCovariance")
class DenseCovariance(LabelCovariance):
    """Any positive semi-definite matrix.

    Shapes: matrix (L, L).
    """

    def __init__(self, matrix: Any, label_names: Sequence[str] | Array | None = None) -> None:
        self.matrix = checked_semidefinite(np.asarray(matrix, dtype=np.float64))
        self.n_labels = len(self.matrix)
        self.label_names = checked_names(label_names, self.n_labels)

    @classmethod
    def from_semidefinite(cls, matrix: LabelsByLabels, label_names: Array | None = None) -> DenseCovariance:
        """Wrap a matrix that is known to be a covariance, without the cost of a check.

        Shapes: label_names (L,).
        """
        made = cls.__new__(cls)
        made.matrix, made.n_labels = matrix, len(matrix)
        return made._named(label_names)

    def to_state(self) -> dict[str, Any]:
        return {"matrix": self.matrix, **self._names_state()}

    @property
    def kind(self) -> str:
        """The structure in a few words."""
        return "dense"

    def columns(self, labels: Array) -> LabelCovariance:
        return self.from_semidefinite(self.matrix[np.ix_(labels, labels)], self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        return np.asarray(self.matrix[np.ix_(rows, columns)])

    def diagonal(self) -> Array:
        return np.asarray(self.matrix.diagonal())

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        matrix = self.matrix.astype(number_type(vectors), copy=False)
        if workers is None:
            return np.asarray(vectors @ matrix)
        return workers.matmul(vectors.reshape(-1, self.n_labels), matrix).reshape(vectors.shape)

    def shrink(self, amount: float) -> DenseCovariance:
        check_amount(amount)
        shrunk = (1.0 - amount) * self.matrix
        shrunk.flat[:: self.n_labels + 1] += amount * self.diagonal().sum() / max(1, self.n_labels)
        return self.from_semidefinite(shrunk, self.label_names)

    def scaled(self, scale: float) -> DenseCovariance:
        return self.from_semidefinite(self.matrix * scale, self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        return dense_spectrum(self.matrix)
