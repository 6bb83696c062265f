"""The max-margin dual on cached kernel rows, for the solver that goes by blocks of rows.

It is the dual of :mod:`labelweave.problems.gram_margins`.  Nothing of the size of the kernel
matrix is needed: a visit takes the kernel rows of its block, and only those.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.features.gram import StoredGram, StreamedGram
from labelweave.features.gram.cache import CacheContent, CachedRows
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import StoredRows
from labelweave.foundation.array_types import Array, PerRow, RowsByLabels
from labelweave.foundation.arrays import panels
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.gram_margins import MarginBox
from labelweave.problems.resources import Resources
from labelweave.solvers.box_dual import Settled
from labelweave.solvers.frame import State

_BLOCK_ROWS = 128
_FEWEST_BLOCK_ROWS = 8
_MOST_SWEEPS = 16
_PANEL_BYTES = 2e5  # the least room to compute a matrix in
_MANY = 0.75  # the scores follow all rows of a block if more than this share of them moved

State.plain_with(CacheContent)


class BlockMargins:
    """The dual of :class:`~labelweave.solvers.block_ascent.BlockDual`.

    constant: added to every entry of K.
    covariance: R; written out unless it is the identity.
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
        """Give variables, clipped to their bounds, and their scores; by default 0."""
        beta, scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        if dual is not None:
            beta[:] = np.clip(dual, self.lower, self.upper)
            scores[:] = self.settled(beta).boxed_scores
        return beta, scores

    def rows_at_hand(self) -> Array | None:
        """Give the rows whose kernel rows are in the cache; None where it has room for all rows."""
        if self.rows.n_slots == self.n_rows:
            return None
        return np.flatnonzero(self.rows.is_held)

    def ascend(self, beta: RowsByLabels, scores: RowsByLabels, rows: Array) -> None:
        """Move the variables of a block of rows, then the scores of all rows.

        rows (k,): different rows, at most ``block_rows``, in the order in which they are visited.
        """
        from labelweave.foundation.loops.block_ascent import ascend_block, ascend_coupled_block

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
        """Compute primal and dual value; ``shares`` receives every row's share of the duality gap."""
        from labelweave.foundation.loops.block_ascent import row_shares

        box = self.box if beta.dtype == np.float64 else self
        tables = (box.targets, scores, beta, box.lower, box.upper)
        linear, quadratic, losses = row_shares(*tables, shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def settled(self, beta: RowsByLabels) -> Settled:
        """Give the point with its scores, both in double precision."""
        box = self.box
        exact = np.clip(beta.astype(np.float64), box.lower, box.upper)
        scores = np.ascontiguousarray(self.covariance.matmul(self.exact.product(exact)))
        return Settled(*box.parts(), exact, scores, exact, scores)


def holds_matrix(n_rows: int, dtype: npt.DTypeLike, budget: float) -> bool:
    """Tell whether a kernel matrix fits, with room for the blocks in which it is computed."""
    return float(n_rows) ** 2 * np.dtype(dtype).itemsize + _PANEL_BYTES <= budget
