"""The arrays that the loops of MAP inference read and write.

The score of labels y in {0, 1}^L is ``sum_k unary[k] y_k + sum_c table_c[state of clique c]``.  Bit b of a
clique's state is the value of its b-th label, in ascending order; tables are concatenated in
one array.  A *slot* is the position of a label in a clique.

A plan never changes; a workspace belongs to one thread.  Related arrays are tables of records, since
compile time grows with the number of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelweave.foundation.array_types import Floats
from labelweave.foundation.loops import compiling

# Inner loops make views of arrays that their callers own, without reference counts.
INNER = compiling.INNER | {"_nrt": False}
# Loops with a single caller are inlined, and not compiled separately.
SINGLE = INNER | {"inline": "always"}

Flags = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]

Records = npt.NDArray[np.void]
WORD_BITS = 32  # bits of an int64 that a set of labels uses
_MOST_ORDERED = 1024  # neighbor sets of more labels are not built
_MOST_BITS = 64


def _record(numbers: str, floats: str = "", flags: str = "") -> np.dtype[np.void]:
    """Define the fields of a table: int64, float64 and int8."""
    kinds = ((numbers, np.int64), (floats, np.float64), (flags, np.int8))
    return np.dtype([(name, kind) for names, kind in kinds for name in names.split()], align=True)


PLACE = _record("clique bit")
BUCKET = _record("label width belief message first_factor end_factor separator parent_factor")
BUCKET_FACTOR = _record("source from_messages map_start owner")
_RESIDUAL_COUNTS = _record("labels factors members entries cliques")
_FACTOR = _record("member_start table_start next_factor")
_MEMBER = _record("member slot")
_STEP = _record("degree label position head place choice_start separator_start")
_STATE = _record("index stride")
_SEARCH_COUNTS = _record("trail queue_first queue stamp core core_cliques")
_SEARCH_LABEL = _record("mark number", "drop_zero drop_one", "queued is_open")
_SEARCH_LISTS = _record("queue trail core")
_SEARCH_STACK = _record("label trail", "bound", "is_on tried")
_SEARCH_CLIQUE = _record("core mark")
_TOTAL = _record("", "total change")


class CliqueArrays(NamedTuple):
    """Cliques of labels, and the cliques of every label.

    Clique c has the slots ``starts[c]`` to ``starts[c + 1]`` of ``labels`` and a table that begins at
    ``table_starts[c]``.  Label k is ``places[j].bit`` of ``places[j].clique`` for j from
    ``label_starts[k]`` to ``label_starts[k + 1]``.
    """

    starts: Integers
    labels: Integers
    table_starts: Integers
    label_starts: Integers
    places: Records


class Components(NamedTuple):
    """Components of two or more labels: their labels, and their buckets if they have an elimination order.

    ``directly`` is 1 if elimination is so cheap that nothing is tried before it.
    """

    starts: Integers
    labels: Integers
    bucket_starts: Integers
    directly: Integers


class Buckets(NamedTuple):
    """Buckets of elimination, each one of ``rows``, in the elimination order of their labels.

    A bucket's belief has the state of its label in bit 0 and those of its separator above; its message is a
    function of the separator.  A factor adds to each state of the bucket ``owner`` the entry
    ``maps[map_start + state]`` of a clique's table or of an earlier bucket's message.  ``parent_factor`` is
    the factor of a bucket's message, -1 if its separator is empty.
    """

    rows: Records
    separators: Integers
    factors: Records
    maps: npt.NDArray[np.uint32]


class Limits(NamedTuple):
    """Limits for labels without an easy elimination order.

    ``width`` and ``states`` limit the separators of an elimination at run time, and the entries of all
    its messages; 0 states disable it.  ``dead_ends`` is 0 for message passing only.
    """

    nodes: int
    sweeps: int
    width: int
    states: int
    dead_ends: int


class MapPlan(NamedTuple):
    """All data that inference on one graph needs."""

    cliques: CliqueArrays
    components: Components
    buckets: Buckets
    limits: Limits


class Residual(NamedTuple):
    """The remaining problem of one connected set of free labels, with its own numbering.

    Factor f has the members ``factors[f].member_start`` to ``factors[f + 1].member_start``; the first
    ``counts.cliques`` factors are cliques, and their members have their slots.
    """

    counts: np.void
    labels: Integers
    unary: Floats
    factors: Records
    members: Records
    tables: Floats
    values: Flags


class RunOrder(NamedTuple):
    """An elimination order chosen at run time, and its output arrays."""

    labels: Records
    neighbors: Integers
    separators: Integers
    states: Records
    belief: Floats
    choices: Flags


class Search(NamedTuple):
    """The state of the search of a component, by labels, cliques and slots of the whole graph.

    ``fixed`` has the values of labels, -1 while they are free.  ``shifts[slot]`` is the message from a clique
    to a label: added to the difference of the label's two scores, and subtracted from the clique.
    """

    counts: np.void
    fixed: Flags
    candidate: Flags
    incumbent: Flags
    labels: Records
    lists: Records
    stack: Records
    beliefs: Floats
    cliques: Records
    shifts: Floats
    scratch: Records


class MapWorkspace(NamedTuple):
    """The memory of one thread."""

    beliefs: Floats
    messages: Floats
    downward: Floats
    residual: Residual
    order: RunOrder
    search: Search


def allocate_workspace(plan: MapPlan) -> MapWorkspace:
    sizes = 1 << plan.buckets.rows["width"]
    # components with cheap elimination are never searched
    searched = int(np.diff(plan.components.starts)[plan.components.directly == 0].max(initial=0))
    return MapWorkspace(
        beliefs=np.zeros(2 * int(sizes.sum())), messages=np.zeros(int(sizes.sum())),
        downward=np.zeros(int(sizes.max(initial=1))), residual=_allocate_residual(plan, searched),
        order=_allocate_order(plan.limits, searched), search=_allocate_search(plan),
    )  # fmt: skip


def _allocate_residual(plan: MapPlan, searched: int) -> Residual:
    cliques, limits = plan.cliques, plan.limits
    n_factors = n_members = n_entries = 0
    if searched:
        n_factors, n_members = len(cliques.starts) + searched, len(cliques.labels) + searched * limits.width
        n_entries = int(cliques.table_starts[-1]) + limits.states
    return Residual(
        counts=np.zeros(1, _RESIDUAL_COUNTS)[0], labels=np.zeros(searched, np.int64),
        unary=np.zeros(searched), factors=np.zeros(n_factors, _FACTOR),
        members=np.zeros(n_members, _MEMBER), tables=np.zeros(n_entries),
        values=np.zeros(searched, np.int8),
    )  # fmt: skip


def _allocate_order(limits: Limits, searched: int) -> RunOrder:
    n_labels = min(searched, _MOST_ORDERED)
    n_states = 2 << limits.width if searched else 0
    return RunOrder(
        labels=np.zeros(n_labels + 1, _STEP),
        neighbors=np.zeros((n_labels, -(-n_labels // WORD_BITS)), np.int64),
        separators=np.zeros(n_labels * max(1, limits.width), np.int64),
        states=np.zeros(max(n_states, _MOST_BITS), _STATE), belief=np.zeros(n_states),
        choices=np.zeros(limits.states if searched else 0, np.int8),
    )  # fmt: skip


def _allocate_search(plan: MapPlan) -> Search:
    n_labels, n_cliques = len(plan.cliques.label_starts) - 1, len(plan.cliques.starts) - 1
    largest = int(np.diff(plan.cliques.table_starts).max(initial=1))
    fixed, candidate, incumbent = np.zeros((3, n_labels), np.int8)
    return Search(
        np.zeros(1, _SEARCH_COUNTS)[0], fixed, candidate, incumbent, np.zeros(n_labels, _SEARCH_LABEL),
        np.zeros(n_labels, _SEARCH_LISTS), np.zeros(n_labels, _SEARCH_STACK), np.zeros(n_labels),
        np.zeros(n_cliques, _SEARCH_CLIQUE), np.zeros(len(plan.cliques.labels)),
        np.zeros(max(largest, _MOST_BITS), _TOTAL),
    )  # fmt: skip
