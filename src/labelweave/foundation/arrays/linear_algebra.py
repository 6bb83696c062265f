"""Dense linear algebra of the solvers, by the array API standard, with NumPy in fixed panels over threads.

A library's own threads change the order of additions, and so the last bits, with their number.  Here panels
depend only on the sizes; each is one product on one thread, no matter which.

Tables may also be arrays of another library with the standard (https://data-apis.org/array-api), and stay
there; a product is then one call.  Arrays of label, group or block numbers are always NumPy's.  ``HOME`` is
where new tables are made (:mod:`labelweave.foundation.arrays.homes`).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.forks import renew_locks

_COMPAT = "array_api_compat", "sklearn.externals.array_api_compat"  # for CuPy and PyTorch
PANEL = 512  # rows of a panel
_NARROW = 128  # columns of a right factor up to which the transposed product is faster
_ENTRIES = 2**15  # of each array in a panel: 256 KB in float64
_SMALLEST, _LARGEST = 16, 4096  # rows


class Home(NamedTuple):
    """A library with the standard, and one of its devices, with the default memory budget there."""

    xp: Any
    device: Any
    megabytes: float | None = None

    @property
    def library(self) -> str:
        """The library's name in messages."""
        return str(self.xp.__name__).rpartition(".")[2]


HOME: ContextVar[Home | None] = ContextVar("home", default=None)


def namespace(table: Array) -> Any:
    """Return the namespace of an array's library, with the functions of the standard."""
    if hasattr(table, "__array_namespace__"):
        return table.__array_namespace__()
    for name in _COMPAT:
        with suppress(ImportError):
            return import_module(name).array_namespace(table)
    raise TypeError(
        f"An array of {type(table).__module__} has no array API namespace; install array-api-compat, which "
        "does."
    )


def is_numpy(table: Any) -> bool:
    return isinstance(table, np.ndarray)


def is_foreign(value: Any) -> bool:
    return not is_numpy(value) and hasattr(value, "__dlpack_device__") and hasattr(value, "device")


def is_double(table: Array) -> bool:
    return bool(table.dtype == namespace(table).float64)


def as_type(table: Array, dtype: Any) -> Array:
    """Convert a table to another precision, NumPy's or its own library's; no copy if it has it."""
    if is_numpy(table):
        return table.astype(dtype, copy=False)
    xp = namespace(table)
    own = getattr(xp, np.dtype(dtype).name) if isinstance(dtype, type | np.dtype) else dtype
    return xp.astype(table, own, copy=False)


def copied(table: Array) -> Array:
    return table.copy() if is_numpy(table) else namespace(table).asarray(table, copy=True)


def contiguous(table: Array) -> Array:
    """Return a table in C order; other libraries handle this themselves."""
    return np.ascontiguousarray(table) if is_numpy(table) else table


def to_numpy(table: Array) -> Array:
    if hasattr(table, "detach"):  # PyTorch's, of any GPU and with a gradient
        return np.asarray(table.detach().cpu().numpy())
    return table if is_numpy(table) else np.from_dlpack(table, device="cpu")


def like(values: Array, table: Array) -> Array:
    """Convert a NumPy array to the library, device and precision of a table; float64 for integer tables."""
    if is_numpy(table):
        return values.astype(np.float32 if table.dtype == np.float32 else np.float64, copy=False)
    return _moved(values, Home(namespace(table), table.device), table.dtype)


def _moved(values: Array, home: Home, dtype: Any = None) -> Array:
    is_plain = values.flags.carray and min(values.strides, default=0) >= 0  # PyTorch takes no others
    readable = values if is_plain else np.array(values, order="C")
    return home.xp.asarray(readable, dtype=dtype, device=home.device)


def placed(values: Array) -> Array:
    """Move a NumPy array to where new tables are made."""
    return values if (home := HOME.get()) is None else _moved(values, home)


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return a new table, uninitialized, of a NumPy type."""
    home = HOME.get()
    if home is None:
        return np.empty(shape, dtype)
    return home.xp.empty(shape, dtype=getattr(home.xp, np.dtype(dtype).name), device=home.device)


def numpy_type(table: Any) -> np.dtype[Any]:
    """Return NumPy's name of the type of a table."""
    return np.dtype(str(table.dtype).rpartition(".")[2])


