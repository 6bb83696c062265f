"""Max-product linear programming on what is left of a problem.

Globerson and Jaakkola, "Fixing max-product: convergent message passing algorithms for MAP LP-relaxations",
NIPS 2007; their edge updates, for cliques of any size.  For any messages ``d_ck`` from cliques to labels

    D(d) = sum_k max(0, b_k) + sum_c max_y [theta_c(y) - sum_k d_ck y_k],    b_k = h_k + sum_c d_ck,

is an upper bound of the maximum.  A step minimises D over the messages of one clique c of m labels.  With
``T(y) = theta_c(y) + sum_k (b_k - d_ck) y_k`` and ``T_k(s) = max of T(y) with y_k = s``, no choice of them
can bring the terms of c and of its labels below max T, and ``b_k = (T_k(1) - T_k(0)) / m`` attains it: the
labels then give ``mean_k max(0, T_k(1) - T_k(0))`` and the clique ``mean_k T_k(0)``, together max T.  So D
never rises.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE

_STALLED = 1e-3  # of the gap to close: a sweep that brings less is the last


@njit(**SINGLE)
def _pass_pair(begin, start, members, tables, shifts, beliefs):
    """Renew the messages of a clique of two labels; return its term of the bound."""
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
    """Write the totals of a clique's table and the changes of those of its ``size`` members that are 1."""
    scratch[0].total = tables[start]
    for bit in range(size):
        half, change = 1 << bit, scratch[bit].change
        for state in range(half):
            lower = scratch[state].total - tables[start + state]  # what the members below add
            scratch[half + state].total = tables[start + half + state] + change + lower


@njit(**INNER)
def _best_totals(bit, size, scratch):
    """Return the largest totals of the states of ``size`` members in which one is 0, and is 1."""
    zero = one = -np.inf
    for state in range(1 << size):
        if (state >> bit) & 1:
            one = max(one, scratch[state].total)
        else:
            zero = max(zero, scratch[state].total)
    return zero, one


@njit(**SINGLE)
def _pass_clique(begin, size, start, members, tables, shifts, beliefs, scratch):
    """Renew the messages of a clique; return its term of the bound."""
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
    """Renew all messages once; return the bound without its constant."""
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
    """Sweep until the bound is at most ``goal``, hardly falls, or sweeps are spent; return the bound."""
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
    """Write how much the bound falls at least when a label is set to 0, and when to 1.

    All terms of D that know the label are maximised with it held; those of other labels stay.
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
