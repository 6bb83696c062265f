"""The interface between the factors of a low-rank model and the labels (Yu et al. 2014, sections 3.1, 3.2).

The loss is a sum over entries (i, j) of ``w_ij loss(y_ij, a_i . h_j)``.  One factor is updated, its *image*
of shape (rows, k); the other one is *fixed*, of shape (columns, k).  Rows of the image are independent,
so everything is computed per row.  The same labels with the roles of the factors exchanged
are the *transposed* entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.labels.label_tables import LEAST_GRADE
from labelweave.problems.losses.entry_losses import (
    EntryLoss,
    GradedEntryLoss,
    LogisticEntryLoss,
    SquaredEntryLoss,
)


@dataclass(frozen=True)
class EntryWeights:
    """Factors of the weights of entries beyond those of rows and columns.

    positive, negative: of positive and of negative entries, of shape (1, columns) or (rows, 1).
    entries (rows, columns): of each entry, if any; a sparse array stores them minus 1.
    """

    positive: Array
    negative: Array
    entries: Any = None

    def turned(self) -> EntryWeights:
        entries = self.entries
        if entries is not None:
            entries = sp.csr_array(entries.T) if sp.issparse(entries) else np.ascontiguousarray(entries.T)
        return EntryWeights(self.positive.T, self.negative.T, entries)

    def flipped(self, flips: sp.csr_array) -> EntryWeights:
        """Multiply by ``|2 q - 1|`` of targets q with these flip probabilities, 0 where not stored."""
        less, own = sp.csr_array(-2.0 * flips), self.entries
        if own is None:
            return replace(self, entries=less)
        if not sp.issparse(own):
            return replace(self, entries=own * (1.0 + less.toarray()))
        return replace(self, entries=sp.csr_array(own + less + own.multiply(less)))

    def rows(self, kept: npt.NDArray[np.intp] | slice) -> EntryWeights:
        of_sign = [part[kept] if len(part) > 1 else part for part in (self.positive, self.negative)]
        return EntryWeights(of_sign[0], of_sign[1], None if self.entries is None else self.entries[kept])

    def of_table(self, is_positive: npt.NDArray[np.bool_]) -> Array:
        """Return the factors of all entries, a dense array of shape (rows, columns)."""
        factors: Array = np.where(is_positive, self.positive, self.negative)
        if self.entries is None:
            return factors
        return np.asarray(
            factors * (1 + self.entries.toarray() if sp.issparse(self.entries) else self.entries)
        )

    def of_listed(self, signs: sp.csr_array) -> Array:
        """Return the factors of the entries that a matrix of signs lists, in its order."""
        rows, columns = np.repeat(np.arange(signs.shape[0]), np.diff(signs.indptr)), signs.indices
        place = (np.minimum(rows, len(self.positive) - 1), np.minimum(columns, self.positive.shape[1] - 1))
        factors: Array = np.where(signs.data > 0, self.positive[place], self.negative[place])
        if self.entries is None:
            return factors
        found = self.entries[rows, columns]  # from a sparse array it may be sparse or dense
        found = np.asarray(found.toarray() if sp.issparse(found) else found)
        return np.asarray(factors * (1 + found if sp.issparse(self.entries) else found))


@dataclass(frozen=True)
class EntryPoint:
    """The loss, to second order, at one image.

    values (rows,): the loss of each row.
    gradients (rows, k): derivatives by the image: D H with D_ij = w_ij loss'(s_ij) (equation 9).
    curve: from a direction B of shape (rows, k) to U H of shape (rows, k), with U_ij = w_ij loss''(s_ij) b_i
        . h_j (equation 10).
    weights (rows,): sums of second derivatives over each row, as shares of the sum of ``column_weights``; for
        a preconditioner, which takes U_ij to be about ``weights_i column_weights_j``.
    """

    values: npt.NDArray[np.float64]
    gradients: Array
    curve: Callable[[Array], Array]
    weights: Array


@dataclass(frozen=True)
class GradientOperator:
    """The matrix D of gradients of all entries, and the conjugate losses at its multiples.

    matmul: from v of shape (columns, p) to D v of shape (rows, p).
    adjoint: from u of shape (rows, p) to D^T u of shape (columns, p).
    conjugate: from a share t between 0 and 1 to the sum of the conjugates of ``w loss`` at t D.
    """

    matmul: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]
    conjugate: Callable[[float], float]


class LabelEntries(Protocol):
    """The loss of entries at the image (rows, k) of the updated factor and a fixed one, (columns, k)."""

    shape: tuple[int, int]
    is_quadratic: bool
    has_uniform_curvature: bool  # whether the curvature of every row is a multiple of H^T H
    column_weights: Array  # relative weights of columns
    takes_single: bool  # whether products with the curvature are possible in single precision
    least: float  # lower bound of the sum of all losses, except for rounding; minus infinity if unknown

    @property
    def transposed(self) -> LabelEntries:
        """The same entries, rows and columns exchanged."""

    def gram(self, fixed: Array, workers: Workers) -> npt.NDArray[np.float64]:
        """See :class:`~labelweave.foundation.arrays.tables.WeighedColumns`."""

    def spread(self, fixed: Array, workers: Workers) -> npt.NDArray[np.float64]:
        """See :class:`~labelweave.foundation.arrays.tables.WeighedColumns`."""

    def at(self, image: Array, fixed: Array) -> EntryPoint:
        """Evaluate the loss to second order."""

    def values(self, image: Array, fixed: Array) -> npt.NDArray[np.float64]:
        """Compute the loss of each row, shape (rows,)."""

    def gradient_operator(self, image: Array, fixed: Array) -> GradientOperator:
        """Return the matrix of gradients as an operator."""


def read_flips(
    labels: LabelMatrix, loss: EntryLoss, factors: EntryWeights | None
) -> tuple[LabelMatrix, EntryLoss, EntryWeights | None]:
    """Return labels with the flip probabilities that a loss reads exactly, that loss, and other weights.

    The logistic loss of targets outside of 0 and 1 is unbounded below along the score, and a trace
    norm does not bound it; these become weights, as do all flip probabilities for losses whose values at
    both signs do not differ by the score.
    """
    assert labels.flip_probabilities is not None, "labels without flips are read by any loss as they are"
    least = {SquaredEntryLoss: -np.inf, LogisticEntryLoss: 0.0}.get(type(loss), np.inf)
    exact, weighed = labels.flip_probabilities.copy(), labels.flip_probabilities.copy()
    exact.data[exact.data < least] = 0.0
    weighed.data[weighed.data >= least] = 0.0
    labels = LabelMatrix(labels.positives, labels.observed, labels.names, exact)
    if weighed.data.any():
        ones = np.ones((1, labels.n_labels))
        factors = (factors or EntryWeights(ones, ones)).flipped(weighed)
    return labels, loss if labels.flip_probabilities is None else GradedEntryLoss(loss), factors


def listed_signs(labels: LabelMatrix) -> sp.csr_array:
    """List 1, -1, or 2 q - 1 of targets q, at the observed entries.

    If everything is observed, only at positive or uncertain ones; the others are -1.
    """
    flips, known = labels.flip_probabilities, labels.observed
    if flips is None:
        return labels.positives if known is None else known
    if known is None:
        pattern = abs(flips).sign()
        known = labels.positives + pattern.multiply(labels.positives) - pattern
    known = sp.csr_array(known, dtype=np.float64)
    known.sort_indices()
    found = sp.csr_array(3.0 * abs(known) + flips)  # flip probabilities by position among the listed entries
    found.sort_indices()
    sure = np.maximum(1.0 - 2.0 * (found.data - 3.0), LEAST_GRADE)
    return sp.csr_array((known.data * sure, known.indices, known.indptr), shape=known.shape)
