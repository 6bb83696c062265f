"""A preconditioner for Newton systems from the largest eigenvalues of the kernel matrix.

The system is ``(I + W K) x = r`` with K the prior covariance of all scores and W the curvature of
the loss, solved by conjugate gradients in the inner product ``<a, K b>``, in which it is
self-adjoint.  A preconditioner keeps that if it has the form

    M^-1 = I - Z X (K Z)^T,    X diagonal,

for any basis Z.  Here K is nearly ``K_1 ⊗ R``, and W nearly the same for every row, ``I ⊗ S``.  Then
Z = Q ⊗ S G is a basis of eigenvectors of W K: Q the leading eigenvectors of K_1 with values e,
G with ``G G^T = R`` and ``G^T S G = diag(m)``.  ``X = 1 / (m + e m^2)`` makes M the exact inverse there.

``K Z`` is computed from products with the true kernel matrices, so what Q misses of the
eigenvectors, and rows that differ in curvature, cost iterations and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.arrays import Workers
from labelweave.features.gram import Gram
from labelweave.features.gram_spectrum import leading_spectrum
from labelweave.labels import LabelCovariance

__all__ = [
    "LabelModes",
    "LabelwisePreconditioner",
    "LeadingVectors",
    "SeparatePreconditioner",
    "SpectralPreconditioner",
    "label_modes",
    "leading_vectors",
]

Array = npt.NDArray[Any]

_NEGLIGIBLE = 1e-10  # of the largest eigenvalue


@dataclass(frozen=True)
class LeadingVectors:
    """Nearly the leading eigenvectors of ``K + c 1 1^T``, and its products with them.

    Parameters
    ----------
    vectors : ndarray of shape (n, r)
        Q, orthonormal.
    images : ndarray of shape (n, r)
        The products.
    values : ndarray of float64, shape (r,)
        The diagonal of ``Q^T (K + c 1 1^T) Q``, which is diagonal.
    sums : ndarray of float64, shape (r,)
        The column sums of Q.
    constant : float
        c.
    """

    vectors: Array
    images: Array
    values: Array
    sums: Array
    constant: float


def leading_vectors(gram: Gram, constant: float, rank: int, workers: Workers, seed: int) -> LeadingVectors:
    """Find the leading eigenvectors, nearly.

    Parameters
    ----------
    gram : Gram
        K.
    constant : float
        c.
    rank : int
        How many.
    workers : Workers
        The threads.
    seed : int
        Fixes the pivots of an incomplete factorisation.

    Returns
    -------
    LeadingVectors
        The vectors, turned so that they diagonalise the matrix (Rayleigh and Ritz).
    """
    basis = leading_spectrum(gram, min(rank, gram.n_rows), workers, seed).vectors.astype(np.float64)
    if constant:
        basis = _with_ones(basis, workers)
    images = gram.product(basis)
    images += constant * basis.sum(axis=0)
    corner = workers.inner(basis, images)
    values, turn = np.linalg.eigh((corner + corner.T) / 2)
    kept = values > _NEGLIGIBLE * max(values.max(initial=0.0), np.finfo(float).tiny)
    turn = np.ascontiguousarray(turn[:, kept])
    vectors = workers.matmul(basis, turn)
    return LeadingVectors(vectors, workers.matmul(images, turn), values[kept], vectors.sum(axis=0), constant)


def _with_ones(basis: Array, workers: Workers) -> Array:
    """Add the direction of the constant to orthonormal columns."""
    ones = np.full((len(basis), 1), len(basis) ** -0.5)
    for _ in range(2):  # once leaves rounding errors where the basis nearly holds the constant
        ones -= workers.matmul(basis, workers.inner(basis, ones))
    length = np.linalg.norm(ones)
    return np.hstack([basis, ones / length]) if length > 1e-6 else basis


@dataclass(frozen=True)
class LabelModes:
    """Directions over the labels that prior and mean curvature leave apart.

    Parameters
    ----------
    left : ndarray of shape (L, k)
        S G.
    right : ndarray of shape (L, k)
        R S G = G diag(m).
    values : ndarray of shape (k,)
        m.
    """

    left: Array
    right: Array
    values: Array


def label_modes(covariance: LabelCovariance, curvature: Array) -> LabelModes:
    """Find the directions.

    Parameters
    ----------
    covariance : LabelCovariance
        R.
    curvature : ndarray of float64, shape (L, L)
        S, positive semi-definite.

    Returns
    -------
    LabelModes
        Those with m above rounding.
    """
    sizes, axes = covariance.spectrum()
    root = axes * np.sqrt(sizes)
    values, turn = np.linalg.eigh(root.T @ curvature @ root)
    kept = values > _NEGLIGIBLE * max(values.max(initial=0.0), np.finfo(float).tiny)
    both = root @ turn[:, kept]
    return LabelModes(curvature @ both, both * values[kept], values[kept])


class SpectralPreconditioner:
    """The preconditioner of labels that are tied together, for one kernel matrix that all share.

    Parameters
    ----------
    leading : LeadingVectors
        Of K_1 with a constant c.
    modes : LabelModes
        Of R and S.
    intercept_variance : float
        s, the variance of independent intercepts; ``s I - c R`` is positive semi-definite.
    workers : Workers
        The threads.
    """

    def __init__(
        self, leading: LeadingVectors, modes: LabelModes, intercept_variance: float, workers: Workers
    ) -> None:
        self.leading, self.modes, self.workers = leading, modes, workers
        self.rest = intercept_variance * modes.left - leading.constant * modes.right
        inverse = modes.values + np.multiply.outer(leading.values, modes.values**2)
        # what the constant adds to Z^T K Z beyond c ties all modes; its row sums bound it
        sums = np.abs(leading.sums)
        ties = np.abs(modes.left.T @ self.rest).sum(axis=1)
        self.weights = 1.0 / (inverse + sums.sum() * np.multiply.outer(sums, ties))

    def apply(self, residual: Array, image: Array) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r``.

        Parameters
        ----------
        residual : ndarray of shape (n, groups, L)
            r.
        image : ndarray of shape (n, groups, L)
            K r.

        Returns
        -------
        solution : ndarray of shape (n, groups, L)
            ``M^-1 r``.
        its_image : ndarray of shape (n, groups, L)
            ``K M^-1 r``.
        """
        (n, groups, labels), leading = residual.shape, self.leading
        inner = self.workers.inner(leading.vectors, image.reshape(n, -1)).reshape(-1, groups, labels)
        weighted = (inner @ self.modes.left) * self.weights[:, None, :]
        left, right, rest = (
            np.ascontiguousarray((weighted @ side.T).reshape(len(inner), -1))
            for side in (self.modes.left, self.modes.right, self.rest)
        )
        solution = residual - self.workers.matmul(leading.vectors, left).reshape(residual.shape)
        its_image = image - self.workers.matmul(leading.images, right).reshape(image.shape)
        its_image -= (leading.sums @ rest).reshape(groups, labels)
        return solution, its_image


