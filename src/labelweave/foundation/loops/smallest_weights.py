"""Taking the smallest weights of labels away, and going back where that was too many."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit


@njit(**LOOP)
def _smallest_above(sizes, count, place):
    """Give the number that would stand at a place if the first ``count`` were sorted, by quickselect."""
    low, high = 0, count - 1
    while low < high:
        pivot, left, right = sizes[(low + high) // 2], low, high
        while left <= right:
            while sizes[left] < pivot:
                left += 1
            while sizes[right] > pivot:
                right -= 1
            if left <= right:
                sizes[left], sizes[right] = sizes[right], sizes[left]
                left += 1
                right -= 1
        if place <= right:
            high = right
        elif place >= left:
            low = left
        else:
            break
    return sizes[place]


@njit(**LOOP)
def drop_smallest(weights, share, active):
    """Set the smallest weights (d, labels) of active labels to 0: keep a share of each, at least one less.

    Of equal ones the first features go.
    """
    d, n_labels = weights.shape
    sizes, counts = np.empty((n_labels, d), weights.dtype), np.zeros(n_labels, np.int64)
    for feature in range(d):  # labels inside, as they lie
        for label in range(n_labels):
            if weights[feature, label] != 0:
                sizes[label, counts[label]] = abs(weights[feature, label])
                counts[label] += 1
    largest, n_equal = np.full(n_labels, -1, weights.dtype), np.zeros(n_labels, np.int64)
    for label in range(n_labels):
        count = counts[label]
        if count == 0 or not active[label]:
            continue
        n_dropped = min(count, 1 + int((1 - share[label]) * count))
        largest[label], n_equal[label] = _smallest_above(sizes[label], count, n_dropped - 1), n_dropped
        for place in range(count):
            n_equal[label] -= sizes[label, place] < largest[label]
    for feature in range(d):
        for label in range(n_labels):
            size = abs(weights[feature, label])
            if size == 0 or size > largest[label] or (size == largest[label] and n_equal[label] == 0):
                continue
            n_equal[label] -= size == largest[label]
            weights[feature, label] = 0


@njit(**LOOP)
def copy_labels(target, source, chosen):
    """Copy the columns of chosen labels; both tables (rows, labels)."""
    for row in range(len(target)):
        for label in range(len(chosen)):
            target[row, label] = source[row, label] if chosen[label] else target[row, label]
