"""Losses over the entries of a label matrix whose scores are products of two factors."""

from labelweave.problems.label_entries.any_loss import DenseEntries as DenseEntries
from labelweave.problems.label_entries.any_loss import EntryTable as EntryTable
from labelweave.problems.label_entries.any_loss import SampledEntries as SampledEntries
from labelweave.problems.label_entries.any_loss import ShiftedEntries as ShiftedEntries
from labelweave.problems.label_entries.base import EntryWeights as EntryWeights
from labelweave.problems.label_entries.base import LabelEntries as LabelEntries
from labelweave.problems.label_entries.quadratic_entries import QuadraticEntries as QuadraticEntries
