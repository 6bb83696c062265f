"""Solves with ``K (x) R + rho I`` from one factorization of K that all labels share.

K is the kernel matrix, R the label covariance.  The eigenvectors of R decouple the labels,
and each needs ``(g K + rho I)^-1`` with its eigenvalue g: with R the identity one
Cholesky factorization suffices for all; otherwise a spectrum of K suffices for every g and every rho.
"""

from __future__ import annotations

import numpy as np

from labelweave.features.gram import StoredGram
from labelweave.features.gram.spectrum import GramSpectrum
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import CholeskyFactor, Workers, namespace
from labelweave.foundation.arrays.linear_algebra import add_to_diagonal, like
from labelweave.labels.covariance import LabelCovariance


def shifted_factor(matrix: Array, penalty: float, workers: Workers) -> CholeskyFactor:
    """Factorize a kernel matrix plus ``penalty I`` in place."""
    add_to_diagonal(matrix, penalty)
    try:
        return CholeskyFactor(matrix, workers)
    except np.linalg.LinAlgError:
        raise ValueError(
            "The kernel is not positive semi-definite: its matrix has an eigenvalue below "
            f"{-penalty:.3g}; clip its negative eigenvalues, or use another kernel."
        ) from None


class CholeskySolves:
    """Exact solves with R the identity, in a second array of the kernel matrix's size."""

    is_exact = True
    penalty_changes_are_cheap = False
    first_rest = 0.0

    def __init__(self, gram: StoredGram, workers: Workers) -> None:
        self.gram, self.workers, self.near_product = gram, workers, gram.product
        xp = namespace(gram.table)
        self.buffer = xp.empty_like(gram.table)
        rounding = float(xp.finfo(gram.table.dtype).eps) * gram.n_rows
        self.smallest_penalty = rounding * float(gram.diagonal().max(initial=0.0))
        self._at: float | None = None

    def solve(self, right: Array, penalty: float, rest: float) -> Array:
        if penalty != self._at:
            self._at = None  # the factor overwrites the last one
            self.buffer[...] = self.gram.table
            self.factor = shifted_factor(self.buffer, penalty, self.workers)
            self._at = penalty
        return self.factor.solve(right)

    def rest_product(self, variables: Array) -> Array:
        return variables


class SpectralSolves:
    """Solves from ``U diag(e) U^T + rest I``, which equals or approximates K, with any label covariance."""

    penalty_changes_are_cheap = True
    smallest_penalty = 0.0

    def __init__(self, spectrum: GramSpectrum, covariance: LabelCovariance, workers: Workers) -> None:
        self.workers, self.vectors, self.values = workers, spectrum.vectors, spectrum.values
        self.rest_product = covariance.matmul
        self.first_rest, self.is_exact = spectrum.rest, spectrum.is_exact
        self._at: tuple[float, float] | None = None
        if covariance.is_diagonal:
            self.label_values, self.turn = np.ones(1), None
        else:
            self.label_values, turn = covariance.spectrum()
            self.turn = like(np.ascontiguousarray(turn), self.vectors)

    def solve(self, right: Array, penalty: float, rest: float) -> Array:
        if (penalty, rest) != self._at:
            own, both = self.label_values * rest + penalty, np.outer(self.values, self.label_values)
            self.damping, self.own = like(both / (both + own), self.vectors), like(own, self.vectors)
            self._at = (penalty, rest)
        turned = right if self.turn is None else right @ self.turn
        inside = self.workers.inner(self.vectors, turned)
        inside *= self.damping
        solution: Array = turned - self.workers.matmul(self.vectors, inside)
        solution /= self.own
        if self.turn is None:
            return solution
        # in the null space of R the operator is the penalty alone
        solution -= turned / float(penalty)
        return right / float(penalty) + solution @ self.turn.T

    def near_product(self, variables: Array) -> Array:
        turned = variables if self.turn is None else variables @ self.turn
        inside = self.workers.inner(self.vectors, turned)
        inside *= like(self.values[:, None], inside)
        product = self.workers.matmul(self.vectors, inside)
        if self.turn is None:
            return product
        product *= like(self.label_values, product)
        return product @ self.turn.T
