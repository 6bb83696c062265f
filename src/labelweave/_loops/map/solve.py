"""MAP inference on one example, and on some rows of a batch.

Components are taken one by one: a label alone follows its sign, a component with little work is
eliminated in its fixed order.  Elsewhere dead ends are fixed first, and what is left falls into parts; a
part that is too wide is eliminated with its whole component, if that has an order, or searched.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelweave._loops.map.arrays import (
    BIT,
    CANDIDATE,
    CLIQUE,
    FIXED,
    INCUMBENT,
    INNER,
    LABELS,
    LOOP,
    STAMP,
    TRAIL_LENGTH,
)
from labelweave._loops.map.dead_ends import decide, queue_label
from labelweave._loops.map.elimination import choose_states, pass_down, pass_up
from labelweave._loops.map.labelings import score_component, score_labels
from labelweave._loops.map.parts import settle_part
from labelweave._loops.map.residual import take_connected
from labelweave._loops.map.search import search_core

__all__ = ["margins_of_rows", "solve_one", "solve_rows"]


@njit(**INNER)
def _begin_component(first, end, plan, unary, clamp, search):  # type: ignore[no-untyped-def]
    """Free the component's labels but for what is clamped, and queue them."""
    cliques, flags = plan.cliques, search.flags
    search.counts[TRAIL_LENGTH] = 0
    for number in range(first, end):
        label = plan.components.labels[number]
        flags[FIXED, label] = clamp[label]
        flags[INCUMBENT, label] = clamp[label] if clamp[label] >= 0 else unary[label] > 0.0
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            search.shifts[cliques.starts[cliques.places[CLIQUE, place]] + cliques.places[BIT, place]] = 0.0
        if plan.limits.dead_ends:
            queue_label(label, search)


@njit(**INNER)
def _search_component(first, end, has_order, plan, workspace, unary, tables, clamp):  # type: ignore[no-untyped-def]
    """Fix the labels of a component; return the gap, NaN if it should be eliminated with what is fixed."""
    cliques, search, residual, gap = plan.cliques, workspace.search, workspace.residual, 0.0
    _begin_component(first, end, plan, unary, clamp, search)
    decide(cliques, unary, tables, search)
    for number in range(first, end):
        label = plan.components.labels[number]
        if search.flags[FIXED, label] >= 0:
            continue
        search.counts[STAMP] += 1
        take_connected(label, cliques, search, residual)
        _, is_open = settle_part(cliques, unary, tables, plan.limits, -1.0, workspace)
        if is_open and has_order:
            return np.nan
        if is_open:
            gap += search_core(cliques, unary, tables, plan.limits, workspace)
            continue
        for place in range(residual.counts[LABELS]):
            search.flags[FIXED, residual.labels[place]] = search.flags[CANDIDATE, residual.labels[place]]
    return gap


@njit(**INNER)
def _solve_component(component, plan, workspace, unary, tables, clamp, labels):  # type: ignore[no-untyped-def]
    """Write the labels of a component; return its gap."""
    components, buckets, gap = plan.components, plan.buckets, np.nan
    first, end = components.starts[component], components.starts[component + 1]
    bucket, last_bucket = components.bucket_starts[component], components.bucket_starts[component + 1]
    fixed = clamp
    if not components.directly[component]:
        gap = _search_component(first, end, bucket < last_bucket, plan, workspace, unary, tables, clamp)
        fixed = workspace.search.flags[FIXED]
    elif end - first == 1:
        label, gap = components.labels[first], 0.0
        labels[label] = clamp[label] if clamp[label] >= 0 else unary[label] > 0.0
        return gap
    if np.isnan(gap):
        pass_up(buckets, bucket, last_bucket, unary, tables, fixed, workspace.beliefs, workspace.messages)
        choose_states(buckets, bucket, last_bucket, fixed, workspace.beliefs, labels)
        return 0.0
    for number in range(first, end):
        labels[components.labels[number]] = fixed[components.labels[number]]
    return gap


@njit(**INNER)
def solve_one(plan, workspace, unary, tables, clamp, labels):  # type: ignore[no-untyped-def]
    """Write the best labels of an example; return their score and an upper bound of the maximum.

    ``clamp`` is -1 for a label that is free, else its value.  The bound is the score itself
    where the labels are proven best.
    """
    gap = 0.0
    for component in range(len(plan.components.directly)):
        gap += _solve_component(component, plan, workspace, unary, tables, clamp, labels)
    value = score_labels(plan.cliques, unary, tables, labels)
    return value, value + gap


@njit(**LOOP)
def solve_rows(  # type: ignore[no-untyped-def]
    plan, workspace, begin, end, unary, tables, clamp, labels, values, bounds
):
    """Solve some rows; tables and clamp have one row for all, or one each."""
    for row in range(begin, end):
        values[row], bounds[row] = solve_one(
            plan, workspace, unary[row], tables[min(row, len(tables) - 1)],
            clamp[min(row, len(clamp) - 1)], labels[row],
        )  # fmt: skip


@njit(**INNER)
def _turn_labels(component, plan, workspace, unary, tables, clamp, scratch, margins):  # type: ignore[no-untyped-def]
    """Solve a component again with each of its labels turned."""
    labels, other, components = scratch[0], scratch[1], plan.components
    best = score_component(component, plan, unary, tables, labels)
    for number in range(components.starts[component], components.starts[component + 1]):
        label = components.labels[number]
        sign, loss = 1.0 if labels[label] else -1.0, np.inf
        if clamp[label] < 0:
            clamp[label] = 1 - labels[label]
            _solve_component(component, plan, workspace, unary, tables, clamp, other)
            clamp[label] = -1
            loss = max(0.0, best - score_component(component, plan, unary, tables, other))
        margins[label] = sign * loss


@njit(**LOOP)
def margins_of_rows(  # type: ignore[no-untyped-def]
    plan, workspace, begin, end, unary, tables, clamp, scratch, margins
):
    """Write the max-marginal differences of some rows; ``scratch`` has three rows of L int8."""
    beliefs, messages, held = workspace.beliefs, workspace.messages, scratch[2]
    for row in range(begin, end):
        own_unary, own_tables = unary[row], tables[min(row, len(tables) - 1)]
        held[:] = clamp[min(row, len(clamp) - 1)]
        for component in range(len(plan.components.directly)):
            first = plan.components.bucket_starts[component]
            last = plan.components.bucket_starts[component + 1]
            if first < last:
                pass_up(plan.buckets, first, last, own_unary, own_tables, held, beliefs, messages)
                pass_down(
                    plan.buckets, first, last, held, beliefs, messages, workspace.downward, margins[row]
                )  # fmt: skip
            else:
                _solve_component(component, plan, workspace, own_unary, own_tables, held, scratch[0])
                _turn_labels(component, plan, workspace, own_unary, own_tables, held, scratch, margins[row])
