"""Kernels by explicit features: an incomplete Cholesky factor in whose columns the model is linear.

With ``K ~ G G^T`` the fit is the linear one to the rows of G, and a model keeps only the pivots: features of
a new row are ``triangle^-1 k``, k its kernel to them (Williams and Seeger, "Using the Nystroem method to
speed up kernel machines", NIPS 2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.linalg as sl

from labelweave.estimators.max_margin.fit import MarginSettings
from labelweave.estimators.scorers import KernelScorer, kernel_scorer
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import incomplete_cholesky
from labelweave.features.gram.low_rank import COLUMNS_APART, GrowingRows
from labelweave.features.gram.sources import GramSource
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerLabel
from labelweave.foundation.arrays import Workers


@dataclass(frozen=True)
class KernelFactor:
    """A factor of a kernel matrix, and the map to its features of new rows.

    features (n, r): G, some of whose rows may be in another process.
    triangle (r, r): its rows at the pivots.
    pivots (r,): the numbers of these rows.
    vectors (r, d): their features; None with a precomputed kernel matrix.
    """

    features: FeatureMatrix
    triangle: Array
    pivots: Array
    vectors: Any

    def scorer(self, kernel: Kernel | None, intercepts: PerLabel, weights: Array) -> KernelScorer:
        """Create the scorer of new rows, from weights of the columns (L, r)."""
        coefficients = sl.solve_triangular(self.triangle, weights.T, lower=True, trans="T")
        return kernel_scorer([kernel], intercepts, [coefficients], self.pivots, self.vectors)


def kernel_factor(
    model: Any, source: GramSource, explicit: FeatureMatrix | None, features: FeatureMatrix,
    settings: MarginSettings,
) -> KernelFactor | None:  # fmt: skip
    """Choose pivots among all rows and compute the factor; None where the kernel itself is used.

    model: a max-margin classifier, whose ``kernel_rank`` decides; rows elsewhere always have a factor.
    explicit: the features that the kernel is the dot product of, if it has them.
    Raises ValueError if there are several kernels, or something needs weights of the kernel's own features.
    """
    rank = model.kernel_rank
    if rank is None and isinstance(source, GrowingRows):
        rank = COLUMNS_APART
    if rank is None or explicit is not None:
        return None
    if model.prune != "off" or model.label_mean is not None:
        name = "label_mean" if model.prune == "off" else "`prune`"
        raise ParameterError(
            f"{name} needs weights of features, which an approximated kernel lacks; leave it out, or use "
            "`kernel='linear'`."
        )
    with Workers(settings.n_threads).running() as workers:
        found = incomplete_cholesky(source, rank, workers, settings.seed)
    vectors = None if model._is_precomputed else features.to_local(found.active_rows).data
    return KernelFactor(found.features, found.triangle, found.active_rows, vectors)
