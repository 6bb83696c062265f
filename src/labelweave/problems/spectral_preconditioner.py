"""A preconditioner for Newton systems from the leading part of the kernel matrix.

The system is ``(I + W K) x = r`` with K the prior covariance of all scores and W the curvature of
the loss, solved by conjugate gradients in the inner product ``<a, K b>``, in which it is
self-adjoint.  A preconditioner preserves this if it has the form

    M^-1 = I - Z X (K Z)^T,    X symmetric,    0 <= X <= (Z^T K Z)^-1,

for any basis Z.  Here K is nearly ``K_1 ⊗ R``, and the curvatures of the rows are nearly
multiples of one matrix, ``W_i ~ a_i S``.  Then

    Z = A Q V ⊗ S G,    A = diag(a),

with Q the leading eigenvectors of K_1, V such that ``Z_1 = A Q V`` has ``Z_1^T K_1 Z_1 = I`` and
``Z_1^T K_1 A K_1 Z_1 = diag(h)``, and G such that ``G G^T = R`` and ``G^T S G = diag(m)``, is a basis of near
eigenvectors of W K with the values h m.  ``X = h / (m (1 + h m))`` makes M the inverse of
``I + W K`` there, for such W.

``K Z`` comes from products with the true kernel matrix, so the errors of Q and S only cost
iterations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.features.gram import Gram
from labelweave.foundation.array_types import Array, LabelsByLabels, PerRow
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance

_NEGLIGIBLE = 1e-9  # of the largest eigenvalue


@dataclass(frozen=True)
class RowBasis:
    """The row side of the basis for one group.

    images (n, r): ``(K_1 + c 1 1^T) Z_1``.
    sums (r,): the column sums of Z_1.
    Shapes: vectors (n, r), values (r,).
    """

    vectors: Array
    images: Array
    values: Array
    sums: Array


def row_basis(
    gram: Gram, constant: float, leading: Array, row_curvatures: PerRow, workers: Workers
) -> RowBasis:
    """Compute it from leading eigenvectors (n, r) of a kernel matrix to which a constant c is added."""
    weighted = leading * row_curvatures[:, None]
    images = gram.product(weighted)
    images += constant * weighted.sum(axis=0)
    squares = workers.inner(weighted, images)
    sizes, axes, kept = _leading((squares + squares.T) / 2)
    scaled = axes[:, kept] / np.sqrt(sizes[kept])
    curved = workers.inner(images, images * row_curvatures[:, None])
    values, turn = np.linalg.eigh(scaled.T @ ((curved + curved.T) / 2) @ scaled)
    turn = np.ascontiguousarray(scaled @ turn)
    vectors = workers.matmul(weighted, turn)
    return RowBasis(vectors, workers.matmul(images, turn), np.maximum(values, 0.0), vectors.sum(axis=0))


def _leading(matrix: Array) -> tuple[Array, Array, Array]:
    """Return eigenvalues and eigenvectors, and which of them are above rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors, values > _NEGLIGIBLE * max(values.max(initial=0.0), np.finfo(float).tiny)


@dataclass(frozen=True)
class LabelModes:
    """The label side of the basis.

    right (L, k): R S G = G diag(m).
    Shapes: left (L, k), values (k,).
    """

    left: Array
    right: Array
    values: Array


def label_modes(covariance: LabelCovariance, curvature: LabelsByLabels) -> LabelModes:
    """Compute the label side of the basis, of the directions with m above rounding."""
    sizes, axes = covariance.spectrum()
    root = axes * np.sqrt(sizes)
    values, turn, kept = _leading(root.T @ curvature @ root)
    both = root @ turn[:, kept]
    return LabelModes(curvature @ both, both * values[kept], values[kept])


class _Weights:
    """X for one group: ``G^-1 - (G + m H)^-1`` with ``G = m^2 + t s s^T`` and ``H = m^2 h`` in every mode.

    Here s are the sums of the basis and t bounds the contribution of the intercepts.  Both inverses are
    diagonal plus rank one (Sherman and Morrison).
    """

    def __init__(self, basis: RowBasis, values: Array, ties: Array) -> None:
        first = np.broadcast_to(values**2, (len(basis.values), len(values)))
        second = first * (1.0 + np.multiply.outer(basis.values, values))
        self.diagonal = 1.0 / first - 1.0 / second
        self.minus = _rank_one(first, basis.sums, ties)
        self.plus = _rank_one(second, basis.sums, ties)

    def times(self, inner: Array) -> Array:
        product = self.diagonal * inner
        for sign, (side, scale) in ((-1.0, self.minus), (1.0, self.plus)):
            product += sign * scale * side * (side * inner).sum(axis=0)
        return product


def _rank_one(diagonal: Array, sums: Array, ties: Array) -> tuple[Array, Array]:
    """Return p and b with ``(diag + t s s^T)^-1 = diag^-1 - b p p^T``, for every column of the diagonals."""
    side = sums[:, None] / diagonal
    return side, ties / (1.0 + ties * (sums[:, None] * side).sum(axis=0))


@dataclass(eq=False)
class SpectralPreconditioner:
    """The preconditioner, for one kernel matrix that all labels share.

    bases: one per group, with the constant c.
    intercept_variance: s, the variance of independent intercepts; ``s I - c R`` is positive semi-definite.
    """

    bases: list[RowBasis]
    modes: LabelModes
    constant: float
    intercept_variance: float
    workers: Workers

    def __post_init__(self) -> None:
        modes = self.modes
        self.rest = self.intercept_variance * modes.left - self.constant * modes.right
        # the contribution of intercepts to Z^T K Z beyond c couples the modes; its row sums bound it
        ties = np.abs(modes.left.T @ self.rest).sum(axis=1)
        self.weights = [_Weights(basis, modes.values, ties) for basis in self.bases]

    def apply(self, residual: Array, image: Array) -> tuple[Array, Array]:
        solution, its_image = np.empty_like(residual), np.empty_like(image)
        modes, workers = self.modes, self.workers
        for group, (basis, weights) in enumerate(zip(self.bases, self.weights, strict=True)):
            inner = workers.inner(basis.vectors, np.ascontiguousarray(image[:, group]))
            weighted = weights.times(inner @ modes.left)
            left, right = weighted @ modes.left.T, weighted @ modes.right.T
            np.subtract(residual[:, group], workers.matmul(basis.vectors, left), out=solution[:, group])
            change = workers.matmul(basis.images, right)
            change += (basis.sums @ weighted) @ self.rest.T
            np.subtract(image[:, group], change, out=its_image[:, group])
        return solution, its_image
