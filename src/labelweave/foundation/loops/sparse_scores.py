"""Sparse weights with gap-encoded indices, scores of sparse rows, and the best labels of each row.

A gap is the difference of an index to the previous one in its row, the first to -1.  Gaps too large for
their type are split into steps of the largest gap, by entries whose value is 0.

The weights are stored by feature: those of feature j, by ascending label, are the entries
from ``starts[j]`` to ``stops[j]`` of ``weights``, in units of ``scales``; ``gaps`` has the difference of each
label to the previous one, for the first to ``before[j]``.  A feature with weights for
many labels is also row ``slots[j]`` of a ``table``, otherwise that is -1: adding a row is faster
than decoding positions.  A score is one sum in the order of the row's entries, for any other labels.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit

LOOP = {"nogil": True, "cache": True}


@njit(**LOOP)
def count_gaps(indptr, indices, largest, ends):
    """Count the entries of every row, with intermediate ones: ``ends`` (rows + 1,) is like ``indptr``."""
    ends[0] = 0
    for row in range(len(indptr) - 1):
        last, count = -1, 0
        for entry in range(indptr[row], indptr[row + 1]):
            index = int(indices[entry])  # differences in its own type would wrap in plain Python
            count += (index - last - 1) // largest + 1
            last = index
        ends[row + 1] = ends[row] + count


@njit(**LOOP)
def write_gaps(indptr, indices, values, largest, gaps, spread):
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
    for row in range(len(indptr) - 1):
        last = -1
        for entry in range(indptr[row], indptr[row + 1]):
            last += int(gaps[entry])
            indices[entry] = last


@njit(**LOOP)
def _score_row(
    indices, values, start, stop, starts, stops, before, gaps, weights, slots, table, first, scales,
    intercepts, scores,
):  # fmt: skip
    scores[:] = 0
    for entry in range(start, stop):
        value, feature = values[entry], indices[entry]
        slot = slots[feature]
        if slot >= 0:
            full = table[slot]
            for label in range(len(scores)):
                scores[label] += value * full[label]
        else:
            label = before[feature] - first
            for place in range(starts[feature], stops[feature]):
                label += gaps[place]
                scores[label] += value * weights[place]
    for label in range(len(scores)):
        scores[label] = scores[label] * scales[label] + intercepts[label]


@njit(**LOOP)
def score_rows(
    indptr, indices, values, starts, stops, before, gaps, weights, slots, table, first, scales, intercepts,
    scores,
):  # fmt: skip
    """Write the scores (rows, labels) of labels from ``first`` on."""
    for row in range(len(scores)):
        _score_row(
            indices, values, indptr[row], indptr[row + 1], starts, stops, before, gaps, weights, slots, table,
            first, scales, intercepts, scores[row],
        )  # fmt: skip


@njit(**LOOP)
def keep_best(
    indptr, indices, values, starts, stops, before, gaps, weights, slots, table, first, scales, intercepts,
    best, best_scores,
):  # fmt: skip
    """Insert the labels from ``first`` on into the best ones of each row, best first (rows, k).

    Among equal scores earlier labels stay ahead.
    """
    scores = np.empty(len(scales))
    last = best.shape[1] - 1
    for row in range(len(best)):
        _score_row(
            indices, values, indptr[row], indptr[row + 1], starts, stops, before, gaps, weights, slots, table,
            first, scales, intercepts, scores,
        )  # fmt: skip
        own, own_scores = best[row], best_scores[row]
        for label in range(len(scores)):
            score = scores[label]
            if score > own_scores[last]:
                place = last
                while place > 0 and score > own_scores[place - 1]:
                    own[place], own_scores[place] = own[place - 1], own_scores[place - 1]
                    place -= 1
                own[place], own_scores[place] = first + label, score
