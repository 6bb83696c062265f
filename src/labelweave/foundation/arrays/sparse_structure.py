"""Validate sparse arrays of users before a compiled loop reads them.

SciPy only compares the lengths of a CSR array's parts and the ends of its row pointers.  With an index out of
range, or decreasing row pointers, its loops and those of this library would access memory outside of the
array.

Ascending indices of sparse rows can also be stored in one or two bytes, as gaps to the previous index.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array

_NUMBERS = "biuf"


def checked_csr(given: Any, name: str) -> sp.csr_array:
    """Return a sparse array as a valid CSR array; values may be NaN.

    given (n, m): in any of SciPy's formats; a valid CSR array is not copied.
    name: its name in messages.
    Raises ValueError, with row or column, for indices out of range or inconsistent parts.
    """
    kind, parts = _checked_parts(given, name)
    csr = kind(parts, shape=given.shape).tocsr()
    values, places = parts[:2]
    if csr.nnz < len(values) and values.dtype.kind in "iu":  # sums of duplicate entries may overflow its type
        csr = kind((values.astype(np.int64), places), shape=given.shape).tocsr()
    return csr


def check_sparse(given: Any, name: str) -> None:
    """Raise as :func:`checked_csr` does for sparse arrays; accept other values."""
    if sp.issparse(given):
        _checked_parts(given, name)


def _checked_parts(given: Any, name: str) -> tuple[Any, Any]:
    """Return the parts of a sparse array, and their class."""
    if given.ndim != 2:
        raise ValueError(f"{name} has {given.ndim} dimension(s); pass two, (rows, columns).")
    if given.format == "csr":
        return sp.csr_array, _compressed(given, name, ("row", "column"))
    if given.format == "csc":
        return sp.csc_array, _compressed(given, name, ("column", "row"))
    return sp.coo_array, _listed(given if given.format == "coo" else given.tocoo(), name)


def _compressed(given: Any, name: str, axes: tuple[str, str]) -> tuple[Array, Array, Array]:
    """Validate the parts of an array that is compressed along its first axis."""
    n_major, n_minor = given.shape if given.format == "csr" else given.shape[::-1]
    starts, indices = (_whole_numbers(part, name) for part in (given.indptr, given.indices))
    values, (major, minor) = _numbers(given.data, name), axes
    if len(starts) != n_major + 1 or starts[0] != 0 or len(indices) != len(values):
        counts = f"{len(starts)}, {len(indices)} and {len(values)} entries for {n_major} {major}s"
        _refuse(name, f"indptr, indices and data have {counts}, and indptr must begin with 0")
    falls = np.flatnonzero(starts[1:] < starts[:-1])
    if len(falls):
        _refuse(name, f"indptr goes down at {major} {falls[0]}")
    if starts[-1] > len(indices):
        _refuse(name, f"indptr ends at {starts[-1]}, but there are {len(indices)} indices")
    indices, values = indices[: starts[-1]], values[: starts[-1]]
    place = _first_outside(indices, n_minor)
    if place is not None:
        where = f"{major} {np.searchsorted(starts, place, side='right') - 1}"
        _refuse(name, f"{where} has an entry at {minor} {indices[place]}, but there are {n_minor} {minor}s")
    return values, indices, starts


def _listed(given: Any, name: str) -> tuple[Array, tuple[Array, ...]]:
    """Validate the parts of an array that lists its entries."""
    values = _numbers(given.data, name)
    coords = tuple(_whole_numbers(part, name) for part in given.coords)
    if any(len(part) != len(values) for part in coords):
        counts = f"{len(coords[0])} and {len(coords[1])}"
        _refuse(name, f"{counts} coordinates were given for {len(values)} values")
    for part, size, axis in zip(coords, given.shape, ("row", "column"), strict=True):
        place = _first_outside(part, size)
        if place is not None:
            _refuse(name, f"entry {place} is at {axis} {part[place]}, but there are {size} {axis}s")
    return values, coords


def _first_outside(indices: Array, size: int) -> int | None:
    """Return the first negative or too large index; as unsigned integers negative ones are large."""
    unsigned = indices.view(f"u{indices.dtype.itemsize}")
    if not len(indices) or unsigned.max() < size:
        return None
    return int(np.argmax(unsigned >= size))


def _whole_numbers(part: Any, name: str) -> Array:
    part = np.asarray(part)
    if part.ndim != 1 or part.dtype.kind not in "iu":
        _refuse(name, f"an index array has type {part.dtype} and {part.ndim} dimension(s)")
    if part.dtype.kind == "u" and part.size and part.max() > np.iinfo(np.int64).max:
        _refuse(name, f"an index is {part.max()}")
    return _native(part, np.int32 if part.dtype in (np.int8, np.int16, np.int32) else np.int64)


def _numbers(part: Any, name: str) -> Array:
    part = np.asarray(part)
    if part.ndim != 1 or part.dtype.kind not in _NUMBERS:
        raise ValueError(f"{name} has values of type {part.dtype}; pass real numbers, one per entry.")
    return _native(part, np.float32 if part.dtype == np.float16 else part.dtype.newbyteorder("="))


def _native(part: Array, dtype: Any) -> Array:
    """Return an array as loops read it, copied only if its type, strides or alignment differ."""
    if part.dtype == dtype and part.flags.c_contiguous and part.flags.aligned:  # NumPy takes a while
        return part
    return np.require(part, dtype, ["C", "A"])


def _refuse(name: str, found: str) -> NoReturn:
    raise ValueError(
        f"{name} is a damaged sparse array: {found}; rebuild it from its entries, for example with "
        "scipy.sparse.coo_array((values, (rows, columns)), shape)."
    )


def to_gaps(indptr: Array, indices: Array, values: Array) -> tuple[Array, Array, Array]:
    """Convert ascending indices (nnz,) of rows to gaps in the type that needs the fewest bytes.

    Returns new row pointers, gaps and values; too large gaps are split by entries of value 0.
    """
    from labelweave.foundation.loops.sparse_scores import count_gaps, write_gaps

    found: list[tuple[int, Array, Any]] = []
    for kind in (np.dtype(np.uint8), np.dtype(np.uint16)):
        ends = np.empty(len(indptr), np.int64)
        count_gaps(indptr, indices, np.int64(np.iinfo(kind).max), ends)
        found.append((int(ends[-1]) * (kind.itemsize + values.itemsize), ends, kind))
    _, ends, kind = min(found, key=lambda one: one[0])
    gaps, spread = np.empty(ends[-1], kind), np.empty(ends[-1], values.dtype)
    write_gaps(indptr, indices, values, np.int64(np.iinfo(kind).max), gaps, spread)
    return ends, gaps, spread


def from_gaps(indptr: Array, gaps: Array) -> Array:
    from labelweave.foundation.loops.sparse_scores import read_gaps

    indices = np.empty(len(gaps), np.int32)
    read_gaps(indptr, gaps, indices)
    return indices
