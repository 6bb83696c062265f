"""Dead ends: labels whose value is decided whatever the free labels around them are.

A label's advantage is its own score plus what its cliques gain when it turns from 0 to 1; if that
has one sign for all states of the other free labels, some maximum has the label at that value (Desmet,
De Maeyer, Hazes and Lasters, "The dead-end elimination theorem and its use in protein side-chain
positioning", Nature 356, 1992, for two states).  Labels that are decided decide others.
"""

from __future__ import annotations

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE


@njit(**INNER)
def queue_label(label, search):
    """Put a free label behind the labels to look at, unless it is there."""
    counts, n_labels = search.counts, len(search.fixed)
    if search.fixed[label] < 0 and not search.labels[label].queued:
        place = counts.queue_first + counts.queue
        search.lists[place - n_labels if place >= n_labels else place].queue = label
        search.labels[label].queued = 1
        counts.queue += 1


@njit(**INNER)
def fix_label(label, is_on, cliques, search):
    """Fix a free label, note it on the trail, and queue its neighbors."""
    search.fixed[label] = is_on
    search.lists[search.counts.trail].trail = label
    search.counts.trail += 1
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique = cliques.places[place].clique
        for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
            queue_label(cliques.labels[slot], search)


@njit(**INNER)
def release(length, search):
    """Free the labels that were fixed since the trail had this length."""
    for place in range(length, search.counts.trail):
        search.fixed[search.lists[place].trail] = -1
    search.counts.trail = length


@njit(**SINGLE)
def _pair_range(own, other, tables, start):
    """Return the least and largest gain of bit ``own`` in a table of four states; ``other`` is -1 if free."""
    step, side = (1, 2) if own == 0 else (2, 1)
    gain_zero = tables[start + step] - tables[start]
    gain_one = tables[start + 3] - tables[start + side]
    if other == 0:
        return gain_zero, gain_zero
    if other == 1:
        return gain_one, gain_one
    return min(gain_zero, gain_one), max(gain_zero, gain_one)


@njit(**SINGLE)
def _clique_range(own, first, end, labels, tables, start, fixed):
    """Return the least and largest gain of bit ``own`` over the states that agree with what is fixed."""
    mask, bits = 1 << own, 0
    for slot in range(first, end):
        value = fixed[labels[slot]]
        if value >= 0:
            mask |= 1 << (slot - first)
            bits |= value << (slot - first)
    least, largest, is_first = 0.0, 0.0, True
    for state in range(1 << (end - first)):
        if state & mask == bits:
            gain = tables[start + (state | (1 << own))] - tables[start + state]
            least = gain if is_first else min(least, gain)
            largest = gain if is_first else max(largest, gain)
            is_first = False
    return least, largest


@njit(**SINGLE)
def _advantage(label, cliques, unary, tables, fixed):
    least, largest = unary[label], unary[label]
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique, own = cliques.places[place].clique, cliques.places[place].bit
        first, end, start = cliques.starts[clique], cliques.starts[clique + 1], cliques.table_starts[clique]
        if end - first == 2:
            low, high = _pair_range(own, fixed[cliques.labels[first + 1 - own]], tables, start)
        else:
            low, high = _clique_range(own, first, end, cliques.labels, tables, start, fixed)
        least += low
        largest += high
    return least, largest


@njit(**INNER)
def decide(cliques, unary, tables, search):
    """Look at the queued labels, fix those that are decided, until the queue is empty."""
    counts = search.counts
    while counts.queue > 0:
        label = search.lists[counts.queue_first].queue
        counts.queue_first = (counts.queue_first + 1) % len(search.fixed)
        counts.queue -= 1
        search.labels[label].queued = 0
        if search.fixed[label] < 0:
            least, largest = _advantage(label, cliques, unary, tables, search.fixed)
            if largest <= 0.0 or least >= 0.0:
                fix_label(label, largest > 0.0, cliques, search)
