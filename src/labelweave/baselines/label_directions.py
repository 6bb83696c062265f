"""The leading directions of label space, by which labels are coded and decoded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from labelweave.array_types import Array

__all__ = ["leading_directions"]


_LARGEST_TABLE = 2000  # labels
_PANEL = 256


def leading_directions(product: Callable[[Array], Array], n_labels: int, rank: int) -> Array:
    """Find the leading eigenvectors of a positive semi-definite matrix over labels.

    The matrix is written out for up to 2,000 labels, and where a third of all eigenvectors or more is
    asked for, which are as many numbers.  Otherwise the Lanczos method sees its products only.

    product: multiplies the matrix by vectors of shape (L, b).
    rank: how many eigenvectors, from 1 to L.
    Returns (L, rank): orthonormal columns, those of the largest eigenvalues first.
    """
    if n_labels <= _LARGEST_TABLE or 3 * rank >= n_labels:
        matrix = np.empty((n_labels, n_labels))
        for start in range(0, n_labels, _PANEL):
            width = min(_PANEL, n_labels - start)
            matrix[:, start : start + width] = product(np.eye(n_labels, width, -start))
        _, vectors = linalg.eigh(0.5 * (matrix + matrix.T), overwrite_a=True)
        return np.asarray(vectors[:, : -rank - 1 : -1])
    start_vector = np.random.default_rng(0).normal(size=n_labels)
    if not product(start_vector[:, None]).any():
        return np.eye(n_labels, rank)
    operator = LinearOperator(
        (n_labels, n_labels), matvec=lambda vector: product(vector.reshape(-1, 1))[:, 0], dtype=np.float64
    )
    values, vectors = eigsh(operator, rank, v0=start_vector)
    return np.asarray(vectors[:, np.argsort(-values)])
