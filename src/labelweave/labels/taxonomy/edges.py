"""Pairs of parent and child names, checked and put in order: every parent before its children.

The order is depth first, so that the nodes below a node follow it without a gap.
Siblings, and roots, stand in the order in which their names were first given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["node_name", "ordered_forest"]

_SHOWN = 5


def ordered_forest(
    pairs: Iterable[Any], nodes: Iterable[Any] = (), root: Any | None = None
) -> tuple[list[str], dict[str, str]]:
    """Check the edges of a forest and order its nodes.

    pairs: one (parent, child) pair an edge; an edge may be given twice.
    nodes: further nodes; they come first when siblings are ordered.
    root: the node above all others, if there must be one.
    parent: the parent of each node that has one, in the same order.
    Raises ValueError if there are no nodes, a name is empty, a node has several parents, the pairs contain a
        cycle, or a node is not below ``root``; the names are given.
    """
    edges = [_checked_pair(position, pair) for position, pair in enumerate(pairs)]
    names = list(dict.fromkeys([*_distinct(nodes), *(name for pair in edges for name in pair)]))
    if not names:
        raise ValueError("The taxonomy is empty; give at least one (parent, child) pair, or one node.")
    parent = _single_parents(edges)
    order = _depth_first(names, parent)
    if len(order) < len(names):
        reached = set(order)
        _refuse_cycle(next(name for name in names if name not in reached), parent)
    if root is not None:
        _refuse_orphans(order, parent, node_name(root, "root"))
    return order, {name: parent[name] for name in order if name in parent}


def node_name(name: Any, where: str) -> str:
    """Write a name as text.

    name: the name; anything but text is written as text.
    where: where it stands, for the message.
    Raises ValueError if there is no name.
    """
    # a table writes NaN where a root has no parent
    is_missing = name is None or (isinstance(name, float) and math.isnan(name))
    text = "" if is_missing else str(name)
    if not text.strip():
        raise ValueError(
            f"An empty name ({name!r}) stands at {where}; every node of a taxonomy needs a name."
        )
    return text


def _checked_pair(position: int, pair: Any) -> tuple[str, str]:
    parts = () if isinstance(pair, (str, Mapping)) or not isinstance(pair, Iterable) else tuple(pair)
    if len(parts) != 2:
        raise ValueError(
            f"The edge at position {position} is {pair!r}; give a pair (parent, child), and list nodes "
            "without edges in nodes=."
        )
    return node_name(parts[0], f"pair {position}, {pair!r}"), node_name(
        parts[1], f"pair {position}, {pair!r}"
    )


def _distinct(nodes: Iterable[Any]) -> list[str]:
    names = [node_name(name, f"position {position} of nodes") for position, name in enumerate(nodes)]
    if len(set(names)) < len(names):
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise ValueError(f"The name {twice!r} is listed twice in nodes; names must be distinct.")
    return names


def _single_parents(edges: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Give each child its parent, and refuse children with several."""
    above: dict[str, list[str]] = {}
    for parent, child in dict.fromkeys(edges):
        above.setdefault(child, []).append(parent)
    bad = {child: parents for child, parents in above.items() if len(parents) > 1}
    if bad:
        child, parents = next(iter(bad.items()))
        number = {2: "two", 3: "three"}.get(len(parents), str(len(parents)))
        others = f"; so have {len(bad) - 1} other nodes" if len(bad) > 1 else ""
        raise ValueError(
            f"The node {child!r} has {number} parents, {_listed(parents)}{others}; a taxonomy is a tree "
            "for now, so keep one parent of each node, or give each place of the node a name of its own."
        )
    return {child: parents[0] for child, parents in above.items()}


def _depth_first(names: Sequence[str], parent: Mapping[str, str]) -> list[str]:
    """Walk down from the roots; nodes on a cycle, and those below one, are not reached."""
    children: dict[str | None, list[str]] = {}
    for name in reversed(names):
        children.setdefault(parent.get(name), []).append(name)
    order, waiting = list[str](), children.get(None, [])
    while waiting:
        order.append(waiting.pop())
        waiting.extend(children.get(order[-1], ()))
    return order


def _refuse_cycle(start: str, parent: Mapping[str, str]) -> None:
    path = [start]
    while parent[path[-1]] not in path:
        path.append(parent[path[-1]])
    closing = parent[path[-1]]
    cycle = [closing, *reversed(path[path.index(closing) :])]
    raise ValueError(f"The taxonomy has a cycle: {' -> '.join(cycle)}; remove one of these edges.")


def _refuse_orphans(order: Sequence[str], parent: Mapping[str, str], root: str) -> None:
    tops = [name for name in order if name not in parent]
    if root not in tops:
        found = f"hangs under {parent[root]!r}" if root in parent else "is not among the nodes"
        raise ValueError(f"The root {root!r} {found}; give the name of the node above all others.")
    if len(tops) > 1:
        orphans = [name for name in tops if name != root]
        raise ValueError(
            f"Not all nodes are below the root {root!r}: {_listed(orphans)} "
            f"{'has' if len(orphans) == 1 else 'have'} no parent; give one, or leave root out for a forest."
        )


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
