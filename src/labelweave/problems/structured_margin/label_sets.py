"""Losses of whole label sets, and the labelings that maximize them."""

from __future__ import annotations

from itertools import count

import numpy as np

from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import panels
from labelweave.foundation.loops.label_sets import SetSteps, SetWork
from labelweave.foundation.loops.structured import MarginRows
from labelweave.labels.clique_graph import CliqueGraph

SET_LOSSES = ("hamming", "subset", "f1")  # their positions are the codes of compiled code
LARGEST_WIDTH = 14
_ROWS_AT_ONCE = 64


def set_losses(loss: str, labels: Array, targets: Array, observed: Array) -> Floats:
    """Compute the losses (n,) of label sets (n, L); unobserved labels do not count."""
    is_on, is_true = (labels != 0) & (observed != 0), (targets != 0) & (observed != 0)
    wrong = (is_on != is_true).sum(axis=1)
    if loss == "subset":
        return np.asarray(wrong > 0, np.float64)
    return np.asarray(wrong / np.maximum(1, is_on.sum(axis=1) + is_true.sum(axis=1)))


def set_steps(graph: CliqueGraph) -> SetSteps:
    """Order the labels so that few are open at a time: those that share a clique with an undecided label."""
    order, bits, kept = _order(graph)
    place = {label: step for step, label in enumerate(order)}
    last = np.array([max(place[label] for label in clique) for clique in graph.cliques], np.int64)
    by_step = np.argsort(last, kind="stable")
    members = [graph.cliques[number] for number in by_step]
    return SetSteps(
        labels=np.array(order, np.int64),
        bits=np.array([bits[label] for label in order], np.int64),
        kept=np.array(kept, np.int64),
        starts=np.append(0, np.cumsum(np.bincount(last, minlength=len(order)))),
        columns=graph.n_labels + np.asarray(graph.table_starts, np.int64)[by_step],
        member_starts=np.cumsum([0, *map(len, members)], dtype=np.int64),
        members=np.array([bits[label] for clique in members for label in clique], np.int64),
        width=1 + max(bits.values()),
    )


def _order(graph: CliqueGraph) -> tuple[list[int], dict[int, int], list[int]]:
    """Order labels greedily by the fewest open ones; return the order, bits, and remaining states."""
    near = graph.neighbors()
    left, opened, bits, kept = set(range(graph.n_labels)), set[int](), dict[int, int](), list[int]()
    while left:
        counts = {
            label: sum(not near[one].isdisjoint(left - {label}) for one in opened | {label}) for label in left
        }
        label = min(left, key=lambda one: (counts[one], one))
        taken = {bits[one] for one in opened}
        bits[label] = next(bit for bit in count() if bit not in taken)
        left.discard(label)
        opened = {one for one in opened | {label} if not near[one].isdisjoint(left)}
        kept.append(sum(1 << bits[one] for one in opened if bits[one] <= LARGEST_WIDTH))
    return list(bits), bits, kept


def worst_label_sets(
    steps: SetSteps, loss: str, rows: Array, data: MarginRows, scores: Array
) -> tuple[Array, Floats]:
    """Find the labels (rows, L) that maximize loss of the label set plus score, and the maximum.

    scores (rows, L + states): of labels and of states of cliques.
    """
    from labelweave.foundation.loops.label_sets import worst_sets

    labels, values = np.zeros((len(rows), len(steps.labels)), np.int8), np.empty(len(rows))
    for part in panels(len(rows), _ROWS_AT_ONCE):
        observed, is_on = data.observed[rows[part]] != 0, data.targets[rows[part]] != 0
        counts = [int((observed & side).sum(axis=1).max()) for side in (is_on, ~is_on)]
        table = 1 << steps.width, counts[0] + 1, counts[1] + 1
        work = SetWork(np.empty((2, *table)), np.empty((len(steps.labels), *table), np.int32))
        given = SET_LOSSES.index(loss), steps, scores[part], work
        worst_sets(rows[part], data, *given, labels[part], values[part])
    return labels, values
