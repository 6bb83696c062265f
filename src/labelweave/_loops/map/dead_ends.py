"""Dead ends: labels whose value is decided whatever the free labels around them are.

A label's advantage is its own score plus what its cliques gain when it turns from 0 to 1; if that
has one sign for all states of the other free labels, some maximum has the label at that value (Desmet,
De Maeyer, Hazes and Lasters, "The dead-end elimination theorem and its use in protein side-chain
positioning", Nature 356, 1992, for two states).  Labels that are decided decide others.
"""

from __future__ import annotations

from labelweave._loops.compiling import njit
from labelweave._loops.map.arrays import (
    BIT,
    CLIQUE,
    FIXED,
    INNER,
    QUEUE,
    QUEUE_FIRST,
    QUEUE_LENGTH,
    QUEUED,
    SINGLE,
    TRAIL,
    TRAIL_LENGTH,
)

__all__ = ["decide", "fix_label", "queue_label", "release"]


@njit(**INNER)
def queue_label(label, search):  # type: ignore[no-untyped-def]
    """Put a free label behind the labels to look at, unless it is there."""
    counts, n_labels = search.counts, search.flags.shape[1]
    if search.flags[FIXED, label] < 0 and not search.flags[QUEUED, label]:
        place = counts[QUEUE_FIRST] + counts[QUEUE_LENGTH]
        search.labels[QUEUE, place - n_labels if place >= n_labels else place] = label
        search.flags[QUEUED, label] = 1
        counts[QUEUE_LENGTH] += 1


@njit(**INNER)
def fix_label(label, value, cliques, search):  # type: ignore[no-untyped-def]
    """Fix a free label, note it on the trail, and queue its neighbors."""
    search.flags[FIXED, label] = value
    search.labels[TRAIL, search.counts[TRAIL_LENGTH]] = label
    search.counts[TRAIL_LENGTH] += 1
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique = cliques.places[CLIQUE, place]
        for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
            queue_label(cliques.labels[slot], search)


@njit(**INNER)
def release(length, search):  # type: ignore[no-untyped-def]
    """Free the labels that were fixed since the trail had this length."""
    for place in range(length, search.counts[TRAIL_LENGTH]):
        search.flags[FIXED, search.labels[TRAIL, place]] = -1
    search.counts[TRAIL_LENGTH] = length


@njit(**SINGLE)
def _pair_range(own, other, tables, start):  # type: ignore[no-untyped-def]
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
def _clique_range(own, first, end, labels, tables, start, fixed):  # type: ignore[no-untyped-def]
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
def _advantage(label, cliques, unary, tables, fixed):  # type: ignore[no-untyped-def]
    least, largest = unary[label], unary[label]
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique, own = cliques.places[CLIQUE, place], cliques.places[BIT, place]
        first, end, start = cliques.starts[clique], cliques.starts[clique + 1], cliques.table_starts[clique]
        if end - first == 2:
            low, high = _pair_range(own, fixed[cliques.labels[first + 1 - own]], tables, start)
        else:
            low, high = _clique_range(own, first, end, cliques.labels, tables, start, fixed)
        least += low
        largest += high
    return least, largest


@njit(**INNER)
def decide(cliques, unary, tables, search):  # type: ignore[no-untyped-def]
    """Look at the queued labels, fix those that are decided, until the queue is empty."""
    counts, flags = search.counts, search.flags
    while counts[QUEUE_LENGTH] > 0:
        label = search.labels[QUEUE, counts[QUEUE_FIRST]]
        counts[QUEUE_FIRST] = (counts[QUEUE_FIRST] + 1) % flags.shape[1]
        counts[QUEUE_LENGTH] -= 1
        flags[QUEUED, label] = 0
        if flags[FIXED, label] < 0:
            least, largest = _advantage(label, cliques, unary, tables, flags[FIXED])
            if largest <= 0.0:
                fix_label(label, 0, cliques, search)
            elif least >= 0.0:
                fix_label(label, 1, cliques, search)
