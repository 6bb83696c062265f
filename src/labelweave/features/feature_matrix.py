"""One interface for features: a dense array, a CSR matrix or a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from labelweave.foundation.arrays import Workers, checked_csr, unmasked
from labelweave.foundation.arrays.linear_algebra import HOME, as_type, is_foreign, is_numpy, placed, rows_of
from labelweave.foundation.arrays.tables import row_inner

LARGEST_FEATURE = 1e40
"""The largest feature: its seventh power, needed by ADMM, is finite; single precision is below it."""

_MOST = float(np.finfo(np.float64).max)


class FeatureMatrix:
    """The features of ``n`` rows, validated once: finite numbers, dense or CSR.

    X (n, d): finite numbers.  Sparse input is kept as CSR, anything else as a dense array.
    names: feature names; by default a DataFrame's columns.
    largest: the largest allowed absolute value.
    data (n, d): the features, float32 or float64.
    is_distributed: whether the rows are on a cluster, where only sums over them are available.  ``data`` is
        then a :class:`~labelweave.features.factor_maps.FactorMap`.
    Shapes: names (d,).
    Raises ValueError, with row and column, for an entry that is NaN, infinite, too large or not a number.
    """

    is_distributed = False
    kept: dict[Any, Any] | None = None  # cached results, for rows that are used repeatedly

    def __init__(self, X: Any, names: Sequence[str] | None = None, largest: float = _MOST) -> None:
        if names is None and hasattr(X, "columns"):
            names = [str(column) for column in X.columns]
        self.names = None if names is None else np.asarray(list(names), dtype=np.str_)
        self.data: Any = _as_csr(X) if sp.issparse(X) else _as_table(X)
        if self.names is not None and len(self.names) != self.data.shape[1]:
            raise ValueError(
                f"X has {self.data.shape[1]} features and {len(self.names)} names of features; "
                "pass one name per feature."
            )
        _refuse_bad_entries(self.data, self.names, largest)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.data.shape[0]), int(self.data.shape[1])

    @property
    def is_sparse(self) -> bool:
        return bool(sp.issparse(self.data))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind = f"CSR, {self.data.nnz} non-zeros" if self.is_sparse else "dense"
        return f"FeatureMatrix({self.shape[0]} rows, {self.shape[1]} features, {kind})"

    @classmethod
    def _unchecked(cls, data: Any, names: Any = None) -> FeatureMatrix:
        made = cls.__new__(cls)
        made.data, made.names = data, names
        return made

    @classmethod
    def of_any_library(cls, X: Any, names: Any = None) -> FeatureMatrix:
        """Wrap rows; those of another library than NumPy are computed from validated ones."""
        return cls._unchecked(X) if is_foreign(X) else cls(X, names)

    @classmethod
    def of_model(cls, X: Any) -> FeatureMatrix:
        """Wrap rows that a fitted model stores."""
        return cls.of_any_library(X).kept_rows()

    def kept_rows(self) -> FeatureMatrix:
        """Return the same rows with a cache for :meth:`once`."""
        made = self._unchecked(self.data, self.names)
        made.kept = {}
        return made

    def once(self, what: Any, make: Callable[[], Any]) -> Any:
        """Compute a result from the rows; cached if the rows have a cache."""
        kept = {} if self.kept is None else self.kept
        if what not in kept:
            kept[what] = make()
        return kept[what]

    @property
    def marks(self) -> Any:
        """The data of a digest of the features."""
        return self.data

    def summed(self, of_rows: Callable[..., Any], *by_row: Any) -> Any:
        """Sum a function of features, and of arrays with one entry per row, over the places of the rows."""
        return of_rows(self, *by_row)

    def mapped(self, of_rows: Callable[[FeatureMatrix], npt.NDArray[Any]], which: Any, size: int) -> Any:
        """Call a function on the features of some rows, in batches; return the results in their order."""
        starts = range(0, max(1, len(which)), size)
        return np.concatenate([of_rows(self.rows(which[start : start + size])) for start in starts])

    def to_local(self, which: npt.NDArray[Any] | None = None) -> FeatureMatrix:
        """Return rows in memory if they are elsewhere: some, in their order, or all."""
        return self if which is None else self.rows(which)

    def transformed(self, of_rows: Callable[[FeatureMatrix], FeatureMatrix | None]) -> FeatureMatrix | None:
        """Compute other features of the rows, where they are."""
        return of_rows(self)

    def matrix_apart(self, kernel: Any) -> Any:
        """Return the kernel matrix of rows on a cluster, to be approximated by a factor."""
        raise NotImplementedError

    def row_counts(self) -> npt.NDArray[Any] | None:
        return np.diff(self.data.indptr) if self.is_sparse else None

    def largest_entry(self) -> float:
        entries = self.data.data if self.is_sparse else self.data
        return float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))

    def rows(self, which: slice | npt.NDArray[Any]) -> FeatureMatrix:
        """Keep some rows, without validation."""
        if isinstance(which, slice) and which.indices(len(self)) == (0, len(self), 1):
            return self
        return self._unchecked(rows_of(self.data, which), self.names)

    def placed(self) -> FeatureMatrix:
        """Return dense rows where the call makes its tables (:mod:`labelweave.foundation.arrays.homes`)."""
        if HOME.get() is None or is_foreign(self.data):
            return self
        return self._unchecked(placed(dense_rows(self)), self.names)

    def astype(self, dtype: npt.DTypeLike) -> FeatureMatrix:
        """Convert the features to another precision, without validation."""
        converted = self.data.astype(dtype, copy=False) if self.is_sparse else as_type(self.data, dtype)
        return self._unchecked(converted, self.names)

    def with_constant(self, value: float) -> FeatureMatrix:
        """Append a feature with the same value in every row; without names and validation."""
        column = np.full((len(self), 1), value, self.data.dtype)
        if self.is_sparse:
            return self._unchecked(sp.hstack([self.data, sp.csr_array(column)], format="csr"))
        return self._unchecked(np.hstack([self.data, column]))

    def sparse_rows(
        self, dtype: npt.DTypeLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the rows as CSR arrays for compiled loops; indices are int64 only above 2^31."""
        csr = self.data if self.is_sparse else _dense_as_csr(self.data)
        index_type = np.int32 if self.shape[1] <= np.iinfo(np.int32).max else np.int64
        return (
            csr.indptr.astype(np.int64, copy=False),
            csr.indices.astype(index_type, copy=False),
            csr.data.astype(dtype, copy=False),
        )

    def squared_norms(self) -> npt.NDArray[np.float64]:
        if is_numpy(self.data):
            return np.asarray(np.einsum("ij,ij->i", self.data, self.data, dtype=np.float64))
        if not self.is_sparse:
            table = as_type(self.data, np.float64)
            return row_inner(table, table, Workers())
        squares = sp.csr_array(
            (self.data.data.astype(np.float64) ** 2, self.data.indices, self.data.indptr),
            shape=self.data.shape,
        )
        return np.asarray(squares.sum(axis=1)).ravel()

    def matmul(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if is_foreign(self.data):
            return Workers().matmul(self.data, weights)
        dtype = np.result_type(self.data, weights, np.float32)
        if not self.is_sparse or len(weights) != self.shape[1]:
            return np.asarray(self.data.astype(dtype, copy=False) @ weights)
        from labelweave.features.sparse_products import multiply_rows

        return multiply_rows(self.sparse_rows(dtype), np.ascontiguousarray(weights, dtype))


@dataclass(frozen=True)
class Moments:
    """Means and variances of columns, (d,) each, and the number of rows; they can be added."""

    n_rows: int
    means: npt.NDArray[np.float64]
    variances: npt.NDArray[np.float64]

    @classmethod
    def of(cls, features: FeatureMatrix) -> Moments:
        if features.is_sparse:
            means, variances = mean_variance_axis(features.astype(np.float64).data, axis=0)
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # kernels refuse rows of too large norm
                means, variances = (f(features.data, axis=0, dtype=np.float64) for f in (np.mean, np.var))
        return cls(len(features), np.asarray(means, np.float64), np.asarray(variances, np.float64))

    def __add__(self, other: Moments) -> Moments:
        n_rows = self.n_rows + other.n_rows
        own, its = self.n_rows / n_rows, other.n_rows / n_rows
        between = np.square(self.means - other.means)
        variances = own * self.variances + its * other.variances + own * its * between
        return Moments(n_rows, own * self.means + its * other.means, variances)

    @property
    def of_all_entries(self) -> float:
        """The variance of all entries of all columns."""
        return float(self.variances.mean() + self.means.var())


def dense_rows(features: FeatureMatrix) -> npt.NDArray[Any]:
    return features.data.toarray() if features.is_sparse else features.data


def column_means(X: Any) -> npt.NDArray[np.float64]:
    """Compute the mean of every column without missing values, shape (d,); 0 if all are missing.

    X (n, d): dense or CSR, NaN where missing; entries that CSR does not store are 0.
    """
    is_missing = np.isnan(X.data if sp.issparse(X) else X)
    if not sp.issparse(X):
        missing = np.count_nonzero(is_missing, axis=0)
        sums = X.sum(axis=0, dtype=np.float64, where=~is_missing)
    else:
        missing = np.bincount(X.indices[is_missing], minlength=X.shape[1])
        sums = np.bincount(X.indices, np.where(is_missing, 0.0, X.data), X.shape[1])
    counts = X.shape[0] - missing
    return np.asarray(sums / np.maximum(counts, 1))


def filled(X: Any, means: npt.NDArray[np.float64]) -> Any:
    """Replace missing numbers by the means of their columns.

    X (n, d): dense or CSR, NaN where missing; returned unchanged if complete.  Shapes: means (d,).
    """
    if not np.isnan(X.data if sp.issparse(X) else X).any():
        return X
    if not sp.issparse(X):
        return np.where(np.isnan(X), means.astype(X.dtype), X)
    whole = sp.csr_array(X, copy=True)
    is_missing = np.isnan(whole.data)
    whole.data[is_missing] = means[whole.indices[is_missing]]
    return whole


def _as_csr(X: Any) -> sp.csr_array:
    csr = checked_csr(X, "X")
    if csr.dtype not in (np.float32, np.float64):
        csr = csr.astype(np.float64)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def first_text(table: Any) -> str | None:
    """Return the first text in rows, even if it reads as a number; None without text."""
    values: Any = np.empty(0)
    with suppress(TypeError, ValueError):  # rows of different lengths
        values = values if sp.issparse(table) else np.asarray(table)
    entries = values.ravel() if values.dtype.kind in "USO" else ()
    return next((str(entry) for entry in entries if isinstance(entry, (str, bytes))), None)


def refuse_times(entries: Any) -> None:
    """Raise for datetimes, which NumPy would convert to integers, missing ones to -9.2e18."""
    if np.asarray(entries).dtype.kind in "mM":
        raise ValueError("X has datetimes, which are not supported as features; convert them to numbers.")


def _as_table(X: Any) -> npt.NDArray[Any]:
    try:
        table = np.asarray(unmasked(X))
    except ValueError:
        raise ValueError("X has rows of different lengths; each must have one number per feature.") from None
    refuse_times(table)
    if table.dtype.kind == "c":
        raise ValueError(f"X has values of type {table.dtype}; pass real numbers, one per entry.")
    if table.dtype not in (np.float32, np.float64):
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X has entries that are not numbers ({error}); encode them first.") from None
    if table.ndim != 2:
        raise ValueError(
            f"X has {table.ndim} dimension(s) and shape {table.shape}; pass two, (rows, features)."
        )
    return np.require(table, requirements=["C", "A"])  # linear algebra may crash at unaligned addresses


def _dense_as_csr(table: npt.NDArray[Any]) -> sp.csr_array:
    n, d = table.shape
    indices = np.tile(np.arange(d, dtype=np.int32), n)
    indptr = np.arange(0, n * d + 1, d, dtype=np.int64) if d else np.zeros(n + 1, np.int64)
    return sp.csr_array((table.ravel(), indices, indptr), shape=table.shape)


def _refuse_bad_entries(data: Any, names: Any, largest: float) -> None:
    entries = data.data if sp.issparse(data) else data
    # a sum of squares is finite only if every entry is (overflow is resolved by the second check)
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(np.vdot(entries, entries))
    if np.isfinite(square) and square <= largest * largest:
        return
    bad = ~(np.abs(entries) <= np.float64(largest))
    if not bad.any():
        return
    if sp.issparse(data):
        position = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(data.indptr, position, side="right")) - 1
        column, value = int(data.indices[position]), entries[position]
    else:
        row, column = (int(k) for k in np.argwhere(bad)[0])
        value = entries[row, column]
    label = str(column) if names is None else repr(str(names[column]))
    if np.isfinite(value):
        raise ValueError(
            f"Input X contains {value:.3g} at row {row}, column {label}; pass features up to {largest:.0e} "
            "in size, so that sums of squares are finite: scale them or drop such entries."
        )
    found = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains {found} at row {row}, column {label}; features must be finite numbers, "
        "so drop or impute such entries."
    )
