"""A label covariance that is written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array, LabelsByLabels
from labelweave.foundation.arrays import Workers, namespace
from labelweave.foundation.arrays.linear_algebra import like
from labelweave.labels.covariance.base import LabelCovariance
from labelweave.labels.covariance.spectra import check_amount, check_scale, dense_spectrum
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable
from labelweave.model_files.schema import Names, Numbers, Optional


@storable("DenseCovariance", {"matrix": Numbers("L L"), "label_names": Optional(Names("L"))})
class DenseCovariance(LabelCovariance):
    """Any positive semi-definite matrix.

    Shapes: matrix (L, L).
    """

    kind = "dense"

    def __init__(self, matrix: Any, label_names: Sequence[str] | Array | None = None) -> None:
        self.matrix = _checked_semidefinite(np.asarray(matrix, dtype=np.float64))
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

    def columns(self, labels: Array) -> LabelCovariance:
        return self.from_semidefinite(self.matrix[np.ix_(labels, labels)], self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        return np.asarray(self.matrix[np.ix_(rows, columns)])

    def diagonal(self) -> Array:
        return np.asarray(self.matrix.diagonal())

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        matrix, xp = like(self.matrix, vectors), namespace(vectors)
        if workers is None:
            return vectors @ matrix
        flat = workers.matmul(xp.reshape(vectors, (-1, self.n_labels)), matrix)
        product: Array = xp.reshape(flat, vectors.shape)
        return product

    def shrink(self, amount: float) -> DenseCovariance:
        check_amount(amount)
        shrunk = (1.0 - amount) * self.matrix
        shrunk.flat[:: self.n_labels + 1] += amount * self.diagonal().sum() / max(1, self.n_labels)
        return self.from_semidefinite(shrunk, self.label_names)

    def scaled(self, scale: float) -> DenseCovariance:
        check_scale(scale)
        return self.from_semidefinite(self.matrix * float(scale), self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        return dense_spectrum(self.matrix)


def _checked_semidefinite(matrix: LabelsByLabels) -> LabelsByLabels:
    """Refuse a matrix that is not square, finite, symmetric or positive semi-definite."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A label covariance has shape {matrix.shape}; it must be square, (labels, labels).")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"The label covariance at ({row}, {column}) is {matrix[row, column]}, not finite.")
    scale = max(float(np.abs(matrix).max(initial=0.0)), np.finfo(float).tiny)
    _refuse_asymmetry(matrix, 1e-8 * scale)
    smallest = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
    if smallest < -1e-8 * scale * len(matrix):
        raise ValueError(
            f"The label covariance is not positive semi-definite: its smallest eigenvalue is {smallest:.3g}. "
            "Add that much to the diagonal, or shrink the off-diagonal entries."
        )
    return matrix / 2 + matrix.T / 2


def _refuse_asymmetry(matrix: Array, allowed: float) -> None:
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max(initial=0.0) > allowed:
        row, column = np.unravel_index(int(asymmetry.argmax()), asymmetry.shape)
        raise ValueError(
            f"The label covariance is not symmetric: entry ({row}, {column}) is {matrix[row, column]} and "
            f"({column}, {row}) is {matrix[column, row]}."
        )
