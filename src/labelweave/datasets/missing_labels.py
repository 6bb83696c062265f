"""Targets of which a few entries were not observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.datasets.csr_parts import csr_from_counts
from labelweave.labels import LabelMatrix

__all__ = ["with_missing_entries", "with_missing_rows"]


def with_missing_entries(
    positives: sp.csr_array, missing: sp.csr_array, names: Sequence[str] | npt.NDArray[Any]
) -> LabelMatrix:
    """Make targets whose listed entries are unobserved, everything else observed.

    Returns the targets.  With anything missing, the mask lists all ``n L`` other entries.
    Shapes: positives (n, L), missing (n, L).
    """
    if not missing.nnz:
        return LabelMatrix(positives, None, names)
    observed = np.ones(positives.shape, bool)
    observed[missing.nonzero()] = False
    return LabelMatrix(positives, sp.csr_array(observed), names)


def with_missing_rows(
    positives: sp.csr_array, missing: npt.NDArray[np.bool_], names: Sequence[str] | npt.NDArray[Any]
) -> LabelMatrix:
    """Make targets of which whole rows are unobserved.

    missing (n,): the rows without any observation.
    Returns the targets.  With some rows missing, the mask lists every entry of the others.
    Shapes: positives (n, L).
    """
    if not missing.any():
        return LabelMatrix(positives, None, names)
    n_labels = positives.shape[1]
    columns = np.tile(np.arange(n_labels, dtype=np.int32), int((~missing).sum()))
    observed = csr_from_counts(
        np.ones(len(columns), np.int8), columns, np.where(missing, 0, n_labels), n_labels
    )
    return LabelMatrix(positives, observed, names)
