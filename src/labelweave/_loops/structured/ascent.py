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

from labelweave._loops.compiling import njit
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
    """Give the scaled squared distance of two labelings' statistics."""
    bend = 0.0
    for place in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
        label = layout.labels[place]
        if one[label] != other[label]:
            bend += scales[label]
    for clique in range(layout.components[CLIQUES, component], layout.components[CLIQUES, component + 1]):
        if state_of(layout, clique, one) != state_of(layout, clique, other):
            bend += 2.0 * scales[layout.cliques[COLUMN, clique]]
    return bend


@njit(**INNER)
def _shift(component, layout, away, toward, step, change):  # type: ignore[no-untyped-def]
    """Note that probability went from one labeling to another."""
    for place in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
        label = layout.labels[place]
        change[label] += step * (np.float64(away[label]) - np.float64(toward[label]))
    for clique in range(layout.components[CLIQUES, component], layout.components[CLIQUES, component + 1]):
        old, new = state_of(layout, clique, away), state_of(layout, clique, toward)
        if old != new:
            change[layout.cliques[COLUMN, clique] + old] += step
            change[layout.cliques[COLUMN, clique] + new] -= step


@njit(**INNER)
def _survey(row, component, layout, dual, scores):  # type: ignore[no-untyped-def]
    """Value the vertices of a block: mean, best, worst, and the one of smallest share; give a free place."""
    mean, best, worst, small, free = 0.0, -1, -1, -1, -1
    top, bottom, least = 0.0, 0.0, 0.0
    for vertex in range(dual.vertices.shape[1]):
        share = dual.shares[row, vertex, component]
        if share == 0.0:
            free = vertex
            continue
        value = _value(component, layout, scores, dual.vertices[row, vertex])
        mean += share * value
        if best < 0 or value > top:
            best, top = vertex, value
        if worst < 0 or value < bottom:
            worst, bottom = vertex, value
        if small < 0 or share < dual.shares[row, small, component]:
            small, least = vertex, value
    return mean, best, top, worst, bottom, small, least, free


@njit(**INNER)
def _step_component(  # type: ignore[no-untyped-def]
    row, component, layout, dual, scores, scales, curvature, labelings, place, change
):
    """Move probability from the worst vertex to the best labeling; return the gap that the block had.

    A labeling that finds no free place takes that of the smallest share, with the share, if the dual gains.
    """
    mean, goal, top, origin, bottom, small, least, free = _survey(row, component, layout, dual, scores)
    vertices, is_new = dual.vertices[row], False
    toward = vertices[goal]
    if len(labelings):
        value = _value(component, layout, scores, labelings[place])
        if value > top:  # then it is not among the vertices, whose values are rounded alike
            is_new, toward, top, goal = True, labelings[place], value, free
            if free < 0:
                origin, bottom, goal = small, least, small
    if top <= bottom:
        return 0.0
    share, gain = dual.shares[row, origin, component], top - bottom
    bend = curvature * _bend(component, layout, scales, vertices[origin], toward)
    step = share if bend * share <= gain else gain / bend
    if goal == origin and 2.0 * gain <= bend * share:
        return top - mean
    if share - step < _TINY or goal == origin:
        step = share
    _shift(component, layout, vertices[origin], toward, step, change)
    dual.shares[row, origin, component] -= step
    dual.shares[row, goal, component] += step
    if is_new:
        for entry in range(layout.components[LABELS, component], layout.components[LABELS, component + 1]):
            vertices[goal, layout.labels[entry]] = toward[layout.labels[entry]]
    return top - mean


@njit(**LOOP)
def ascend_rows(block, data, layout, dual, scales, regularization, gaps):  # type: ignore[no-untyped-def]
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
        gaps[row] = _step_lone(row, data, layout, dual, scores, scales, curvature, change)
        for component in range(layout.components.shape[1] - 1):
            gaps[row] += _step_component(
                row, component, layout, dual, scores, scales, curvature, block.labelings, place, change
            )
        pass_on(place, weight / regularization, block)
