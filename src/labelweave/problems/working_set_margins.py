"""The max-margin dual on cached kernel rows, for the solver that goes by pairs of variables.

It is the dual of :mod:`labelweave.problems.gram_margins` in float64, with arrays in which the
rows of a label lie beside each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelweave.features.gram import StoredGram, StreamedGram
from labelweave.features.gram.cache import CachedRows
from labelweave.features.gram.sources import GramSource
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.gram_margins import MarginBox
from labelweave.problems.resources import Resources
from labelweave.solvers.box_dual import Settled


class WorkingSetMargins:
    """The dual of :class:`~labelweave.solvers.WorkingSetDual`.

    constant: added to every entry of K.
    resources: threads, and memory for kernel rows; numbers are float64 whatever it says.
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
        if 8.0 * source.n_rows**2 <= resources.budget:  # one matrix is far cheaper than all its rows
            table = StoredGram.from_source(source, constant, np.float64, resources.workers).table
            self.kernel_row = table.__getitem__
        else:
            self.rows = CachedRows(source, constant, resources.budget, np.float64, workers=resources.workers)
            self.kernel_row = self.rows.row
        self.targets, self.lower, self.upper = map(np.asfortranarray, box.parts())
        self.kernel_diagonal = source.diagonal() + constant

    def start(self, dual: RowsByLabels | None = None) -> tuple[Array, Array]:
        """Give variables, clipped to their bounds, and their scores; by default 0."""
        beta, scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        if dual is not None:
            beta[:] = np.clip(dual, self.lower, self.upper)
            scores[:] = self.settled(beta).kept_scores
        return beta, scores

    def covariance_column(self, label: int) -> PerLabel:
        """Give one column of R, contiguous."""
        every = np.arange(self.targets.shape[1])
        return np.ascontiguousarray(self.covariance.block(every, np.array([label]))[:, 0])

    def measure(self, beta: RowsByLabels, scores: RowsByLabels) -> tuple[float, float]:
        """Compute primal and dual value."""
        from labelweave.foundation.loops.block_ascent import row_shares

        tables = (self.targets, scores, beta, self.lower, self.upper)
        shares = np.empty(beta.shape[1])
        linear, quadratic, losses = row_shares(*(table.T for table in tables), shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def settled(self, beta: RowsByLabels) -> Settled:
        """Give the point, which is primal and dual, with scores made anew."""
        point = (beta.copy(order="F"), np.asfortranarray(self.covariance.matmul(self.exact.product(beta))))
        return Settled(self.targets, self.lower, self.upper, *point, *point)
