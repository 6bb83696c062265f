"""Newton's systems solved exactly where the prior ties no columns together (Seeger 2008, appendix C).

For any r, ``(I + W K)^-1 r = r - B K r`` with ``B = (W^-1 + K)^-1``.  K falls apart into one n x n matrix
K_c a column.  Where W does too, as for separate labels, so does

    B_c = S_c A_c^-1 S_c,    A_c = I + S_c K_c S_c,    S_c = W_c^(1/2).

Where ``W = S (I - U U^T) S`` ties the columns of a row, as softmax does, the formula of Sherman,
Morrison and Woodbury takes off a part of rank n:

    B = S (A^-1 - A^-1 U (U^T A^-1 U)^-1 U^T A^-1) S,

A being block-diagonal in the columns and U one diagonal matrix a column.  Nothing is divided by
small probabilities.  The cost is that of one Cholesky factorisation and one inverse a column, and
the memory that of the factors, n^2 a column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays.linear_algebra import add_to_diagonal
from labelweave.solvers.newton_system import NewtonPoint, NewtonProblem, NewtonSystem

_LANES = 4  # sums over columns, whatever the number of threads


class ExactDirections:
    """The exact solution, for a few thousand rows at most."""

    def direction(
        self, system: NewtonSystem, point: NewtonPoint, reduction: Array, limit: int
    ) -> tuple[Array, Array]:
        found = self.solve(system, point.residual, point.image, reduction, limit)
        return found[0], found[1]

    def solve(
        self, system: NewtonSystem, residual: Array, image: Array, reduction: Array, limit: int
    ) -> tuple[Array, Array, int]:
        scale, shares = system.problem.root(system.curvature, system.groups)
        solution = np.empty_like(residual)
        for position, group in enumerate(system.groups):
            own_shares = None if shares is None else shares[:, position]
            inverse = _Inverse(system.problem, int(group), scale[:, position], own_shares)
            solution[:, position] = residual[:, position] - inverse.times(image[:, position])
        return solution, system.problem.product(solution, system.groups), 1


class _Inverse:
    """B for one group, from S and U of shape (n, columns)."""

    def __init__(self, problem: NewtonProblem, group: int, scale: Array, shares: Array | None) -> None:
        self.problem, self.group, self.scale, self.shares = problem, group, scale, shares
        self.columns = list(range(scale.shape[1]))
        self.factors: list[Any] = [None] * len(self.columns)
        lanes = range(min(_LANES, len(self.columns)))
        parts = [self.columns[lane::_LANES] for lane in lanes]
        middles = problem.workers.map(self._factorise, parts)
        if shares is not None:
            self.middle = _cholesky(np.asfortranarray(np.sum(middles, axis=0)))

    def _factorise(self, columns: list[int]) -> Array | None:
        """Factorise A for some columns, and add their parts of ``U^T A^-1 U``, the upper triangle."""
        total = None if self.shares is None else np.zeros((len(self.scale),) * 2, order="F")
        for column in columns:
            scale = self.scale[:, column]
            matrix = self.problem.dense_prior(self.group, column)
            matrix *= scale[:, None]
            matrix *= scale
            add_to_diagonal(matrix, 1.0)
            factor = self.factors[column] = _cholesky(matrix.T)
            if total is not None and self.shares is not None:
                share = self.shares[:, column]
                total += share[:, None] * sl.lapack.dpotri(factor, lower=0)[0] * share
        return total

    def times(self, vectors: Array) -> Array:
        """Compute B times an array of shape (n, columns)."""
        solved = self._solve(self.scale * vectors)
        if self.shares is not None:
            common = (self.shares * solved).sum(axis=1)
            common = sl.cho_solve((self.middle, False), common, check_finite=False)
            solved -= self._solve(self.shares * common[:, None])
        return np.asarray(self.scale * solved)

    def _solve(self, right: Array) -> Array:
        """Compute ``A^-1 right``."""
        solution = np.empty_like(right)

        def one(column: int) -> None:
            factor = (self.factors[column], False)
            solution[:, column] = sl.cho_solve(factor, right[:, column], check_finite=False)

        self.problem.workers.each(one, self.columns)
        return solution


def _cholesky(matrix: Array) -> Array:
    """Give the upper factor in the place of the upper triangle; what is below it means nothing."""
    try:
        return np.asarray(sl.cho_factor(matrix, lower=False, overwrite_a=True, check_finite=False)[0])
    except np.linalg.LinAlgError:
        raise ValueError(
            "The prior covariance of a label is not positive semi-definite up to rounding, so the exact "
            "solution failed; check the kernel, make its scale smaller, or solve by conjugate gradients."
        ) from None
