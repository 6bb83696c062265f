"""The max-margin dual on cached kernel rows, for solvers that update blocks of rows or pairs of variables.

It is the dual of :mod:`labelweave.problems.gram_margins`.  Nothing of the size of the kernel matrix is
needed: a step uses only the kernel rows of its block or pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.features.gram import StoredGram, StreamedGram
from labelweave.features.gram.cache import CacheContent, CachedRows
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import StoredRows
from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.arrays.linear_algebra import as_type, placed
from labelweave.labels.covariance import LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.solvers.box_dual import Settled
from labelweave.solvers.frame import State

_BLOCK_ROWS = 128
_FEWEST_BLOCK_ROWS = 8
_MOST_SWEEPS = 16
_PANEL_BYTES = 2e5  # the least memory for computing a matrix
_MANY = 0.75  # update scores with all rows of a block if more than this share of them changed

State.plain_with(CacheContent)


@dataclass(frozen=True)
class Resources:
    """Memory, threads and precision of a fit.

    budget: bytes for what grows with the number of row pairs.
    seed: determines the pivots of an incomplete factor.
    """

    workers: Workers
    dtype: npt.DTypeLike
    budget: float
    factorization: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class MarginBox:
    """Targets and bounds of the dual variables, each of shape (n, L).

    targets: T: sign times margin, 0 where unobserved.
    lower, upper: the bounds; one of them is 0.
    """

    targets: Array
    lower: Array
    upper: Array

    @classmethod
    def make(
        cls, labels: LabelMatrix, weights: Array, margins: Array, known: RowsByLabels | None = None
    ) -> MarginBox:
        """Return the box of a label matrix.

        weights: U, the weights of the losses, of rows or of entries.
        margins (2, L) or (2, n, L): the required margins of positives and of negatives.
        known (n, L): prior scores, which are subtracted from the targets.
        """
        signs = labels.to_signs().astype(np.float64)
        positive, negative = signs > 0, signs < 0
        targets = np.where(positive, margins[0], 0.0) - np.where(negative, margins[1], 0.0)
        if known is not None:
            targets -= np.where(signs != 0, known, 0.0)
        bound = weights if weights.ndim == 2 else weights[:, None]
        return cls(*map(placed, (targets, -bound * negative, bound * positive)))

    def parts(self, dtype: npt.DTypeLike = np.float64) -> tuple[Array, Array, Array]:
        return as_type(self.targets, dtype), as_type(self.lower, dtype), as_type(self.upper, dtype)


class BlockMargins:
    """The dual of :class:`~labelweave.solvers.block_ascent.BlockDual`.

    constant: added to every entry of K.
    covariance: R; dense unless it is the identity.
    resources: threads, precision, and memory for kernel rows.
    gram: the kernel matrix with the constant, where it is kept.
    Raises ValueError if the memory budget is too small.
    """

    def __init__(
        self,
        box: MarginBox,
        source: GramSource,
        constant: float,
        covariance: LabelCovariance,
        resources: Resources,
        gram: StoredGram | None = None,
    ) -> None:
        self.box, self.covariance, self.workers = box, covariance, resources.workers
        self.dtype, self.n_rows = np.dtype(resources.dtype), source.n_rows
        self.drifts = self.dtype != np.float64
        self.block_rows = self._block_rows(resources.budget)
        cache = constant, resources.budget, self.dtype, self.block_rows, self.workers
        self.rows = CachedRows(source, *cache) if gram is None else StoredRows(gram)
        self.cache_content, self.refill = self.rows.content, self.rows.refill
        self.exact = StreamedGram(source, constant, np.float64, self.workers)
        self.targets, self.lower, self.upper = box.parts(self.dtype)
        self.table = None if covariance.is_diagonal else covariance.to_dense().astype(self.dtype)

    def _block_rows(self, budget: float) -> int:
        fitting = int(budget / (2 * self.n_rows * self.dtype.itemsize))
        return min(self.n_rows, max(_FEWEST_BLOCK_ROWS, min(_BLOCK_ROWS, fitting)))

    def start(self, dual: RowsByLabels | None = None) -> tuple[Array, Array]:
        beta, scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        if dual is not None:
            beta[:] = np.clip(dual, self.lower, self.upper)
            scores[:] = self.settled(beta).boxed_scores
        return beta, scores

    def rows_at_hand(self) -> Array | None:
        """Return the rows whose kernel rows are in the cache; None where all rows fit."""
        if self.rows.n_slots == self.n_rows:
            return None
        return np.flatnonzero(self.rows.is_held)

    def ascend(self, beta: RowsByLabels, scores: RowsByLabels, rows: Array) -> None:
        """Update the variables of different rows, at most ``block_rows``, in their order, then all scores."""
        from labelweave.foundation.loops.kernel_ascent import ascend_block, ascend_coupled_block

        kernel = self.rows.rows(rows)
        inner, moving = np.ascontiguousarray(kernel[:, rows]), beta[rows]
        moved = np.empty_like(moving)
        box = (self.targets[rows], scores[rows], moving, self.lower[rows], self.upper[rows])
        if self.table is None:
            ascend_block(inner, *box, moved, _MOST_SWEEPS)
        else:
            ascend_coupled_block(inner, *box, moved, _MOST_SWEEPS, self.table)
        beta[rows] = moving
        self._follow(scores, kernel, moved)

    def _follow(self, scores: Array, kernel: Array, moved: Array) -> None:
        """Add ``kernel^T moved`` to the scores."""
        is_moved = moved.any(axis=1)
        if is_moved.mean() < _MANY:
            kernel, moved = kernel[is_moved], moved[is_moved]

        def one(panel: slice) -> None:
            scores[panel] += kernel[:, panel].T @ moved

        if len(moved):
            self.workers.each(one, panels(self.n_rows))

    def measure(self, beta: RowsByLabels, scores: RowsByLabels, shares: PerRow) -> tuple[float, float]:
        from labelweave.foundation.loops.kernel_ascent import row_shares

        box = self.box if beta.dtype == np.float64 else self
        tables = (box.targets, scores, beta, box.lower, box.upper)
        linear, quadratic, losses = row_shares(*tables, shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def settled(self, beta: RowsByLabels) -> Settled:
        box = self.box
        exact = np.clip(beta.astype(np.float64), box.lower, box.upper)
        scores = np.ascontiguousarray(self.covariance.matmul(self.exact.product(exact)))
        return Settled(*box.parts(), exact, scores, exact, scores)


def holds_matrix(n_rows: int, dtype: npt.DTypeLike, budget: float) -> bool:
    """Whether a kernel matrix fits, with memory for the blocks in which it is computed."""
    return float(n_rows) ** 2 * np.dtype(dtype).itemsize + _PANEL_BYTES <= budget


class WorkingSetMargins:
    """The dual of :class:`~labelweave.solvers.WorkingSetDual`.

    constant: added to every entry of K.
    resources: threads, and memory for kernel rows; numbers are always float64.
    Raises ValueError if the memory budget is too small.
    """

    def __init__(
        self,
        box: MarginBox,
        source: GramSource,
        constant: float,
        covariance: LabelCovariance,
        resources: Resources,
    ) -> None:
        self.covariance = covariance
        self.exact = StreamedGram(source, constant, np.float64, resources.workers)
        self.rows: CachedRows | None = None
        self.kernel_row: Callable[[int], Array]
        if 8.0 * source.n_rows**2 <= resources.budget:  # the matrix is far cheaper than all its rows
            table = StoredGram.from_source(source, constant, np.float64, resources.workers).table
            self.kernel_row = table.__getitem__
        else:
            self.rows = CachedRows(source, constant, resources.budget, np.float64, workers=resources.workers)
            self.kernel_row = self.rows.row
        self.targets, self.lower, self.upper = map(np.asfortranarray, box.parts())
        self.kernel_diagonal = source.diagonal() + constant

    def start(self, dual: RowsByLabels | None = None) -> tuple[Array, Array]:
        beta, scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        if dual is not None:
            beta[:] = np.clip(dual, self.lower, self.upper)
            scores[:] = self.settled(beta).kept_scores
        return beta, scores

    def covariance_column(self, label: int) -> PerLabel:
        every = np.arange(self.targets.shape[1])
        return np.ascontiguousarray(self.covariance.block(every, np.array([label]))[:, 0])

    def measure(self, beta: RowsByLabels, scores: RowsByLabels) -> tuple[float, float]:
        from labelweave.foundation.loops.kernel_ascent import row_shares

        tables = (self.targets, scores, beta, self.lower, self.upper)
        shares = np.empty(beta.shape[1])
        linear, quadratic, losses = row_shares(*(table.T for table in tables), shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def settled(self, beta: RowsByLabels) -> Settled:
        point = (beta.copy(order="F"), np.asfortranarray(self.covariance.matmul(self.exact.product(beta))))
        return Settled(self.targets, self.lower, self.upper, *point, *point)
