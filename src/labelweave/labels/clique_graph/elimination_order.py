"""Orders in which the nodes of a graph are eliminated.

Eliminating a node makes its neighbors neighbors of each other.  The width of an order is the largest
number of neighbors that a node has when its turn comes.  Of all nodes the one that adds the fewest
edges goes first (min-fill), of those the one with the fewest neighbors, of those the lowest.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

__all__ = ["elimination_order"]


def elimination_order(
    neighbors: Sequence[set[int]], limit: int | None = None
) -> list[tuple[int, list[int]]] | None:
    """Order the nodes of a graph by min-fill, each with the neighbors it has then, in ascending order.

    limit: give up, with None, when a node with more neighbors than this must be eliminated.
    """
    left = [set(around) for around in neighbors]
    order = _strip_leaves(left)
    gone = {node for node, _ in order}
    core = [node for node in range(len(left)) if node not in gone]
    rest = _order_core(_packed(left, core), limit)
    if rest is None or (limit is not None and any(len(around) > limit for _, around in order)):
        return None
    return order + [(core[node], [core[other] for other in around]) for node, around in rest]


def _strip_leaves(left: list[set[int]]) -> list[tuple[int, list[int]]]:
    """Eliminate nodes with at most one neighbor, which adds no edge."""
    order: list[tuple[int, list[int]]] = []
    waiting = [node for node in range(len(left) - 1, -1, -1) if len(left[node]) <= 1]
    gone = [False] * len(left)
    while waiting:
        node = waiting.pop()
        if gone[node]:
            continue
        gone[node] = True
        order.append((node, sorted(left[node])))
        for other in left[node]:
            left[other].discard(node)
            if len(left[other]) <= 1:
                waiting.append(other)
        left[node] = set()
    return order


def _packed(left: list[set[int]], core: list[int]) -> list[int]:
    """Write the neighbors of the core's nodes as bits, in the core's own numbers."""
    place = {node: number for number, node in enumerate(core)}
    return [sum(1 << place[other] for other in left[node]) for node in core]


def _order_core(neighbors: list[int], limit: int | None) -> list[tuple[int, list[int]]] | None:
    alive = (1 << len(neighbors)) - 1
    fills = [_fill(around, neighbors) for around in neighbors]
    heap = [(fills[node], around.bit_count(), node) for node, around in enumerate(neighbors)]
    heapq.heapify(heap)
    order: list[tuple[int, list[int]]] = []
    while heap:
        fill, degree, node = heapq.heappop(heap)
        if not alive >> node & 1 or (fill, degree) != (fills[node], neighbors[node].bit_count()):
            continue
        if limit is not None and degree > limit:
            return None
        alive ^= 1 << node
        order.append((node, _members(neighbors[node])))
        for other in _eliminate(node, neighbors, fill):
            fills[other] = _fill(neighbors[other], neighbors)
            heapq.heappush(heap, (fills[other], neighbors[other].bit_count(), other))
    return order


def _eliminate(node: int, neighbors: list[int], fill: int) -> list[int]:
    """Take a node out; return the nodes whose fill may have changed."""
    around = neighbors[node]
    changed = around
    for other in _members(around):
        if fill:
            changed |= neighbors[other]
        neighbors[other] = (neighbors[other] | around) & ~(1 << other) & ~(1 << node)
    return _members(changed & ~(1 << node))


def _fill(around: int, neighbors: list[int]) -> int:
    """Count the edges (twice) that eliminating a node with these neighbors adds."""
    return sum((around & ~neighbors[other]).bit_count() - 1 for other in _members(around))


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