def columns_of(table: Array, which: Array) -> Array:
    return table[:, which] if is_numpy(table) else taken(table, which, 1)


def put_columns(table: Array, which: Array, part: Array) -> None:
    if is_numpy(table):
        table[:, which] = part
    else:
        for place, column in enumerate(which):
            table[:, int(column), ...] = part[:, place, ...]


def rows_of(table: Any, which: Array | slice) -> Any:
    if not is_foreign(table):
        return table[which]
    return table[which, ...] if isinstance(which, slice) else taken(table, which, 0)


def block_of(table: Array, rows: Array, columns: Array) -> Array:
    return table[np.ix_(rows, columns)] if is_numpy(table) else taken(taken(table, rows, 0), columns, 1)


def taken(table: Array, which: Array, axis: int) -> Array:
    places = np.flatnonzero(which) if which.dtype == bool else which
    xp = namespace(table)
    return xp.take(table, xp.asarray(places, device=table.device), axis=axis)


def inner_product(left: Array, right: Array) -> float:
    xp = namespace(left)
    return float(xp.sum(left * right, dtype=xp.float64))


def column_products(left: Array, right: Array) -> Array:
    """Multiply entry by entry and sum each column in double precision."""
    xp = namespace(left)
    return to_numpy(xp.sum(left * right, axis=0, dtype=xp.float64))


def group_products(left: Array, right: Array) -> Array:
    """Multiply arrays of shape (n, groups) or (n, groups, columns) entry by entry, and sum each group."""
    if is_numpy(left):
        return np.asarray(np.einsum("ngc,ngc->g" if left.ndim == 3 else "ng,ng->g", left, right))
    return to_numpy(namespace(left).sum(left * right, axis=(0, 2) if left.ndim == 3 else 0))


def dot(left: Array, right: Array) -> float:
    return float(np.vdot(left, right)) if is_numpy(left) else inner_product(left, right)


def length(table: Array) -> float:
    norm = np.linalg.norm if is_numpy(table) else namespace(table).linalg.vector_norm
    return float(norm(table))


def add_to_diagonal(matrix: Array, amount: Any) -> None:
    if is_numpy(matrix):
        matrix[np.diag_indices(len(matrix))] += matrix.dtype.type(amount)
    else:
        matrix += amount * namespace(matrix).eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)


def beside(values: Array, table: Any) -> Array:
    """Convert a NumPy array for arithmetic with a table: to another library, if the table is of one."""
    return like(values, table) if is_foreign(table) else values


def set_diagonal(matrix: Array, values: Array) -> None:
    """Write NumPy's numbers (n,) to the diagonal of the first n columns of a matrix (n, m)."""
    if is_numpy(matrix):
        np.fill_diagonal(matrix, values)
    else:
        add_to_diagonal(matrix, like(values, matrix) - namespace(matrix).linalg.diagonal(matrix))


def write_exponential(table: Array) -> None:
    """Replace the numbers of a table by their exponentials."""
    if is_numpy(table):
        np.exp(table, out=table)
    else:
        table[...] = namespace(table).exp(table)


