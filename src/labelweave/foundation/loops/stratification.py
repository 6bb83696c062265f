"""Iterative stratification: distribute rows so that each label is spread over the parts.

Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data",
ECML PKDD 2011, algorithm 1.  The labels wait in a heap by the number of their rows
without a part; the number is in the key, ``left * L + label``, so ties go to
the lower label.  A key only decreases, by one row at a time.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.loops.compiling import njit

_NOWHERE = -1  # the position of a label that left the heap, and the part of a waiting row


@njit(nogil=True, cache=True)
def pair_codes(indptr, indices, n_labels, starts, codes):
    """Write ``i * n_labels + j`` for all labels i < j of a row; row r's begin at ``starts[r]``."""
    for row in range(len(indptr) - 1):
        filled = starts[row]
        for first in range(indptr[row], indptr[row + 1]):
            for second in range(first + 1, indptr[row + 1]):
                codes[filled] = indices[first] * n_labels + indices[second]
                filled += 1


def spread_rows(
    by_row: sp.csr_array, by_label: sp.csc_array, sizes: Array, extras: int, shares: Array, draws: Array
) -> Array:
    """Return the part of every row.

    Part j gets ``sizes[j]`` rows, and ``extras`` parts one more; the rows of every label are processed in
    order and distributed in proportion to ``shares``, which may be 0 only for parts without rows.
    ``draws[r]``, 0 or more, breaks the ties of row r.
    """
    n_rows, n_labels = by_row.shape
    tables = (by_row.indptr, by_row.indices, by_label.indptr, by_label.indices)
    wide = [table.astype(np.int64, copy=False) for table in tables]
    parts = np.full(n_rows, _NOWHERE, np.int64)
    # per label, and for rows in the last line
    taken, room = np.zeros((n_labels + 1, len(sizes)), np.int64), np.append(sizes, extras)
    keys = np.arange(n_labels) + np.diff(wide[2]) * n_labels
    heap = np.argsort(keys)
    places = np.argsort(heap)
    tied = np.empty(len(sizes), np.int64)
    _share_out(*wide, shares, draws, heap, keys, places, taken, room, tied, parts)
    return parts


@njit(nogil=True, cache=True)
def _share_out(indptr, indices, starts, rows, shares, draws, heap, keys, places, taken, room, tied, parts):
    n_rows, n_labels = len(indptr) - 1, len(starts) - 1
    for size in range(n_labels, 0, -1):
        label = heap[0]
        _leave(heap, size, keys, places)
        for row in rows[starts[label] : starts[label + 1]]:
            if parts[row] == _NOWHERE:
                own = indices[indptr[row] : indptr[row + 1]]
                parts[row] = _best_part(label, own, starts, taken, shares, room, draws[row], tied)
                _hand_over(own, parts[row], taken, room)
                _lower(own, heap, keys, places)
    for row in range(n_rows):  # rows without labels: only sizes count
        if parts[row] == _NOWHERE:
            own = indices[:0]
            parts[row] = _best_part(n_labels, own, starts, taken, shares, room, draws[row], tied)
            _hand_over(own, parts[row], taken, room)


@njit(nogil=True, cache=True)
def _best_part(label, own, starts, taken, shares, room, draw, tied):
    """Choose the part with room whose share of the label the row exceeds least.

    Ties are broken by what it has of all labels of the row, in proportion, then of rows, then by the draw.
    """
    n_tied, total = 0, shares.sum()
    least, fullness, fewest = np.int64(0), 0.0, 0.0
    for part in range(len(shares)):
        # the last entry of room counts parts that may have one extra
        if not (room[part] > 0 or (room[part] == 0 and room[-1] > 0)):
            continue
        excess = np.int64(0)  # of one more row over the part's share, times the sum of shares
        if label < len(starts) - 1:
            wanted = (starts[label + 1] - starts[label]) * shares[part]
            excess = max(excess, (taken[label, part] + 1) * total - wanted)
        if n_tied and excess > least:
            continue
        of_own = _fullness(own, part, starts, taken, shares[part])
        of_rows = (taken[-1, part] + 0.5) / shares[part]
        if n_tied and excess == least and (of_own > fullness or (of_own == fullness and of_rows > fewest)):
            continue
        if n_tied and (excess < least or of_own < fullness or of_rows < fewest):
            n_tied = 0
        least, fullness, fewest = excess, of_own, of_rows
        tied[n_tied] = part
        n_tied += 1
    return tied[draw % n_tied]


@njit(nogil=True, cache=True)
def _fullness(own, part, starts, taken, share):
    """Sum what a part has of a row's labels, each relative to its share of the label's rows."""
    total = 0.0
    for label in own:
        total += (taken[label, part] + 0.5) / share / (starts[label + 1] - starts[label])
    return total


@njit(nogil=True, cache=True)
def _hand_over(own, part, taken, room):
    """Record that a part got a row with these labels."""
    room[-1] -= room[part] == 0
    room[part] -= 1
    taken[-1, part] += 1
    for label in own:
        taken[label, part] += 1


@njit(nogil=True, cache=True)
def _leave(heap, size, keys, places):
    """Remove the label with the smallest key from a heap of this size."""
    places[heap[0]] = _NOWHERE
    last = size - 1
    if last == 0:
        return
    moved, place, child = heap[last], 0, 1
    while child < last:
        child += child + 1 < last and keys[heap[child + 1]] < keys[heap[child]]
        if keys[heap[child]] > keys[moved]:
            break
        _put(heap[child], place, heap, places)
        place, child = child, 2 * child + 1
    _put(moved, place, heap, places)


@njit(nogil=True, cache=True)
def _lower(own, heap, keys, places):
    """Record that these labels have one row less to distribute, and move them up the heap."""
    for label in own:
        place = places[label]
        if place == _NOWHERE:
            continue
        keys[label] -= len(keys)
        above = (place - 1) // 2
        while place > 0 and keys[heap[above]] > keys[label]:
            _put(heap[above], place, heap, places)
            place, above = above, (above - 1) // 2
        _put(label, place, heap, places)


@njit(nogil=True, cache=True)
def _put(label, place, heap, places):
    heap[place] = label
    places[label] = place
