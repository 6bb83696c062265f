"""What the passes do with rows: add the cost of errors, score the targets, pass a change on."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelweave._loops.structured.arrays import CLIQUES, COLUMN, INNER, LABELS, LOOP, MEMBERS

__all__ = ["add_costs", "add_rows", "multiply_rows", "pass_on", "score_targets", "state_of"]


@njit(**INNER)
def state_of(layout, clique, labels):  # type: ignore[no-untyped-def]
    """Give the state of a clique."""
    state, first = 0, layout.cliques[MEMBERS, clique]
    for slot in range(first, layout.cliques[MEMBERS, clique + 1]):
        state |= np.int64(labels[layout.members[slot]]) << (slot - first)
    return state


@njit(**LOOP)
def multiply_rows(rows, starts, indices, values, sums, products):  # type: ignore[no-untyped-def]
    """Write the products of some sparse rows with the sums."""
    for place in range(len(rows)):
        row, product = rows[place], products[place]
        product[:] = 0.0
        for entry in range(starts[row], starts[row + 1]):
            value, line = values[entry], sums[indices[entry]]
            for column in range(len(product)):
                product[column] += value * line[column]


@njit(**LOOP)
def add_rows(rows, starts, indices, values, changes, sums):  # type: ignore[no-untyped-def]
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
def pass_on(place, factor, block):  # type: ignore[no-untyped-def]
    """Multiply a row's change by a factor, and bring the products of the rows after it up to date."""
    change = block.changes[place]
    for column in range(len(change)):
        if change[column] != 0.0:
            change[column] *= factor
            for later in range(place + 1, len(block.rows)):
                block.products[later, column] += block.gram[place, later] * change[column]


@njit(**LOOP)
def add_costs(rows, data, unary, constants):  # type: ignore[no-untyped-def]
    """Add the costs of errors to the unaries of some rows; write the costs of all zeros."""
    for place in range(len(rows)):
        row, constant = rows[place], 0.0
        for label in range(data.targets.shape[1]):
            if data.observed[row, label]:
                if data.targets[row, label]:
                    unary[place, label] -= data.costs[1, label]
                    constant += data.costs[1, label]
                else:
                    unary[place, label] += data.costs[0, label]
        constants[place] = constant


@njit(**LOOP)
def score_targets(rows, data, layout, scores, values):  # type: ignore[no-untyped-def]
    """Write the scores of the targets of some rows.

    An unobserved label alone is free of loss: its target is what scores best.
    """
    last = layout.components.shape[1] - 1
    for place in range(len(rows)):
        row, value = rows[place], 0.0
        for entry in range(len(layout.labels)):
            label = layout.labels[entry]
            score = scores[place, label]
            if entry >= layout.components[LABELS, last] and not data.observed[row, label]:
                value += max(0.0, score)
            elif data.targets[row, label]:
                value += score
        for clique in range(layout.components[CLIQUES, last]):
            value += scores[
                place, layout.cliques[COLUMN, clique] + state_of(layout, clique, data.targets[row])
            ]
        values[place] = value
