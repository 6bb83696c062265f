"""Targets that are no signs, as losses read them: exactly, or as weights of the likelier sign.

The loss of a target q is q loss(1) + (1 - q) loss(-1).  Where the values of both signs differ by the score,
as those of the logistic and of the squared loss do, it is the loss of the likelier sign plus a multiple of
the score (``losses.entry_losses.GradedEntryLoss``), convex for every q.  Hinges have ``|2 q - 1|`` times the
loss of the likelier sign: a bound of what the other decision is expected to cost more.  Problem, dual and
certificate are then those of weighted entries, and of the structured margin those of costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import PerLabel, RowsByLabels
from labelweave.labels import LabelMatrix
from labelweave.labels.flip_rates import corrected_targets, read_flip_rates
from labelweave.metrics._inputs import row_observed_counts
from labelweave.metrics.top_k import propensities_of_counts

RATES_OF_CLASSES = (
    "flip_rates are those of labels that are there or not, but y has one class a row; give the classes as "
    "a table with a column each."
)


def corrected_by(flip_rates: Any, labels: LabelMatrix) -> LabelMatrix:
    """Give labels the targets that undo flips at known rates.

    flip_rates: a pair, or "propensity" for labels that are only forgotten, as often as the formula of Jain et
        al. (2016) says.
    """
    counts = rows_with_labels(labels), labels.positive_counts()
    return corrected_targets(labels, *rates_by(flip_rates, *counts, labels.words))


def rows_with_labels(labels: LabelMatrix) -> int:
    """Count the rows that say anything of a label."""
    return int(np.count_nonzero(row_observed_counts(labels)))


def rates_by(
    flip_rates: Any, n_rows: int, positives: PerLabel, names: Sequence[str]
) -> tuple[PerLabel, PerLabel]:
    """Give the rates of both kinds of flips, as :func:`corrected_by` reads them.

    n_rows: that say anything of a label; positives (L,): rows that have each label; names: theirs.
    """
    if isinstance(flip_rates, str):
        return 1.0 - propensities_of_counts(n_rows, positives), np.zeros(len(positives))
    missed, false = read_flip_rates(flip_rates, names)
    if np.isnan(missed).any() or np.isnan(false).any():
        raise ValueError(
            "flip_rates has a part that is None; give both shares, such as those that "
            "labelweave.noise.find_label_errors estimates."
        )
    return missed, false


def corrected_like(estimator: Any, labels: LabelMatrix) -> LabelMatrix:
    """Give labels the targets that an estimator, or the one inside, makes of them."""
    while hasattr(estimator, "estimator"):
        estimator = estimator.estimator
    rates = getattr(estimator, "flip_rates", None)
    return labels if rates is None else corrected_by(rates, labels)


def sure_weights(labels: LabelMatrix, entries: Any) -> RowsByLabels | sp.coo_array | None:
    """Multiply the weights of entries, 1 where not stored, by ``|2 q - 1|`` of their targets."""
    if labels.doubts is None:
        return entries
    table = 1.0 - 2.0 * labels.doubts.toarray() if entries is not None and not sp.issparse(entries) else None
    if table is not None:
        return np.asarray(entries * table)
    less = sp.csr_array(-2.0 * labels.doubts)  # weights less 1, so that what is not stored is 0
    if entries is not None:
        own = sp.csr_array(entries)
        own.sum_duplicates()
        own.data -= 1.0
        less = sp.csr_array(own + less + own.multiply(less))
    found = sp.coo_array(less)
    found.data += 1.0
    return found
