"""Ridge regression of many targets on the same rows: ``min ||T - X B||^2 + penalty ||B||^2``.

X is a :class:`~labelweave.baselines.centered_matrix.CenteredMatrix`.  One factorisation serves all
targets; where none fits, LSMR solves for one target after the other.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lsmr

from labelweave.array_types import Array
from labelweave.baselines.centered_matrix import CenteredMatrix

__all__ = ["CholeskyRidge", "IterativeRidge", "Ridge", "SpectralRidge", "make_ridge"]


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
        """Regress targets on X; with a penalty of 0 the shortest of all best solutions is taken.

        targets (n, k): T: centred, their rows times the roots of the weights, as those of X.
        Shapes: result (d, k).
        """


def make_ridge(features: CenteredMatrix, penalty: float) -> Ridge:
    """Choose how to solve.

    Shapes: features (n, d).
    """
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

    Shapes: features (n, d).
    Raises scipy.linalg.LinAlgError if the penalty is too small to make the sum safely invertible.
    """

    converged = True

    def __init__(self, features: CenteredMatrix, penalty: float) -> None:
        self.features = features
        self.by_rows = features.shape[0] < features.shape[1]
        gram = features.gram(of_rows=self.by_rows)
        if not penalty > float(np.trace(gram)) * _LEAST_SHARE:
            raise linalg.LinAlgError
        gram[np.diag_indices_from(gram)] += penalty
        self.factor = linalg.cho_factor(gram, lower=True, overwrite_a=True)

    def solve(self, targets: Array) -> Array:
        if self.by_rows:
            return self.features.rmatmul(linalg.cho_solve(self.factor, targets))
        return np.asarray(linalg.cho_solve(self.factor, self.features.rmatmul(targets)))


class SpectralRidge:
    """Solve by the singular value decomposition of X, which stands any penalty and any X.

    Shapes: features (n, d).
    """

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
    """Solve by LSMR, one target after the other; X stays sparse.

    Shapes: features (n, d).
    """

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
        return np.stack([self._solve_one(target) for target in targets.T], axis=1)

    def _solve_one(self, target: Array) -> Array:
        solution, reason, *_ = lsmr(
            self.operator, target, self.damp, _TOLERANCE, _TOLERANCE, conlim=0, maxiter=self.max_iter
        )
        self.converged &= reason != 7
        return np.asarray(solution)
