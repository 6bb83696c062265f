"""One connected part of the free labels: eliminated if it is narrow, else bounded by message passing."""

from __future__ import annotations

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE
from labelweave.foundation.loops.map.labelings import improve_part
from labelweave.foundation.loops.map.message_passing import pass_messages, write_drops
from labelweave.foundation.loops.map.residual import gather_residual
from labelweave.foundation.loops.map.run_order import eliminate_residual, order_residual


@njit(**INNER)
def _score_part(residual, constant, labels):
    """Score the labels of the part, ``constant`` included."""
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
    """Round the beliefs, improve the labels so found, keep them if they score above ``best``."""
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
    """Bound a part and write labels for it; return the bound and whether the labels are short of it."""
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
    """Write candidate labels of the part last listed; return its bound and whether it stays open.

    With a negative ``tolerance`` a part that is too wide is left alone.
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
