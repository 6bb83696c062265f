"""How fast a sparse matrix multiplies tables of many columns, beside SciPy and the machine's limits.

Random patterns whose columns are as frequent as words in text (Zipf) take the shapes of bibtex,
delicious, and a tenth of the Wikipedia set of the LEML paper (its features and its labels).  Measured are the
product, the adjoint, and the dot products at the entries (``sampled``); SciPy multiplies the matrix and a
transposed copy of it, and NumPy's ``einsum`` takes the place of SciPy for dot products.  The forms
take turns, and the least of the repeats counts, since other work on the machine only adds; with one
thread it is the processor's time.  Copies of the table are contained; results go to memory that is
there already, except SciPy's.

The limit of a product is the larger of two times:

- its multiplications and additions at the rate of BLAS for a square product;
- its bytes: one row of the table for each entry, from the second level cache for the most frequent
  rows that it can hold, from the third for those that it can, from memory for the others; and entries, first
  readings of rows, other tables and results from memory.

The bytes move at the rates at which BLAS reads two vectors in each cache and in memory (``stream_share`` is
this time over the measured one), or those of rows at the rates of our product with rows in uniformly
random order from a table of each size (``row_share``).  The caches of the limit hold what a perfect
choice would keep, and are this process's alone.

Example: ``python -m benchmarks.sparse_products --precision float32``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import RESULTS, flag, read_options, save
from benchmarks.product_limits import Limits, level_sizes, measure_limits, row_rate, seconds_of, text_pattern

_SHAPES = {
    "bibtex": {"rows": 4_880, "columns": 1_836, "a_row": 68, "widths": (64, 159)},
    "delicious": {"rows": 12_920, "columns": 500, "a_row": 18, "widths": (200,)},
    "Wikipedia labels / 10": {"rows": 88_181, "columns": 21_371, "a_row": 7, "widths": (250,)},
    "Wikipedia / 10": {"rows": 88_181, "columns": 366_932, "a_row": 147, "widths": (250,)},
}
_CHUNK = 2**14  # entries that NumPy gathers at a time


@dataclass
class _Product:
    """One product: ours, the peer's, and what it reads."""

    ours: Callable[[], Any]
    peer: Callable[[], Any]
    entries: Any  # of each row of the table that is gathered from
    row_bytes: int
    other_bytes: int
    operations: float


def main() -> None:
    from labelweave.foundation.arrays import Workers

    arguments = read_options(
        __doc__,
        threads=1,
        repeats=5,
        precision=flag("float32", choices=("float64", "float32")),
        most_entries=flag(10**8, "leave larger shapes out"),
        out=RESULTS / "sparse_products.json",
    )
    measured: dict[str, Any] = {}
    with Workers(arguments.threads).running() as workers:
        limits = measure_limits(np.dtype(arguments.precision))
        rates = {level: round(rate / 1e9, 1) for level, rate in limits.read_rates.items()}
        print(f"reads GB/s {rates}, {limits.operation_rate / 1e9:.0f} GFLOP/s")
        for name, shape in _SHAPES.items():
            if shape["rows"] * shape["a_row"] <= arguments.most_entries:
                measured[name] = _measure(name, shape, arguments, workers, limits)
    settings = {key: getattr(arguments, key) for key in ("threads", "repeats", "precision")}
    found = {"read_gb_per_s": rates, "gemm_gflops": limits.operation_rate / 1e9, "shapes": measured}
    save(arguments.out, settings | found)


def _measure(
    name: str, shape: dict[str, Any], arguments: argparse.Namespace, workers: Any, limits: Limits
) -> dict[str, Any]:
    matrix = text_pattern(shape["rows"], shape["columns"], shape["a_row"], np.dtype(arguments.precision))
    print(f"{name}: {matrix.shape}, {matrix.nnz:,} entries, {matrix.dtype}, {arguments.threads} thread(s)")
    widths: dict[int, Any] = {}
    for width in shape["widths"]:
        products = _products(matrix, width, workers)
        row_rates = {level: row_rate(size, width, matrix.dtype) for level, size in level_sizes().items()}
        widths[width] = {"row_gb_per_s": {level: rate / 1e9 for level, rate in row_rates.items()}}
        for form, product in products.items():
            result = _race(product, arguments, limits, row_rates)
            widths[width][form] = result
            print(
                f"  {width:4d} columns {form:8s} {1e3 * result['seconds']:9.2f} ms "
                f"{result['gb_per_s']:6.1f} GB/s {result['gflops']:6.1f} GFLOP/s "
                f"{result['peer_ratio']:5.1f} x SciPy  "
                f"{result['stream_share']:4.0%} of streams {result['row_share']:4.0%} of random rows"
            )
    return {"entries": int(matrix.nnz), "widths": widths}


def _products(matrix: sp.csr_array, width: int, workers: Any) -> dict[str, _Product]:
    from labelweave.features.sparse_products import SparseProducts

    random, dtype = np.random.default_rng(1), matrix.dtype
    left, right = (random.random((length, width), np.float32).astype(dtype) for length in matrix.shape)
    ours, turned = SparseProducts(matrix, dtype, workers), sp.csr_array(matrix.T.tocsr())
    of_columns, of_rows = np.diff(turned.indptr), np.diff(matrix.indptr)
    row_bytes, entry_bytes = width * dtype.itemsize, matrix.nnz * (4 + dtype.itemsize)
    operations = 2.0 * matrix.nnz * width
    forward, back = np.empty_like(left), np.empty_like(right)

    def product(fast: Any, slow: Any, entries: Any, other: int) -> _Product:
        return _Product(fast, slow, entries, row_bytes, entry_bytes + other, operations)

    return {
        "product": product(
            lambda: ours.matmul(right, forward), lambda: matrix @ right, of_columns, len(left) * row_bytes
        ),
        "adjoint": product(
            lambda: ours.adjoint(left, back), lambda: turned @ left, of_rows, len(right) * row_bytes
        ),
        "sampled": product(
            lambda: ours.sampled(left, right),
            lambda: _einsum(matrix, left, right),
            of_columns,
            len(left) * row_bytes,
        ),
    }


def _einsum(matrix: sp.csr_array, left: Any, right: Any) -> Any:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    dots = np.empty(matrix.nnz, matrix.dtype)
    for start in range(0, matrix.nnz, _CHUNK):
        part = slice(start, start + _CHUNK)
        np.einsum("pk,pk->p", left[rows[part]], right[matrix.indices[part]], out=dots[part])
    return dots


def _race(
    product: _Product, arguments: argparse.Namespace, limits: Limits, row_rates: dict[str, float]
) -> dict[str, float]:
    """Time both in turns; the first round loads the compiled loops and makes the transposed copy."""
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    rounds = range(arguments.repeats + 1)
    times = [(seconds_of(product.ours, clock), seconds_of(product.peer, clock)) for _ in rounds][1:]
    seconds, peer = (min(taken) for taken in zip(*times, strict=True))
    gathered = float(product.entries.sum()) * product.row_bytes
    work = product.entries, product.row_bytes, product.other_bytes, product.operations
    streams = limits.gather_seconds(*work) / arguments.threads
    rows = limits.gather_seconds(*work, row_rates) / arguments.threads
    return {
        "seconds": seconds,
        "scipy_seconds": peer,
        "peer_ratio": peer / seconds,
        "gb_per_s": (gathered + product.other_bytes) / seconds / 1e9,
        "gflops": product.operations / seconds / 1e9,
        "stream_share": streams / seconds,
        "row_share": rows / seconds,
    }


if __name__ == "__main__":
    main()