def write_lesser(table: Array, most: float) -> None:
    """Replace the numbers of a table that are above a limit by the limit."""
    if is_numpy(table):
        np.minimum(table, most, out=table)
    else:
        table[...] = namespace(table).clip(table, max=most)


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Compute the eigenvalues of a symmetric matrix, ascending and as NumPy array, and its eigenvectors."""
    values, vectors = namespace(matrix).linalg.eigh(matrix)
    return to_numpy(values), vectors


def panels(length: int, size: int = PANEL) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


class _Library:
    """The linear algebra library, whose number of threads is one setting of the whole process.

    The first of several threads that request single-threaded products sets it, and the last one restores it.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._before: list[int] = []  # thread counts of NumPy's and SciPy's libraries
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_child)

    def _begin_child(self) -> None:
        """Renew locks, which another thread of the parent may have held at a fork."""
        self._lock = threading.Lock()
        renew_locks()

    @cached_property
    def _parts(self) -> list[Any]:
        with ThreadPoolExecutor(1) as thread:  # as a signal in a callback of ctypes would be lost
            found = thread.submit(ThreadpoolController).result()
        return found.select(user_api="blas").lib_controllers

    def _set(self, threads: list[int]) -> None:
        for part, number in zip(self._parts, threads, strict=True):
            if part.num_threads != number:
                # since threadpoolctl 3.8 only the thread that set it first can set it, until it restores it
                let_go = getattr(part, "clear_controlling_thread", lambda **_: None)
                let_go(force=True)
                part.set_num_threads(number)
                let_go(force=True)

    @property
    def threads(self) -> int:
        """The library's number of threads without a limit."""
        return max(self._before if self._users else [part.num_threads for part in self._parts], default=1)

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Limit it to one thread per product."""
        with self._lock:
            if self._users == 0:
                self._before = [part.num_threads for part in self._parts]
                self._set([1] * len(self._before))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._set(self._before)


_LIBRARY = _Library()


class Workers:
    """A fixed number of threads for work in panels; results do not depend on it."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pool": None}  # threads belong to their process

    @classmethod
    def of_library(cls) -> Workers:
        """Return as many threads as the linear algebra library would use by itself."""
        return cls(_LIBRARY.threads)

    @contextmanager
    def running(self) -> Iterator[Workers]:
        """Start the threads, and limit the linear algebra library to one thread per product."""
        with _LIBRARY.one_thread():
            if self.n_threads == 1 or HOME.get() is not None:  # a device has threads of its own
                yield self
                return
            with ThreadPoolExecutor(self.n_threads) as pool:
                self._pool = pool
                try:
                    yield self
                finally:
                    self._pool = None

    def each(self, work: Callable[[Any], None], parts: list[Any]) -> None:
        """Run a function on every part, in any order; parts must not write to the same memory."""
        if self._pool is not None:
            self.map(work, parts)
            return
        for part in parts:
            work(part)

    def map(self, work: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
        """Run a function on every part, in any order; return the results in the order of the parts."""
        if self._pool is None or len(parts) < 2:
            return [work(part) for part in parts]
        futures = [self._pool.submit(work, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            # nothing may be written after the caller continues
            for future in futures:
                future.cancel()
            wait(futures)
            raise

    def matmul(self, left: Array, right: Array) -> Array:
        """Multiply in row panels of the left factor.

        left (m, k): may have lower precision than the right factor, (k, p), which determines that of (m, p).
        """
        if not is_numpy(right):
            return as_type(left, right.dtype) @ right
        product = np.empty((left.shape[0], right.shape[1]), right.dtype)
        # the library copies one factor before it multiplies; here it is the smaller one if that is worth
        # transposing the product
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
        """Multiply (m, k) by (k, p) into the left factor's memory, k at least p; return that part of it."""
        if not is_numpy(left):
            return left @ (like(right, left) if is_numpy(right) else as_type(right, left.dtype))
        narrow = as_type(right, left.dtype)

        def one(panel: slice) -> None:
            left[panel, : right.shape[1]] = left[panel] @ narrow

        self.each(one, panels(left.shape[0]))
        return left[:, : right.shape[1]]

    def inner(self, left: Array, right: Array, dtype: npt.DTypeLike | None = None) -> Array:
        """Multiply the transpose of the left factor (m, k) by the right one (m, p), in ordered row panels.

        dtype: the type to compute in; by default that of the factors.
        """
        kind = right.dtype if dtype is None else dtype
        if not is_numpy(right):
            return as_type(left, kind).T @ as_type(right, kind)

        def one(panel: slice) -> Array:
            return as_type(left[panel], kind).T @ as_type(right[panel], kind)

        total = np.zeros((left.shape[1], right.shape[1]), kind)
        for part in self.map(one, panels(left.shape[0], 8 * PANEL)):
            total += part  # in order: independent of the threads
        return total


class RowPanels:
    """Blocks of rows of a table, the same for any number of threads.

    Each block stays in the processor's cache during a whole step of a solver.  On a device all rows are one.
    """

    def __init__(self, workers: Workers, table: Array) -> None:
        self.workers = workers
        rows = min(_LARGEST, max(_SMALLEST, _ENTRIES // max(1, math.prod(table.shape[1:]))))
        self.slices = panels(table.shape[0], rows if is_numpy(table) else max(1, table.shape[0]))

    def each(self, work: Callable[[slice], Any]) -> None:
        """Run a function on every block of rows, in any order."""
        self.workers.each(work, self.slices)

    def total(self, work: Callable[[slice], Array]) -> Array:
        """Sum a function over the blocks of rows, in order."""
        return np.asarray(np.sum(self.workers.map(lambda rows: to_numpy(work(rows)), self.slices), axis=0))


def numbers_of(values: Any, name: str) -> Array:
    """Read an array of real numbers, with masked entries as NaN; numeric objects become float64.

    name: its name in messages, a parameter in backticks.
    Raises ValueError if entries are not numbers.
    """
    try:
        read = np.asarray(unmasked(values))
        read = read.astype(np.float64) if read.dtype.kind == "O" else read
    except (TypeError, ValueError, OverflowError):
        read = np.empty(0, np.str_)
    if read.dtype.kind not in "biuf":
        raise ParameterError(
            f"{name} has entries that are not numbers; pass real numbers in rows of equal length."
        )
    return read


def read_row_weights(
    given: Any, n_rows: int, *, dtype: Any = np.float64, most: float = 1e100, may_vanish: bool = False
) -> Array:
    """Read ``sample_weight``, a number per row or one for all: from 0 to ``most``, at least one above 0.

    given: the weights; None for ones.
    dtype: of the result; None for float32 where weights have it, else float64.
    most: by default so large that products of two stay finite.
    may_vanish: whether all may be 0, as in a part of the rows.
    Raises ValueError that names the row.
    """
    weights = np.ones(n_rows) if given is None else numbers_of(given, "sample_weight")
    weights = weights.astype(dtype or (np.float32 if weights.dtype == np.float32 else np.float64))
    weights = np.full(n_rows, weights) if weights.ndim == 0 else weights
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but there are {n_rows} rows; pass one weight per row."
        )
    bad = np.flatnonzero(~((weights >= 0) & (weights <= np.float64(most))))
    if len(bad):
        raise ValueError(
            f"sample_weight at row {bad[0]} is {weights[bad[0]]:g}; pass numbers from 0 to {most:g}."
        )
    if not (given is None or may_vanish or weights.any()):
        raise ValueError("sample_weight is zero in every row; at least one row must have a positive weight.")
    return weights


def unmasked(table: Any) -> Any:
    """Replace masked numbers by NaN, and other masked entries by None; return other tables unchanged."""
    if not isinstance(table, np.ma.MaskedArray):
        return table
    is_number = table.dtype.kind in "iufb"
    found = np.array(table.data, dtype=np.float64 if is_number else object)
    found[np.ma.getmaskarray(table)] = np.nan if is_number else None
    return found


def is_collection(value: Any) -> bool:
    """Return whether data are a Dask collection, or a list of its delayed values or of futures."""
    kind = type(value[0] if isinstance(value, (list, tuple)) and len(value) else value)
    return hasattr(kind, "__dask_graph__") or kind.__module__.startswith("distributed.")


def refuse_lazy(value: Any, name: str) -> None:
    """Raise ValueError for a Dask collection, which NumPy and pandas would gather into memory."""
    if hasattr(type(value), "__dask_graph__"):
        raise ValueError(
            f"{name} is a Dask {type(value).__name__}, which would be gathered into memory; pass "
            f"the rows X as a collection too (labelweave.dask), or {name}.compute()."
        )
