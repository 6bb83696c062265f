"""Exact inference by eliminating labels in a fixed order: a pass up, a decoding, a pass down.

Bucket elimination (Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial
Intelligence 113, 1999): a bucket's belief is the sum of its label's score, of its cliques and of the
messages of earlier buckets; its message is the maximum over its own label.  A label that is clamped has one
state to choose from.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE


@njit(**SINGLE)
def _send_up(beliefs, belief, messages, message, size, clamped):
    for state in range(size):
        zero, one = beliefs[belief + 2 * state], beliefs[belief + 2 * state + 1]
        if clamped >= 0:
            messages[message + state] = one if clamped == 1 else zero
        else:
            messages[message + state] = one if one > zero else zero


@njit(**INNER)
def pass_up(buckets, first, end, unary, tables, clamp, beliefs, messages):
    """Write beliefs and messages of the buckets ``first`` to ``end``."""
    rows, factors, maps = buckets.rows, buckets.factors, buckets.maps
    for bucket in range(first, end):
        label, belief = rows[bucket].label, rows[bucket].belief
        size = 1 << rows[bucket].width
        for state in range(size):
            beliefs[belief + 2 * state] = 0.0
            beliefs[belief + 2 * state + 1] = unary[label]
        for factor in range(rows[bucket].first_factor, rows[bucket].end_factor):
            source = messages if factors[factor].from_messages else tables
            start, map_start = factors[factor].source, factors[factor].map_start
            for state in range(2 * size):
                beliefs[belief + state] += source[start + maps[map_start + state]]
        _send_up(beliefs, belief, messages, rows[bucket].message, size, clamp[label])


@njit(**INNER)
def choose_states(buckets, first, end, clamp, beliefs, labels):
    """Write the labels of a maximum, last bucket first; of equal states the lower one is taken."""
    rows, separators = buckets.rows, buckets.separators
    for bucket in range(end - 1, first - 1, -1):
        label, start = rows[bucket].label, rows[bucket].separator
        place = rows[bucket].belief
        for bit in range(rows[bucket].width):
            place += labels[separators[start + bit]] << (1 + bit)
        if clamp[label] >= 0:
            labels[label] = clamp[label]
        else:
            labels[label] = 1 if beliefs[place + 1] > beliefs[place] else 0


@njit(**SINGLE)
def _add_downward(buckets, bucket, beliefs, messages, downward):
    """Add to a bucket's belief what its parent knows apart from it, as a function of the separator."""
    rows, factors, maps = buckets.rows, buckets.factors, buckets.maps
    factor, size = rows[bucket].parent_factor, 1 << rows[bucket].width
    parent, start = factors[factor].owner, factors[factor].map_start
    for state in range(size):
        downward[state] = -np.inf
    for state in range(2 << rows[parent].width):
        place = maps[start + state]
        downward[place] = max(downward[place], beliefs[rows[parent].belief + state])
    belief, message = rows[bucket].belief, rows[bucket].message
    for state in range(size):
        change = downward[state] - messages[message + state]
        beliefs[belief + 2 * state] += change
        beliefs[belief + 2 * state + 1] += change


@njit(**INNER)
def pass_down(buckets, first, end, clamp, beliefs, messages, downward, margins):
    """Write max-marginal differences after :func:`pass_up`, in the place of its beliefs.

    The states that a clamp forbids are worth -inf, and so the margin of a clamped label is infinite.
    """
    rows = buckets.rows
    for bucket in range(end - 1, first - 1, -1):
        label, belief = rows[bucket].label, rows[bucket].belief
        size = 2 << rows[bucket].width
        if rows[bucket].parent_factor >= 0:
            _add_downward(buckets, bucket, beliefs, messages, downward)
        if clamp[label] >= 0:
            for state in range(1 - clamp[label], size, 2):
                beliefs[belief + state] = -np.inf
        best_zero, best_one = -np.inf, -np.inf
        for state in range(0, size, 2):
            best_zero = max(best_zero, beliefs[belief + state])
            best_one = max(best_one, beliefs[belief + state + 1])
        margins[label] = best_one - best_zero
