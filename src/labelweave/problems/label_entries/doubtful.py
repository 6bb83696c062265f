"""Targets that are not certain as the losses of low-rank learning read them: exactly, or as weights."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.labels.label_tables import LEAST_GRADE
from labelweave.problems.label_entries.base import EntryWeights
from labelweave.problems.losses.entry_losses import (
    EntryLoss,
    GradedEntryLoss,
    LogisticEntryLoss,
    SquaredEntryLoss,
)


def read_doubts(
    labels: LabelMatrix, loss: EntryLoss, factors: EntryWeights | None
) -> tuple[LabelMatrix, EntryLoss, EntryWeights | None]:
    """Give labels with the doubts that a loss reads exactly, that loss, and weights with the other doubts.

    The logistic loss of targets outside of 0 and 1 falls without a bound along the score, which a trace
    norm does not hold; these become weights, as all doubts of losses whose values of both signs do not
    differ by the score.
    """
    assert labels.doubts is not None, "labels without doubts are read by any loss as they are"
    least = {SquaredEntryLoss: -np.inf, LogisticEntryLoss: 0.0}.get(type(loss), np.inf)
    exact, weighed = labels.doubts.copy(), labels.doubts.copy()
    exact.data[exact.data < least] = 0.0
    weighed.data[weighed.data >= least] = 0.0
    labels = LabelMatrix(labels.positives, labels.observed, labels.names, exact)
    if weighed.data.any():
        ones = np.ones((1, labels.n_labels))
        factors = (factors or EntryWeights(ones, ones)).doubted(weighed)
    return labels, loss if labels.doubts is None else GradedEntryLoss(loss), factors


def listed_signs(labels: LabelMatrix) -> sp.csr_array:
    """List 1, -1, or 2 q - 1 of targets q, at the observed entries.

    Where everything is observed, at those that are positive or doubtful; the others are -1.
    """
    doubts, known = labels.doubts, labels.observed
    if doubts is None:
        return labels.positives if known is None else known
    if known is None:
        pattern = abs(doubts).sign()
        known = labels.positives + pattern.multiply(labels.positives) - pattern
    known = sp.csr_array(known, dtype=np.float64)
    known.sort_indices()
    found = sp.csr_array(3.0 * abs(known) + doubts)  # doubts by their places among the listed entries
    found.sort_indices()
    sure = np.maximum(1.0 - 2.0 * (found.data - 3.0), LEAST_GRADE)
    return sp.csr_array((known.data * sure, known.indices, known.indptr), shape=known.shape)
