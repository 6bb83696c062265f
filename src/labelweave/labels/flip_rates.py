"""Noisy labels with known flip rates, corrected so that losses and counts are unbiased.

Natarajan et al., "Learning with noisy labels", 2013, section 3: if a present label is recorded as absent with
probability ``missed``, and an absent one as present with probability ``false``, the loss

    q loss(1) + (1 - q) loss(-1),    q = (y - false) / (1 - missed - false),

of the recorded y, 0 or 1, has the expectation of the loss of the true label.  Targets q can be outside of 0
to 1.  A loss whose values for both signs differ by the score, such as the logistic and the squared one, stays
convex; for others ``|2 q - 1|`` times the loss of the more likely sign is a convex bound of the expected
error (their section 4; Qaraei et al., "Convex surrogates for unbiased loss functions in extreme
classification with missing labels", 2021, for labels that are only missed, with propensities 1 - missed as in
Jain et al., 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerLabel
from labelweave.foundation.arrays import numbers_of
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_names import rows_by_name

_MOST_ENTRIES = 1e8  # of dense targets of absent labels


@dataclass(frozen=True)
class FlipRates:
    """The rates of wrongly recorded labels, given the true ones.

    Parameters
    ----------
    missed : ndarray of float64, shape (L,)
        The share of the rows that truly have a label in which it is recorded as absent; 1 - its propensity.
    false : ndarray of float64, shape (L,)
        The share of the rows that truly lack a label in which it is recorded as present.
    """

    missed: PerLabel
    false: PerLabel


def read_flip_rates(given: Any, names: Sequence[str]) -> tuple[Array, Array]:
    """Return the rates of both kinds, one per label, NaN where unspecified; a Series is matched by name."""
    if isinstance(given, FlipRates):
        given = given.missed, given.false
    if given is not None and not (isinstance(given, (tuple, list)) and len(given) == 2):
        raise ParameterError(
            "`flip_rates` must be a pair (missed, false), each one number or one per label, such as "
            "`flip_rates=(0.1, 0.02)`."
        )
    missed, false = (_read_rate(one, names) for one in given or (None, None))
    if (np.nan_to_num(missed) + np.nan_to_num(false) >= 1.0).any():
        raise ParameterError(
            "`flip_rates` add up to 1 or more, so records carry no information; use shares with sum below 1."
        )
    return missed, false


def _read_rate(rate: Any, names: Sequence[str]) -> Array:
    n_labels = len(names)
    if rate is None:
        return np.full(n_labels, np.nan)
    found = numbers_of(rows_by_name(rate, names, "flip_rates"), "`flip_rates`").astype(np.float64)
    if found.shape not in ((), (n_labels,)):
        raise ValueError(
            f"flip_rates has a part of shape {found.shape}; pass one number, or one per label ({n_labels})."
        )
    bad = ~((found >= 0) & (found < 1))
    if bad.any():
        raise ParameterError(f"`flip_rates` has {found[bad].flat[0]:g}; shares must be >= 0 and below 1.")
    return np.broadcast_to(found, (n_labels,)).astype(np.float64)


def corrected_targets(labels: LabelMatrix, missed: PerLabel, false: PerLabel) -> LabelMatrix:
    """Return the targets whose losses and counts are unbiased for the true labels.

    Raises ValueError if absent labels need nonzero targets and there are too many of them to store.
    """
    if not (missed.any() or false.any()):
        return labels
    scale = 1.0 / (1.0 - missed - false)
    if not false.any():
        targets = sp.csr_array(labels.expected_positives, dtype=np.float64, copy=True)
        targets.data *= scale[targets.indices]
    elif labels.observed is not None:
        targets = sp.csr_array(labels.observed, dtype=np.float64, copy=True)
        targets.data[:] = 1.0
        recorded = sp.csr_array(labels.expected_positives + 2.0 * targets)  # plus 2, so that none is 0
        recorded.sort_indices()
        targets.data = (recorded.data - 2.0 - false[targets.indices]) * scale[targets.indices]
    elif labels.shape[0] * labels.n_labels > _MOST_ENTRIES:
        raise ValueError(
            f"flip_rates of absent labels need a dense table of {len(labels)} x {labels.n_labels} entries; "
            "pass 0 for them, or fewer labels."
        )
    else:
        targets = sp.csr_array((labels.to_dense() - false) * scale)
    return LabelMatrix._of_targets(targets, labels.observed, labels.names)
