"""Sets of labels that cliques connect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

__all__ = ["connected_labels"]


def connected_labels(cliques: Sequence[tuple[int, ...]], n_labels: int) -> tuple[tuple[int, ...], ...]:
    """Find the components of a clique graph.

    Returns the labels of each component, ascending; components in the order of their first labels.
    """
    ends = np.array([pair for clique in cliques for pair in pairwise(clique)], np.int64).reshape(-1, 2)
    joins = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n_labels, n_labels))
    _, number = connected_components(joins, directed=False)
    found: dict[int, list[int]] = {}
    for label, component in enumerate(number.tolist()):
        found.setdefault(component, []).append(label)
    return tuple(tuple(labels) for labels in found.values())
