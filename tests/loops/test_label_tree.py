"""Bounds of the labels' weights of a node, written out."""

import numpy as np
import pytest

from labelweave import LabelTreeClassifier
from labelweave.datasets import make_text_like
from labelweave.foundation.loops.label_tree import bound_nodes

TEXTS = make_text_like(120, 160, 20, labels_per_row=3, random_state=0)


@pytest.fixture(scope="module")
def weighted():
    model = LabelTreeClassifier(leaf_size=6, branching=4, n_trees=1, tol=0.1).fit(TEXTS.X, TEXTS.Y)
    return model.scorer_.trees[0]


def test_nodes_are_bounded_by_their_labels(weighted):
    tree = weighted.tree
    above, below, centres = np.empty((3, len(weighted.features)))
    largest, radii = np.empty((2, tree.n_nodes))
    bound_nodes(weighted._walked[0], above, below, centres, largest, radii)
    for node in range(tree.n_nodes):
        first, last = tree.ends[node], tree.ends[node + 1]
        pairs = np.arange(weighted.pair_ends[node], weighted.pair_ends[node + 1])
        table = np.zeros((len(pairs), last - first))
        for place, pair in enumerate(pairs):
            own = slice(weighted.starts[pair], weighted.starts[pair + 1])
            columns = weighted.columns[own]
            table[place, columns] = weighted.values[own] * weighted.scales[first + columns]
        are_labels = tree.targets[first:last] >= 0
        if not are_labels.any():
            assert largest[node] == -np.inf
            assert radii[node] == 0
            continue
        labels = table[:, are_labels]
        np.testing.assert_allclose(above[pairs], labels.max(axis=1))
        np.testing.assert_allclose(below[pairs], labels.min(axis=1))
        centre = labels.mean(axis=1)
        np.testing.assert_allclose(centres[pairs], centre, atol=1e-15)
        farthest = np.linalg.norm(labels - centre[:, None], axis=0).max()
        np.testing.assert_allclose(radii[node], farthest, rtol=1e-9)
        assert largest[node] == weighted.intercepts[first:last][are_labels].max()
