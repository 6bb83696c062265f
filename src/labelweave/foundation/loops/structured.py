"""Passes over the rows of a structured support vector machine: products, costs, moments of pairs, and steps.

Steps are those of block-coordinate Frank-Wolfe, a block being a row's component: Lacoste-Julien, Jaggi,
Schmidt and Pletscher, "Block-coordinate Frank-Wolfe optimization for structural SVMs", ICML 2013; pairwise as
in Osokin et al., "Minding the gaps for block Frank-Wolfe optimization of structured SVMs", ICML 2016.
Row i's part of the dual is a concave quadratic in its distribution, and both the loss and the scores are
sums over components, so that every component takes its own steps with one score of the row and one
inference.  A single label is a box-constrained variable, which one step solves.

A row's score of labels y is ``sum_k unary_k y_k + sum_c table_c[state of clique c]``, where unaries and
tables are linear in the features: a column of z for every label and for every state of every
clique, times the column's scale.  The dual point of a row is a distribution over labelings that is a product
over the connected components of the graph: a mean for a label alone, shares of listed vertices for others.
With a loss of the whole label set all labels are one component.

Related arrays are tables of records, since compile time grows with the number of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Floats
from labelweave.foundation.loops.compiling import INNER, LOOP, njit

Integers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.int8]

Records = npt.NDArray[np.void]

COMPONENT = np.dtype([("labels", np.int64), ("cliques", np.int64)])
CLIQUE = np.dtype([("members", np.int64), ("column", np.int64)])
_TINY = 1e-12  # smaller weights are rounding


class MarginRows(NamedTuple):
    """Data of the rows.

    ``targets`` are the true labels, completed where unobserved; ``costs`` those of errors, 0 where
    unobserved; ``weights`` sum to one; ``squares`` are the squared norms of the features.
    """

    targets: Bits
    observed: Bits
    costs: Floats
    weights: Floats
    squares: Floats


class Layout(NamedTuple):
    """The components of two or more labels with their cliques, and the single labels.

    Component c has ``labels`` from ``components[c].labels`` and ``cliques`` from ``components[c].cliques``;
    the labels after those of the last component are alone.  Clique q has ``members`` from
    ``cliques[q].members``, and its states are the columns from ``cliques[q].column``.  ``loss`` is that of
    label sets, see ``set_loss``, or 0.
    """

    components: Records
    labels: Integers
    cliques: Records
    members: Integers
    loss: int = 0


class DualPoint(NamedTuple):
    """The distribution of every row: means of single labels, vertices and their weights for components."""

    means: Floats
    vertices: Bits
    shares: Floats


class RowBlock(NamedTuple):
    """Rows that are visited one after the other, and the arrays that their visits change.

    ``products`` are theirs with z, which the visits update by ``gram``, the inner products of
    the rows; ``changes`` are the factors of the rows to be added to z.  ``labelings`` are the
    targets of the steps.
    """

    rows: Integers
    labelings: Bits
    products: Floats
    gram: Floats
    changes: Floats


@njit(**INNER)
def set_loss(loss, hits, wrong, positives):
    """Return the loss of a label set by its hits, false positives, and the true positives."""
    if loss == 1:  # of the whole set
        return 0.0 if hits == positives and wrong == 0 else 1.0
    size = hits + wrong + positives
    return 1.0 - 2.0 * hits / size if size > 0 else 0.0  # one less F1


@njit(**INNER)
def _loss_of_labels(loss, labels, targets, observed):
    """Return the loss of a label set; unobserved labels do not count."""
    hits, wrong, positives = 0, 0, 0
    for label in range(len(labels)):
        if observed[label]:
            positives += targets[label] != 0
            hits += labels[label] != 0 and targets[label] != 0
            wrong += labels[label] != 0 and targets[label] == 0
    return set_loss(loss, hits, wrong, positives)


@njit(**INNER)
def state_of(layout, clique, labels):
    state, first = 0, layout.cliques[clique].members
    for slot in range(first, layout.cliques[clique + 1].members):
        state |= np.int64(labels[layout.members[slot]]) << (slot - first)
    return state


@njit(**LOOP)
def multiply_rows(rows, starts, indices, values, sums, products):
    """Write the products of some sparse rows with the sums."""
    for place in range(len(rows)):
        row, product = rows[place], products[place]
        product[:] = 0.0
        for entry in range(starts[row], starts[row + 1]):
            value, line = values[entry], sums[indices[entry]]
            for column in range(len(product)):
                product[column] += value * line[column]


@njit(**LOOP)
def add_rows(rows, starts, indices, values, changes, sums):
    """Add some sparse rows times their changes, most of which are zero, to the sums."""
    columns = np.empty(changes.shape[1], np.int64)
    for place in range(len(rows)):
        row, change, count = rows[place], changes[place], 0
        for column in range(len(change)):
            if change[column] != 0.0:
                columns[count] = column
                count += 1
        for entry in range(starts[row], starts[row + 1]):
            value, line = values[entry], sums[indices[entry]]
            for number in range(count):
                line[columns[number]] += value * change[columns[number]]


@njit(**INNER)
def pass_on(place, factor, block):
    """Multiply a row's change by a factor, and update the products of the rows after it."""
    change = block.changes[place]
    for column in range(len(change)):
        if change[column] != 0.0:
            change[column] *= factor
            for later in range(place + 1, len(block.rows)):
                block.products[later, column] += block.gram[place, later] * change[column]


