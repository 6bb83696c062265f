"""Which rows to visit, and in which order; compiled so that threads do not wait for each other."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit


@njit(nogil=True, cache=True)
def in_runs(rows, runs, length):
    """Return the rows run by run: run r is ``rows[r * length : (r + 1) * length]``."""
    ordered = np.empty_like(rows)
    filled = 0
    for run in runs:
        for place in range(run * length, min((run + 1) * length, len(rows))):
            ordered[filled] = rows[place]
            filled += 1
    return ordered


@njit(nogil=True, cache=True)
def rows_above(gains, threshold):
    """Return the rows whose gain is above the threshold, in order."""
    rows = np.empty(len(gains), np.int64)
    found = 0
    for row in range(len(gains)):
        rows[found] = row
        found += gains[row] > threshold
    return rows[:found]
