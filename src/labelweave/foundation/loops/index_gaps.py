"""Rising indices of sparse rows as gaps, each from the one before it in its row, the first from -1.

A gap that its type cannot hold is reached in steps of the largest gap, by entries whose value is 0.
"""

from __future__ import annotations

from labelweave.foundation.loops.compiling import njit

LOOP = {"nogil": True, "cache": True}


@njit(**LOOP)
def count_gaps(indptr, indices, largest, ends):
    """Count the entries of every row, those in between included: ``ends`` (rows + 1,) as ``indptr`` is."""
    ends[0] = 0
    for row in range(len(indptr) - 1):
        last, count = -1, 0
        for entry in range(indptr[row], indptr[row + 1]):
            index = int(indices[entry])  # differences in a type of its own would wrap in plain Python
            count += (index - last - 1) // largest + 1
            last = index
        ends[row + 1] = ends[row] + count


@njit(**LOOP)
def write_gaps(indptr, indices, values, largest, gaps, spread):
    """Write the gaps, and the values that belong to them."""
    place = 0
    for row in range(len(indptr) - 1):
        last = -1
        for entry in range(indptr[row], indptr[row + 1]):
            index = int(indices[entry])
            gap = index - last
            while gap > largest:
                gaps[place], spread[place] = largest, 0
                gap -= largest
                place += 1
            gaps[place], spread[place] = gap, values[entry]
            place += 1
            last = index


@njit(**LOOP)
def read_gaps(indptr, gaps, indices):
    """Write the index of every entry."""
    for row in range(len(indptr) - 1):
        last = -1
        for entry in range(indptr[row], indptr[row + 1]):
            last += int(gaps[entry])
            indices[entry] = last
