"""A matrix less the means of its columns, rows times roots of weights, that is not written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array, RowsByRows

__all__ = ["CenteredMatrix"]


class CenteredMatrix:
    """``diag(sqrt(w)) (A - 1 m^T)`` with m the weighted means of the columns, or 0.

    weights (n,): w, not negative, their sum positive.
    center: whether to take the means away.
    Shapes: data (n, d), means (d,).
    """

    def __init__(self, data: Any, weights: Array, *, center: bool) -> None:
        self.data = data.astype(np.float64)
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        self.roots = np.sqrt(weights)
        shares = weights / weights.sum()
        self.means = np.asarray(self.data.T @ shares) if center else np.zeros(self.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether A is sparse."""
        return bool(sp.issparse(self.data))

    def matmul(self, vectors: Array) -> Array:
        """Multiply by vectors.

        Shapes: vectors (d, k), result (n, k).
        """
        return self.roots[:, None] * (np.asarray(self.data @ vectors) - self.means @ vectors)

    def rmatmul(self, vectors: Array) -> Array:
        """Multiply the transpose by vectors.

        Shapes: vectors (n, k), result (d, k).
        """
        scaled = self.roots[:, None] * vectors
        return np.asarray(self.data.T @ scaled) - np.outer(self.means, scaled.sum(axis=0))

    def columns(self, which: slice) -> Array:
        """Write some columns out.

        Shapes: result (n, columns).
        """
        part = self.data[:, which]
        table = part.toarray() if self.is_sparse else part
        return self.roots[:, None] * (table - self.means[which])

    def gram(self, *, of_rows: bool) -> RowsByRows:
        """Compute the inner products of all rows, or of all columns.

        of_rows: whether those of the rows.
        """
        if not self.is_sparse:
            table = self.columns(slice(None))
            return table @ table.T if of_rows else table.T @ table
        scaled = sp.diags_array(self.roots) @ self.data
        raw = np.asarray(((scaled @ scaled.T) if of_rows else (scaled.T @ scaled)).toarray())
        cross = scaled @ self.means if of_rows else np.asarray(scaled.T @ self.roots)
        return _less_means(raw, cross, self.roots, self.means, of_rows)


def _less_means(raw: Array, cross: Array, roots: Array, means: Array, of_rows: bool) -> Array:
    """Take the means out of the inner products of uncentred rows or columns."""
    if of_rows:  # (a - s m)(b - t m) with a m in cross
        mixed = np.outer(cross, roots)
        return raw - mixed - mixed.T + (means @ means) * np.outer(roots, roots)
    mixed = np.outer(cross, means)  # cross = A^T w
    return raw - mixed - mixed.T + (roots @ roots) * np.outer(means, means)
