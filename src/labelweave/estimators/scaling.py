"""Which scaling of the features suits a data set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelweave.features import FeatureMatrix, FeatureScaling, Kernel
from labelweave.foundation.array_types import Array, PerRow
from labelweave.problems.hyperparameters.left_out import oof_loss

_MOST_ROWS = 1000  # among which a scaling is chosen: two eigendecompositions of their kernel matrix
_MOST_LABELS = 256
_VECTOR = 32
_FULL = 0.1  # of the entries of sparse rows: written out they take seven times the memory at most
_MOST_ENTRIES = 50_000_000  # which are written out, 400 MB


def choose_scaling(
    features: FeatureMatrix, targets: Array, kernel_of: Callable[[FeatureMatrix], Kernel],
    folds: PerRow | None = None,
) -> FeatureScaling | None:  # fmt: skip
    """Choose the scaling with the least squared loss of left-out rows under kernel ridge regression.

    Dense features: "standard", "quantile" or, of 32 and more as embeddings have, "unit"; sparse ones: "unit",
    or None as they are.  Sparse ones with a
    tenth of all entries or more, as tables of numbers and categories have: as dense ones, or None; unit
    lengths would mix their columns, which trees part.  At most 1,000 rows, the same in every call, and the
    256 labels that vary most decide.

    Parameters
    ----------
    features : FeatureMatrix of shape (n, d)
        The training rows.
    targets : ndarray of shape (n, L)
        What is learned, as numbers; NaN where it is not known.
    kernel_of : callable
        From features to their kernel.
    folds : ndarray of int, shape (n,), default=None
        Numbers of parts that are left out together; None to leave out one row at a time.
    """
    lengths = features.squared_norms()
    if features.is_sparse and np.allclose(lengths[lengths > 0], 1.0, atol=1e-6) and lengths.any():
        return None  # of unit length already, as texts are; empty ones have none
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
        losses.append(oof_loss(kernel_of(some).block(some, some), targets, folds))
    return found[int(np.argmin(losses))]


def drawn_rows(n: int, most: int) -> Array:
    """Draw at most so many of n rows, the same in every call, in their order."""
    if n <= most:
        return np.arange(n)
    rows: Array = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return rows


def _written_out(features: FeatureMatrix) -> FeatureMatrix | None:
    """Give features as a dense array, if they are one or sparse rows that are rather full."""
    if not features.is_sparse:
        return features
    n_entries = features.shape[0] * features.shape[1]
    is_full = features.data.nnz >= _FULL * n_entries and n_entries <= _MOST_ENTRIES
    return FeatureMatrix(features.data.toarray()) if is_full else None
