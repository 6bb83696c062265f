"""Taking the smallest weights of labels away."""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import LOOP, njit


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
    sizes = np.empty(len(weights), weights.dtype)
    for label in range(len(active)):
        count = 0
        if active[label]:
            for feature in range(len(weights)):
                if weights[feature, label] != 0:
                    sizes[count] = abs(weights[feature, label])
                    count += 1
        if count == 0:
            continue
        n_dropped = min(count, 1 + int((1 - share[label]) * count))
        largest, n_equal = _smallest_above(sizes, count, n_dropped - 1), n_dropped
        for place in range(count):
            n_equal -= sizes[place] < largest
        for feature in range(len(weights)):
            size = abs(weights[feature, label])
            if size == 0 or size > largest or (size == largest and n_equal == 0):
                continue
            n_equal -= size == largest
            weights[feature, label] = 0
