"""Eigenvalues and eigenvectors of label covariances, with signs that do not depend on chance; limits."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array, LabelsByLabels

_LARGEST_WRITTEN_OUT = 20_000  # labels; an L x L matrix of these takes 3.2 GB
_TIE = 1e-6
_LARGEST_SCALE = 1e150


def check_writable(n_labels: int, what: str) -> None:
    """Refuse to write out a matrix over too many labels.

    what: what needs the matrix, the start of the message.
    Raises ValueError if there are more than 20,000 labels.
    """
    if n_labels > _LARGEST_WRITTEN_OUT:
        raise ValueError(
            f"{what} needs a matrix over {n_labels} x {n_labels} labels; at most {_LARGEST_WRITTEN_OUT} "
            "labels are written out. Use LabelCovariance.low_rank(factor) with a factor of few columns."
        )


def dense_spectrum(matrix: LabelsByLabels) -> tuple[Array, Array]:
    """Compute the eigenvalues above rounding of a positive semi-definite matrix.

    eigenvectors (L, r): orthonormal columns; the largest entry of each is positive.
    Shapes: eigenvalues (r,).
    """
    values, vectors = np.linalg.eigh(matrix)
    # a negative eigenvalue shows how large the errors of the matrix are
    noise = max(0.0, -float(values.min(initial=0.0)))
    return _largest_first(values, vectors, noise)


def factor_spectrum(factor: Array) -> tuple[Array, Array]:
    """Compute the eigenvalues above rounding of a thin factor times its transpose.

    factor (L, r): the factor F of F F^T.
    eigenvectors (L, k): orthonormal columns; the largest entry of each is positive.
    Shapes: eigenvalues (k,).
    """
    vectors, roots, _ = np.linalg.svd(factor, full_matrices=False)
    return _largest_first(roots**2, vectors, 0.0)


def _largest_first(values: Array, vectors: Array, noise: float) -> tuple[Array, Array]:
    rounding = len(vectors) * np.finfo(np.float64).eps * values.max(initial=0.0)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > max(noise, rounding)]
    return values[order], _with_fixed_signs(vectors[:, order])


def _with_fixed_signs(vectors: Array) -> Array:
    """Make the largest entry of every column positive; of nearly equal ones the first."""
    if vectors.size == 0:
        return vectors
    sizes = np.abs(vectors)
    largest = np.argmax(sizes >= (1.0 - _TIE) * sizes.max(axis=0), axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))


def check_scale(scale: Any) -> None:
    """Refuse what is no finite factor >= 0."""
    is_real = isinstance(scale, Real)
    if not is_real or not 0.0 <= scale < _LARGEST_SCALE:
        raise ValueError(
            f"The scale of a label covariance is {scale!r}; it must be a number >= 0 and "
            f"below {_LARGEST_SCALE:g}, so that its square is one."
        )


def check_amount(amount: Any) -> None:
    """Refuse an amount of shrinkage outside 0 to 1."""
    is_real = isinstance(amount, Real) and not isinstance(amount, bool)
    if not is_real or not 0.0 <= amount <= 1.0:
        raise ValueError(f"The amount to shrink is {amount!r}; it must be between 0 and 1.")
