"""Stochastic proximal dual coordinate ascent, the inner solver of the clique generating machine.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, Algorithms 2 and 3.  Nothing keeps the dual variables of a row from summing to more than one (section
A.2); a step is shortened by ``damping`` instead.
"""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import INNER, LOOP, njit
from labelweave._loops.structured.rows import pass_on, state_of


@njit(**LOOP)
def group_multipliers(squares, smoothness, multipliers):
    """Write what the groups of z are multiplied by to give the weights (Algorithm 3).

    ``smoothness`` is s = lambda / sigma and ``squares`` has the squared norms of the groups of z.
    """
    total, threshold, ordered = 0.0, 0.0, np.empty(len(squares))
    for group in range(len(squares)):  # sorted by insertion: there are few, and np.sort compiles for seconds
        norm, place = smoothness * np.sqrt(max(squares[group], 0.0)), group
        while place > 0 and ordered[place - 1] < norm:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = multipliers[group] = norm
    for place in range(len(ordered)):
        total += ordered[place]
        level = smoothness / (1.0 + (place + 1) * smoothness) * total
        if ordered[place] > level:
            threshold = level
    for group in range(len(squares)):
        norm = multipliers[group]
        multipliers[group] = smoothness * (1.0 - threshold / norm) if norm > threshold else 0.0


@njit(**INNER)
def _write_difference(place, data, layout, block, scales):
    """Write the true statistics less those of a labeling; return their squared norm, and the hinge loss."""
    row, labels = block.rows[place], block.labelings[place]
    targets, change, products = data.targets[row], block.changes[place], block.products[place]
    square, loss = 0.0, 0.0
    for label in range(len(targets)):
        if targets[label] != labels[label]:
            change[label] = 1.0 if targets[label] else -1.0
            square += 2.0
            loss -= change[label] * products[label] * scales[label]
            if data.observed[row, label]:
                loss += data.costs[row, label]
    for clique in range(len(layout.cliques) - 1):
        true = layout.cliques[clique].column + state_of(layout, clique, targets)
        other = layout.cliques[clique].column + state_of(layout, clique, labels)
        if true != other:
            change[true], change[other] = 1.0, -1.0
            square += 2.0
            loss -= (products[true] - products[other]) * scales[true]
    return square, max(0.0, loss)


@njit(**INNER)
def _rescale(place, step, square, groups, smoothness, block, squares, scales):
    """Update the groups' squared norms for a step along a row's change, and the scales of their columns."""
    for column in range(len(groups)):
        change = step * block.changes[place, column]
        if groups[column] >= 0 and change != 0.0:
            squares[groups[column]] += change * (2.0 * block.products[place, column] + change * square)
    multipliers = np.empty(len(squares))
    group_multipliers(squares, smoothness, multipliers)
    for column in range(len(groups)):
        if groups[column] >= 0:
            scales[column] = multipliers[groups[column]]


@njit(**LOOP)
def ascend_proximally(
    block, data, layout, scales, groups, squares, smoothness, regularization, damping, floor, steps
):
    """Visit the rows of a block, each with its worst labeling; return the weighted loss that they had.

    ``groups`` has the round of every column, -1 for labels', and ``squares`` the squared norms of the rounds'
    parts of z.  Without rounds the scales of columns stay as they are.  ``steps`` are the rows' last dual
    variables.
    """
    total = 0.0
    for place in range(len(block.rows)):
        row = block.rows[place]
        square, loss = _write_difference(place, data, layout, block, scales)
        scaled = data.weights[row] / regularization
        steps[row] = loss / (damping * (scaled * square * data.squares[row] + floor))
        total += data.weights[row] * loss
        if len(squares):
            _rescale(
                place, scaled * steps[row], data.squares[row], groups, smoothness, block, squares, scales
            )
        pass_on(place, scaled * steps[row], block)
    return total
