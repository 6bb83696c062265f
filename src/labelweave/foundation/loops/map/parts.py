"""One connected part of the free labels: gathered, improved label by label, and bounded.

A narrow part is eliminated, others are bounded by max-product linear programming on the rest:
Globerson and Jaakkola, "Fixing max-product: convergent message passing algorithms for MAP LP-relaxations",
NIPS 2007; their edge updates, for cliques of any size.  For any messages ``d_ck`` from cliques to labels

    D(d) = sum_k max(0, b_k) + sum_c max_y [theta_c(y) - sum_k d_ck y_k],    b_k = h_k + sum_c d_ck,

is an upper bound of the maximum.  A step minimizes D over the messages of one clique c of m labels.  With
``T(y) = theta_c(y) + sum_k (b_k - d_ck) y_k`` and ``T_k(s) = max of T(y) with y_k = s``, no choice of them
can bring the terms of c and of its labels below max T, and ``b_k = (T_k(1) - T_k(0)) / m`` attains it: the
labels then contribute ``mean_k max(0, T_k(1) - T_k(0))`` and the clique ``mean_k T_k(0)``, together max T.
So D never increases.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE
from labelweave.foundation.loops.map.elimination import eliminate_residual, order_residual

_STALLED = 1e-3  # fraction of the gap: a sweep that gains less is the last


@njit(**INNER)
def table_entry(clique, cliques, tables, labels):
    """Return a clique's score; NaN if a label is free (-1)."""
    state, first = 0, cliques.starts[clique]
    for slot in range(first, cliques.starts[clique + 1]):
        value = labels[cliques.labels[slot]]
        if value < 0:
            return np.nan
        state |= value << (slot - first)
    return tables[cliques.table_starts[clique] + state]


@njit(**INNER)
def _flip_gain(label, cliques, unary, tables, labels):
    """Return the gain of flipping a label; 0 if that may be rounding, which would be undone repeatedly."""
    old, size = labels[label], abs(unary[label])
    gain = unary[label] if old == 0 else -unary[label]
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique = cliques.places[place].clique
        before = table_entry(clique, cliques, tables, labels)
        labels[label] = 1 - old
        after = table_entry(clique, cliques, tables, labels)
        labels[label] = old
        gain += after - before
        size += abs(after) + abs(before)
    return gain if gain > 1e-14 * size else 0.0


@njit(**INNER)
def improve_part(cliques, unary, tables, labels, residual):
    """Flip single labels of the last listed part while that raises the score."""
    is_better = True
    while is_better:
        is_better = False
        for number in range(residual.counts.labels):
            label = residual.labels[number]
            if _flip_gain(label, cliques, unary, tables, labels) > 0.0:
                labels[label] = 1 - labels[label]
                is_better = True


@njit(**INNER)
def score_labels(cliques, unary, tables, labels):
    score = 0.0
    for label in range(len(labels)):
        if labels[label] > 0:
            score += unary[label]
    for clique in range(len(cliques.starts) - 1):
        score += table_entry(clique, cliques, tables, labels)
    return score


@njit(**INNER)
def take_connected(start, cliques, search, residual):
    """List the free labels that are connected to ``start`` and mark them with the current stamp."""
    stamp, labels = search.counts.stamp, residual.labels
    labels[0] = start
    search.labels[start].mark = stamp
    count, done = 1, 0
    while done < count:
        label = labels[done]
        search.labels[label].number = done
        done += 1
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[place].clique
            for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
                other = cliques.labels[slot]
                if search.fixed[other] < 0 and search.labels[other].mark != stamp:
                    search.labels[other].mark = stamp
                    labels[count] = other
                    count += 1
    residual.counts.labels = count


@njit(**SINGLE)
def _list_free(clique, cliques, search, residual):
    """Append the free labels of a clique to the members; return their number and the others' state."""
    first, begin = cliques.starts[clique], residual.counts.members
    n_free, base = 0, 0
    for slot in range(first, cliques.starts[clique + 1]):
        label = cliques.labels[slot]
        value = search.fixed[label]
        if value >= 0:
            base |= value << (slot - first)
        else:
            residual.members[begin + n_free].member = search.labels[label].number
            residual.members[begin + n_free].slot = slot
            n_free += 1
    return n_free, base


@njit(**SINGLE)
def _copy_entries(first, n_free, source, tables, residual):
    """Copy the entries of a table that agree with fixed labels; ``source`` is that of state 0."""
    begin, entry = residual.counts.members, residual.counts.entries
    for state in range(1 << n_free):
        place = source
        for bit in range(n_free):
            if (state >> bit) & 1:
                place += 1 << (residual.members[begin + bit].slot - first)
        residual.tables[entry + state] = tables[place]


