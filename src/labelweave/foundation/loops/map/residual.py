"""The problem that is left on a connected set of free labels once others are fixed."""

from __future__ import annotations

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.map.arrays import INNER, SINGLE


@njit(**INNER)
def take_connected(start, cliques, search, residual):
    """List the free labels that are connected to ``start`` and mark them with the current stamp."""
    stamp, labels = search.counts.stamp, residual.labels
    labels[0] = start
    search.labels[start].mark = stamp
    count, done = 1, 0
    while done < count:
        label = labels[done]
        search.labels[label].number = done
        done += 1
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[place].clique
            for slot in range(cliques.starts[clique], cliques.starts[clique + 1]):
                other = cliques.labels[slot]
                if search.fixed[other] < 0 and search.labels[other].mark != stamp:
                    search.labels[other].mark = stamp
                    labels[count] = other
                    count += 1
    residual.counts.labels = count


@njit(**SINGLE)
def _list_free(clique, cliques, search, residual):
    """Write the free labels of a clique behind the members; return their number and the others' state."""
    first, begin = cliques.starts[clique], residual.counts.members
    n_free, base = 0, 0
    for slot in range(first, cliques.starts[clique + 1]):
        label = cliques.labels[slot]
        value = search.fixed[label]
        if value >= 0:
            base |= value << (slot - first)
        else:
            residual.members[begin + n_free].member = search.labels[label].number
            residual.members[begin + n_free].slot = slot
            n_free += 1
    return n_free, base


@njit(**SINGLE)
def _copy_entries(first, n_free, source, tables, residual):
    """Copy the entries of a table that agree with what is fixed; ``source`` is that of state 0."""
    begin, entry = residual.counts.members, residual.counts.entries
    for state in range(1 << n_free):
        place = source
        for bit in range(n_free):
            if (state >> bit) & 1:
                place += 1 << (residual.members[begin + bit].slot - first)
        residual.tables[entry + state] = tables[place]


@njit(**SINGLE)
def _add_clique(clique, cliques, tables, search, residual):
    """Add a clique with free labels; return the constant that it leaves."""
    counts, first = residual.counts, cliques.starts[clique]
    n_free, base = _list_free(clique, cliques, search, residual)
    source = cliques.table_starts[clique] + base
    if n_free == 1:
        step = 1 << (residual.members[counts.members].slot - first)
        residual.unary[residual.members[counts.members].member] += tables[source + step] - tables[source]
        return tables[source]
    _copy_entries(first, n_free, source, tables, residual)
    factor = counts.factors
    residual.factors[factor].member_start = counts.members
    residual.factors[factor].table_start = counts.entries
    counts.factors += 1
    counts.members += n_free
    counts.entries += 1 << n_free
    residual.factors[factor + 1].member_start = counts.members
    return 0.0


@njit(**INNER)
def gather_residual(cliques, unary, tables, search, residual):
    """Write out the problem of the labels that :func:`take_connected` listed; return its constant."""
    counts, stamp, constant = residual.counts, search.counts.stamp, 0.0
    counts.factors, counts.members, counts.entries = 0, 0, 0
    for number in range(counts.labels):
        residual.unary[number] = unary[residual.labels[number]]
    for number in range(counts.labels):
        label = residual.labels[number]
        for place in range(cliques.label_starts[label], cliques.label_starts[label + 1]):
            clique = cliques.places[place].clique
            if search.cliques[clique].mark != stamp:
                search.cliques[clique].mark = stamp
                constant += _add_clique(clique, cliques, tables, search, residual)
    counts.cliques = counts.factors
    return constant
