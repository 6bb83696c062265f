"""Exact inference by eliminating labels, in a fixed order or one chosen at run time.

Bucket elimination (Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial
Intelligence 113, 1999): a bucket's belief is the sum of its label's score, of its cliques and of the
messages of earlier buckets; its message is the maximum over its own label.  A label that is clamped has one
state to choose from.

The order at run time takes a label of minimum degree first.  Sets of labels are bits of integers,
and the attempt stops if tables would exceed the limit.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE, WORD_BITS


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
    """Write the labels of a maximum, last bucket first; ties go to the lower state."""
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
    """Add to a bucket's belief the rest of its parent's, as a function of the separator."""
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
    """Write max-marginal differences after :func:`pass_up`, overwriting its beliefs.

    States that a clamp forbids are worth -inf, so the margin of a clamped label is infinite.
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


@njit(**INNER)
def _popcount(word):
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24) & 0xFF


@njit(**SINGLE)
def _write_neighbors(residual, neighbors, labels, n_words):
    for label in range(residual.counts.labels):
        for word in range(n_words):
            neighbors[label, word] = 0
    for factor in range(residual.counts.cliques):
        begin, end = residual.factors[factor].member_start, residual.factors[factor + 1].member_start
        for one in range(begin, end):
            for other in range(begin, end):
                if one != other:
                    label, place = residual.members[one].member, residual.members[other].member
                    neighbors[label, place // WORD_BITS] |= 1 << (place % WORD_BITS)
    for label in range(residual.counts.labels):
        labels[label].degree = 0
        for word in range(n_words):
            labels[label].degree += _popcount(neighbors[label, word])


@njit(**SINGLE)
def _least_degree(labels, n_labels):
    """Return the remaining label with the fewest neighbors; eliminated ones have degree -1."""
    best = -1
    for label in range(n_labels):
        degree = labels[label].degree
        if degree >= 0 and (best < 0 or degree < labels[best].degree):
            best = label
            if degree <= 1:
                break
    return best


@njit(**SINGLE)
def _list_bits(label, neighbors, n_words, target, start):
    """Write the neighbors of a label, ascending, from ``start`` on; return their end."""
    for word in range(n_words):
        rest = neighbors[label, word]
        while rest:
            lowest = rest & -rest
            target[start] = word * WORD_BITS + _popcount(lowest - 1)
            start += 1
            rest ^= lowest
    return start


@njit(**SINGLE)
def _connect(gone, begin, end, separators, neighbors, labels, n_words):
    for place in range(begin, end):
        label, degree = separators[place], 0
        for word in range(n_words):
            neighbors[label, word] |= neighbors[gone, word]
        neighbors[label, label // WORD_BITS] &= ~(1 << (label % WORD_BITS))
        neighbors[label, gone // WORD_BITS] &= ~(1 << (gone % WORD_BITS))
        for word in range(n_words):
            degree += _popcount(neighbors[label, word])
        labels[label].degree = degree


@njit(**INNER)
def order_residual(residual, order, width, most_states):
    """Choose an order; return whether its separators have at most ``width`` labels each.

    Their messages together may have at most ``most_states`` entries.
    """
    n_labels, rows, neighbors = residual.counts.labels, order.labels, order.neighbors
    if n_labels > len(neighbors):
        return False
    n_words, total = (n_labels + WORD_BITS - 1) // WORD_BITS, 0
    _write_neighbors(residual, neighbors, rows, n_words)
    rows[0].separator_start = 0
    for step in range(n_labels):
        label = _least_degree(rows, n_labels)
        degree, begin = rows[label].degree, rows[step].separator_start
        total += 1 << min(degree, 40)
        if degree > width or total > most_states:
            return False
        rows[step].label, rows[label].position, rows[label].degree = label, step, -1
        end = _list_bits(label, neighbors, n_words, order.separators, begin)
        rows[step + 1].separator_start = end
        _connect(label, begin, end, order.separators, neighbors, rows, n_words)
    return True


@njit(**INNER)
def _give_to_first(factor, residual, rows):
    """Assign a factor to the bucket of the member that is eliminated first."""
    first = residual.counts.labels
    for place in range(residual.factors[factor].member_start, residual.factors[factor + 1].member_start):
        first = min(first, rows[residual.members[place].member].position)
    residual.factors[factor].next_factor = rows[first].head
    rows[first].head = factor


@njit(**SINGLE)
def _add_factor(factor, residual, order, n_bits):
    """Add a factor to the belief; ``place`` maps a label to its bit of the bucket."""
    states, belief, tables = order.states, order.belief, residual.tables
    for bit in range(n_bits):
        states[bit].stride = 0
    begin = residual.factors[factor].member_start
    for place in range(begin, residual.factors[factor + 1].member_start):
        bit = order.labels[residual.members[place].member].place
        states[bit].stride = 1 << (place - begin)
    states[0].index = residual.factors[factor].table_start
    belief[0] += tables[states[0].index]
    for bit in range(n_bits):
        half, stride = 1 << bit, states[bit].stride
        for state in range(half):
            index = states[state].index + stride
            states[half + state].index = index
            belief[half + state] += tables[index]


@njit(**SINGLE)
def _fill_belief(step, residual, order):
    rows, belief = order.labels, order.belief
    label, begin, end = rows[step].label, rows[step].separator_start, rows[step + 1].separator_start
    rows[label].place = 0
    for place in range(begin, end):
        rows[order.separators[place]].place = 1 + place - begin
    for state in range(1 << (end - begin)):
        belief[2 * state] = 0.0
        belief[2 * state + 1] = residual.unary[label]
    factor = rows[step].head
    while factor >= 0:
        _add_factor(factor, residual, order, 1 + end - begin)
        factor = residual.factors[factor].next_factor


@njit(**SINGLE)
def _append_message(step, residual, order):
    """Maximize the belief over its label; append the message as a factor; return what is a constant."""
    counts, belief, tables, rows = residual.counts, order.belief, residual.tables, order.labels
    begin, end = rows[step].separator_start, rows[step + 1].separator_start
    factor, entry, first_choice = counts.factors, counts.entries, rows[step].choice_start
    for state in range(1 << (end - begin)):
        is_one = belief[2 * state + 1] > belief[2 * state]
        order.choices[first_choice + state] = is_one
        tables[entry + state] = belief[2 * state + 1] if is_one else belief[2 * state]
    if begin == end:
        return tables[entry]
    residual.factors[factor].member_start, residual.factors[factor].table_start = counts.members, entry
    for place in range(begin, end):
        residual.members[counts.members + place - begin].member = order.separators[place]
    counts.factors += 1
    counts.members += end - begin
    counts.entries += 1 << (end - begin)
    residual.factors[factor + 1].member_start = counts.members
    _give_to_first(factor, residual, rows)
    return 0.0


@njit(**SINGLE)
def _read_choices(residual, order):
    rows, values = order.labels, residual.values
    for step in range(residual.counts.labels - 1, -1, -1):
        begin, state = rows[step].separator_start, 0
        for place in range(begin, rows[step + 1].separator_start):
            state |= values[order.separators[place]] << (place - begin)
        values[rows[step].label] = order.choices[rows[step].choice_start + state]


@njit(**INNER)
def eliminate_residual(residual, order):
    """Write the values of a maximum in the order of :func:`order_residual`; return its score."""
    n_labels, rows, value = residual.counts.labels, order.labels, 0.0
    for step in range(n_labels):
        rows[step].head = -1
    for factor in range(residual.counts.cliques):
        _give_to_first(factor, residual, rows)
    rows[0].choice_start = 0
    for step in range(n_labels):
        _fill_belief(step, residual, order)
        value += _append_message(step, residual, order)
        width = rows[step + 1].separator_start - rows[step].separator_start
        rows[step + 1].choice_start = rows[step].choice_start + (1 << width)
    _read_choices(residual, order)
    return value