@njit(**SINGLE)
def _add_clique(clique, cliques, tables, search, residual):
    """Add a clique with free labels; return the resulting constant."""
    counts, first = residual.counts, cliques.starts[clique]
    n_free, base = _list_free(clique, cliques, search, residual)
    source = cliques.table_starts[clique] + base
    if n_free == 1:
        step = 1 << (residual.members[counts.members].slot - first)
        residual.unary[residual.members[counts.members].member] += tables[source + step] - tables[source]
        return tables[source]
    _copy_entries(first, n_free, source, tables, residual)
    factor = counts.factors
    residual.factors[factor].member_start = counts.members
    residual.factors[factor].table_start = counts.entries
    counts.factors += 1
    counts.members += n_free
    counts.entries += 1 << n_free
    residual.factors[factor + 1].member_start = counts.members
    return 0.0


@njit(**INNER)
def gather_residual(cliques, unary, tables, search, residual):
    """Build the problem of the labels that :func:`take_connected` listed; return its constant."""
    counts, stamp, constant = residual.counts, search.counts.stamp, 0.0
    counts.factors, counts.members, counts.entries = 0, 0, 0
    for number in range(counts.labels):
        residual.unary[number] = unary[residual.labels[number]]
    for number in range(counts.labels):
        label = residual.labels[number]
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[place].clique
            if search.cliques[clique].mark != stamp:
                search.cliques[clique].mark = stamp
                constant += _add_clique(clique, cliques, tables, search, residual)
    counts.cliques = counts.factors
    return constant


@njit(**SINGLE)
def _pass_pair(begin, start, members, tables, shifts, beliefs):
    """Update the messages of a clique of two labels; return its term of the bound."""
    first, second = members[begin].member, members[begin + 1].member
    first_slot, second_slot = members[begin].slot, members[begin + 1].slot
    outside_first, outside_second = beliefs[first] - shifts[first_slot], beliefs[second] - shifts[second_slot]
    total_00, total_10 = tables[start], tables[start + 1] + outside_first
    total_01 = tables[start + 2] + outside_second
    total_11 = tables[start + 3] + outside_first + outside_second
    first_zero, second_zero = max(total_00, total_01), max(total_00, total_10)
    beliefs[first] = 0.5 * (max(total_10, total_11) - first_zero)
    beliefs[second] = 0.5 * (max(total_01, total_11) - second_zero)
    shifts[first_slot] = beliefs[first] - outside_first
    shifts[second_slot] = beliefs[second] - outside_second
    return 0.5 * (first_zero + second_zero)


@njit(**INNER)
def _write_totals(size, start, tables, scratch):
    """Write the totals of a clique's table and the changes for its ``size`` members that are 1."""
    scratch[0].total = tables[start]
    for bit in range(size):
        half, change = 1 << bit, scratch[bit].change
        for state in range(half):
            lower = scratch[state].total - tables[start + state]  # the contribution of the members below
            scratch[half + state].total = tables[start + half + state] + change + lower


@njit(**INNER)
def _best_totals(bit, size, scratch):
    """Return the largest totals of the states of ``size`` members in which one member is 0, and is 1."""
    zero = one = -np.inf
    for state in range(1 << size):
        if (state >> bit) & 1:
            one = max(one, scratch[state].total)
        else:
            zero = max(zero, scratch[state].total)
    return zero, one


@njit(**SINGLE)
def _pass_clique(begin, size, start, members, tables, shifts, beliefs, scratch):
    """Update the messages of a clique; return its term of the bound."""
    bound = 0.0
    for bit in range(size):
        place = begin + bit
        scratch[bit].change = beliefs[members[place].member] - shifts[members[place].slot]
    _write_totals(size, start, tables, scratch)
    for bit in range(size):
        zero, one = _best_totals(bit, size, scratch)
        belief = (one - zero) / size
        beliefs[members[begin + bit].member] = belief
        shifts[members[begin + bit].slot] = belief - scratch[bit].change
        bound += zero / size
    return bound


@njit(**SINGLE)
def _sweep(residual, shifts, beliefs, scratch):
    """Update all messages once; return the bound without its constant."""
    members, tables, bound = residual.members, residual.tables, 0.0
    for factor in range(residual.counts.cliques):
        begin, start = residual.factors[factor].member_start, residual.factors[factor].table_start
        size = residual.factors[factor + 1].member_start - begin
        if size == 2:
            bound += _pass_pair(begin, start, members, tables, shifts, beliefs)
        else:
            bound += _pass_clique(begin, size, start, members, tables, shifts, beliefs, scratch)
    for label in range(residual.counts.labels):
        bound += max(0.0, beliefs[label])
    return bound


