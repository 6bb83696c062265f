"""A label covariance that is written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.labels.covariance.base import Array, LabelCovariance
from labelweave.labels.covariance.checks import check_amount, checked_semidefinite, number_type
from labelweave.labels.covariance.spectra import dense_spectrum
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable

__all__ = ["DenseCovariance"]


@storable("DenseCovariance")
class DenseCovariance(LabelCovariance):
    """Any positive semi-definite matrix.

    Parameters
    ----------
    matrix : array-like of shape (L, L)
        The covariance.
    label_names : sequence of str or None, default=None
        One name a label.
    """

    def __init__(self, matrix: Any, label_names: Sequence[str] | Array | None = None) -> None:
        self.matrix = checked_semidefinite(np.asarray(matrix, dtype=np.float64))
        self.n_labels = len(self.matrix)
        self.label_names = checked_names(label_names, self.n_labels)

    @classmethod
    def from_semidefinite(cls, matrix: Array, label_names: Array | None = None) -> DenseCovariance:
        """Wrap a matrix that is known to be a covariance, without the cost of a check.

        Parameters
        ----------
        matrix : ndarray of float64, shape (L, L)
            Symmetric and positive semi-definite.
        label_names : ndarray of str, shape (L,), or None, default=None
            Checked names.

        Returns
        -------
        DenseCovariance
            The covariance.
        """
        made = cls.__new__(cls)
        made.matrix, made.n_labels = matrix, len(matrix)
        return made._named(label_names)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`LabelCovariance.to_state`."""
        return {"matrix": self.matrix, **self._names_state()}

    @property
    def kind(self) -> str:
        """The structure in a few words."""
        return "dense"

    def columns(self, labels: Array) -> LabelCovariance:
        """Keep some labels; see :meth:`LabelCovariance.columns`."""
        return self.from_semidefinite(self.matrix[np.ix_(labels, labels)], self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        """Write out some entries; see :meth:`LabelCovariance.block`."""
        return np.asarray(self.matrix[np.ix_(rows, columns)])

    def diagonal(self) -> Array:
        """Give the variances; see :meth:`LabelCovariance.diagonal`."""
        return np.asarray(self.matrix.diagonal())

    def matmul(self, vectors: Array) -> Array:
        """Multiply; see :meth:`LabelCovariance.matmul`."""
        return np.asarray(vectors @ self.matrix.astype(number_type(vectors), copy=False))

    def shrink(self, amount: float) -> DenseCovariance:
        """Pull towards independent labels; see :meth:`LabelCovariance.shrink`."""
        check_amount(amount)
        shrunk = (1.0 - amount) * self.matrix
        shrunk.flat[:: self.n_labels + 1] += amount * self.diagonal().sum() / max(1, self.n_labels)
        return self.from_semidefinite(shrunk, self.label_names)

    def scaled(self, scale: float) -> DenseCovariance:
        """Multiply all entries; see :meth:`LabelCovariance.scaled`."""
        return self.from_semidefinite(self.matrix * scale, self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        """Compute eigenvalues and eigenvectors; see :meth:`LabelCovariance.spectrum`."""
        return dense_spectrum(self.matrix)
