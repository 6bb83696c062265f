"""Branch and bound over the labels that no simpler method decides.

A node fixes dead ends, eliminates narrow connected parts, bounds the others by message
passing, and improves the best labels found.  A label whose other value bounds the score below the best is
also fixed.  The rest is split on its least decided label, the more probable value first.

**Dead ends** are labels whose value does not depend on the free labels around them.
A label's advantage is its own score plus the gain of its cliques when it turns from 0 to 1; if it
has one sign for all states of the other free labels, some maximum has the label at that value (Desmet,
De Maeyer, Hazes and Lasters, "The dead-end elimination theorem and its use in protein side-chain
positioning", Nature 356, 1992, for two states).  Decided labels may decide others.

**Stakes** show which scores of bad labelings do not affect the rest.
A label's stake is the smaller of its largest gain and its largest loss when it is turned on.  An
entry such as -1e10, which forbids a combination, makes only one of the two large.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE
from labelweave.foundation.loops.map.parts import settle_part, table_entry, take_connected

_SAME = 1e-9  # relative to the stakes: smaller differences do not matter
_ROUNDING_OF_SCORES = 1e-15  # relative to a score: the error of sums
_ROUNDING = 1e-12  # relative to all scores: closer bounds are equal, unless that is too much


@njit(**INNER)
def queue_label(label, search):
    """Append a free label to the queue, unless it is there."""
    counts, n_labels = search.counts, len(search.fixed)
    if search.fixed[label] < 0 and not search.labels[label].queued:
        place = counts.queue_first + counts.queue
        search.lists[place - n_labels if place >= n_labels else place].queue = label
        search.labels[label].queued = 1
        counts.queue += 1


@njit(**INNER)
def fix_label(label, is_on, cliques, search):
    """Fix a free label, add it to the trail, and queue its neighbors."""
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
    """Return the smallest and largest gain of bit ``own`` among four states; ``other`` is -1 if free."""
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
    """Return the smallest and largest gain of bit ``own`` over the states that agree with fixed labels."""
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
    """Check the queued labels and fix decided ones, until the queue is empty."""
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


@njit(**SINGLE)
def _gains(bit, size, start, tables):
    """Return the smallest and largest gain of a bit in a table of ``size`` labels."""
    least, largest, step = np.inf, -np.inf, 1 << bit
    for state in range(1 << size):
        if not state & step:
            gain = tables[start + state + step] - tables[start + state]
            least, largest = min(least, gain), max(largest, gain)
    return least, largest


@njit(**SINGLE)
def _add_factor(factor, search, residual):
    """Add a factor to the smallest and largest gains of its labels; return the size of its best entry."""
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
    """Return the smallest relevant difference of bounds and scores; overwrites the drops in ``residual``."""
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
    return _SAME * stake + _ROUNDING_OF_SCORES * size


@njit(**INNER)
def _core_score(cliques, unary, tables, labels, search):
    """Score the core's labels and cliques; free ones (-1) are ignored."""
    score = 0.0
    for place in range(search.counts.core):
        label = search.lists[place].core
        if labels[label] > 0:
            score += unary[label]
    for place in range(search.counts.core_cliques):
        entry = table_entry(search.cliques[place].core, cliques, tables, labels)
        if not np.isnan(entry):
            score += entry
    return score


@njit(**SINGLE)
def _add_core_clique(clique, cliques, tables, search):
    """Store a clique of the core and the values around it; return the size of its table."""
    search.cliques[search.counts.core_cliques].core = clique
    search.counts.core_cliques += 1
    largest = 0.0
    for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
        label = cliques.labels[slot]
        if search.fixed[label] >= 0:
            search.candidate[label] = search.incumbent[label] = search.fixed[label]
    for entry in range(cliques.table_starts[clique], cliques.table_starts[clique + 1]):
        largest = max(largest, abs(tables[entry]))
    return largest


@njit(**SINGLE)
def _list_core(cliques, unary, tables, search, residual):
    """Store the last listed labels as the core, with their cliques; return the size of their scores."""
    counts, size = search.counts, 0.0
    counts.core, counts.core_cliques = residual.counts.labels, 0
    counts.stamp += 1
    for number in range(counts.core):
        label = residual.labels[number]
        search.lists[number].core = label
        size += abs(unary[label])
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[place].clique
            if search.cliques[clique].mark != counts.stamp:
                search.cliques[clique].mark = counts.stamp
                size += _add_core_clique(clique, cliques, tables, search)
    return size


@njit(**SINGLE)
def _settle_parts(cliques, unary, tables, limits, tolerance, workspace):
    """Settle each connected part of the core's free labels; return the bound and whether one is open."""
    search = workspace.search
    bound = _core_score(cliques, unary, tables, search.fixed, search)
    search.counts.stamp += 1
    is_open = False
    for place in range(search.counts.core):
        label = search.lists[place].core
        search.labels[label].is_open = 0
        search.candidate[label] = search.fixed[label]
    for place in range(search.counts.core):
        label = search.lists[place].core
        if search.fixed[label] < 0 and search.labels[label].mark != search.counts.stamp:
            take_connected(label, cliques, search, workspace.residual)
            part, part_is_open = settle_part(cliques, unary, tables, limits, tolerance, workspace)
            bound += part
            is_open |= part_is_open
    return bound, is_open


