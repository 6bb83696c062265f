"""Counts of observed entries by example or by label, from which every set metric is made."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Floats
from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import read_predictions, row_observed_counts


@dataclass(frozen=True)
class EntryCounts:
    """Observed entries that are hit, predicted, positive, and all of them, one number a line."""

    hit: Floats
    predicted: Floats
    positive: Floats
    observed: Floats

    @property
    def wrong(self) -> Floats:
        """Count the entries predicted wrongly."""
        return self.predicted + self.positive - 2 * self.hit

    def total(self) -> EntryCounts:
        """Add up all lines into one."""
        return EntryCounts(*(counts.sum(keepdims=True) for counts in astuple(self)))


def row_counts(targets: LabelMatrix, Y_pred: Any) -> EntryCounts:
    """Count by example."""
    hit, predicted, positive = (np.diff(pattern.indptr) for pattern in _patterns(targets, Y_pred))
    counts = (hit, predicted, positive, row_observed_counts(targets))
    return EntryCounts(*(count.astype(np.float64) for count in counts))


def label_counts(targets: LabelMatrix, Y_pred: Any, weights: Floats) -> EntryCounts:
    """Count by label, every entry with the weight of its row."""
    hit, predicted, positive = (pattern.T @ weights for pattern in _patterns(targets, Y_pred))
    if targets.observed is None:
        return EntryCounts(hit, predicted, positive, np.full(targets.n_labels, weights.sum()))
    return EntryCounts(hit, predicted, positive, abs(targets.observed).T @ weights)


def _patterns(targets: LabelMatrix, Y_pred: Any) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array]:
    """Find the observed entries that are hit, predicted and positive."""
    predicted = read_predictions(Y_pred, targets)
    hit = targets.positives.multiply(predicted).tocsr()
    if targets.observed is not None:
        predicted = predicted.multiply(abs(targets.observed)).tocsr()
    return hit, predicted, targets.positives
