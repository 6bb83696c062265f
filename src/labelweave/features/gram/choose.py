"""Choose the cheapest form of a kernel matrix that fits into memory.

Work is counted in multiplications of a dense matrix product.  A fit takes about 100 products with
p columns; n rows, d features, z non-zero entries, c_j of them in feature j:

    dense features     2 n d p                per product
    sparse features    8 z p + 130 n p        per product
    stored             n^2 p                  per product, and computing the matrix once
    recomputed         n^2 p                  per product, and computing the matrix each time

Computing the matrix takes ``n^2 d / 2`` from dense features or ``30 sum_j c_j^2`` from sparse ones, and
``100 n^2`` for operations on every entry.  The kernel matrix without explicit features
is stored if it fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.gram.low_rank import FactorGram
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import (
    TILE,
    FeatureGram,
    Gram,
    SparseFeatureGram,
    StoredGram,
    StreamedGram,
)
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import HOME
from labelweave.foundation.costs import MULTIPLICATIONS, warn_of_time

# Measured on one core of an EPYC with AVX-512, float64, n = 10,000, 100 entries per row, p = 160:
# OpenBLAS does 22 multiplications per nanosecond, the sparse product 5.5 (in float32 47 and 11); copies to
# and from tiles take 6 ns per entry; products of two sparse rows 1.2 to 4.5 ns per common entry
# and 10 ns per pair.
_SPARSE_WORK = 4.0
_COPY_WORK = 130.0
_PAIR_WORK = 60.0
_ENTRY_WORK = 200.0
_PRODUCTS = 100  # per fit
_NARROWEST = 16  # columns; fewer take as long, limited by reading the matrix
_STREAM_BYTES = 64e6
_SMALLEST_STREAM_BYTES = 3e5


@dataclass(frozen=True)
class _Form:
    """A form of the matrix: the work per fit, the memory, and its constructor."""

    work: float
    n_bytes: float
    make: Callable[[], Gram]


def choose_gram(
    source: GramSource,
    explicit_features: FeatureMatrix | None,
    n_columns: int,
    budget_bytes: float,
    workers: Workers,
    *,
    dtype: npt.DTypeLike = np.float64,
    constant: float = 0.0,
) -> Gram:
    """Choose the form of a kernel matrix with the cheapest fit.

    explicit_features: features whose dot products are the matrix, if they exist.
    n_columns: columns of a typical product.
    Returns a :class:`FeatureGram`, :class:`SparseFeatureGram`, :class:`StoredGram` or :class:`StreamedGram`,
        by the cost model of this module; a :class:`FactorGram` for features on a cluster.
    Raises ValueError if the budget is too small for any form, with the smallest sufficient one.
    """
    if explicit_features is not None and explicit_features.is_distributed:
        return FactorGram(explicit_features, np.zeros(source.n_rows), constant, dtype, workers)
    width, kind = max(n_columns, _NARROWEST), np.dtype(dtype)
    n_rows, making = source.n_rows, _work_of_making(source.n_rows, explicit_features)
    products = _PRODUCTS * float(n_rows) ** 2 * width
    forms = [
        _Form(
            making + products,
            float(n_rows) ** 2 * kind.itemsize,
            lambda: StoredGram.from_source(source, constant, kind, workers),
        ),
        _Form(
            _PRODUCTS * making + products,
            _SMALLEST_STREAM_BYTES,
            lambda: StreamedGram(source, constant, kind, workers, min(_STREAM_BYTES, budget_bytes)),
        ),
    ]
    if explicit_features is not None:
        own = _feature_forms(explicit_features, width, kind, constant, workers)
        forms += own if HOME.get() is None else own[:1]  # the others have compiled loops
    fitting = [form for form in forms if form.n_bytes <= budget_bytes]
    if not fitting:
        least = np.ceil(min(form.n_bytes for form in forms) / 1e5) / 10
        raise ParameterError(
            f"`memory_budget` is {budget_bytes / 1e6:g} MB, too small for the kernel matrix of "
            f"{n_rows} rows; pass at least {least:g} MB."
        )
    best = min(fitting, key=lambda form: form.work)
    if best is forms[1]:
        warn_of_time(
            f"The kernel matrix of {n_rows} rows does not fit `memory_budget={budget_bytes / 1e6:g}`, and is "
            f"recomputed in each of about {_PRODUCTS} products of a fit, which",
            best.work / MULTIPLICATIONS / workers.n_threads,
            f"pass a `memory_budget` of {forms[0].n_bytes / 1e6:.0f} megabytes, a `kernel_rank`, or fewer "
            "rows.",
        )
    return best.make()


def _work_of_making(n_rows: int, features: FeatureMatrix | None) -> float:
    of_entries = _ENTRY_WORK * n_rows**2 / 2
    if features is None:
        return of_entries
    if not features.is_sparse:
        return of_entries + n_rows**2 * features.shape[1] / 2
    _, counts = np.unique(features.data.indices, return_counts=True)
    return of_entries + _PAIR_WORK * float(np.square(counts, dtype=np.float64).sum()) / 2


def _feature_forms(
    features: FeatureMatrix, width: int, dtype: np.dtype[Any], constant: float, workers: Workers
) -> list[_Form]:
    n, d = features.shape
    stored = features.data.data if features.is_sparse else features.data
    n_entries = float(np.count_nonzero(stored))
    tiles = width + -width % TILE
    # in float64, and once more in float32 for products in single precision
    number_bytes = 8.0 if dtype == np.float64 else 12.0
    sparse_bytes = 2 * (number_bytes + 4) * n_entries + SparseFeatureGram.scratch_bytes(n, d)
    return [
        _Form(
            _PRODUCTS * 2.0 * n * d * width,
            number_bytes * n * (d + 1),
            lambda: FeatureGram(features, constant, dtype, workers),
        ),
        _Form(
            _PRODUCTS * (2 * _SPARSE_WORK * n_entries + _COPY_WORK * n) * tiles,
            sparse_bytes,
            lambda: SparseFeatureGram(features, constant, dtype, workers),
        ),
    ]
