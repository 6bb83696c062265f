"""MAP inference on one example, and on some rows of a batch.

A label without cliques follows its sign.  Components are solved one by one: one with cheap elimination is
eliminated in its fixed order; otherwise dead ends are fixed first, and the rest splits into parts; a
part that is too wide is eliminated with its whole component, if that has an order, or searched.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE
from labelweave.foundation.loops.map.elimination import choose_states, pass_down, pass_up
from labelweave.foundation.loops.map.parts import score_labels, settle_part, take_connected
from labelweave.foundation.loops.map.search import decide, queue_label, search_core


@njit(**SINGLE)
def _begin_component(first, end, plan, unary, clamp, search):
    """Free the component's labels except clamped ones, and queue them."""
    cliques = plan.cliques
    search.counts.trail = 0
    for number in range(first, end):
        label = plan.components.labels[number]
        search.fixed[label] = clamp[label]
        search.incumbent[label] = clamp[label] if clamp[label] >= 0 else unary[label] > 0.0
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            search.shifts[cliques.starts[cliques.places[place].clique] + cliques.places[place].bit] = 0.0
        if plan.limits.dead_ends:
            queue_label(label, search)


@njit(**SINGLE)
def _search_component(first, end, has_order, plan, workspace, unary, tables, clamp):
    """Fix the labels of a component; return the gap, NaN if it should be eliminated with the fixed labels."""
    cliques, search, residual, gap = plan.cliques, workspace.search, workspace.residual, 0.0
    _begin_component(first, end, plan, unary, clamp, search)
    decide(cliques, unary, tables, search)
    for number in range(first, end):
        label = plan.components.labels[number]
        if search.fixed[label] >= 0:
            continue
        search.counts.stamp += 1
        take_connected(label, cliques, search, residual)
        _, is_open = settle_part(cliques, unary, tables, plan.limits, -1.0, workspace)
        if is_open and has_order:
            return np.nan
        if is_open:
            gap += search_core(cliques, unary, tables, plan.limits, workspace)
            continue
        for place in range(residual.counts.labels):
            search.fixed[residual.labels[place]] = search.candidate[residual.labels[place]]
    return gap


@njit(**INNER)
def _begin_labels(unary, clamp, labels):
    for label in range(len(labels)):
        labels[label] = clamp[label] if clamp[label] >= 0 else unary[label] > 0.0


@njit(**INNER)
def _eliminate(component, plan, workspace, unary, tables, clamp, labels):
    starts = plan.components.bucket_starts
    first, end = starts[component], starts[component + 1]
    pass_up(plan.buckets, first, end, unary, tables, clamp, workspace.beliefs, workspace.messages)
    choose_states(plan.buckets, first, end, clamp, workspace.beliefs, labels)


@njit(**SINGLE)
def _solve_component(component, plan, workspace, unary, tables, clamp, labels):
    """Write the labels of a component; return its gap."""
    components, fixed = plan.components, workspace.search.fixed
    first, end = components.starts[component], components.starts[component + 1]
    has_order = components.bucket_starts[component + 1] > components.bucket_starts[component]
    if components.directly[component]:
        _eliminate(component, plan, workspace, unary, tables, clamp, labels)
        return 0.0
    gap = _search_component(first, end, has_order, plan, workspace, unary, tables, clamp)
    if np.isnan(gap):
        _eliminate(component, plan, workspace, unary, tables, fixed, labels)
        return 0.0
    for number in range(first, end):
        labels[components.labels[number]] = fixed[components.labels[number]]
    return gap


@njit(**SINGLE)
def solve_one(plan, workspace, unary, tables, clamp, labels):
    """Write the best labels of an example; return their score and an upper bound of the maximum.

    ``clamp`` is -1 for a free label, otherwise its value.  The bound equals the score
    if the labels are proven optimal.
    """
    gap = 0.0
    _begin_labels(unary, clamp, labels)
    for component in range(len(plan.components.directly)):
        gap += _solve_component(component, plan, workspace, unary, tables, clamp, labels)
    value = score_labels(plan.cliques, unary, tables, labels)
    return value, value + gap


@njit(**LOOP)
def solve_rows(plan, workspace, begin, end, unary, tables, clamp, labels, values, bounds):
    """Solve some rows; tables and clamp have one row for all, or one per row."""
    for row in range(begin, end):
        values[row], bounds[row] = solve_one(
            plan, workspace, unary[row], tables[min(row, len(tables) - 1)],
            clamp[min(row, len(clamp) - 1)], labels[row],
        )  # fmt: skip


@njit(**LOOP)
def eliminate_rows(plan, workspace, begin, end, unary, tables, clamp, labels, values, bounds):
    """Do the same as :func:`solve_rows` if elimination is cheap in all components; this compiles faster."""
    for row in range(begin, end):
        own_tables, own_clamp = tables[min(row, len(tables) - 1)], clamp[min(row, len(clamp) - 1)]
        _begin_labels(unary[row], own_clamp, labels[row])
        for component in range(len(plan.components.directly)):
            _eliminate(component, plan, workspace, unary[row], own_tables, own_clamp, labels[row])
        values[row] = score_labels(plan.cliques, unary[row], own_tables, labels[row])
        bounds[row] = values[row]


@njit(**LOOP)
def margins_of_rows(plan, workspace, begin, end, unary, tables, clamp, margins):
    """Write the max-marginal differences of labels whose component has an order, or that have no cliques."""
    buckets, beliefs, messages = plan.buckets, workspace.beliefs, workspace.messages
    for row in range(begin, end):
        own_unary, own_margins = unary[row], margins[row]
        own_tables, own_clamp = tables[min(row, len(tables) - 1)], clamp[min(row, len(clamp) - 1)]
        for label in range(len(own_unary)):
            is_held = own_clamp[label] >= 0
            own_margins[label] = (2 * own_clamp[label] - 1) * np.inf if is_held else own_unary[label]
        for component in range(len(plan.components.directly)):
            first = plan.components.bucket_starts[component]
            last = plan.components.bucket_starts[component + 1]
            pass_up(buckets, first, last, own_unary, own_tables, own_clamp, beliefs, messages)
            pass_down(buckets, first, last, own_clamp, beliefs, messages, workspace.downward, own_margins)
