"""CSR arrays from their parts, with 32-bit indices wherever these are enough, and targets with gaps.

scikit-learn's LIBLINEAR and other compiled code take no 64-bit indices, and SciPy keeps whatever width it is
given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = [
    "csr_from_counts",
    "ones_from_rows",
    "with_missing_entries",
    "with_missing_rows",
    "with_narrow_indices",
]


def csr_from_counts(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], counts: Any, n_columns: int
) -> sp.csr_array:
    """Make a CSR array of what its rows hold, one after the other, and how many each row has."""
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    width = _index_type(len(data), len(counts), n_columns)
    parts = (data, indices.astype(width, copy=False), ends.astype(width))
    return sp.csr_array(parts, shape=(len(counts), n_columns))


def ones_from_rows(rows: list[list[int]], n_columns: int) -> sp.csr_array:
    """Make a CSR array of ones from the sorted columns of each row."""
    columns = np.array([column for row in rows for column in row], np.int64)
    return csr_from_counts(np.ones(len(columns), np.int8), columns, [len(row) for row in rows], n_columns)


def with_narrow_indices(matrix: Any) -> sp.csr_array:
    """Bring a sparse matrix to CSR with sorted indices, 32-bit where the sizes allow."""
    csr = sp.csr_array(matrix)
    csr.sort_indices()
    return csr_from_counts(csr.data, csr.indices, np.diff(csr.indptr), csr.shape[1])


def _index_type(*sizes: int) -> type[np.signedinteger[Any]]:
    return np.int32 if max(sizes) <= np.iinfo(np.int32).max else np.int64


def with_missing_entries(
    positives: sp.csr_array, missing: sp.csr_array, names: Sequence[str] | npt.NDArray[Any]
) -> LabelMatrix:
    """Make targets whose listed entries are unobserved; the mask then lists all ``n L`` other entries."""
    if not missing.nnz:
        return LabelMatrix(positives, None, names)
    observed = np.ones(positives.shape, bool)
    observed[missing.nonzero()] = False
    return LabelMatrix(positives, sp.csr_array(observed), names)


def with_missing_rows(
    positives: sp.csr_array, missing: npt.NDArray[np.bool_], names: Sequence[str] | npt.NDArray[Any]
) -> LabelMatrix:
    """Make targets of which whole rows are unobserved; the mask then lists every entry of the others."""
    if not missing.any():
        return LabelMatrix(positives, None, names)
    n_labels = positives.shape[1]
    columns = np.tile(np.arange(n_labels, dtype=np.int32), int((~missing).sum()))
    observed = csr_from_counts(
        np.ones(len(columns), np.int8), columns, np.where(missing, 0, n_labels), n_labels
    )
    return LabelMatrix(positives, observed, names)
