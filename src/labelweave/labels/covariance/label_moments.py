"""The mean outer product of the rows of a label set, in -1/1, without a dense label matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, LabelsByLabels
from labelweave.labels.covariance.spectra import check_writable
from labelweave.labels.label_matrix import LabelMatrix

__all__ = ["mean_outer_product"]


_COLUMNS_AT_ONCE = 1024
_CELLS_AT_ONCE = 4_000_000  # also bounds the rows, so that single precision counts exactly
_DENSE_SHARE = 0.1  # stored share of entries from which products of dense rows are faster
_ROUNDING = 1e-12


def mean_outer_product(labels: LabelMatrix) -> LabelsByLabels:
    """Average ``y_i y_i^T`` over rows; with missing entries each pair over the rows that have both.

    Returns positive semi-definite, with ones on the diagonal.
    Shapes: labels (n, L).
    Raises ValueError if there are no rows, no labels or too many labels.
    """
    if 0 in labels.shape:
        raise ValueError(
            f"Y has shape {labels.shape}; a covariance from labels needs at least one row and one label."
        )
    check_writable(labels.n_labels, "A covariance from labels")
    return _over_shared_rows(labels) if labels.has_missing else _over_all_rows(labels)


def _over_all_rows(labels: LabelMatrix) -> Array:
    """Use ``(2 p - 1)(2 q - 1) = 4 p q - 2 p - 2 q + 1`` for the 0/1 entries p and q."""
    moments = _gram(labels.positives)
    twice = 2.0 * labels.positive_counts()
    moments *= 4.0
    moments -= twice
    moments -= twice[:, None]
    moments += len(labels)
    moments /= len(labels)
    return moments


def _over_shared_rows(labels: LabelMatrix) -> Array:
    signs: Any = labels.observed
    shared = _gram(abs(signs))
    moments = _gram(signs)
    np.divide(moments, shared, out=moments, where=shared > 0)
    np.fill_diagonal(moments, 1.0)
    return _made_semidefinite(moments)


def _gram(table: Any) -> Array:
    """Multiply the transpose of a table of small whole numbers with the table; exact."""
    n_rows, n_labels = table.shape
    product = np.zeros((n_labels, n_labels))
    if table.nnz > _DENSE_SHARE * n_rows * n_labels:
        step = max(1, _CELLS_AT_ONCE // n_labels)
        for start in range(0, n_rows, step):
            rows = table[start : start + step].toarray().astype(np.float32)
            product += rows.T @ rows
        return product
    table = sp.csr_array(table, dtype=np.float64)
    by_label = sp.csc_array(table)
    for start in range(0, n_labels, _COLUMNS_AT_ONCE):
        some = slice(start, start + _COLUMNS_AT_ONCE)
        product[some] = (by_label[:, some].T @ table).toarray()
    return product


def _made_semidefinite(moments: Array) -> Array:
    """Raise negative eigenvalues to 0, then scale to unit variances, which keeps the others >= 0."""
    values, vectors = np.linalg.eigh(moments)
    if values[0] >= -_ROUNDING * len(values):
        return moments
    kept = vectors[:, values > 0] * np.sqrt(values[values > 0])
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)  # clipping only adds to a variance of 1
    nearest = kept @ kept.T
    np.fill_diagonal(nearest, 1.0)
    return np.asarray((nearest + nearest.T) / 2)
