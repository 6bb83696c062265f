"""A root of the curvature, which makes Newton's system symmetric (Seeger 2008, section 5.1.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Array, GroupedColumns

__all__ = ["CurvatureRoot"]


@dataclass(frozen=True)
class CurvatureRoot:
    """``W = V V^T``, ``V = S (I - U U^T)`` in every row and group.

    V is the paper's ``A D^(1/2)``, of which ``D^(1/2)`` is S and ``A = I - U^2 1^T``.

    shares (n, groups, columns): U, of length 1 in every row and group; None for ``V = S``.
    """

    scale: GroupedColumns
    shares: Array | None

    def times(self, vectors: Array, rows: slice) -> Array:
        """Compute ``V v`` for some rows.

        Shapes: vectors (rows, groups, columns), result (rows, groups, columns).
        """
        return np.asarray(self.scale[rows] * self._projected(vectors, rows))

    def transposed(self, vectors: Array, rows: slice) -> Array:
        """Compute ``V^T v`` for some rows.

        Shapes: vectors (rows, groups, columns), result (rows, groups, columns).
        """
        return self._projected(self.scale[rows] * vectors, rows)

    def _projected(self, vectors: Array, rows: slice) -> Array:
        if self.shares is None:
            return vectors
        shares = self.shares[rows]
        return np.asarray(vectors - shares * (shares * vectors).sum(axis=2, keepdims=True))

    def centred(self, vectors: Array, rows: slice) -> Array:
        """Compute ``A v``, so that ``V v = A S v``, for some rows.

        Shapes: vectors (rows, groups, columns), result (rows, groups, columns).
        """
        if self.shares is None:
            return vectors
        return np.asarray(vectors - self.shares[rows] ** 2 * vectors.sum(axis=2, keepdims=True))
