"""The leaves in which rows end, tree by tree."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit


@njit(**LOOP)
def find_leaves(rows, roots, feature, threshold, children, missing_left, leaves):
    """Walk every row down every tree: ``leaves[i, t]`` is the node where row i ends in tree t.

    feature (m,): what a node asks for, below 0 at leaves; every child stands after its parent.
    children (m, 2): where rows go that are at most the threshold, and the others.
    missing_left (m,): whether rows without a number go to the first of them.
    """
    for t in range(len(roots)):
        for i in range(rows.shape[0]):
            node = roots[t]
            while feature[node] >= 0:
                value = rows[i, feature[node]]
                is_left = missing_left[node] if np.isnan(value) else value <= threshold[node]
                node = children[node, 0] if is_left else children[node, 1]
            leaves[i, t] = node
