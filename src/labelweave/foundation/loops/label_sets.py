"""The best labelings of rows where a loss of the whole label set is added to their scores.

Such losses follow from two counts, of hits and of false positives (``set_loss``).  Labels are decided one
after the other, and a table holds the best score for every pair of counts and for all values of those labels
that share a clique with one still to be decided.  That is exact, and takes time 2^w for w such labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Floats
from labelweave.foundation.loops.compiling import INNER, LOOP, njit
from labelweave.foundation.loops.structured import set_loss

Integers = npt.NDArray[np.int64]


class SetSteps(NamedTuple):
    """The order of labels; every step decides one.

    labels, bits, kept (L,): the label of each step, its bit in the states of open labels, and those that are
        open after the step.
    starts (L + 1,): where the cliques begin whose last label a step decides.
    columns (cliques,): of the scores of their states.
    member_starts (cliques + 1,), members: the bits of their labels.
    width: the most bits of a state.
    """

    labels: Integers
    bits: Integers
    kept: Integers
    starts: Integers
    columns: Integers
    member_starts: Integers
    members: Integers
    width: int


class SetWork(NamedTuple):
    """Room for the tables of a row with P observed positives and N negatives at most.

    totals (2, 2^width, P + 1, N + 1): the best scores before and after a step.
    chosen (L, 2^width, P + 1, N + 1): the states that led to those after each step.
    """

    totals: Floats
    chosen: npt.NDArray[np.int32]


@njit(**INNER)
def _score_of_cliques(step, state, steps, scores):
    value = 0.0
    for clique in range(steps.starts[step], steps.starts[step + 1]):
        first, column = steps.member_starts[clique], steps.columns[clique]
        for place in range(first, steps.member_starts[clique + 1]):
            column += ((state >> steps.members[place]) & 1) << (place - first)
        value += scores[column]
    return value


@njit(**INNER)
def _decide(step, hits, wrong, is_hit, is_wrong, steps, scores, work):
    """Decide a label from a table of so many hits and false positives at most."""
    before, after = work.totals[step % 2], work.totals[(step + 1) % 2]
    open_before = steps.kept[step - 1] if step > 0 else 0
    for state in range(1 << steps.width):
        if state & ~open_before != 0:
            continue
        for value in range(2):
            full = state | (value << steps.bits[step])
            end = full & steps.kept[step]
            gain = value * scores[steps.labels[step]] + _score_of_cliques(step, full, steps, scores)
            for hit in range(hits + 1):
                for false in range(wrong + 1):
                    total = before[state, hit, false] + gain
                    if total > after[end, hit + value * is_hit, false + value * is_wrong]:
                        after[end, hit + value * is_hit, false + value * is_wrong] = total
                        work.chosen[step, end, hit + value * is_hit, false + value * is_wrong] = full


@njit(**INNER)
def _write_labels(row, hits, wrong, data, steps, work, labels):
    """Follow the states back to the labels."""
    state = 0
    for step in range(len(steps.labels) - 1, -1, -1):
        label, bit = steps.labels[step], steps.bits[step]
        state = work.chosen[step, state, hits, wrong]
        labels[label] = (state >> bit) & 1
        state &= ~(1 << bit)
        if labels[label] and data.observed[row, label]:
            hits -= data.targets[row, label] != 0
            wrong -= data.targets[row, label] == 0


@njit(**LOOP)
def worst_sets(rows, data, loss, steps, scores, work, labels, values):
    """Write the labels of largest loss plus score of some rows, and both together.

    ``scores`` (rows, L + states) are of labels and of the states of cliques.
    """
    for place in range(len(rows)):
        row, hits, wrong = rows[place], 0, 0
        work.totals[0, 0, 0, 0] = 0.0
        for step in range(len(steps.labels)):
            label = steps.labels[step]
            is_hit = 1 if data.observed[row, label] and data.targets[row, label] else 0
            is_wrong = 1 if data.observed[row, label] and not data.targets[row, label] else 0
            work.totals[(step + 1) % 2, :, : hits + is_hit + 1, : wrong + is_wrong + 1] = -np.inf
            _decide(step, hits, wrong, is_hit, is_wrong, steps, scores[place], work)
            hits += is_hit
            wrong += is_wrong
        totals, best, best_hits, best_wrong = work.totals[len(steps.labels) % 2, 0], -np.inf, 0, 0
        for hit in range(hits + 1):
            for false in range(wrong + 1):
                total = totals[hit, false] + set_loss(loss, hit, false, hits)
                if total > best:
                    best, best_hits, best_wrong = total, hit, false
        values[place] = best
        _write_labels(row, best_hits, best_wrong, data, steps, work, labels[place])
