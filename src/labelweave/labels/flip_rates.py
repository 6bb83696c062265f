"""Labels that are recorded wrongly at known rates, corrected so that losses and counts come true on average.

Natarajan et al., "Learning with noisy labels", 2013, section 3: where a label that is there is recorded as
absent with probability ``missed``, and one that is not as present with probability ``false``, the loss

    q loss(1) + (1 - q) loss(-1),    q = (y - false) / (1 - missed - false),

of what was recorded, y of 0 or 1, has the expectation of the loss of what truly is.  Targets q lie outside of
0 and 1.  A loss whose values of both signs differ by the score, such as the logistic and the squared one,
stays convex; for others ``|2 q - 1|`` times the loss of the likelier sign is a convex bound of the expected
mistake (their section 4; Qaraei et al., "Convex surrogates for unbiased loss functions in extreme
classification with missing labels", 2021, for labels that are only forgotten, with propensities 1 - missed
as in Jain et al., 2016).
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

_MOST_ENTRIES = 1e8  # that targets of absent labels are written out for


@dataclass(frozen=True)
class FlipRates:
    """How often labels are recorded wrongly, given what they truly are.

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
    """Read rates of both kinds, one a label, NaN where not given; those of a Series are found by names."""
    if isinstance(given, FlipRates):
        given = given.missed, given.false
    if given is not None and not (isinstance(given, (tuple, list)) and len(given) == 2):
        raise ParameterError(
            "`flip_rates` needs to be a pair (missed, false) of shares, one number or one a label each, such "
            "as `flip_rates=(0.1, 0.02)`."
        )
    missed, false = (_read_rate(one, names) for one in given or (None, None))
    if (np.nan_to_num(missed) + np.nan_to_num(false) >= 1.0).any():
        raise ParameterError(
            "`flip_rates` add up to 1 or more, so that what was recorded says nothing or the opposite."
        )
    return missed, false


def _read_rate(rate: Any, names: Sequence[str]) -> Array:
    n_labels = len(names)
    if rate is None:
        return np.full(n_labels, np.nan)
    found = numbers_of(rows_by_name(rate, names, "flip_rates"), "`flip_rates`").astype(np.float64)
    if found.shape not in ((), (n_labels,)):
        raise ValueError(
            f"flip_rates has a part of shape {found.shape}; give one number, or one of {n_labels} a label."
        )
    bad = ~((found >= 0) & (found < 1))
    if bad.any():
        raise ParameterError(
            f"`flip_rates` has {found[bad].flat[0]:g}; a share of wrong labels is at least 0 and below 1."
        )
    return np.broadcast_to(found, (n_labels,)).astype(np.float64)


def corrected_targets(labels: LabelMatrix, missed: PerLabel, false: PerLabel) -> LabelMatrix:
    """Return the targets whose losses and counts are those of the true labels, on average.

    Raises ValueError if absent labels need targets of their own and are too many to be written out.
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
        recorded = sp.csr_array(labels.expected_positives + 2.0 * targets)  # 2 more, so that none is 0
        recorded.sort_indices()
        targets.data = (recorded.data - 2.0 - false[targets.indices]) * scale[targets.indices]
    elif labels.shape[0] * labels.n_labels > _MOST_ENTRIES:
        raise ValueError(
            f"flip_rates has shares of absent labels recorded as present, which makes a target of each of "
            f"{len(labels)} x {labels.n_labels} entries; give 0 as their share, or fewer labels at a time."
        )
    else:
        targets = sp.csr_array((labels.to_dense() - false) * scale)
    return LabelMatrix._of_targets(targets, labels.observed, labels.names)
