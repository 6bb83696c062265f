"""What makes a covariance, a factor, a variance or an amount acceptable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.array_types import Array, LabelsByLabels, PerLabel
from labelweave.labels.taxonomy import Taxonomy

__all__ = [
    "check_amount",
    "check_node_variances",
    "checked_factor",
    "checked_own_variance",
    "checked_semidefinite",
    "number_type",
]


def number_type(vectors: Array) -> npt.DTypeLike:
    """Choose the type in which to multiply some vectors.

    Returns float32 for float32, else float64.
    """
    return np.float32 if vectors.dtype == np.float32 else np.float64


def check_amount(amount: float) -> None:
    """Refuse an amount of shrinkage outside 0 to 1.

    Raises ValueError if it is not between 0 and 1.
    """
    if not 0.0 <= amount <= 1.0:
        raise ValueError(f"The amount to shrink is {amount}; it must be between 0 and 1.")


def checked_factor(factor: Any) -> Any:
    """Read a factor.

    Returns (L, r): the factor, without duplicates if sparse.
    Shapes: factor (L, r).
    Raises ValueError if it has another number of dimensions, or an entry is not finite.
    """
    table: Any = (
        sp.csr_array(factor, dtype=np.float64) if sp.issparse(factor) else np.asarray(factor, np.float64)
    )
    if table.ndim != 2:
        raise ValueError(f"A covariance factor has shape {table.shape}; it needs two, (labels, rank).")
    if sp.issparse(table) and not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    if not np.isfinite(table.data if sp.issparse(table) else table).all():
        listed = sp.coo_array(table)
        bad = int(np.flatnonzero(~np.isfinite(listed.data))[0])
        raise ValueError(
            f"The covariance factor at label {listed.row[bad]}, column {listed.col[bad]} is "
            f"{listed.data[bad]}; it must be finite."
        )
    return table


def checked_own_variance(diagonal: Any, n_labels: int) -> PerLabel:
    """Read the variances that labels have alone.

    Shapes: diagonal (L,).
    Raises ValueError if their number is wrong, or one is negative or not finite.
    """
    own = np.asarray(diagonal, np.float64)
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


def check_node_variances(given: Mapping[str, float], taxonomy: Taxonomy) -> None:
    """Refuse variances of unknown nodes, and negative ones.

    Raises ValueError if a node is not in the tree, or its variance is negative or not finite.
    """
    known = set(taxonomy.nodes)
    for node, variance in given.items():
        if node not in known:
            raise ValueError(f"A variance was given for {node!r}, which is no node of the taxonomy.")
        if not variance >= 0 or not np.isfinite(variance):
            raise ValueError(f"The variance of node {node!r} is {variance}; it must be a number >= 0.")


def checked_semidefinite(matrix: LabelsByLabels) -> LabelsByLabels:
    """Check that a matrix is a covariance.

    Raises ValueError if it is not square, finite, symmetric or positive semi-definite.
    """
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
    return (matrix + matrix.T) / 2


def _refuse_asymmetry(matrix: Array, allowed: float) -> None:
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max(initial=0.0) > allowed:
        row, column = np.unravel_index(int(asymmetry.argmax()), asymmetry.shape)
        raise ValueError(
            f"The label covariance is not symmetric: entry ({row}, {column}) is {matrix[row, column]} and "
            f"({column}, {row}) is {matrix[column, row]}."
        )
