"""Which scaling of the features suits a data set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelweave.array_types import Array
from labelweave.features import FeatureMatrix, FeatureScaling, Kernel
from labelweave.hyperparameters.left_out import left_out_loss

_MOST_ROWS = 1000  # among which a scaling is chosen: two eigendecompositions of their kernel matrix
_MOST_LABELS = 256


def choose_scaling(
    features: FeatureMatrix, targets: Array, kernel_of: Callable[[FeatureMatrix], Kernel]
) -> FeatureScaling | None:
    """Choose the scaling with the least squared loss of left-out rows under kernel ridge regression.

    Dense features: "standard" or "quantile"; sparse ones: "unit", or None as they are.  At most 1,000 rows,
    the same in every call, and the 256 labels that vary most decide.

    Parameters
    ----------
    features : FeatureMatrix of shape (n, d)
        The training rows.
    targets : ndarray of shape (n, L)
        What is learned, as numbers; NaN where it is not known.
    kernel_of : callable
        From features to their kernel.
    """
    if features.is_sparse and np.allclose(features.squared_norms(), 1.0, atol=1e-6):
        return None  # of unit length already, as texts are
    names = ["unit", None] if features.is_sparse else ["standard", "quantile"]
    found = [None if name is None else FeatureScaling.fit(name, features) for name in names]
    rows = np.arange(len(features))
    if len(rows) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), _MOST_ROWS, replace=False))
    targets = targets[rows]
    if targets.shape[1] > _MOST_LABELS:
        spread = np.nan_to_num(np.nanvar(targets, axis=0))
        targets = targets[:, np.argsort(-spread, kind="stable")[:_MOST_LABELS]]
    losses = []
    for scaling in found:
        some = features.rows(rows) if scaling is None else scaling(features.rows(rows))
        some = some.astype(np.float64)
        losses.append(left_out_loss(kernel_of(some).block(some, some), targets))
    return found[int(np.argmin(losses))]
