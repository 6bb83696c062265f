"""Targets that are not certain: the likelier of both values, and the probability of the other one.

A target q is 1 - doubt where an entry is said to be positive, else doubt.  Doubts are at most one half;
corrections for flipped labels make some that are below 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arrays import checked_csr, numbers_of

LEAST_GRADE = 1e-9  # of what is as likely as not, where 0 is what was not observed


def split_targets(targets: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array | None]:
    """Give the positive entries of targets, 0 where not stored, and their doubts, None if there are none."""
    is_positive = targets.data > 0.5
    doubts = np.where(is_positive, 1.0 - targets.data, targets.data)
    parts = targets.indices, targets.indptr
    positives = sp.csr_array((is_positive.astype(np.int8), *parts), shape=targets.shape)
    return positives, sp.csr_array((doubts, *parts), shape=targets.shape) if doubts.any() else None


def checked_doubts(
    doubts: Any, positives: sp.csr_array, observed: sp.csr_array | None
) -> sp.csr_array | None:
    """Check doubts (n, L), which are kept where an entry was observed; None if none is left."""
    given = doubts if sp.issparse(doubts) else np.atleast_2d(numbers_of(doubts, "doubts"))
    if given.shape != positives.shape:
        raise ValueError(
            f"doubts has shape {given.shape} but the positives have shape {positives.shape}; both must be "
            "(rows, labels)."
        )
    known = given if sp.issparse(given) else sp.csr_array(given)
    table = sp.csr_array(checked_csr(known, "doubts"), dtype=np.float64)
    if observed is not None:
        table = sp.csr_array(table.multiply(abs(observed)))
    if not table.data.all():
        table = table.copy()
        table.eliminate_zeros()
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    bad = np.flatnonzero(~((table.data <= 0.5) & (table.data > -np.inf)))
    if len(bad):
        raise ValueError(
            f"doubts has {table.data[bad[0]]}; a doubt is the probability of the less likely value of an "
            "entry, which is 0.5 at most."
        )
    return table if table.nnz else None


def expected_positives(positives: sp.csr_array, doubts: sp.csr_array) -> sp.csr_array:
    """Give the targets, 0 where not stored."""
    return sp.csr_array(positives + doubts - 2.0 * positives.multiply(doubts))


def graded(signs: npt.NDArray[np.int8], doubts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give 2 q - 1 of targets q by signs and doubts of the same shape, and 0 where the sign is."""
    return np.asarray(signs * np.maximum(1.0 - 2.0 * doubts, LEAST_GRADE))
