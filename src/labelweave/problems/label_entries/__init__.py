"""Losses over the entries of a label matrix whose scores are products of two factors."""

from labelweave.problems.label_entries.base import EntryWeights, LabelEntries
from labelweave.problems.label_entries.dense_entries import DenseEntries, EntryTable
from labelweave.problems.label_entries.quadratic_entries import QuadraticEntries
from labelweave.problems.label_entries.sampled_entries import SampledEntries
from labelweave.problems.label_entries.shifted_entries import ShiftedEntries

__all__ = [
    "DenseEntries",
    "EntryTable",
    "EntryWeights",
    "LabelEntries",
    "QuadraticEntries",
    "SampledEntries",
    "ShiftedEntries",
]
