"""Elimination in an order that is chosen at run time: a label of least degree first.

Sets of labels are bits of integers.  The attempt ends where larger tables than allowed would be needed.
"""

from __future__ import annotations

from labelweave._loops.compiling import njit
from labelweave._loops.map.arrays import (
    CHOICE_START,
    CLIQUES,
    DEGREE,
    ENTRIES,
    FACTORS,
    HEAD,
    INDEX,
    INNER,
    LABELS,
    MEMBER,
    MEMBER_START,
    MEMBERS,
    NEXT_FACTOR,
    PLACE,
    POSITION,
    SEPARATOR_START,
    SINGLE,
    STEP_LABEL,
    STRIDE,
    TABLE_START,
    WORD_BITS,
)

__all__ = ["eliminate_residual", "order_residual"]


@njit(**INNER)
def _popcount(word):  # type: ignore[no-untyped-def]
    """Count the bits of a number below 2^32."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24) & 0xFF


@njit(**SINGLE)
def _write_neighbors(residual, neighbors, degrees, n_words):  # type: ignore[no-untyped-def]
    for label in range(residual.counts[LABELS]):
        for word in range(n_words):
            neighbors[label, word] = 0
    for factor in range(residual.counts[CLIQUES]):
        begin, end = residual.factors[MEMBER_START, factor], residual.factors[MEMBER_START, factor + 1]
        for one in range(begin, end):
            for other in range(begin, end):
                if one != other:
                    label, place = residual.members[MEMBER, one], residual.members[MEMBER, other]
                    neighbors[label, place // WORD_BITS] |= 1 << (place % WORD_BITS)
    for label in range(residual.counts[LABELS]):
        degrees[label] = 0
        for word in range(n_words):
            degrees[label] += _popcount(neighbors[label, word])


@njit(**SINGLE)
def _least_degree(degrees, n_labels):  # type: ignore[no-untyped-def]
    """Return the label that is left with the fewest neighbors; those that are gone have degree -1."""
    best = -1
    for label in range(n_labels):
        degree = degrees[label]
        if degree >= 0 and (best < 0 or degree < degrees[best]):
            best = label
            if degree <= 1:
                break
    return best


@njit(**SINGLE)
def _list_bits(label, neighbors, n_words, target, start):  # type: ignore[no-untyped-def]
    """Write the neighbors of a label, ascending, from ``start`` on; return where they end."""
    for word in range(n_words):
        rest = neighbors[label, word]
        while rest:
            lowest = rest & -rest
            target[start] = word * WORD_BITS + _popcount(lowest - 1)
            start += 1
            rest ^= lowest
    return start


@njit(**SINGLE)
def _connect(gone, begin, end, separators, neighbors, degrees, n_words):  # type: ignore[no-untyped-def]
    """Make the neighbors of an eliminated label neighbors of each other."""
    for place in range(begin, end):
        label, degree = separators[place], 0
        for word in range(n_words):
            neighbors[label, word] |= neighbors[gone, word]
        neighbors[label, label // WORD_BITS] &= ~(1 << (label % WORD_BITS))
        neighbors[label, gone // WORD_BITS] &= ~(1 << (gone % WORD_BITS))
        for word in range(n_words):
            degree += _popcount(neighbors[label, word])
        degrees[label] = degree


@njit(**INNER)
def order_residual(residual, order, width, most_states):  # type: ignore[no-untyped-def]
    """Choose an order; return whether its separators have at most ``width`` labels each.

    Their messages together may have at most ``most_states`` entries.
    """
    n_labels, rows, neighbors = residual.counts[LABELS], order.labels, order.neighbors
    if n_labels > len(neighbors):
        return False
    n_words, total = (n_labels + WORD_BITS - 1) // WORD_BITS, 0
    _write_neighbors(residual, neighbors, rows[DEGREE], n_words)
    rows[SEPARATOR_START, 0] = 0
    for step in range(n_labels):
        label = _least_degree(rows[DEGREE], n_labels)
        degree, begin = rows[DEGREE, label], rows[SEPARATOR_START, step]
        total += 1 << min(degree, 40)
        if degree > width or total > most_states:
            return False
        rows[STEP_LABEL, step], rows[POSITION, label], rows[DEGREE, label] = label, step, -1
        end = _list_bits(label, neighbors, n_words, order.separators, begin)
        rows[SEPARATOR_START, step + 1] = end
        _connect(label, begin, end, order.separators, neighbors, rows[DEGREE], n_words)
    return True


@njit(**INNER)
def _give_to_first(factor, residual, rows):  # type: ignore[no-untyped-def]
    """Hand a factor to the bucket of the member that is eliminated first."""
    first = residual.counts[LABELS]
    for place in range(residual.factors[MEMBER_START, factor], residual.factors[MEMBER_START, factor + 1]):
        first = min(first, rows[POSITION, residual.members[MEMBER, place]])
    residual.factors[NEXT_FACTOR, factor] = rows[HEAD, first]
    rows[HEAD, first] = factor


@njit(**SINGLE)
def _add_factor(factor, residual, order, n_bits):  # type: ignore[no-untyped-def]
    """Add a factor to the belief; the row ``PLACE`` says which bit of the bucket a label is."""
    states, belief, tables = order.states, order.belief, residual.tables
    for bit in range(n_bits):
        states[STRIDE, bit] = 0
    begin = residual.factors[MEMBER_START, factor]
    for place in range(begin, residual.factors[MEMBER_START, factor + 1]):
        bit = order.labels[PLACE, residual.members[MEMBER, place]]
        states[STRIDE, bit] = 1 << (place - begin)
    states[INDEX, 0] = residual.factors[TABLE_START, factor]
    belief[0] += tables[states[INDEX, 0]]
    for bit in range(n_bits):
        half, stride = 1 << bit, states[STRIDE, bit]
        for state in range(half):
            index = states[INDEX, state] + stride
            states[INDEX, half + state] = index
            belief[half + state] += tables[index]


@njit(**SINGLE)
def _fill_belief(step, residual, order):  # type: ignore[no-untyped-def]
    rows, belief = order.labels, order.belief
    label, begin, end = rows[STEP_LABEL, step], rows[SEPARATOR_START, step], rows[SEPARATOR_START, step + 1]
    rows[PLACE, label] = 0
    for place in range(begin, end):
        rows[PLACE, order.separators[place]] = 1 + place - begin
    for state in range(1 << (end - begin)):
        belief[2 * state] = 0.0
        belief[2 * state + 1] = residual.unary[label]
    factor = rows[HEAD, step]
    while factor >= 0:
        _add_factor(factor, residual, order, 1 + end - begin)
        factor = residual.factors[NEXT_FACTOR, factor]


@njit(**SINGLE)
def _append_message(step, residual, order):  # type: ignore[no-untyped-def]
    """Maximise the belief over its label; append the message as a factor; return what is a constant."""
    counts, belief, tables, rows = residual.counts, order.belief, residual.tables, order.labels
    begin, end = rows[SEPARATOR_START, step], rows[SEPARATOR_START, step + 1]
    factor, entry, first_choice = counts[FACTORS], counts[ENTRIES], rows[CHOICE_START, step]
    for state in range(1 << (end - begin)):
        is_one = belief[2 * state + 1] > belief[2 * state]
        order.choices[first_choice + state] = is_one
        tables[entry + state] = belief[2 * state + 1] if is_one else belief[2 * state]
    if begin == end:
        return tables[entry]
    residual.factors[MEMBER_START, factor], residual.factors[TABLE_START, factor] = counts[MEMBERS], entry
    for place in range(begin, end):
        residual.members[MEMBER, counts[MEMBERS] + place - begin] = order.separators[place]
    counts[FACTORS] += 1
    counts[MEMBERS] += end - begin
    counts[ENTRIES] += 1 << (end - begin)
    residual.factors[MEMBER_START, factor + 1] = counts[MEMBERS]
    _give_to_first(factor, residual, rows)
    return 0.0


@njit(**SINGLE)
def _read_choices(residual, order):  # type: ignore[no-untyped-def]
    rows, values = order.labels, residual.values
    for step in range(residual.counts[LABELS] - 1, -1, -1):
        begin, state = rows[SEPARATOR_START, step], 0
        for place in range(begin, rows[SEPARATOR_START, step + 1]):
            state |= values[order.separators[place]] << (place - begin)
        values[rows[STEP_LABEL, step]] = order.choices[rows[CHOICE_START, step] + state]


@njit(**INNER)
def eliminate_residual(residual, order):  # type: ignore[no-untyped-def]
    """Write the values of a maximum in the order of :func:`order_residual`; return its score."""
    n_labels, rows, value = residual.counts[LABELS], order.labels, 0.0
    for step in range(n_labels):
        rows[HEAD, step] = -1
    for factor in range(residual.counts[CLIQUES]):
        _give_to_first(factor, residual, rows)
    rows[CHOICE_START, 0] = 0
    for step in range(n_labels):
        _fill_belief(step, residual, order)
        value += _append_message(step, residual, order)
        width = rows[SEPARATOR_START, step + 1] - rows[SEPARATOR_START, step]
        rows[CHOICE_START, step + 1] = rows[CHOICE_START, step] + (1 << width)
    _read_choices(residual, order)
    return value
