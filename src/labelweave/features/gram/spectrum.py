"""Eigenvalues of a kernel matrix, exact or of its largest part.

A smooth kernel's matrix is close to low rank: most eigenvalues are small compared with
the few large ones that make it ill-conditioned.  ``K ~ U diag(e) U^T + rest I`` with
a thin U is what a solver needs for large steps; products with K itself
correct the approximation error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.features.gram.low_rank import incomplete_cholesky
from labelweave.features.gram.stored import FeatureGram, Gram, StoredGram
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers, linear_algebra

_NEGLIGIBLE = 1e-10  # relative to the largest eigenvalue
_ROUNDING = 1e-7  # relative to the largest eigenvalue, in single precision
_FIRST_REST = 0.6  # relative to the smallest computed eigenvalue


@dataclass(frozen=True)
class GramSpectrum:
    """The approximation ``U diag(e) U^T + rest I`` of a kernel matrix.

    rest: the coefficient of the identity; 0 if the spectrum is exact.
    Shapes: vectors (n, r), values (r,).
    """

    vectors: Array
    values: Array
    rest: float
    is_exact: bool


def full_spectrum(gram: StoredGram) -> GramSpectrum:
    """Compute all eigenvalues of a stored matrix; the cost is cubic in its rows."""
    values, vectors = linear_algebra.eigh(linear_algebra.as_type(gram.table, np.float64))
    kept = values > _NEGLIGIBLE * max(values.max(initial=0.0), np.finfo(float).tiny)
    return GramSpectrum(
        linear_algebra.contiguous(linear_algebra.columns_of(vectors, kept)), values[kept], 0.0, is_exact=True
    )


def feature_spectrum(gram: FeatureGram) -> GramSpectrum:
    """Compute the eigenvalues of dot products from few features, up to rounding."""
    table = linear_algebra.copied(gram.exact_table)
    rounding = table.shape[1] * np.finfo(float).eps  # smaller eigenvalues are noise
    vectors, values = _orthonormal(table, gram.workers, rounding)
    return GramSpectrum(vectors, values, 0.0, is_exact=True)


def leading_spectrum(gram: Gram, rank: int, workers: Workers, seed: int) -> GramSpectrum:
    """Approximate the largest eigenvalues; ``rest`` is a first estimate, below the largest omitted one.

    A randomly pivoted incomplete Cholesky factor spans a first subspace.  One product with the matrix turns
    it toward the leading one (the Nyström form of a subspace iteration).  Animals with Attributes, 2,000
    images, rank 200: the largest omitted eigenvalue falls from 6.3 to 1.7; the optimum is 1.1.
    """
    factor = linear_algebra.placed(incomplete_cholesky(gram, rank, workers, seed).factor)
    vectors, values = _orthonormal(_after_a_step(gram, factor, workers), workers, _NEGLIGIBLE)
    omitted = max(0.0, float(gram.diagonal().sum() - values.sum()))  # no omitted eigenvalue is larger
    rest = min(omitted, _FIRST_REST * float(values.min(initial=np.inf)))
    return GramSpectrum(vectors, values, rest, is_exact=False)


def _after_a_step(gram: Gram, factor: Array, workers: Workers) -> Array:
    """Return F with ``F F^T = K Q (Q^T K Q)^-1 Q^T K`` for Q spanning the factor, which is overwritten."""
    turn, _ = _whitening(linear_algebra.as_type(workers.inner(factor, factor), np.float64), _ROUNDING)
    span = workers.turn(factor, turn)  # orthonormal enough
    image = gram.product(linear_algebra.contiguous(span))
    corner = workers.inner(span, image, np.float64)
    turn, _ = _whitening((corner + corner.T) / 2, _ROUNDING)
    return workers.turn(image, turn)


def _whitening(square: Array, negligible: float) -> tuple[Array, Array]:
    """Return W with ``W^T square W = I`` and its eigenvalues, without those negligible to the largest."""
    values, vectors = np.linalg.eigh(linear_algebra.to_numpy(square))
    kept = values > negligible * max(values.max(initial=0.0), np.finfo(float).tiny)
    return vectors[:, kept] / np.sqrt(values[kept]), values[kept]


def _orthonormal(factor: Array, workers: Workers, negligible: float) -> tuple[Array, Array]:
    """Return orthonormal U and e with ``factor factor^T = U diag(e) U^T``, overwriting the factor.

    Parts below a fraction of the largest e are dropped.  Rounding leaves the first U only nearly
    orthonormal; a second step, by the smallest rotation, corrects it.
    """
    turn, values = _whitening(workers.inner(factor, factor, np.float64), negligible)
    nearly = workers.turn(factor, turn)
    sizes, axes = np.linalg.eigh(linear_algebra.to_numpy(workers.inner(nearly, nearly, np.float64)))
    return linear_algebra.contiguous(workers.turn(nearly, (axes / np.sqrt(sizes)) @ axes.T)), values
