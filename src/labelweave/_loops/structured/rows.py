"""What the passes do with rows: add the cost of errors, pass a change on."""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import njit
from labelweave._loops.structured.arrays import CLIQUES, COLUMN, INNER, LABELS, LOOP, MEMBERS

__all__ = ["add_costs", "add_rows", "multiply_rows", "pass_on", "state_of"]


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
def add_costs(rows, data, layout, scores, unary, rest):  # type: ignore[no-untyped-def]
    """Add the costs of errors to the unaries of some rows.

    ``rest`` is what to add to the largest of the scores with costs for the hinge loss: the cost of all zeros
    less the score of the targets.  An unobserved label alone is free of loss: its target is what scores best.
    """
    last = layout.components.shape[1] - 1
    for place in range(len(rows)):
        row, value = rows[place], 0.0
        targets = data.targets[row]
        for entry in range(len(layout.labels)):
            label = layout.labels[entry]
            score = scores[place, label]
            unary[place, label] = score
            if data.observed[row, label]:
                cost = data.costs[targets[label], label]
                unary[place, label] += -cost if targets[label] else cost
                value += cost - score if targets[label] else 0.0
            elif entry >= layout.components[LABELS, last]:
                value -= max(0.0, score)
            elif targets[label]:
                value -= score
        for clique in range(layout.components[CLIQUES, last]):
            value -= scores[place, layout.cliques[COLUMN, clique] + state_of(layout, clique, targets)]
        rest[place] = value
