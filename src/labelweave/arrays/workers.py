"""Threads over panels.

A library's own threads change the order of additions, and so the last bits, with their number.  Here panels
depend on the sizes alone; each is one product on one thread, whichever thread that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelweave.array_types import Array

__all__ = ["PANEL", "RowPanels", "Workers", "panels"]


PANEL = 512  # rows of a panel
_NARROW = 128  # columns of a right factor up to which its transpose goes first
_ENTRIES = 2**15  # of each array in a panel: 256 KB in float64
_SMALLEST, _LARGEST = 16, 4096  # rows


def panels(length: int, size: int = PANEL) -> list[slice]:
    """Cut a range of a length into panels of at most a size."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


class Workers:
    """A fixed number of threads for work in panels; results do not depend on it."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def running(self) -> Iterator[Workers]:
        """Hold the threads, and keep the linear algebra library to one thread a product."""
        with threadpool_limits(1, user_api="blas"):
            if self.n_threads == 1:
                yield self
                return
            with ThreadPoolExecutor(self.n_threads) as pool:
                self._pool = pool
                try:
                    yield self
                finally:
                    self._pool = None

    def each(self, work: Callable[[Any], None], parts: list[Any]) -> None:
        """Do one piece of work on every part, in any order; parts must not write to the same places."""
        self.map(work, parts)

    def map(self, work: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
        """Do one piece of work on every part, in any order; the results come in the order of the parts."""
        if self._pool is None or len(parts) < 2:
            return [work(part) for part in parts]
        futures = [self._pool.submit(work, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            # nothing may still be written when the caller looks at what there is
            for future in futures:
                future.cancel()
            wait(futures)
            raise

    def matmul(self, left: Array, right: Array) -> Array:
        """Multiply in row panels of the left factor.

        left (m, k): may be of lower precision than the right one, (k, p), which the product (m, p) has.
        """
        product = np.empty((left.shape[0], right.shape[1]), right.dtype)
        # the library copies one factor before it multiplies; here it is the smaller one if that is worth
        # the turned copy of the product
        is_narrow = right.shape[1] <= min(_NARROW, right.shape[0] // 4)
        narrow = np.ascontiguousarray(right.T) if is_narrow else None

        def one(panel: slice) -> None:
            part = left[panel].astype(right.dtype, copy=False)
            if narrow is None:
                np.matmul(part, right, out=product[panel])
            else:
                product[panel] = (narrow @ part.T).T

        self.each(one, panels(left.shape[0]))
        return product

    def turn(self, left: Array, right: Array) -> Array:
        """Multiply (m, k) by (k, p) in the place of the left factor, k at least p; return that part of it."""
        narrow = right.astype(left.dtype)

        def one(panel: slice) -> None:
            left[panel, : right.shape[1]] = left[panel] @ narrow

        self.each(one, panels(left.shape[0]))
        return left[:, : right.shape[1]]

    def inner(self, left: Array, right: Array, dtype: npt.DTypeLike | None = None) -> Array:
        """Multiply the transpose of the left factor (m, k) by the right one (m, p), panels of rows in order.

        dtype: the type to compute in; by default that of the factors.
        """
        kind = np.dtype(right.dtype if dtype is None else dtype)

        def one(rows: slice) -> Array:
            turned = left[rows].T.astype(kind, copy=False)
            return np.asarray(turned @ right[rows].astype(kind, copy=False))

        total = np.zeros((left.shape[1], right.shape[1]), kind)
        # in order, so that the sum does not depend on the threads
        for part in self.map(one, panels(left.shape[0], 8 * PANEL)):
            total += part
        return total


class RowPanels:
    """Runs of rows, the same for any number of threads.

    A run that stays in the processor's cache is taken through all of a solver's step before the next run.
    """

    def __init__(self, workers: Workers, n_rows: int, width: int) -> None:
        self.workers = workers
        rows = min(_LARGEST, max(_SMALLEST, _ENTRIES // max(1, width)))
        self.slices = panels(n_rows, rows)

    def each(self, work: Callable[[slice], Any]) -> None:
        """Do some work on every run of rows, in any order."""
        self.workers.each(work, self.slices)

    def total(self, work: Callable[[slice], Array]) -> Array:
        """Add what some work gives for every run of rows, in order."""
        return np.asarray(np.sum(self.workers.map(work, self.slices), axis=0))
