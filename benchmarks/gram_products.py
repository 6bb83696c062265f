"""How fast each form of a kernel matrix multiplies.

The dot products of synthetic text (``make_text_like``, rows of unit length) are held in every form
that fits: as sparse features, kept, computed anew, and of low rank; those of dense
features as features and kept.  SciPy's sparse product with the rows of all vectors at once is
measured beside them.  The forms take turns, and the median of the repeats counts.

A rate counts the multiplications and additions of that form (``4 z p`` for z entries that
are not zero, ``2 n^2 p``, ``4 n r p``), so it tells how well the machine is used; the times tell which
form to take.  The form that ``choose_gram`` takes is named.

Example: ``python -m benchmarks.gram_products --threads 1``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.frame import RESULTS, flag, read_options, save

_SHAPES = {
    "text, 1,140 rows": {"rows": 1_140, "features": 20_000, "words": 100, "columns": (16, 187)},
    "text, 10,000 rows": {"rows": 10_000, "features": 50_000, "words": 100, "columns": (1, 16, 160, 1_172)},
    "dense, 10,000 rows": {"rows": 10_000, "features": 250, "words": 0, "columns": (16, 160)},
}
_RANK = 500
_LARGEST_STREAMED = 160 * 10_000 * 10_000  # columns times entries; more takes minutes


@dataclass
class _Form:
    """How to multiply, and how many operations that is for one column."""

    multiply: Callable[[Any], Any]
    operations: float
    build_seconds: float


def main() -> None:
    from threadpoolctl import threadpool_limits

    from labelweave.arrays import Workers

    arguments = read_options(
        __doc__,
        threads=1,
        repeats=3,
        precision=flag("float64", choices=("float64", "float32")),
        most_rows=flag(10_000, "leave larger shapes out"),
        out=RESULTS / "gram_products.json",
    )
    measured: dict[str, Any] = {}
    with Workers(arguments.threads).running() as workers, threadpool_limits(1):
        for name, shape in _SHAPES.items():
            if shape["rows"] <= arguments.most_rows:
                measured[name] = _measure(name, shape, arguments, workers)
    settings = {key: getattr(arguments, key) for key in ("threads", "repeats", "precision")}
    save(arguments.out, settings | {"rank": _RANK, "shapes": measured})


def _measure(name: str, shape: dict[str, Any], arguments: argparse.Namespace, workers: Any) -> dict[str, Any]:
    dtype = np.dtype(arguments.precision)
    features = _features(shape)
    print(f"{name}, {features.shape[1]:,} features, {dtype}, {arguments.threads} thread(s)")
    forms = _forms(features, dtype, workers)
    results: dict[str, Any] = {
        "rows": shape["rows"],
        "features": features.shape[1],
        "non_zeros": int(features.data.nnz if features.is_sparse else features.data.size),
        "build_seconds": {form: made.build_seconds for form, made in forms.items()},
        "columns": {},
    }
    for columns in shape["columns"]:
        vectors = np.random.default_rng(0).normal(size=(shape["rows"], columns)).astype(dtype)
        timed = {
            form: made
            for form, made in forms.items()
            if form != "computed anew" or columns * shape["rows"] ** 2 <= _LARGEST_STREAMED
        }
        seconds = _seconds(timed, vectors, arguments.repeats)
        rates = {form: timed[form].operations * columns / s / 1e9 for form, s in seconds.items()}
        chosen = _chosen(features, columns, dtype, workers)
        results["columns"][columns] = {"seconds": seconds, "gflops": rates, "chosen": chosen}
        print(f"  {columns} columns; chosen: {chosen}")
        for form, s in seconds.items():
            print(f"    {form:20s} {1e3 * s:9.2f} ms  {rates[form]:6.1f} GFLOP/s")
    return results


def _features(shape: dict[str, Any]) -> Any:
    from sklearn.preprocessing import normalize

    from labelweave.datasets import make_text_like
    from labelweave.features import FeatureMatrix

    if not shape["words"]:
        return FeatureMatrix(np.random.default_rng(0).normal(size=(shape["rows"], shape["features"])))
    data = make_text_like(shape["rows"], shape["features"], 16, words_per_row=shape["words"], random_state=0)
    return FeatureMatrix(normalize(data.X.astype(np.float64)))


def _forms(features: Any, dtype: Any, workers: Any) -> dict[str, _Form]:
    from labelweave.features import LinearKernel
    from labelweave.features.gram import (
        FeatureGram,
        LowRankGram,
        SparseFeatureGram,
        StoredGram,
        StreamedGram,
        incomplete_cholesky,
    )
    from labelweave.features.gram.sources import KernelSource

    n, d = features.shape
    source = KernelSource(LinearKernel(), features)
    of_matrix = 2.0 * n * n
    forms = {
        "kept": _built(lambda: StoredGram.from_source(source, 0.0, dtype, workers), of_matrix),
        "computed anew": _built(lambda: StreamedGram(source, 0.0, dtype, workers), of_matrix),
        "low rank": _built(
            lambda: LowRankGram(incomplete_cholesky(source, _RANK, workers), 0.0, dtype, workers),
            4.0 * n * min(_RANK, d),
        ),
    }
    if not features.is_sparse:
        dense = _built(lambda: FeatureGram(features, 0.0, dtype, workers), 4.0 * n * d)
        return {"dense features": dense} | forms
    operations = 4.0 * features.data.nnz
    sparse = _built(lambda: SparseFeatureGram(features, 0.0, dtype, workers), operations)
    return {"sparse features": sparse, "SciPy": _scipy(features, dtype, operations)} | forms


def _built(make: Callable[[], Any], operations: float) -> _Form:
    start = time.perf_counter()
    gram = make()
    return _Form(gram.product, operations, time.perf_counter() - start)


def _scipy(features: Any, dtype: Any, operations: float) -> _Form:
    start = time.perf_counter()
    table = features.data.astype(dtype)
    turned = sp.csr_array(table.T.tocsr())
    return _Form(lambda vectors: table @ (turned @ vectors), operations, time.perf_counter() - start)


def _seconds(forms: dict[str, _Form], vectors: Any, repeats: int) -> dict[str, float]:
    """Time the forms in turns; the first round loads the compiled loops."""
    times: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(repeats + 1):
        for form, made in forms.items():
            start = time.perf_counter()
            made.multiply(vectors)
            times[form].append(time.perf_counter() - start)
    return {form: statistics.median(taken[1:]) for form, taken in times.items()}


def _chosen(features: Any, columns: int, dtype: Any, workers: Any) -> str:
    from labelweave.features import LinearKernel
    from labelweave.features.gram import choose_gram
    from labelweave.features.gram.sources import KernelSource

    source = KernelSource(LinearKernel(), features)
    return type(choose_gram(source, features, columns, 4e9, workers, dtype=dtype)).__name__


if __name__ == "__main__":
    main()