@njit(**SINGLE)
def _keep_candidate(cliques, unary, tables, best, search):
    score = _core_score(cliques, unary, tables, search.candidate, search)
    if score <= best:
        return best
    for place in range(search.counts.core):
        label = search.lists[place].core
        search.incumbent[label] = search.candidate[label]
    return score


@njit(**SINGLE)
def _fix_by_bounds(cliques, slack, search):
    """Fix labels of open parts whose other value costs at least ``slack``; return the smallest such cost."""
    least = np.inf
    for place in range(search.counts.core):
        label = search.lists[place].core
        cost = max(search.labels[label].drop_zero, search.labels[label].drop_one)
        if search.fixed[label] < 0 and search.labels[label].is_open and cost >= slack:
            least = min(least, cost)
            fix_label(label, search.labels[label].drop_one != cost, cliques, search)
    return least


@njit(**SINGLE)
def _explore(cliques, unary, tables, limits, tolerance, best, workspace):
    """Bound a node and improve the best labels.

    Returns its bound, the best score, the largest bound of pruned values, and whether the node is open.
    """
    cut, search = -np.inf, workspace.search
    while True:
        decide(cliques, unary, tables, search)
        bound, is_open = _settle_parts(cliques, unary, tables, limits, tolerance, workspace)
        best = _keep_candidate(cliques, unary, tables, best, search)
        if not is_open or bound <= best + tolerance:
            return bound, best, cut, False
        if limits.nodes <= 1:
            return bound, best, cut, True
        least = _fix_by_bounds(cliques, bound - best - tolerance, search)
        if least == np.inf:
            return bound, best, cut, True
        cut = max(cut, bound - least)


@njit(**SINGLE)
def _open_cliques(label, cliques, search):
    """Count the cliques that a label shares with other free labels."""
    count = 0
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique, is_open = cliques.places[place].clique, False
        for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
            other = cliques.labels[slot]
            is_open |= other != label and search.fixed[other] < 0
        count += is_open
    return count


@njit(**SINGLE)
def _choose_label(cliques, search):
    """Choose the label of an open part with the most open cliques; ties go to the least decided one."""
    chosen, most, least = -1, -1, np.inf
    for place in range(search.counts.core):
        label = search.lists[place].core
        if search.fixed[label] < 0 and search.labels[label].is_open:
            cost = max(search.labels[label].drop_zero, search.labels[label].drop_one)
            count = _open_cliques(label, cliques, search)
            if count > most or (count == most and cost < least):
                chosen, most, least = label, count, cost
    return chosen


@njit(**SINGLE)
def _descend(cliques, depth, bound, search):
    """Split on a label and take its more probable value."""
    label = _choose_label(cliques, search)
    zero, one = search.labels[label].drop_zero, search.labels[label].drop_one
    is_on = zero > one if zero != one else search.incumbent[label] == 1
    search.stack[depth].label = label
    search.stack[depth].trail = search.counts.trail
    search.stack[depth].is_on = is_on
    search.stack[depth].tried = 0
    search.stack[depth].bound = bound - (zero if is_on else one)
    fix_label(label, is_on, cliques, search)


@njit(**SINGLE)
def _climb(cliques, depth, limit, is_spent, search):
    """Backtrack to the last untried value whose bound exceeds ``limit``, and take it.

    Returns the new depth, 0 if none is left, and the largest bound of untried values.
    """
    cut = -np.inf
    while depth > 0:
        depth -= 1
        release(search.stack[depth].trail, search)
        if search.stack[depth].tried:
            continue
        bound = search.stack[depth].bound
        if is_spent or bound <= limit:
            cut = max(cut, bound)
            continue
        search.stack[depth].tried = 1
        fix_label(search.stack[depth].label, search.stack[depth].is_on == 0, cliques, search)
        return depth + 1, cut
    return 0, cut


@njit(**INNER)
def search_core(cliques, unary, tables, limits, workspace):
    """Maximize over the labels of the last gathered problem and fix them; return the gap to the bound.

    All labels around them are fixed.  ``search.incumbent`` has starting labels.
    """
    search, finest = workspace.search, finest_difference(workspace.search, workspace.residual)
    tolerance = min(finest, _ROUNDING * _list_core(cliques, unary, tables, search, workspace.residual))
    best = _core_score(cliques, unary, tables, search.incumbent, search)
    cut, depth, nodes, length = -np.inf, 0, 0, search.counts.trail
    while True:
        nodes += 1
        bound, best, lost, is_open = _explore(cliques, unary, tables, limits, tolerance, best, workspace)
        cut = max(cut, lost)
        if is_open and nodes < limits.nodes:
            _descend(cliques, depth, bound, search)
            depth += 1
            continue
        cut = max(cut, bound)
        depth, lost = _climb(cliques, depth, best + tolerance, nodes >= limits.nodes, search)
        cut = max(cut, lost)
        if depth == 0:
            break
    release(length, search)
    for place in range(search.counts.core):
        label = search.lists[place].core
        search.fixed[label] = search.incumbent[label]
    return cut - best if cut - best > tolerance else 0.0