@njit(**LOOP)
def add_costs(rows, data, layout, scores, unary, rest):
    """Add the costs of errors to the unaries of some rows.

    ``rest`` is added to the largest of the scores with costs for the hinge loss: the cost of all zeros
    minus the score of the targets.  A single unobserved label has no loss: its target is what scores best.
    """
    last = len(layout.components) - 1
    for place in range(len(rows)):
        row, value = rows[place], 0.0
        targets = data.targets[row]
        for entry in range(len(layout.labels)):
            label = layout.labels[entry]
            score = scores[place, label]
            unary[place, label] = score
            if data.observed[row, label]:
                cost = data.costs[row, label]
                unary[place, label] += -cost if targets[label] else cost
                value += cost - score if targets[label] else 0.0
            elif entry >= layout.components[last].labels:
                value -= max(0.0, score)
            elif targets[label]:
                value -= score
        for clique in range(layout.components[last].cliques):
            value -= scores[place, layout.cliques[clique].column + state_of(layout, clique, targets)]
        rest[place] = value


@njit(**INNER)
def _expected_pair(row, one, other, homes, dual):
    """Expect the product of the signs of two labels, faster than for any number."""
    if homes[one] < 0 or homes[one] != homes[other]:
        return (2.0 * dual.means[row, one] - 1.0) * (2.0 * dual.means[row, other] - 1.0)
    total = 0.0
    for vertex in range(dual.shares.shape[1]):
        same = (dual.vertices[row, vertex, one] != 0) == (dual.vertices[row, vertex, other] != 0)
        total += dual.shares[row, vertex, homes[one]] if same else -dual.shares[row, vertex, homes[one]]
    return total


@njit(**INNER)
def _has_home(sets, place, first, end, homes, home):
    found = False
    for slot in range(first, end):
        found = found or homes[sets[place, slot]] == home
    return found


@njit(**INNER)
def _expected_sign(row, sets, place, first, homes, dual):
    """Expect the product of the signs of a set's labels, from the first on, that share its component."""
    home = homes[sets[place, first]]
    if home < 0 or not _has_home(sets, place, first + 1, sets.shape[1], homes, home):
        return 2.0 * dual.means[row, sets[place, first]] - 1.0
    total = 0.0
    for vertex in range(dual.shares.shape[1]):
        share = dual.shares[row, vertex, home]
        if share == 0.0:
            continue
        for slot in range(first, sets.shape[1]):
            if homes[sets[place, slot]] == home and dual.vertices[row, vertex, sets[place, slot]] == 0:
                share = -share
        total += share
    return total


@njit(**LOOP)
def sign_moments(sets, homes, targets, dual, moments):
    """Write the product of the true signs of some labels minus the expected one, for rows and sets (K, m)."""
    for row in range(len(targets)):
        for place in range(len(sets)):
            true, expected, width = 1.0, 1.0, sets.shape[1]
            for slot in range(width):
                true *= 2.0 * targets[row, sets[place, slot]] - 1.0
            if width == 2:
                expected = _expected_pair(row, sets[place, 0], sets[place, 1], homes, dual)
            for slot in range(width if width != 2 else 0):
                home = homes[sets[place, slot]]
                if home < 0 or not _has_home(sets, place, 0, slot, homes, home):
                    expected *= _expected_sign(row, sets, place, slot, homes, dual)
            moments[row, place] = true - expected


