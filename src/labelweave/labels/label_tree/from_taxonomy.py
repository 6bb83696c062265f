"""The tree that a given hierarchy is."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.labels.label_tree.tree import LabelTree
from labelweave.labels.taxonomy import Taxonomy


def tree_of_taxonomy(taxonomy: Taxonomy, names: list[str], leaf_size: int) -> LabelTree:
    """Make the tree of a taxonomy over labels, of which each is a node of it.

    Parts with ``leaf_size`` labels at most become leaves.  A label with others below it is a column beside
    them.  What has no label below and what has a single branch is left out.

    Raises ValueError if a node has several parents, or a label is no node.
    """
    taxonomy.require_tree("A tree that labels are searched by")
    unknown = [name for name in names if name not in taxonomy]
    if unknown:
        raise ValueError(
            f"tree has no node {unknown[0]!r}, which is a label ({len(unknown)} labels are missing); give a "
            "taxonomy with a node a label, or tree=None."
        )
    place = {name: label for label, name in enumerate(names)}
    below: dict[str | None, list[Any]] = {}
    for name in reversed(taxonomy.nodes):  # children before their parents
        parts = [place[name]] if name in place else []
        parts += reversed(below.pop(name, []))
        if parts:
            below.setdefault(taxonomy.parent.get(name), []).append(_joined(parts, leaf_size))
    return LabelTree.from_nested(_as_list(_joined([*reversed(below[None])], leaf_size)))


def _joined(parts: list[Any], leaf_size: int) -> Any:
    """Make a node of some labels and nodes, or fewer where that is enough."""
    if len(parts) == 1:
        return parts[0]
    if sum(map(_size, parts)) <= leaf_size:
        return [label for part in parts for label in (part if isinstance(part, list) else [part])]
    return parts


def _size(part: Any) -> float:
    """Count labels; a node that has others below it is too large."""
    if not isinstance(part, list):
        return 1
    return np.inf if any(isinstance(one, list) for one in part) else len(part)


def _as_list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part]
