"""Derivatives of a bilinear form of kernel matrices by the kernels' parameters.

For a criterion with ``d psi = tr E^T (dK) F``, K the prior covariance of all scores (Seeger 2008,
equation 6), a term ``K_g ⊗ R_g`` contributes ``sum_ij dK_g(i, j) (F R_g E^T)_ij`` by the kernel, and
``E^T K_g F`` by R_g.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.arrays import Workers, panels
from labelweave.features import FeatureMatrix, Kernel
from labelweave.hyperparameters.prior_family import TermSlopes
from labelweave.problems.coupled_gram import GramTerm
from labelweave.problems.label_mixing import has_separate_labels

__all__ = ["kernel_slopes", "term_slopes"]


_SIDE = 512  # of the blocks in which derivatives of a kernel are computed
_LANES = 4


def term_slopes(
    term: GramTerm,
    kernel: Kernel | None,
    features: FeatureMatrix,
    pair: tuple[Array, Array],
    workers: Workers,
    *,
    all_entries: bool,
) -> TermSlopes:
    """Differentiate ``<E, (K ⊗ R) F>`` by the parameters of one term.

    term: the kernel matrix and R.
    kernel: the kernel; None for a kernel matrix that was given, which has no parameters.
    all_entries: whether the derivatives by entries of R off its diagonal are wanted where R is diagonal.
    Shapes: pair (n, fits, L).
    """
    covariance, (left, right) = term.covariance, pair
    if not all_entries and has_separate_labels(covariance):
        variances = covariance.diagonal()
        used = np.flatnonzero(variances)
        left, right = (np.ascontiguousarray(part[:, :, used]) for part in (left, right))
        mixed = right * variances[used]
        image = term.gram.product(right.reshape(len(right), -1)).reshape(right.shape)
        by_covariance = np.zeros(len(variances))
        by_covariance[used] = np.einsum("nfl,nfl->l", left, image)
    else:
        mixed = np.asarray(covariance.matmul(right.reshape(-1, right.shape[2]))).reshape(right.shape)
        image = term.gram.product(right.reshape(len(right), -1)).reshape(right.shape)
        square = workers.inner(
            left.reshape(-1, left.shape[2]), np.ascontiguousarray(image.reshape(-1, left.shape[2]))
        )
        by_covariance = (square + square.T) / 2
    if kernel is None or not kernel.parameter_names():
        return TermSlopes(np.empty(0), by_covariance)
    flat = left.reshape(len(left), -1), mixed.reshape(len(left), -1)
    return TermSlopes(kernel_slopes(kernel, features, flat, workers), by_covariance)


def kernel_slopes(
    kernel: Kernel, features: FeatureMatrix, pair: tuple[Array, Array], workers: Workers
) -> npt.NDArray[np.float64]:
    """Add ``dK_ij (E F^T)_ij`` over all pairs of rows, each computed once.

    Returns (parameters,): the derivatives by the logarithms of the kernel's parameters.
    Shapes: pair (n, p).
    """
    cuts = panels(len(features), _SIDE)
    blocks = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[: i + 1]]
    sums = np.zeros((_LANES, len(kernel.parameter_names())))

    def one(lane: int) -> None:
        for rows, columns in blocks[lane::_LANES]:
            sums[lane] += _block_slopes(kernel, features, pair, rows, columns)

    workers.each(one, list(range(_LANES)))
    return np.asarray(sums.sum(axis=0))


def _block_slopes(
    kernel: Kernel, features: FeatureMatrix, pair: tuple[Array, Array], rows: slice, columns: slice
) -> Array:
    left, right = pair
    weights = left[rows] @ right[columns].T
    above = features.rows(rows)
    if rows == columns:
        found = kernel.derivatives(above, above)
    else:
        weights += right[rows] @ left[columns].T
        found = kernel.derivatives(above, features.rows(columns))
    return np.array([np.vdot(derivative, weights) for derivative in found.values()])
