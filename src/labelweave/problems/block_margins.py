"""The max-margin dual on cached kernel rows, for the solver that goes by blocks of rows.

It is the dual of :mod:`labelweave.problems.gram_margins`.  Nothing of the size of the kernel
matrix is needed: a visit takes the kernel rows of its block, and only those.
"""

from __future__ import annotations

import numpy as np

from labelweave._loops.block_ascent import ascend_block, ascend_coupled_block, row_shares
from labelweave.array_types import Array, PerRow
from labelweave.arrays import panels
from labelweave.features.gram import StreamedGram
from labelweave.features.gram.cache import CachedRows
from labelweave.features.gram.sources import GramSource
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.gram_margins import MarginBox, SettledMargins
from labelweave.problems.resources import Resources

__all__ = ["BlockMargins"]


_BLOCK_ROWS = 128
_FEWEST_BLOCK_ROWS = 8
_MOST_SWEEPS = 16
_MANY = 0.75  # the scores follow all rows of a block if more than this share of them moved


class BlockMargins:
    """The dual of :class:`~labelweave.solvers.BlockDual`.

    constant: added to every entry of K.
    covariance: R; written out unless it is the identity.
    resources: threads, precision, and memory for kernel rows.
    start (n, L): dual variables to begin with; by default 0.
    result: the point last certified, both primal and dual.
    Shapes: box (n, L).
    Raises ValueError if the memory budget is too small.
    """

    result: SettledMargins

    def __init__(
        self,
        box: MarginBox,
        source: GramSource,
        constant: float,
        covariance: LabelCovariance,
        resources: Resources,
        start: Array | None = None,
    ) -> None:
        self.box, self.covariance, self.workers = box, covariance, resources.workers
        self.dtype, self.n_rows = np.dtype(resources.dtype), source.n_rows
        self.drifts = self.dtype != np.float64
        self.block_rows = self._block_rows(resources.budget)
        self.rows = CachedRows(
            source, constant, resources.budget, self.dtype, self.block_rows, self.workers
        )  # fmt: skip
        self.exact = StreamedGram(source, constant, np.float64, self.workers)
        low = box.astype(self.dtype)
        self.targets, self.lower, self.upper = low.targets, low.lower, low.upper
        self.beta, self.scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        self.table = None if covariance.is_diagonal else covariance.to_dense().astype(self.dtype)
        if start is not None:
            self.beta[:] = np.clip(start, self.lower, self.upper)
            self.certify()

    def _block_rows(self, budget: float) -> int:
        fitting = int(budget / (2 * self.n_rows * self.dtype.itemsize))
        return min(self.n_rows, max(_FEWEST_BLOCK_ROWS, min(_BLOCK_ROWS, fitting)))

    def rows_at_hand(self) -> Array | None:
        """Give the rows whose kernel rows are in the cache.

        Returns none where the cache has room for all rows.
        """
        if self.rows.n_slots == self.n_rows:
            return None
        return np.flatnonzero(self.rows.is_held)

    def ascend(self, rows: Array) -> None:
        """Move the variables of a block of rows, then the scores of all rows.

        rows (k,): different rows, at most ``block_rows``, in the order in which they are visited.
        """
        kernel = self.rows.rows(rows)
        inner, beta = np.ascontiguousarray(kernel[:, rows]), self.beta[rows]
        moved = np.empty_like(beta)
        box = (self.targets[rows], self.scores[rows], beta, self.lower[rows], self.upper[rows])
        if self.table is None:
            ascend_block(inner, *box, moved, _MOST_SWEEPS)
        else:
            ascend_coupled_block(inner, *box, moved, _MOST_SWEEPS, self.table)
        self.beta[rows] = beta
        self._follow(kernel, moved)

    def _follow(self, kernel: Array, moved: Array) -> None:
        """Add ``kernel^T moved`` to the scores."""
        is_moved = moved.any(axis=1)
        if is_moved.mean() < _MANY:
            kernel, moved = kernel[is_moved], moved[is_moved]

        def one(panel: slice) -> None:
            self.scores[panel] += kernel[:, panel].T @ moved

        if len(moved):
            self.workers.each(one, panels(self.n_rows))

    def measure(self, shares: PerRow) -> tuple[float, float]:
        """Compute the objectives at the variables and scores in use.

        shares: receives every row's share of the duality gap.
        primal, dual: bounds of the optimum from above and from below.
        """
        tables = (self.targets, self.scores, self.beta, self.lower, self.upper)
        linear, quadratic, losses = row_shares(*tables, shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def certify(self) -> tuple[float, float]:
        """Make the scores anew in double precision and measure there; the point becomes the ``result``.

        primal, dual: bounds of the optimum from above and from below.
        """
        box = self.box
        beta = np.clip(self.beta.astype(np.float64), box.lower, box.upper)
        scores = np.ascontiguousarray(self.covariance.matmul(self.exact.product(beta)))
        self.scores[:] = scores
        self.result = SettledMargins(box.targets, box.lower, box.upper, beta, scores, beta, scores)
        shares = np.empty(self.n_rows)
        linear, quadratic, losses = row_shares(box.targets, scores, beta, box.lower, box.upper, shares)
        return quadratic / 2 + losses, linear - quadratic / 2
