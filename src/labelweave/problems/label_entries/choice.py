"""The loss of a label matrix, in the form that takes least time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.array_types import Array, PerRow
from labelweave.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.losses.entry_losses import ENTRY_LOSSES, EntryLoss, GradedEntryLoss, SquaredEntryLoss
from labelweave.problems.label_entries.base import EntryWeights, LabelEntries
from labelweave.problems.label_entries.dense_entries import BUDGET, DenseEntries, EntryTable
from labelweave.problems.label_entries.doubtful import listed_signs, read_doubts
from labelweave.problems.label_entries.quadratic_entries import QuadraticEntries
from labelweave.problems.label_entries.sampled_entries import SampledEntries
from labelweave.problems.label_entries.shifted_entries import ShiftedEntries

# observed share above which dense products of all entries take less time: Hessian products meet at 0.4 to 0.5
# and evaluations beyond it, of 2,000 x 159 entries at rank 64 and x 983 at 200, in float32 and float64
_DENSE_SHARE = 0.5


@dataclass(frozen=True)
class RowsLoss:
    """What the loss of some rows is made of.

    factors: further factors of the entries' weights.
    known: factors of scores that are known before the fit, of rows (n, c) and of labels (L, c).
    """

    labels: LabelMatrix
    weights: PerRow
    loss: str | EntryLoss
    negative_weight: float
    dtype: npt.DTypeLike
    factors: EntryWeights | None = None
    known: tuple[Array, Array] | None = None

    def rows(self, kept: slice) -> RowsLoss:
        """Keep some rows."""
        return replace(
            self,
            labels=self.labels[kept],
            weights=self.weights[kept],
            factors=None if self.factors is None else self.factors.rows(kept),
            known=None if self.known is None else (self.known[0][kept], self.known[1]),
        )

    def entries(self, workers: Workers, budget: float = BUDGET) -> LabelEntries:
        """Make it; see :func:`choose_entries`."""
        weights = np.asarray(self.weights, self.dtype)
        entries = choose_entries(
            self.labels, self.loss, weights, self.negative_weight, workers, self.factors, budget
        )
        if self.known is None:
            return entries
        return ShiftedEntries(entries, *(np.asarray(part, self.dtype) for part in self.known))


def make_entry_loss(loss: str | EntryLoss) -> EntryLoss:
    """Make a loss from its name in ``ENTRY_LOSSES``, or take one."""
    return loss if isinstance(loss, EntryLoss) else ENTRY_LOSSES[loss]()


def choose_entries(
    labels: LabelMatrix,
    loss: str | EntryLoss,
    row_weights: npt.NDArray[Any],
    negative_weight: float,
    workers: Workers,
    factors: EntryWeights | None = None,
    budget: float = BUDGET,
) -> LabelEntries:
    """Choose how the loss of a label matrix is computed.

    row_weights (n,): weights of the rows, of the type to compute in.
    negative_weight: what the weights of entries that are not positive are multiplied with.
    factors: further factors of the weights; those that differ by label or entry rule out the first form.
    budget: bytes for second derivatives of all entries; they are computed again where they take more.
    Returns :class:`QuadraticEntries` for the squared loss without missing labels, :class:`SampledEntries`
        where few entries are observed, else :class:`DenseEntries`.
    """
    entry_loss, lists_all = make_entry_loss(loss), labels.observed is not None
    signs: Any = labels.observed if lists_all else labels.positives
    if labels.doubts is not None:
        labels, entry_loss, factors = read_doubts(labels, entry_loss, factors)
        signs = listed_signs(labels)
    if not lists_all:
        own = entry_loss.loss if isinstance(entry_loss, GradedEntryLoss) else entry_loss
        if type(own) is SquaredEntryLoss and factors is None:  # not one that was made from it
            targets = labels.expected_positives
            return QuadraticEntries.from_pattern(targets, row_weights, negative_weight, workers)
    elif signs.nnz <= _DENSE_SHARE * signs.shape[0] * signs.shape[1]:
        return SampledEntries.from_signs(entry_loss, signs, row_weights, negative_weight, workers, factors)
    ones = np.ones(labels.n_labels, row_weights.dtype)
    table = EntryTable(sp.csr_array(signs), lists_all, row_weights, ones, negative_weight, factors)
    return DenseEntries(entry_loss, table, workers, budget)
