"""Losses over the entries of a label matrix whose scores are products of two factors."""

from labelweave.problems.label_entries.any_loss import (
    DenseEntries,
    EntryTable,
    SampledEntries,
    ShiftedEntries,
)
from labelweave.problems.label_entries.base import EntryWeights, LabelEntries
from labelweave.problems.label_entries.quadratic_entries import QuadraticEntries

__all__ = [
    "DenseEntries",
    "EntryTable",
    "EntryWeights",
    "LabelEntries",
    "QuadraticEntries",
    "SampledEntries",
    "ShiftedEntries",
]
