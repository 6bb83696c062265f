"""CSR arrays from their parts, with 32-bit indices wherever these are enough.

scikit-learn's LIBLINEAR and other compiled code take no 64-bit indices, and
SciPy keeps whatever width it is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["csr_from_counts", "ones_from_rows", "with_narrow_indices"]


def csr_from_counts(
    data: npt.NDArray[Any], indices: npt.NDArray[Any], counts: Any, n_columns: int
) -> sp.csr_array:
    """Make a CSR array from what its rows hold, one after the other.

    Parameters
    ----------
    data : ndarray of shape (stored,)
        The stored entries.
    indices : ndarray of int, shape (stored,)
        Their columns.
    counts : array-like of int, shape (n,)
        How many each row has.
    n_columns : int
        The number of columns.

    Returns
    -------
    csr_array of shape (n, n_columns)
        The array; indices are 32-bit where the sizes allow.
    """
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    width = _index_type(len(data), len(counts), n_columns)
    parts = (data, indices.astype(width, copy=False), ends.astype(width))
    return sp.csr_array(parts, shape=(len(counts), n_columns))


def ones_from_rows(rows: list[list[int]], n_columns: int) -> sp.csr_array:
    """Make a CSR array of ones from the columns of each row.

    Parameters
    ----------
    rows : list of list of int
        The columns, sorted within a row.
    n_columns : int
        The number of columns.

    Returns
    -------
    csr_array of int8, shape (n, n_columns)
        Ones in these places.
    """
    columns = np.array([column for row in rows for column in row], np.int64)
    return csr_from_counts(np.ones(len(columns), np.int8), columns, [len(row) for row in rows], n_columns)


def with_narrow_indices(matrix: Any) -> sp.csr_array:
    """Bring a sparse matrix to CSR with sorted indices, 32-bit where the sizes allow.

    Parameters
    ----------
    matrix : sparse array or matrix of shape (n, d)
        Any sparse matrix.

    Returns
    -------
    csr_array of shape (n, d)
        The same entries.
    """
    csr = sp.csr_array(matrix)
    csr.sort_indices()
    return csr_from_counts(csr.data, csr.indices, np.diff(csr.indptr), csr.shape[1])


def _index_type(*sizes: int) -> type[np.signedinteger[Any]]:
    return np.int32 if max(sizes) <= np.iinfo(np.int32).max else np.int64
