"""Scores of whole labelings, and their improvement one label at a time."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER


@njit(**INNER)
def table_entry(clique, cliques, tables, labels):
    """Return a clique's score; NaN if a label is free (-1)."""
    state, first = 0, cliques.starts[clique]
    for slot in range(first, cliques.starts[clique + 1]):
        value = labels[cliques.labels[slot]]
        if value < 0:
            return np.nan
        state |= value << (slot - first)
    return tables[cliques.table_starts[clique] + state]


@njit(**INNER)
def _flip_gain(label, cliques, unary, tables, labels):
    """Return what turning a label gains; 0 if that may be rounding, which would be taken back and again."""
    old, size = labels[label], abs(unary[label])
    gain = unary[label] if old == 0 else -unary[label]
    for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
        clique = cliques.places[place].clique
        before = table_entry(clique, cliques, tables, labels)
        labels[label] = 1 - old
        after = table_entry(clique, cliques, tables, labels)
        labels[label] = old
        gain += after - before
        size += abs(after) + abs(before)
    return gain if gain > 1e-14 * size else 0.0


@njit(**INNER)
def improve_part(cliques, unary, tables, labels, residual):
    """Turn single labels of the part last listed while that raises the score."""
    is_better = True
    while is_better:
        is_better = False
        for number in range(residual.counts.labels):
            label = residual.labels[number]
            if _flip_gain(label, cliques, unary, tables, labels) > 0.0:
                labels[label] = 1 - labels[label]
                is_better = True


@njit(**INNER)
def score_labels(cliques, unary, tables, labels):
    """Score all labels."""
    score = 0.0
    for label in range(len(labels)):
        if labels[label] > 0:
            score += unary[label]
    for clique in range(len(cliques.starts) - 1):
        score += table_entry(clique, cliques, tables, labels)
    return score
