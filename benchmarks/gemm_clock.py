"""Where the seconds of a fit go: matrix products, entrywise work on rows, sparse label factors.

The methods of labelweave that call the linear algebra library are timed from outside, in the calling
thread, so with several threads a product takes as long as its slowest thread.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

_LARGE = 2048
_PRODUCTS = ("matmul", "inner", "turn")  # of Workers
_PANELS = ("each", "total")  # of RowPanels


class GemmClock:
    """Seconds by kind of work, and operations of matrix products.

    seconds: "products" with the panels of ``Workers``, "panels" of entrywise work, "eigenvectors" of small
    matrices, and "label factor" for the products with a sparse factor of the label covariance.
    operations: multiplications and additions of the products.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.operations = 0.0

    @contextmanager
    def running(self) -> Iterator[GemmClock]:
        """Time what happens within."""
        from labelweave.foundation.arrays import RowPanels, Workers
        from labelweave.labels.covariance.factor import FactorCovariance

        with ExitStack() as stack:
            for name in _PRODUCTS:
                self._wrap(stack, Workers, name, "products", _operations)
            for name in _PANELS:
                self._wrap(stack, RowPanels, name, "panels")
            self._wrap(stack, FactorCovariance, "matmul", "label factor")
            self._wrap(stack, np.linalg, "eigh", "eigenvectors")
            yield self

    def _wrap(
        self,
        stack: ExitStack,
        owner: Any,
        name: str,
        kind: str,
        count: Callable[[Any, Any], float] | None = None,
    ) -> None:
        original = getattr(owner, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = original(*arguments, **options)
            self.seconds[kind] += time.perf_counter() - start
            if count is not None:
                self.operations += count(arguments[1], arguments[2])
            return result

        stack.enter_context(patch.object(owner, name, timed))


def _operations(left: Any, right: Any) -> float:
    """Count what a product takes, of the left factor or of its transpose."""
    return 2.0 * left.size * right.shape[1]


def machine_rate(threads: int, repeats: int = 3) -> float:
    """Measure a large square product with so many threads of the linear algebra library.

    repeats: the fastest counts.
    """
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    left, right = rng.random((2, _LARGE, _LARGE))
    out = np.empty_like(left)
    times = []
    with threadpool_limits(threads, user_api="blas"):
        for _ in range(repeats + 1):
            start = time.perf_counter()
            np.matmul(left, right, out=out)
            times.append(time.perf_counter() - start)
    return 2.0 * _LARGE**3 / min(times[1:])
