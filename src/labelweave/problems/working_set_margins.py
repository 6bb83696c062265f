"""The max-margin dual on cached kernel rows, for the solver that goes by pairs of variables.

It is the dual of :mod:`labelweave.problems.gram_margins` in float64, with arrays in which the
rows of a label lie beside each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelweave._loops.block_ascent import row_shares
from labelweave.array_types import Array, PerLabel
from labelweave.features.gram import StoredGram, StreamedGram
from labelweave.features.gram.cache import CachedRows
from labelweave.features.gram.sources import GramSource
from labelweave.labels.covariance import LabelCovariance
from labelweave.problems.gram_margins import MarginBox, SettledMargins
from labelweave.problems.resources import Resources

__all__ = ["WorkingSetMargins"]


class WorkingSetMargins:
    """The dual of :class:`~labelweave.solvers.WorkingSetDual`.

    constant: added to every entry of K.
    resources: threads, and memory for kernel rows; numbers are float64 whatever it says.
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
    ) -> None:
        self.covariance = covariance
        self.exact = StreamedGram(source, constant, np.float64, resources.workers)
        self.rows: CachedRows | None = None
        self.kernel_row: Callable[[int], Array]
        if 8.0 * source.n_rows**2 <= resources.budget:  # one matrix is far cheaper than all its rows
            table = StoredGram.from_source(source, constant, np.float64, resources.workers).table
            self.kernel_row = table.__getitem__
        else:
            self.rows = CachedRows(
                source, constant, resources.budget, np.float64, workers=resources.workers
            )  # fmt: skip
            self.kernel_row = self.rows.row
        self.targets, self.lower, self.upper = (
            np.asfortranarray(part, dtype=np.float64) for part in (box.targets, box.lower, box.upper)
        )
        self.beta, self.scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        self.kernel_diagonal = source.diagonal() + constant
        self._every = np.arange(box.targets.shape[1])
        self._shares = np.empty(len(self._every))

    def covariance_column(self, label: int) -> PerLabel:
        """Give one column of R.

        Returns the covariances of that label with every label.
        """
        column = self.covariance.block(self._every, np.array([label]))
        return np.ascontiguousarray(column[:, 0])

    def measure(self) -> tuple[float, float]:
        """Compute the objectives at the variables and scores in use.

        primal, dual: bounds of the optimum from above and from below.
        """
        tables = (self.targets, self.scores, self.beta, self.lower, self.upper)
        linear, quadratic, losses = row_shares(*(table.T for table in tables), self._shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def certify(self) -> tuple[float, float]:
        """Make the scores anew, in place, and measure; the point becomes the ``result``.

        primal, dual: bounds of the optimum from above and from below.
        """
        self.scores[:] = self.covariance.matmul(self.exact.product(self.beta))
        point = (self.beta, self.scores)
        self.result = SettledMargins(self.targets, self.lower, self.upper, *point, *point)
        return self.measure()
