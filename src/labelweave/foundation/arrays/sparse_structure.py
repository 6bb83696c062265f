"""Sparse arrays that others made, checked before a compiled loop sees them.

SciPy compares the lengths of a CSR array's parts and the ends of its row starts, no more.  Where an index is
out of range, or row starts go down, its loops and those of this library would read and write memory that is
not the array's.

Rising indices of sparse rows are also kept in a byte or two: the gap of each from the one before it.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array

_NUMBERS = "biuf"


def checked_csr(given: Any, name: str) -> sp.csr_array:
    """Return a sparse array as CSR whose parts fit together; values may be NaN.

    given (n, m): of any of SciPy's formats; a CSR array of sound parts is not copied.
    name: what messages call it.
    Raises ValueError if its indices are out of range or its parts do not fit; the row or column is named.
    """
    kind, parts = _checked_parts(given, name)
    csr = kind(parts, shape=given.shape).tocsr()
    values, places = parts[:2]
    if csr.nnz < len(values) and values.dtype.kind in "iu":  # sums of repeated entries may not fit its type
        csr = kind((values.astype(np.int64), places), shape=given.shape).tocsr()
    return csr


def check_sparse(given: Any, name: str) -> None:
    """Refuse what :func:`checked_csr` refuses; what is not sparse is fine."""
    if sp.issparse(given):
        _checked_parts(given, name)


def _checked_parts(given: Any, name: str) -> tuple[Any, Any]:
    """Return the parts of a sparse array, and the class that they are for."""
    if given.ndim != 2:
        raise ValueError(f"{name} has {given.ndim} dimension(s); a sparse array needs two, (rows, columns).")
    if given.format == "csr":
        return sp.csr_array, _compressed(given, name, ("row", "column"))
    if given.format == "csc":
        return sp.csc_array, _compressed(given, name, ("column", "row"))
    return sp.coo_array, _listed(given if given.format == "coo" else given.tocoo(), name)


def _compressed(given: Any, name: str, axes: tuple[str, str]) -> tuple[Array, Array, Array]:
    """Check the parts of an array that is compressed along the first of its axes."""
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
    """Check the parts of an array that lists its entries."""
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
    """Find an index that is negative or too large; as unsigned numbers the negative ones are large."""
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
        raise ValueError(f"{name} has values of type {part.dtype}; real numbers are allowed, one an entry.")
    return _native(part, np.float32 if part.dtype == np.float16 else part.dtype.newbyteorder("="))


def _native(part: Array, dtype: Any) -> Array:
    """Return an array as loops read it, copied only where it is another type, strided or misaligned."""
    if part.dtype == dtype and part.flags.c_contiguous and part.flags.aligned:  # NumPy takes a while
        return part
    return np.require(part, dtype, ["C", "A"])


def _refuse(name: str, found: str) -> NoReturn:
    raise ValueError(
        f"{name} is a damaged sparse array: {found}; make it again from its entries, such as with "
        "scipy.sparse.coo_array((values, (rows, columns)), shape)."
    )


def to_gaps(indptr: Array, indices: Array, values: Array) -> tuple[Array, Array, Array]:
    """Turn indices (nnz,), which rise in every row, into gaps of the type that takes the fewest bytes.

    Returns new row pointers, gaps and values: what is too far for one gap has entries of value 0 on its way.
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
