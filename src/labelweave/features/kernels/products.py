"""Dot products of rows with rows as dense arrays, whatever the features are held in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.array_types import Array
from labelweave.features.feature_matrix import FeatureMatrix

__all__ = ["are_same", "cache_slices", "dot_product_blocks", "dot_products", "memory_slices", "narrow_csr"]


_CACHE_ENTRIES = 2**15  # with one array of the same size beside them, within a core's cache
_MEMORY_ENTRIES = 2**20  # 8 MiB in float64, small enough to be allocated again without page faults
_CSR_PARTS = ("data", "indices", "indptr")


def are_same(rows: FeatureMatrix, columns: FeatureMatrix) -> bool:
    """Tell whether two features are one object.

    Returns whether they are, or look at the same place in memory.
    """
    if rows is columns or rows.is_sparse != columns.is_sparse or rows.shape != columns.shape:
        return rows is columns
    left, right = rows.data, columns.data
    if not rows.is_sparse:
        return _is_one_array(left, right)
    return all(_is_one_array(getattr(left, part), getattr(right, part)) for part in _CSR_PARTS)


def _is_one_array(left: Array, right: Array) -> bool:
    return left.__array_interface__ == right.__array_interface__  # place, shape, strides and type


def cache_slices(shape: tuple[int, int]) -> Iterator[slice]:
    """Cut an array into runs of rows that stay in the processor's cache."""
    return _slices(shape, _CACHE_ENTRIES)


def memory_slices(shape: tuple[int, int]) -> Iterator[slice]:
    """Cut an array into runs of rows that take little memory."""
    return _slices(shape, _MEMORY_ENTRIES)


def _slices(shape: tuple[int, int], entries: int) -> Iterator[slice]:
    step = max(1, entries // max(1, shape[1]))
    return (slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step))


def dot_products(rows: FeatureMatrix, columns: FeatureMatrix, kind: npt.DTypeLike) -> Array:
    """Multiply every row with every other one.

    rows: the rows of the result.
    columns: the columns of the result.
    kind: float32 or float64, the type of the arithmetic and the result.
    Returns (m, n): A new array, in C order.
    """
    if not (rows.is_sparse or columns.is_sparse):
        left = rows.data.astype(kind, copy=False)
        # the product of an array with its own transpose is symmetric, and half the work
        right = left if are_same(rows, columns) else columns.data.astype(kind, copy=False)
        return np.asarray(left @ right.T)
    products = np.empty((len(rows), len(columns)), dtype=kind)
    for some, values in dot_product_blocks(rows, columns, kind):
        products[some] = values
    return products


def dot_product_blocks(
    rows: FeatureMatrix, columns: FeatureMatrix, kind: npt.DTypeLike
) -> Iterator[tuple[slice, Array]]:
    """Multiply a few rows at a time with every other one.

    rows: the rows of the result.
    columns: the columns of the result.
    kind: float32 or float64, the type of the arithmetic and the result.
    Returns A run of k rows; the runs come in order.
    Shapes: result (k, n).
    """
    multiply = _multiplication(rows.is_sparse, columns, kind)
    for some in memory_slices((len(rows), len(columns))):
        part = rows.data[some].astype(kind, copy=False)
        yield some, multiply(narrow_csr(part) if rows.is_sparse else part)


def _multiplication(
    rows_are_sparse: bool, columns: FeatureMatrix, kind: npt.DTypeLike
) -> Callable[[Any], Array]:
    """Turn the columns into what each product with them reads, once for all."""
    from sklearn.utils.sparsefuncs import sparse_matmul_to_dense

    right = columns.data.astype(kind, copy=False)
    if columns.is_sparse and rows_are_sparse:
        flat = narrow_csr(right.T.tocsr())
        return lambda part: np.asarray(sparse_matmul_to_dense(part, flat))
    if columns.is_sparse:
        return lambda part: np.ascontiguousarray(np.asarray(right @ part.T).T)
    turned = np.ascontiguousarray(right.T) if rows_are_sparse else right.T
    return lambda part: np.asarray(part @ turned)


def narrow_csr(rows: Any) -> Any:
    """Hold rows as CSR with 32-bit indices, if they are enough, as scikit-learn's loops expect.

    Returns (n, d): the rows, sharing their entries if they were CSR.
    Shapes: rows (n, d).
    """
    csr = sp.csr_array(rows)
    if max(csr.nnz, *csr.shape) > np.iinfo(np.int32).max:
        return csr
    parts = csr.data, csr.indices.astype(np.int32, copy=False), csr.indptr.astype(np.int32, copy=False)
    return sp.csr_array(parts, shape=csr.shape)
