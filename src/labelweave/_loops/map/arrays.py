"""The arrays that the loops of MAP inference read and write.

The score of labels y in {0, 1}^L is ``sum_k unary[k] y_k + sum_c table_c[state of clique c]``.  Bit b of a
clique's state is the value of its b-th label, in ascending order; tables stand behind each other in
one array.  A *slot* is a place of a label in a clique.

A plan never changes; a workspace belongs to one thread.  Arrays of one length and type are rows of
one table, and the rows have names: the time that compiling takes grows with the number of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Floats

__all__ = [
    "INNER",
    "LOOP",
    "SINGLE",
    "WORD_BITS",
    "Buckets",
    "CliqueArrays",
    "Components",
    "Limits",
    "MapPlan",
    "MapWorkspace",
    "Residual",
    "RunOrder",
    "Search",
    "allocate_workspace",
]

LOOP = {"nogil": True, "cache": True, "error_model": "numpy"}
# For loops that only other loops call: what Python needs to call one takes half of the time of compiling.
# They make views of arrays that their callers hold, and count no references.
INNER = LOOP | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
# Loops that are called in one place become part of their caller, and are not compiled by themselves.
SINGLE = INNER | {"inline": "always"}

Flags = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]

# rows of CliqueArrays.places
CLIQUE, BIT = range(2)
# columns of Buckets.rows
LABEL, WIDTH, BELIEF, MESSAGE, FIRST_FACTOR, END_FACTOR, SEPARATOR, PARENT_FACTOR = range(8)
# columns of Buckets.factors
SOURCE, FROM_MESSAGES, MAP_START, OWNER = range(4)
# places of Residual.counts
LABELS, FACTORS, MEMBERS, ENTRIES, CLIQUES = range(5)
# rows of Residual.factors and Residual.members
MEMBER_START, TABLE_START, NEXT_FACTOR = range(3)
MEMBER, SLOT = range(2)
# rows of RunOrder.labels and RunOrder.states
DEGREE, STEP_LABEL, POSITION, HEAD, PLACE, CHOICE_START, SEPARATOR_START = range(7)
INDEX, STRIDE = range(2)
# places of Search.counts
TRAIL_LENGTH, QUEUE_FIRST, QUEUE_LENGTH, STAMP, CORE_LENGTH, CORE_CLIQUES_LENGTH = range(6)
# rows of Search.flags, Search.labels, Search.numbers, Search.cliques and Search.scratch
FIXED, QUEUED, IS_OPEN, CANDIDATE, INCUMBENT, STACK_VALUE, STACK_TRIED = range(7)
QUEUE, TRAIL, MARK, CORE, NUMBER, STACK_LABEL, STACK_TRAIL = range(7)
CORE_BELIEF, STACK_BOUND, DROP_ZERO, DROP_ONE = range(4)
CORE_CLIQUE, CLIQUE_MARK = range(2)
TOTAL, CHANGE = range(2)

WORD_BITS = 32  # bits of an int64 that a set of labels uses
_MOST_ORDERED = 1024  # the neighbors of more labels than these are not written out
_MOST_BITS = 64


class CliqueArrays(NamedTuple):
    """Cliques of labels, and the cliques of every label.

    Clique c has the slots ``starts[c]`` to ``starts[c + 1]`` of ``labels`` and a table that begins at
    ``table_starts[c]``.  Label k is bit ``places[BIT, j]`` of clique ``places[CLIQUE, j]`` for j from
    ``label_starts[k]`` to ``label_starts[k + 1]``.
    """

    starts: Integers
    labels: Integers
    table_starts: Integers
    label_starts: Integers
    places: Integers


class Components(NamedTuple):
    """Components of two labels or more: their labels, and their buckets where there is an elimination order.

    ``directly`` is 1 where elimination is so little work that nothing is tried before it.
    """

    starts: Integers
    labels: Integers
    bucket_starts: Integers
    directly: Integers


class Buckets(NamedTuple):
    """Buckets of elimination, a row of ``rows`` each, in the order in which labels are eliminated.

    A bucket's belief has the state of its label in bit 0 and those of its separator above; its
    message is a function of the separator.  Factor f adds to each state of the bucket
    ``factors[f, OWNER]`` the entry ``maps[factors[f, MAP_START] + state]`` of a clique's table or of an
    earlier bucket's message.  ``PARENT_FACTOR`` is the factor that a bucket's message is, -1 if
    its separator is empty.
    """

    rows: Integers
    separators: Integers
    factors: Integers
    maps: npt.NDArray[np.uint32]


class Limits(NamedTuple):
    """What may be spent on labels that no elimination order makes easy.

    ``width`` and ``states`` bound the separators of an elimination made at run time, and the entries of all
    its messages; no states forbid it.  ``dead_ends`` is 0 where message passing alone is wanted.
    """

    nodes: int
    sweeps: int
    width: int
    states: int
    dead_ends: int


class MapPlan(NamedTuple):
    """All that inference on one graph needs."""

    cliques: CliqueArrays
    components: Components
    buckets: Buckets
    limits: Limits


class Residual(NamedTuple):
    """The problem that is left of one connected set of free labels, in numbers of its own.

    Factor f has the members ``factors[MEMBER_START, f]`` to ``factors[MEMBER_START, f + 1]``; the first
    ``counts[CLIQUES]`` factors are cliques, and their members know their slots.
    """

    counts: Integers
    labels: Integers
    unary: Floats
    factors: Integers
    members: Integers
    tables: Floats
    values: Flags


class RunOrder(NamedTuple):
    """An elimination order made at run time, and what elimination in it writes."""

    labels: Integers
    neighbors: Integers
    separators: Integers
    states: Integers
    belief: Floats
    choices: Flags


class Search(NamedTuple):
    """What the search of a component keeps, by labels, cliques and slots of the whole graph.

    The flag ``FIXED`` of a label is its value, -1 while it is free.  ``shifts[slot]`` is the message from a
    clique to a label: what the difference of the label's two scores gains and the clique loses.
    """

    counts: Integers
    flags: Flags
    labels: Integers
    numbers: Floats
    cliques: Integers
    shifts: Floats
    scratch: Floats


class MapWorkspace(NamedTuple):
    """The memory of one thread."""

    beliefs: Floats
    messages: Floats
    downward: Floats
    residual: Residual
    order: RunOrder
    search: Search


def allocate_workspace(plan: MapPlan) -> MapWorkspace:
    """Allocate what inference with a plan writes to."""
    sizes = 1 << plan.buckets.rows[:, WIDTH]
    # components with little work are never searched
    searched = int(np.diff(plan.components.starts)[plan.components.directly == 0].max(initial=0))
    return MapWorkspace(
        beliefs=np.zeros(2 * int(sizes.sum())),
        messages=np.zeros(int(sizes.sum())),
        downward=np.zeros(int(sizes.max(initial=1))),
        residual=_allocate_residual(plan, searched),
        order=_allocate_order(plan.limits, searched),
        search=_allocate_search(plan),
    )


def _allocate_residual(plan: MapPlan, searched: int) -> Residual:
    cliques, limits = plan.cliques, plan.limits
    n_factors = len(cliques.starts) + searched if searched else 0
    n_members = len(cliques.labels) + searched * limits.width if searched else 0
    n_entries = int(cliques.table_starts[-1]) + limits.states if searched else 0
    return Residual(
        counts=np.zeros(5, np.int64),
        labels=np.zeros(searched, np.int64),
        unary=np.zeros(searched),
        factors=np.zeros((3, n_factors), np.int64),
        members=np.zeros((2, n_members), np.int64),
        tables=np.zeros(n_entries),
        values=np.zeros(searched, np.int8),
    )


def _allocate_order(limits: Limits, searched: int) -> RunOrder:
    n_labels = min(searched, _MOST_ORDERED)
    n_states = 2 << limits.width if searched else 0
    return RunOrder(
        labels=np.zeros((7, n_labels + 1), np.int64),
        neighbors=np.zeros((n_labels, -(-n_labels // WORD_BITS)), np.int64),
        separators=np.zeros(n_labels * max(1, limits.width), np.int64),
        states=np.zeros((2, max(n_states, _MOST_BITS)), np.int64),
        belief=np.zeros(n_states),
        choices=np.zeros(limits.states if searched else 0, np.int8),
    )


def _allocate_search(plan: MapPlan) -> Search:
    n_labels, n_cliques = len(plan.cliques.label_starts) - 1, len(plan.cliques.starts) - 1
    largest = int(np.diff(plan.cliques.table_starts).max(initial=1))
    return Search(
        counts=np.zeros(6, np.int64),
        flags=np.zeros((7, n_labels), np.int8),
        labels=np.zeros((7, n_labels), np.int64),
        numbers=np.zeros((4, n_labels)),
        cliques=np.zeros((2, n_cliques), np.int64),
        shifts=np.zeros(len(plan.cliques.labels)),
        scratch=np.zeros((2, max(largest, _MOST_BITS))),
    )
