"""Ridge regression of many targets on the same rows: ``min ||T - X B||^2 + penalty ||B||^2``.

One factorisation serves all targets; where none fits, LSMR solves for one target after the other.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import aslinearoperator, lsmr

from labelweave.foundation.array_types import Array

_LARGEST_GRAM = 8000  # rows of a matrix that is factorised, 512 MB
_LARGEST_TABLE = 50_000_000  # entries of a matrix that is decomposed, 400 MB
_LEAST_SHARE = float(np.sqrt(np.finfo(np.float64).eps))  # so that half of the digits survive a solve
_TOLERANCE = 1e-10
_ITERATIONS_A_DIMENSION = 10.0


class Ridge(Protocol):
    """A ridge regression that waits for its targets."""

    converged: bool
    """Whether all solutions were exact up to rounding."""

    def solve(self, targets: Array) -> Array:
        """Regress targets (n, k) on X; of all best solutions the shortest is taken."""


def make_ridge(rows: Any, penalty: float) -> Ridge:
    """Choose how to solve, for rows (n, d) that are an array or sparse."""
    n, d = rows.shape
    if penalty > 0 and min(n, d) <= _LARGEST_GRAM:
        try:
            return CholeskyRidge(rows, penalty)
        except linalg.LinAlgError:  # the penalty is lost in the rounding of X^T X
            pass
    if n * d <= _LARGEST_TABLE and min(n, d) <= _LARGEST_GRAM:
        return SpectralRidge(rows, penalty)
    return IterativeRidge(rows, penalty)


class CholeskyRidge:
    """Solve by one Cholesky factor of ``X^T X`` or ``X X^T`` plus the penalty, whichever is smaller.

    Raises scipy.linalg.LinAlgError if the penalty is too small to make the sum safely invertible.
    """

    converged = True

    def __init__(self, rows: Any, penalty: float) -> None:
        self.rows = rows
        self.by_rows = rows.shape[0] < rows.shape[1]
        products = rows @ rows.T if self.by_rows else rows.T @ rows
        gram = products.toarray() if sp.issparse(products) else products
        if not penalty > float(np.trace(gram)) * _LEAST_SHARE:
            raise linalg.LinAlgError
        gram[np.diag_indices_from(gram)] += penalty
        self.factor = linalg.cho_factor(gram, lower=True, overwrite_a=True)

    def solve(self, targets: Array) -> Array:
        if self.by_rows:
            return np.asarray(self.rows.T @ linalg.cho_solve(self.factor, targets))
        return np.asarray(linalg.cho_solve(self.factor, self.rows.T @ targets))


class SpectralRidge:
    """Solve by the singular value decomposition of X, which stands any penalty and any X."""

    converged = True

    def __init__(self, rows: Any, penalty: float) -> None:
        table = rows.toarray() if sp.issparse(rows) else rows
        self.left, values, self.right = linalg.svd(table, full_matrices=False)
        smallest = values.max(initial=0.0) * max(rows.shape) * np.finfo(float).eps
        kept = values > smallest
        self.gains = np.zeros_like(values)
        self.gains[kept] = values[kept] / (values[kept] ** 2 + penalty)

    def solve(self, targets: Array) -> Array:
        return np.asarray(self.right.T @ (self.gains[:, None] * (self.left.T @ targets)))


class IterativeRidge:
    """Solve by LSMR, one target after the other, from products with X alone."""

    def __init__(self, rows: Any, penalty: float) -> None:
        self.converged = True
        self.operator = aslinearoperator(rows)
        self.damp = float(np.sqrt(penalty))
        self.max_iter = max(1, int(_ITERATIONS_A_DIMENSION * min(rows.shape)))

    def solve(self, targets: Array) -> Array:
        limits = {"atol": _TOLERANCE, "btol": _TOLERANCE, "conlim": 0, "maxiter": self.max_iter}
        found = [lsmr(self.operator, target, self.damp, **limits) for target in targets.T]
        self.converged &= all(reason != 7 for _, reason, *_ in found)
        return np.stack([solution for solution, *_ in found], axis=1)
