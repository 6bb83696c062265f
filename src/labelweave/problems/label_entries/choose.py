"""Which form of the entries is the cheapest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.losses.entry_losses import ENTRY_LOSSES
from labelweave.problems.label_entries.base import LabelEntries
from labelweave.problems.label_entries.dense_entries import DenseEntries, EntryTable
from labelweave.problems.label_entries.quadratic_entries import QuadraticEntries
from labelweave.problems.label_entries.sampled_entries import SampledEntries

__all__ = ["choose_entries"]

# observed share above which dense products of all entries take less time: Hessian products meet at 0.4 to 0.5
# and evaluations beyond it, of 2,000 x 159 entries at rank 64 and x 983 at 200, in float32 and float64
_DENSE_SHARE = 0.5


def choose_entries(
    labels: LabelMatrix,
    loss: str,
    row_weights: npt.NDArray[Any],
    negative_weight: float,
    workers: Workers,
) -> LabelEntries:
    """Choose how the loss of a label matrix is computed.

    loss: the loss of an entry.
    row_weights (n,): weights of the rows, of the type to compute in.
    negative_weight: what the weights of entries that are not positive are multiplied with.
    Returns :class:`QuadraticEntries` for the squared loss without missing labels, :class:`SampledEntries`
        where few entries are observed, else :class:`DenseEntries`.
    """
    entry_loss = ENTRY_LOSSES[loss]()
    if labels.observed is None:
        if entry_loss.is_quadratic:
            return QuadraticEntries.from_pattern(labels.positives, row_weights, negative_weight, workers)
        signs = labels.positives
    else:
        signs = labels.observed
        if signs.nnz <= _DENSE_SHARE * signs.shape[0] * signs.shape[1]:
            return SampledEntries.from_signs(entry_loss, signs, row_weights, negative_weight, workers)
    ones = np.ones(labels.n_labels, row_weights.dtype)
    lists_all = labels.observed is not None
    table = EntryTable(sp.csr_array(signs), lists_all, row_weights, ones, negative_weight)
    return DenseEntries(entry_loss, table, workers)