class SeparatePreconditioner:
    """The preconditioner of labels that are fitted apart, for one kernel matrix that all share.

    Parameters
    ----------
    leading : LeadingVectors
        Of K_1 with a constant c.
    variances : ndarray of float64, shape (groups,)
        v: the prior covariance of a group is ``v K_1 + s``.
    curvatures : ndarray of float64, shape (groups,)
        The mean curvature of each group.
    intercept_variance : float
        s, at least c v.
    workers : Workers
        The threads.
    """

    def __init__(
        self,
        leading: LeadingVectors,
        variances: Array,
        curvatures: Array,
        intercept_variance: float,
        workers: Workers,
    ) -> None:
        self.leading, self.variances, self.workers = leading, variances, workers
        self.rest = intercept_variance - leading.constant * variances
        sums = np.abs(leading.sums)
        prior = np.multiply.outer(leading.values, variances)
        prior += np.multiply.outer(sums * sums.sum(), self.rest)
        self.weights = curvatures / (1.0 + prior * curvatures)

    def apply(self, residual: Array, image: Array) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r``; see :meth:`SpectralPreconditioner.apply`."""
        leading = self.leading
        weighted = self.workers.inner(leading.vectors, image[:, :, 0]) * self.weights
        solution = residual - self.workers.matmul(leading.vectors, weighted)[:, :, None]
        its_image = image - self.workers.matmul(leading.images, weighted * self.variances)[:, :, None]
        its_image -= ((leading.sums @ weighted) * self.rest)[:, None]
        return solution, its_image


class LabelwisePreconditioner:
    """The preconditioner of labels with a kernel matrix each.

    Parameters
    ----------
    leading : list of LeadingVectors
        Of every label's prior covariance, its variance and the intercept's included.
    curvatures : ndarray of float64, shape (labels,)
        The mean curvature of each label.
    columns : list of tuple
        Where each label is in an array of shape (n, groups, columns).
    workers : Workers
        The threads.
    """

    def __init__(
        self, leading: list[LeadingVectors], curvatures: Array, columns: list[Any], workers: Workers
    ) -> None:
        self.leading, self.columns, self.workers = leading, columns, workers
        self.weights = [s / (1.0 + s * own.values) for own, s in zip(leading, curvatures, strict=True)]

    def apply(self, residual: Array, image: Array) -> tuple[Array, Array]:
        """Compute ``M^-1 r`` and ``K M^-1 r``; see :meth:`SpectralPreconditioner.apply`."""
        solution, its_image = residual.copy(), image.copy()
        for own, weights, where in zip(self.leading, self.weights, self.columns, strict=True):
            inner = self.workers.inner(own.vectors, np.ascontiguousarray(image[where]))
            inner *= weights[:, None]
            solution[where] -= self.workers.matmul(own.vectors, inner)
            its_image[where] -= self.workers.matmul(own.images, inner)
        return solution, its_image
