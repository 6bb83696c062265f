"""Work on the rows of several arrays at once, a few at a time.

Steps of an iterative solver read and write many arrays of one shape.  A run of rows that
stays in the processor's cache is taken through all of a step before the next run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.arrays.workers import Workers, panels

__all__ = ["RowPanels"]


_ENTRIES = 2**15  # of each array in a panel: 256 KB in float64
_SMALLEST, _LARGEST = 16, 4096  # rows


class RowPanels:
    """Runs of rows, the same for any number of threads."""

    def __init__(self, workers: Workers, n_rows: int, width: int) -> None:
        self.workers = workers
        rows = min(_LARGEST, max(_SMALLEST, _ENTRIES // max(1, width)))
        self.slices = panels(n_rows, rows)

    def each(self, work: Callable[[slice], Any]) -> None:
        """Do some work on every run of rows, in any order.

        work: called once with each run.
        """
        self.workers.each(work, self.slices)

    def total(self, work: Callable[[slice], Array]) -> Array:
        """Add what some work gives for every run of rows, in order.

        work: gives an array for each run, all of one shape.
        """
        parts: list[Any] = [None] * len(self.slices)

        def one(number: int) -> None:
            parts[number] = work(self.slices[number])

        self.workers.each(one, list(range(len(parts))))
        return np.asarray(np.sum(parts, axis=0))
