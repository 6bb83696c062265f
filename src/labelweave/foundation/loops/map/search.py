"""Branch and bound over the labels that nothing easier decides.

A node fixes dead ends, eliminates the connected parts that are narrow, bounds the others by message
passing, and improves the best labels found.  A label whose other value bounds the score below the best is
fixed too.  What remains is split on its least decided label, the likelier value first.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE
from labelweave.foundation.loops.map.dead_ends import decide, fix_label, release
from labelweave.foundation.loops.map.labelings import table_entry
from labelweave.foundation.loops.map.parts import settle_part
from labelweave.foundation.loops.map.residual import take_connected
from labelweave.foundation.loops.map.stakes import finest_difference

_ROUNDING = 1e-12  # of the size of all scores: bounds that are closer are equal, unless that is too much


@njit(**INNER)
def _core_score(cliques, unary, tables, labels, search):
    """Score the core's labels and cliques; what is free (-1) counts for nothing."""
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
    """Keep a clique of the core and the values around it; return the size of its table."""
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
    """Keep the labels last listed as the core, with their cliques; return the size of their scores."""
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
    """Fix labels of open parts whose other value costs at least ``slack``; return the least such cost."""
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

    Returns its bound, the best score, the largest bound of what was cut off, and whether the node is open.
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
    """Choose the label of an open part with the most open cliques, of those the least decided one."""
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
    """Split on a label and take its likelier value."""
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
    """Go back to the last untried value whose bound exceeds ``limit``, and take it.

    Returns the new depth, 0 when nothing is left, and the largest bound of what was left untried.
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
    """Maximise over the labels whose problem was last gathered and fix them; return the gap to the bound.

    All labels around them are fixed.  ``search.incumbent`` has labels to start from.
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
