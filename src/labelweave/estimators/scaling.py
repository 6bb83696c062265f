"""Choice of the feature scaling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelweave.features import FeatureMatrix, FeatureScaling, Kernel
from labelweave.foundation.array_types import Array, PerRow
from labelweave.problems.hyperparameters.out_of_fold import oof_loss

_MOST_ROWS = 1000  # among which a scaling is chosen: two eigendecompositions of their kernel matrix
_MOST_LABELS = 256
_VECTOR = 32
_FULL = 0.1  # of the entries of sparse rows: as a dense array they take at most seven times the memory
_MOST_ENTRIES = 50_000_000  # of the dense array, 400 MB


def choose_scaling(
    features: FeatureMatrix, targets: Array, kernel_of: Callable[[FeatureMatrix], Kernel],
    folds: PerRow | None = None,
) -> FeatureScaling | None:  # fmt: skip
    """Choose the scaling with the least out-of-fold squared error of kernel ridge regression.

    Dense features: "standard", "quantile" or, with 32 and more columns as in embeddings, "unit".  Sparse
    ones: "unit", or None for unscaled.  Sparse ones with a tenth of all entries or more, as tables of
    numbers and categories have: as dense ones, or None; unit lengths would mix their columns, which trees
    split on.  At most 1,000 rows, the same in every call, and the 256 labels that vary most are used.

    Parameters
    ----------
    features : FeatureMatrix of shape (n, d)
        The training rows.
    targets : ndarray of shape (n, L)
        Targets of the regression; NaN where unobserved.
    kernel_of : callable
        Maps features to their kernel.
    folds : ndarray of int, shape (n,), default=None
        Fold numbers; None for leave-one-out.
    """
    lengths = features.squared_norms()
    if features.is_sparse and np.allclose(lengths[lengths > 0], 1.0, atol=1e-6) and lengths.any():
        return None  # of unit length already, as texts are, or empty
    table, found = _written_out(features), list[FeatureScaling | None]()
    if table is None:
        found = [FeatureScaling("unit"), None]
    else:
        found = [FeatureScaling.fit(kind, table) for kind in ("standard", "quantile")]
        is_vector = not features.is_sparse and features.shape[1] >= _VECTOR
        found += [None] if features.is_sparse else [FeatureScaling("unit")] if is_vector else []
    rows = drawn_rows(len(features), _MOST_ROWS)
    targets, folds = targets[rows], None if folds is None else folds[rows]
    if targets.shape[1] > _MOST_LABELS:
        spread = np.nan_to_num(np.nanvar(targets, axis=0))
        targets = targets[:, np.argsort(-spread, kind="stable")[:_MOST_LABELS]]
    losses = []
    for scaling in found:
        some = features.rows(rows) if scaling is None else scaling(features.rows(rows))
        some = some.astype(np.float64)
        placed = some.placed()
        losses.append(oof_loss(kernel_of(some).block(placed, placed), targets, folds))
    return found[int(np.argmin(losses))]


def drawn_rows(n: int, most: int) -> Array:
    """Sample at most this many of n rows, the same in every call, in their order."""
    if n <= most:
        return np.arange(n)
    rows: Array = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return rows


def _written_out(features: FeatureMatrix) -> FeatureMatrix | None:
    """Return features as a dense array, if they are dense or rather full sparse rows."""
    if not features.is_sparse:
        return features
    n_entries = features.shape[0] * features.shape[1]
    is_full = features.data.nnz >= _FULL * n_entries and n_entries <= _MOST_ENTRIES
    return FeatureMatrix(features.data.toarray()) if is_full else None
