"""Losses over the entries of a label matrix whose scores are products of two factors."""

from labelweave.problems.label_entries.base import EntryPoint, LabelEntries, SlopeOperator
from labelweave.problems.label_entries.choose import choose_entries
from labelweave.problems.label_entries.dense_entries import DenseEntries, EntryTable
from labelweave.problems.label_entries.quadratic_entries import QuadraticEntries
from labelweave.problems.label_entries.sampled_entries import SampledEntries

__all__ = [
    "DenseEntries",
    "EntryPoint",
    "EntryTable",
    "LabelEntries",
    "QuadraticEntries",
    "SampledEntries",
    "SlopeOperator",
    "choose_entries",
]