@njit(**INNER)
def pass_messages(residual, constant, goal, sweeps, search):
    """Sweep until the bound is at most ``goal``, stalls, or sweeps are used up; return the bound."""
    beliefs, bound = search.beliefs, np.inf
    for label in range(residual.counts.labels):
        beliefs[label] = residual.unary[label]
    for place in range(residual.factors[residual.counts.cliques].member_start):
        beliefs[residual.members[place].member] += search.shifts[residual.members[place].slot]
    for sweep in range(sweeps):
        before = bound
        bound = constant + _sweep(residual, search.shifts, beliefs, search.scratch)
        if bound <= goal or (sweep > 0 and before - bound <= _STALLED * (before - goal)):
            break
    return bound


@njit(**INNER)
def write_drops(residual, search):
    """Write lower bounds of how much the bound falls if a label is set to 0, and to 1.

    All terms of D with the label are maximized with it fixed; the other terms stay.
    """
    scratch = search.scratch
    for place in range(residual.counts.labels):
        belief, label = search.beliefs[place], residual.labels[place]
        search.labels[label].drop_zero, search.labels[label].drop_one = max(0.0, belief), max(0.0, -belief)
    for factor in range(residual.counts.cliques):
        begin = residual.factors[factor].member_start
        size = residual.factors[factor + 1].member_start - begin
        for bit in range(size):
            scratch[bit].change = -search.shifts[residual.members[begin + bit].slot]
        _write_totals(size, residual.factors[factor].table_start, residual.tables, scratch)
        for bit in range(size):
            label = residual.labels[residual.members[begin + bit].member]
            zero, one = _best_totals(bit, size, scratch)
            search.labels[label].drop_zero += max(0.0, one - zero)
            search.labels[label].drop_one += max(0.0, zero - one)


@njit(**INNER)
def _score_part(residual, constant, labels):
    score = constant
    for number in range(residual.counts.labels):
        if labels[residual.labels[number]] > 0:
            score += residual.unary[number]
    for factor in range(residual.counts.cliques):
        begin, entry = residual.factors[factor].member_start, residual.factors[factor].table_start
        for place in range(begin, residual.factors[factor + 1].member_start):
            entry += labels[residual.labels[residual.members[place].member]] << (place - begin)
        score += residual.tables[entry]
    return score


@njit(**SINGLE)
def _keep_rounded(cliques, unary, tables, constant, best, search, residual):
    """Round the beliefs, improve the resulting labels, keep them if they score above ``best``."""
    candidate = search.candidate
    for number in range(residual.counts.labels):
        label = residual.labels[number]
        residual.values[number] = candidate[label]
        candidate[label] = 1 if search.beliefs[number] > 0.0 else 0
    improve_part(cliques, unary, tables, candidate, residual)
    score = _score_part(residual, constant, candidate)
    if score > best:
        return score
    for number in range(residual.counts.labels):
        candidate[residual.labels[number]] = residual.values[number]
    return best


@njit(**SINGLE)
def _bound_part(cliques, unary, tables, limits, tolerance, constant, search, residual):
    """Bound a part and write labels for it; return the bound and whether the labels fall short of it."""
    candidate = search.candidate
    for number in range(residual.counts.labels):
        label = residual.labels[number]
        candidate[label] = search.incumbent[label]
    improve_part(cliques, unary, tables, candidate, residual)
    best = _score_part(residual, constant, candidate)
    bound = pass_messages(residual, constant, best + tolerance, limits.sweeps, search)
    best = _keep_rounded(cliques, unary, tables, constant, best, search, residual)
    if bound <= best + tolerance:
        return bound, False
    write_drops(residual, search)
    for number in range(residual.counts.labels):
        search.labels[residual.labels[number]].is_open = 1
    return bound, True


@njit(**INNER)
def settle_part(cliques, unary, tables, limits, tolerance, workspace):
    """Write candidate labels of the last listed part; return its bound and whether it stays open.

    With a negative ``tolerance`` a part that is too wide is skipped.
    """
    search, residual, order = workspace.search, workspace.residual, workspace.order
    constant = gather_residual(cliques, unary, tables, search, residual)
    if limits.states > 0 and order_residual(residual, order, limits.width, limits.states):
        value = eliminate_residual(residual, order)
        for number in range(residual.counts.labels):
            search.candidate[residual.labels[number]] = residual.values[number]
        return constant + value, False
    if tolerance < 0.0:
        return 0.0, True
    return _bound_part(cliques, unary, tables, limits, tolerance, constant, search, residual)
