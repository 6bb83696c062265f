"""Ridge regression of many targets on the same rows, and leading directions of label space.

``min ||T - X B||^2 + penalty ||B||^2`` with X a :class:`CenteredMatrix`, which is not written out.  One
factorisation serves all targets; where none fits, LSMR solves for one target after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh, lsmr

from labelweave.array_types import Array, RowsByRows

_LARGEST_GRAM = 8000  # rows of a matrix that is factorised, 512 MB
_LARGEST_TABLE = 50_000_000  # entries of a matrix that is decomposed, 400 MB
_LEAST_SHARE = float(np.sqrt(np.finfo(np.float64).eps))  # so that half of the digits survive a solve
_TOLERANCE = 1e-10
_ITERATIONS_A_DIMENSION = 10.0
_MOST_LABELS = 2000  # of a matrix over labels that is written out
_PANEL = 256


class Ridge(Protocol):
    """A ridge regression that waits for its targets."""

    converged: bool
    """Whether all solutions were exact up to rounding."""

    def solve(self, targets: Array) -> Array:
        """Regress centred and weighted targets (n, k) on X; of all best solutions the shortest is taken."""


def make_ridge(features: CenteredMatrix, penalty: float) -> Ridge:
    """Choose how to solve."""
    n, d = features.shape
    if penalty > 0 and min(n, d) <= _LARGEST_GRAM:
        try:
            return CholeskyRidge(features, penalty)
        except linalg.LinAlgError:  # the penalty is lost in the rounding of X^T X
            pass
    if n * d <= _LARGEST_TABLE and min(n, d) <= _LARGEST_GRAM:
        return SpectralRidge(features, penalty)
    return IterativeRidge(features, penalty)


class CholeskyRidge:
    """Solve by one Cholesky factor of ``X^T X`` or ``X X^T`` plus the penalty, whichever is smaller.

    Raises scipy.linalg.LinAlgError if the penalty is too small to make the sum safely invertible.
    """

    converged = True

    def __init__(self, features: CenteredMatrix, penalty: float) -> None:
        self.features = features
        self.by_rows = features.shape[0] < features.shape[1]
        gram = features.gram(of_rows=self.by_rows)
        size = float(np.trace(gram))
        if sp.issparse(features.data):  # means are taken off products, and the rounding of these stays
            size = float(np.square((sp.diags_array(features.roots) @ features.data).data).sum())
        if not penalty > size * _LEAST_SHARE:
            raise linalg.LinAlgError
        gram[np.diag_indices_from(gram)] += penalty
        self.factor = linalg.cho_factor(gram, lower=True, overwrite_a=True)

    def solve(self, targets: Array) -> Array:
        if self.by_rows:
            return self.features.rmatmul(linalg.cho_solve(self.factor, targets))
        return np.asarray(linalg.cho_solve(self.factor, self.features.rmatmul(targets)))


class SpectralRidge:
    """Solve by the singular value decomposition of X, which stands any penalty and any X."""

    converged = True

    def __init__(self, features: CenteredMatrix, penalty: float) -> None:
        table = features.columns(slice(None))
        self.left, values, self.right = linalg.svd(table, full_matrices=False, overwrite_a=True)
        smallest = values.max(initial=0.0) * max(features.shape) * np.finfo(float).eps
        kept = values > smallest
        self.gains = np.zeros_like(values)
        self.gains[kept] = values[kept] / (values[kept] ** 2 + penalty)

    def solve(self, targets: Array) -> Array:
        return np.asarray(self.right.T @ (self.gains[:, None] * (self.left.T @ targets)))


class IterativeRidge:
    """Solve by LSMR, one target after the other; X stays sparse."""

    def __init__(self, features: CenteredMatrix, penalty: float) -> None:
        self.converged = True
        self.operator = LinearOperator(
            features.shape,
            matvec=lambda vector: features.matmul(vector.reshape(-1, 1))[:, 0],
            rmatvec=lambda vector: features.rmatmul(vector.reshape(-1, 1))[:, 0],
            dtype=np.float64,
        )
        self.damp = float(np.sqrt(penalty))
        self.max_iter = max(1, int(_ITERATIONS_A_DIMENSION * min(features.shape)))

    def solve(self, targets: Array) -> Array:
        limits = {"atol": _TOLERANCE, "btol": _TOLERANCE, "conlim": 0, "maxiter": self.max_iter}
        found = [lsmr(self.operator, target, self.damp, **limits) for target in targets.T]
        self.converged &= all(reason != 7 for _, reason, *_ in found)
        return np.stack([solution for solution, *_ in found], axis=1)


class CenteredMatrix:
    """``diag(sqrt(w)) (A - 1 m^T)`` with m the weighted means of the columns, or 0."""

    def __init__(self, data: Any, weights: Array, *, center: bool) -> None:
        self.data = data.astype(np.float64)
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        self.roots = np.sqrt(weights)
        self.means = np.zeros(self.shape[1])
        if center:
            self.means = np.asarray(self.data.T @ (weights / weights.sum()))

    def matmul(self, vectors: Array) -> Array:
        """Multiply by vectors (d, k)."""
        return self.roots[:, None] * (np.asarray(self.data @ vectors) - self.means @ vectors)

    def rmatmul(self, vectors: Array) -> Array:
        """Multiply the transpose by vectors (n, k)."""
        scaled = self.roots[:, None] * vectors
        return np.asarray(self.data.T @ scaled) - np.outer(self.means, scaled.sum(axis=0))

    def columns(self, which: slice) -> Array:
        """Write some columns out."""
        part = self.data[:, which]
        table = part.toarray() if sp.issparse(part) else part
        return self.roots[:, None] * (table - self.means[which])

    def gram(self, *, of_rows: bool) -> RowsByRows:
        """Compute the inner products of all rows, or of all columns."""
        if not sp.issparse(self.data):
            table = self.columns(slice(None))
            return table @ table.T if of_rows else table.T @ table
        scaled = sp.diags_array(self.roots) @ self.data
        raw = np.asarray(((scaled @ scaled.T) if of_rows else (scaled.T @ scaled)).toarray())
        cross = scaled @ self.means if of_rows else np.asarray(scaled.T @ self.roots)
        # (a - s m)(b - t m) with a m in cross, or the same of columns with cross = A^T w
        own, other = (self.roots, self.means) if of_rows else (self.means, self.roots)
        mixed = np.outer(cross, own)
        return raw - mixed - mixed.T + (other @ other) * np.outer(own, own)


def leading_directions(product: Callable[[Array], Array], n_labels: int, rank: int) -> Array:
    """Find the leading eigenvectors, (L, rank), of a positive semi-definite matrix over labels.

    The matrix is written out for up to 2,000 labels, and where a third of all eigenvectors or more is asked
    for, which are as many numbers.  Otherwise the Lanczos method sees its products only.
    """
    if n_labels <= _MOST_LABELS or 3 * rank >= n_labels:
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
