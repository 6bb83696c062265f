"""What is at stake in the problem that is left, which scores that no good labeling has do not change.

A label's stake is the smaller of the most that turning it on can gain and the most that it can lose.  An
entry such as -1e10, which forbids a combination, makes one of the two large and not the other.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE

_SAME = 1e-9  # of what is at stake: differences below matter to nobody
_ROUNDING = 1e-15  # of a score: what sums of some may be off


@njit(**SINGLE)
def _gains(bit, size, start, tables):
    """Return the least and largest gain of a bit in a table of ``size`` labels."""
    least, largest, step = np.inf, -np.inf, 1 << bit
    for state in range(1 << size):
        if not state & step:
            gain = tables[start + state + step] - tables[start + state]
            least, largest = min(least, gain), max(largest, gain)
    return least, largest


@njit(**SINGLE)
def _add_factor(factor, search, residual):
    """Add a factor to the least and largest gains of its labels; return the size of its best entry."""
    begin, start = residual.factors[factor].member_start, residual.factors[factor].table_start
    size, best = residual.factors[factor + 1].member_start - begin, -np.inf
    for bit in range(size):
        least, largest = _gains(bit, size, start, residual.tables)
        label = residual.labels[residual.members[begin + bit].member]
        search.labels[label].drop_zero += largest
        search.labels[label].drop_one -= least
    for state in range(1 << size):
        best = max(best, residual.tables[start + state])
    return abs(best)


@njit(**INNER)
def finest_difference(search, residual):
    """Return the least difference of bounds and scores that matters.

    Overwrites the drops of the labels in ``residual``.
    """
    stake = size = 0.0
    for number in range(residual.counts.labels):
        label, own = residual.labels[number], residual.unary[number]
        search.labels[label].drop_zero, search.labels[label].drop_one = own, -own
        size += max(0.0, own)
    for factor in range(residual.counts.cliques):
        size += _add_factor(factor, search, residual)
    for number in range(residual.counts.labels):
        label = residual.labels[number]
        stake += max(0.0, min(search.labels[label].drop_zero, search.labels[label].drop_one))
    return _SAME * stake + _ROUNDING * size