@njit(**INNER)
def _step_lone(row, data, layout, dual, scores, scales, curvature, change):
    """Move the means of single labels to their optimum; return their gap before it."""
    gap = 0.0
    for place in range(layout.components[-1].labels, len(layout.labels)):
        label = layout.labels[place]
        if not data.observed[row, label]:
            continue
        gradient, mean = scores[label], dual.means[row, label]
        gap += gradient * ((1.0 if gradient > 0.0 else 0.0) - mean)
        bend = curvature * scales[label]
        moved = mean + gradient / bend if bend > 0.0 else (1.0 if gradient > 0.0 else 0.0)
        moved = min(1.0, max(0.0, moved))
        change[label] = mean - moved
        dual.means[row, label] = moved
    return gap


@njit(**INNER)
def _value(row, component, data, layout, scores, labels):
    value = 0.0
    if layout.loss:
        value = _loss_of_labels(layout.loss, labels, data.targets[row], data.observed[row])
    for place in range(layout.components[component].labels, layout.components[component + 1].labels):
        label = layout.labels[place]
        if labels[label]:
            value += scores[label]
    for clique in range(layout.components[component].cliques, layout.components[component + 1].cliques):
        value += scores[layout.cliques[clique].column + state_of(layout, clique, labels)]
    return value


@njit(**INNER)
def _bend(component, layout, scales, one, other):
    """Return the scaled squared distance of two labelings' statistics."""
    bend = 0.0
    for place in range(layout.components[component].labels, layout.components[component + 1].labels):
        label = layout.labels[place]
        if one[label] != other[label]:
            bend += scales[label]
    for clique in range(layout.components[component].cliques, layout.components[component + 1].cliques):
        if state_of(layout, clique, one) != state_of(layout, clique, other):
            bend += 2.0 * scales[layout.cliques[clique].column]
    return bend


@njit(**INNER)
def _shift(component, layout, away, toward, step, change):
    """Record that probability moved from one labeling to another."""
    for place in range(layout.components[component].labels, layout.components[component + 1].labels):
        label = layout.labels[place]
        change[label] += step * (np.float64(away[label]) - np.float64(toward[label]))
    for clique in range(layout.components[component].cliques, layout.components[component + 1].cliques):
        old, new = state_of(layout, clique, away), state_of(layout, clique, toward)
        if old != new:
            change[layout.cliques[clique].column + old] += step
            change[layout.cliques[clique].column + new] -= step


@njit(**INNER)
def _survey(row, component, data, layout, dual, scores):
    """Value the vertices of a block: mean, best, worst, the one of smallest share; return a free place."""
    mean, best, worst, small, free = 0.0, -1, -1, -1, -1
    top, bottom, least = 0.0, 0.0, 0.0
    for vertex in range(dual.vertices.shape[1]):
        share = dual.shares[row, vertex, component]
        if share == 0.0:
            free = vertex
            continue
        value = _value(row, component, data, layout, scores, dual.vertices[row, vertex])
        mean += share * value
        if best < 0 or value > top:
            best, top = vertex, value
        if worst < 0 or value < bottom:
            worst, bottom = vertex, value
        if small < 0 or share < dual.shares[row, small, component]:
            small, least = vertex, value
    return mean, best, top, worst, bottom, small, least, free


@njit(**INNER)
def _step_component(row, component, data, layout, dual, scores, scales, curvature, labelings, place, change):
    """Move probability from the worst vertex to the best labeling; return the gap that the block had.

    A labeling without a free slot replaces the vertex of smallest weight, with its weight, if the dual gains.
    """
    mean, goal, top, origin, bottom, small, least, free = _survey(row, component, data, layout, dual, scores)
    vertices, is_new = dual.vertices[row], False
    toward = vertices[goal]
    if len(labelings):
        value = _value(row, component, data, layout, scores, labelings[place])
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
        for entry in range(layout.components[component].labels, layout.components[component + 1].labels):
            vertices[goal, layout.labels[entry]] = toward[layout.labels[entry]]
    return top - mean


@njit(**LOOP)
def ascend_rows(block, data, layout, dual, scales, alpha, gaps):
    """Visit the rows of a block; write their gaps at their visits.

    Labelings may belong to slightly older weights: the steps are exact at the current ones.  Without
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
                cost = data.costs[row, label]
                scores[label] += -cost if data.targets[row, label] else cost
        curvature = weight * data.squares[row] / alpha
        gaps[row] = _step_lone(row, data, layout, dual, scores, scales, curvature, change)
        for component in range(len(layout.components) - 1):
            gaps[row] += _step_component(
                row, component, data, layout, dual, scores, scales, curvature, block.labelings, place, change
            )
        pass_on(place, weight / alpha, block)
