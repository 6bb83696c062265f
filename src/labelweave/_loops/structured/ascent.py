"""Block-coordinate Frank-Wolfe with pairwise steps, a block being a row's component.

Lacoste-Julien, Jaggi, Schmidt and Pletscher, "Block-coordinate Frank-Wolfe optimization for structural
SVMs", ICML 2013; pairwise steps as in Osokin et al., "Minding the gaps for block Frank-Wolfe
optimization of structured SVMs", ICML 2016.  Row i's part of the dual is a concave quadratic in its
distribution, and both the loss and the scores are sums over components, so that every component takes
steps of its own with one score of the row and one inference.  A label alone is a box-constrained variable,
which a step solves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelweave._loops.structured.arrays import CLIQUES, COLUMN, INNER, LABELS, LOOP
from labelweave._loops.structured.rows import pass_on, state_of

__all__ = ["ascend_rows"]

_TINY = 1e-12  # shares below are rounding


@njit(**INNER)
def _step_lone(row, data, layout, dual, scores, scales, curvature, change):  # type: ignore[no-untyped-def]
    """Move the means of labels alone to their best; return the gap that they had."""
    gap = 0.0
    for place in range(layout.components[LABELS, -1], len(layout.labels)):
        label = layout.labels[place]
        if not data.observed[row, label]:
            continue
        slope, mean = scores[label], dual.means[row, label]
        gap += slope * ((1.0 if slope > 0.0 else 0.0) - mean)
        bend = curvature * scales[label]
        moved = mean + slope / bend if bend > 0.0 else (1.0 if slope > 0.0 else 0.0)
        moved = min(1.0, max(0.0, moved))
        change[label] = mean - moved
        dual.means[row, label] = moved
    return gap


@njit(**INNER)
def _value(component, layout, scores, labels):  # type: ignore[no-untyped-def]
    """Score a labeling of one component."""
    value = 0.0
    for place in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
        label = layout.labels[place]
        if labels[label]:
            value += scores[label]
    for clique in range(layout.components[CLIQUES, component], layout.components[CLIQUES, component + 1]):
        value += scores[layout.cliques[COLUMN, clique] + state_of(layout, clique, labels)]
    return value


@njit(**INNER)
def _bend(component, layout, scales, one, other):  # type: ignore[no-untyped-def]
    """Give the scaled squared distance of two labelings' statistics; 0 if they are the same."""
    bend = 0.0
    for place in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
        label = layout.labels[place]
        if one[label] != other[label]:
            bend += scales[label]
    if bend == 0.0:
        return bend
    for clique in range(layout.components[CLIQUES, component], layout.components[CLIQUES, component + 1]):
        if state_of(layout, clique, one) != state_of(layout, clique, other):
            bend += 2.0 * scales[layout.cliques[COLUMN, clique]]
    return bend


@njit(**INNER)
def _shift(component, layout, away, toward, step, curvature, scales, scores, change):  # type: ignore[no-untyped-def]
    """Note that probability went from one labeling to another, and what that does to the scores."""
    for place in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
        label = layout.labels[place]
        moved = step * (np.float64(away[label]) - np.float64(toward[label]))
        change[label] += moved
        scores[label] += curvature * scales[label] * moved
    for clique in range(layout.components[CLIQUES, component], layout.components[CLIQUES, component + 1]):
        old, new = state_of(layout, clique, away), state_of(layout, clique, toward)
        if old != new:
            first = layout.cliques[COLUMN, clique]
            change[first + old] += step
            change[first + new] -= step
            scores[first + old] += curvature * scales[first] * step
            scores[first + new] -= curvature * scales[first] * step


@njit(**INNER)
def _admit(row, component, layout, dual, scores, scales, curvature, fresh, change):  # type: ignore[no-untyped-def]
    """Find a place for a labeling among the vertices: its own, a free one, or that of the smallest share.

    The last moves the share to the labeling, if that raises the dual.  Give -1 if there is no place.
    """
    free, small, least = -1, -1, 2.0
    for vertex in range(dual.vertices.shape[1]):
        share = dual.shares[row, vertex, component]
        if share == 0.0:
            free = vertex
            continue
        if _bend(component, layout, scales, dual.vertices[row, vertex], fresh) == 0.0:
            return vertex
        if share < least:
            small, least = vertex, share
    place = free if free >= 0 else small
    old = dual.vertices[row, place]
    if free < 0:
        gain = _value(component, layout, scores, fresh) - _value(component, layout, scores, old)
        if gain <= 0.5 * least * curvature * _bend(component, layout, scales, old, fresh):
            return -1
        _shift(component, layout, old, fresh, least, curvature, scales, scores, change)
    for entry in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
        label = layout.labels[entry]
        old[label] = fresh[label]
    return place


@njit(**INNER)
def _step_component(  # type: ignore[no-untyped-def]
    row, component, layout, dual, scores, scales, curvature, guest, n_steps, change
):
    """Move probability from the worst vertex to the best one, some times; return the gap before the first.

    ``guest`` is a vertex that has no share yet, or -1.
    """
    gap, vertices = 0.0, dual.vertices[row]
    for step in range(n_steps):
        mean, best, worst, top, bottom = 0.0, -1, -1, 0.0, 0.0
        for vertex in range(len(vertices)):
            share = dual.shares[row, vertex, component]
            if share == 0.0 and vertex != guest:
                continue
            value = _value(component, layout, scores, vertices[vertex])
            mean += share * value
            if best < 0 or value > top:
                best, top = vertex, value
            if share > 0.0 and (worst < 0 or value < bottom):
                worst, bottom = vertex, value
        if step == 0:
            gap = max(0.0, top - mean)
        if best == worst or top - bottom <= _TINY:
            break
        share, gain = dual.shares[row, worst, component], top - bottom
        bend = curvature * _bend(component, layout, scales, vertices[worst], vertices[best])
        moved = share if bend * share <= gain else gain / bend
        if share - moved < _TINY:
            moved = share
        dual.shares[row, worst, component] = share - moved
        dual.shares[row, best, component] += moved
        _shift(component, layout, vertices[worst], vertices[best], moved, curvature, scales, scores, change)
    return gap


@njit(**LOOP)
def ascend_rows(block, data, layout, dual, scales, regularization, n_steps, gaps):  # type: ignore[no-untyped-def]
    """Visit the rows of a block; write the gaps that they had, each when it was visited.

    Labelings may be those of slightly older weights: the steps are exact at the present ones.  Without
    labelings, steps stay within the vertices.
    """
    scores = np.empty(len(scales))
    for place in range(len(block.rows)):
        row = block.rows[place]
        weight, change = data.weights[row], block.changes[place]
        if weight == 0.0:
            continue
        for column in range(len(scales)):
            scores[column] = block.products[place, column] * scales[column]
        for label in range(data.targets.shape[1]):
            if data.observed[row, label]:
                scores[label] += -data.costs[1, label] if data.targets[row, label] else data.costs[0, label]
        curvature = weight * data.squares[row] / regularization
        gap = _step_lone(row, data, layout, dual, scores, scales, curvature, change)
        for component in range(layout.components.shape[1] - 1):
            guest = -1
            if len(block.labelings):
                guest = _admit(
                    row, component, layout, dual, scores, scales, curvature, block.labelings[place], change
                )
            gap += _step_component(
                row, component, layout, dual, scores, scales, curvature, guest, n_steps, change
            )
        gaps[row] = gap
        pass_on(place, weight / regularization, block)
