"""Rising indices of sparse rows, kept in a byte or two: the gap of each from the one before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.foundation.array_types import Array


def to_gaps(indptr: Array, indices: Array, values: Array) -> tuple[Array, Array, Array]:
    """Turn indices (nnz,), which rise in every row, into gaps of the type that takes the fewest bytes.

    Returns new row pointers, gaps and values: what is too far for one gap has entries of value 0 on its way.
    """
    from labelweave.foundation.loops.index_gaps import count_gaps, write_gaps

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
    """Give the index of every entry, int32."""
    from labelweave.foundation.loops.index_gaps import read_gaps

    indices = np.empty(len(gaps), np.int32)
    read_gaps(indptr, gaps, indices)
    return indices
