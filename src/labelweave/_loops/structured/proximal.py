"""Stochastic proximal dual coordinate ascent, the inner solver of the clique generating machine.

Tan et al., "Learning graph structure for multi-label image classification via clique generation", CVPR
2015, Algorithms 2 and 3.  Nothing keeps the dual variables of a row from summing to more than one (section
A.2); a step is shortened by ``damping`` instead.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelweave._loops.structured.arrays import INNER, LOOP
from labelweave._loops.structured.rows import add_row, score_row, state_of

__all__ = ["ascend_proximally", "group_multipliers"]


@njit(**LOOP)
def group_multipliers(squares, smoothness, multipliers, order):  # type: ignore[no-untyped-def]
    """Write what the groups of z are multiplied by to give the weights (Algorithm 3).

    ``smoothness`` is s = lambda / sigma and ``squares`` has the squared norms of the groups of z.
    """
    norms = smoothness * np.sqrt(np.maximum(squares, 0.0))
    order[:] = np.argsort(-norms)
    total, threshold = 0.0, 0.0
    for place in range(len(order)):
        total += norms[order[place]]
        level = smoothness / (1.0 + (place + 1) * smoothness) * total
        if norms[order[place]] > level:
            threshold = level
    for group in range(len(norms)):
        multipliers[group] = 0.0
        if norms[group] > threshold:
            multipliers[group] = smoothness * (1.0 - threshold / norms[group])


@njit(**INNER)
def _write_difference(row, labels, data, layout, model):  # type: ignore[no-untyped-def]
    """Write the true statistics less those of a labeling; return their squared norm and scored difference."""
    targets, change = data.targets[row], model.change
    square, margin = 0.0, 0.0
    change[:] = 0.0
    for label in range(len(targets)):
        if (targets[label] != 0) != (labels[label] != 0):
            change[label] = 1.0 if targets[label] else -1.0
            square += 2.0
            margin += change[label] * model.scores[label]
            if data.observed[row, label]:
                margin -= data.costs[targets[label], label]
    for clique in range(len(layout.columns)):
        true = layout.columns[clique] + state_of(layout, clique, targets)
        other = layout.columns[clique] + state_of(layout, clique, labels)
        if true != other:
            change[true], change[other] = 1.0, -1.0
            square += 2.0
            margin += model.scores[true] - model.scores[other]
    return square, margin


@njit(**INNER)
def _update_squares(step, square, raw, model, column_groups, squares):  # type: ignore[no-untyped-def]
    """Update the groups' squared norms for z + step x change, where raw = z x."""
    for column in range(len(column_groups)):
        group, change = column_groups[column], model.change[column]
        if group >= 0 and change != 0.0:
            squares[group] += 2.0 * step * change * raw[column] + (step * change) ** 2 * square


@njit(**LOOP)
def ascend_proximally(  # type: ignore[no-untyped-def]
    rows, labelings, data, layout, model, regularization, damping, floor, smoothness, groups, squares,
    multipliers, raw, steps
):  # fmt: skip
    """Visit rows, each with its worst labeling; return the weighted loss that they had.

    ``groups`` has the round of every column, -1 for labels'; ``smoothness`` of 0 stands for a fixed graph, whose
    weights are z itself.
    """
    total, ranks = 0.0, np.zeros(len(squares), np.int64)
    for place in range(len(rows)):
        row = rows[place]
        score_row(row, data.features, model)
        square, margin = _write_difference(row, labelings[place], data, layout, model)
        loss, scaled = max(0.0, -margin), data.weights[row] / regularization
        step = loss / (damping * (scaled * square * data.squares[row] + floor))
        steps[row] = step
        total += data.weights[row] * loss
        if step == 0.0:
            continue
        if smoothness > 0.0:
            raw[:] = 0.0
            _products(row, data.features, model, raw)
            _update_squares(scaled * step, data.squares[row], raw, model, groups, squares)
            group_multipliers(squares, smoothness, multipliers, ranks)
            for column in range(len(groups)):
                if groups[column] >= 0:
                    model.scales[column] = multipliers[groups[column]]
        add_row(row, data.features, scaled * step, model)
    return total


@njit(**INNER)
def _products(row, features, model, raw):  # type: ignore[no-untyped-def]
    """Write the row's products with the sums where the change is not zero."""
    for entry in range(features.starts[row], features.starts[row + 1]):
        value, line = features.values[entry], model.sums[features.indices[entry]]
        for column in range(len(raw)):
            if model.change[column] != 0.0:
                raw[column] += value * line[column]
