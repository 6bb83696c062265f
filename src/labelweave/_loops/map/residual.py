"""The problem that is left on a connected set of free labels once others are fixed."""

from __future__ import annotations

from labelweave._loops.compiling import njit
from labelweave._loops.map.arrays import (
    CLIQUE,
    CLIQUE_MARK,
    CLIQUES,
    ENTRIES,
    FACTORS,
    FIXED,
    INNER,
    LABELS,
    MARK,
    MEMBER,
    MEMBER_START,
    MEMBERS,
    NUMBER,
    SINGLE,
    SLOT,
    STAMP,
    TABLE_START,
)

__all__ = ["gather_residual", "take_connected"]


@njit(**INNER)
def take_connected(start, cliques, search, residual):  # type: ignore[no-untyped-def]
    """List the free labels that are connected to ``start`` and mark them with the current stamp."""
    stamp, labels = search.counts[STAMP], residual.labels
    labels[0] = start
    search.labels[MARK, start] = stamp
    count, done = 1, 0
    while done < count:
        label = labels[done]
        search.labels[NUMBER, label] = done
        done += 1
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[CLIQUE, place]
            for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
                other = cliques.labels[slot]
                if search.flags[FIXED, other] < 0 and search.labels[MARK, other] != stamp:
                    search.labels[MARK, other] = stamp
                    labels[count] = other
                    count += 1
    residual.counts[LABELS] = count


@njit(**SINGLE)
def _list_free(clique, cliques, search, residual):  # type: ignore[no-untyped-def]
    """Write the free labels of a clique behind the members; return their number and the others' state."""
    first, begin = cliques.starts[clique], residual.counts[MEMBERS]
    n_free, base = 0, 0
    for slot in range(first, cliques.starts[clique + 1]):
        label = cliques.labels[slot]
        value = search.flags[FIXED, label]
        if value >= 0:
            base |= value << (slot - first)
        else:
            residual.members[MEMBER, begin + n_free] = search.labels[NUMBER, label]
            residual.members[SLOT, begin + n_free] = slot
            n_free += 1
    return n_free, base


@njit(**SINGLE)
def _copy_entries(first, n_free, source, tables, residual):  # type: ignore[no-untyped-def]
    """Copy the entries of a table that agree with what is fixed; ``source`` is that of state 0."""
    begin, entry = residual.counts[MEMBERS], residual.counts[ENTRIES]
    for state in range(1 << n_free):
        place = source
        for bit in range(n_free):
            if (state >> bit) & 1:
                place += 1 << (residual.members[SLOT, begin + bit] - first)
        residual.tables[entry + state] = tables[place]


@njit(**SINGLE)
def _add_clique(clique, cliques, tables, search, residual):  # type: ignore[no-untyped-def]
    """Add a clique with free labels; return the constant that it leaves."""
    counts, first = residual.counts, cliques.starts[clique]
    n_free, base = _list_free(clique, cliques, search, residual)
    source = cliques.table_starts[clique] + base
    if n_free == 1:
        step = 1 << (residual.members[SLOT, counts[MEMBERS]] - first)
        residual.unary[residual.members[MEMBER, counts[MEMBERS]]] += tables[source + step] - tables[source]
        return tables[source]
    _copy_entries(first, n_free, source, tables, residual)
    factor = counts[FACTORS]
    residual.factors[MEMBER_START, factor] = counts[MEMBERS]
    residual.factors[TABLE_START, factor] = counts[ENTRIES]
    counts[FACTORS] += 1
    counts[MEMBERS] += n_free
    counts[ENTRIES] += 1 << n_free
    residual.factors[MEMBER_START, factor + 1] = counts[MEMBERS]
    return 0.0


@njit(**INNER)
def gather_residual(cliques, unary, tables, search, residual):  # type: ignore[no-untyped-def]
    """Write out the problem of the labels that :func:`take_connected` listed; return its constant."""
    counts, stamp, constant = residual.counts, search.counts[STAMP], 0.0
    counts[FACTORS], counts[MEMBERS], counts[ENTRIES] = 0, 0, 0
    for number in range(counts[LABELS]):
        residual.unary[number] = unary[residual.labels[number]]
    for number in range(counts[LABELS]):
        label = residual.labels[number]
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[CLIQUE, place]
            if search.cliques[CLIQUE_MARK, clique] != stamp:
                search.cliques[CLIQUE_MARK, clique] = stamp
                constant += _add_clique(clique, cliques, tables, search, residual)
    counts[CLIQUES] = counts[FACTORS]
    return constant
