"""The leaves in which rows end, tree by tree."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit


@njit(**LOOP)
def find_leaves(rows, roots, feature, threshold, children, missing_left, leaves):
    """Pass every row down every tree: ``leaves[i, t]`` is the node where row i ends in tree t.

    feature (m,): the feature that a node splits on, negative at leaves; children come after their parent.
    children (m, 2): the next node of rows at most at the threshold, and of the others.
    missing_left (m,): whether rows with a missing value go to the first child.
    """
    for t in range(len(roots)):
        for i in range(rows.shape[0]):
            node = roots[t]
            while feature[node] >= 0:
                value = rows[i, feature[node]]
                is_left = missing_left[node] if np.isnan(value) else value <= threshold[node]
                node = children[node, 0] if is_left else children[node, 1]
            leaves[i, t] = node
