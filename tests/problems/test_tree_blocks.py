"""The max-margin duals of a tree's nodes: their blocks, the losses without weights, preserved types."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import FeatureMatrix
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.labels.label_tree import LabelTree
from labelweave.problems.tree_blocks import TreeBlocks, margin_data

ROWS = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], np.int8)
WEIGHTS = np.array([1.0, 10.0, 100.0])


def _blocks(nested, table, **options):
    labels = table if isinstance(table, LabelMatrix) else LabelMatrix(sp.csr_array(table))
    data = margin_data(FeatureMatrix(np.eye(3)), labels, WEIGHTS, intercept=True)
    tree = LabelTree.from_nested(nested)
    return TreeBlocks(tree, data, Workers(1), dtype=np.float64, is_short=False, **options)


def test_a_node_that_no_row_reaches_has_no_block():
    blocks = _blocks([[0, 1], [2, 3]], ROWS)
    owners = [int(blocks.tree.owners[group[0]]) for group in blocks.groups]
    assert owners == [0, 1]


def test_labels_are_in_blocks_of_their_own_where_they_see_all_rows():
    blocks = _blocks([0, [1, 2], 3], ROWS, sees_all=True)
    targets = [blocks.tree.targets[group] for group in blocks.groups]
    assert [(target >= 0).tolist() for target in targets] == [[False], [True, True], [True, True]]


def test_without_weights_a_column_costs_twice_the_weights_of_its_rows():
    """The hinge is 1 at a score of 0; the root learns from all rows, a node from those with a label below."""
    np.testing.assert_allclose(_blocks([[0, 1], [2, 3]], ROWS).zero_losses, [2 * 111, 2 * 11])
    seen = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]], np.int8)  # the second row may have label 2
    partly = LabelMatrix(sp.csr_array(ROWS), sp.csr_array(seen))
    np.testing.assert_allclose(_blocks([[0, 1], [2, 3]], partly).zero_losses, [2 * 111 - 10, 2 * 11])
    entries = np.array([[2.0, 3.0, 0.5, 4.0], [5.0, 0.25, 1.5, 1.25], [1.0, 1.0, 1.0, 0.5]])
    weighed = _blocks([[0, 1], [2, 3]], ROWS, entries=entries).zero_losses
    root = (3 + 0.5) * 1 + (0.25 + 1.25) * 10 + (1 + 0.5) * 100
    np.testing.assert_allclose(weighed, [root, (2 + 3) * 1 + (5 + 0.25) * 10])


@pytest.mark.parametrize(("width", "kind"), [(256, np.uint8), (257, np.uint16)])
def test_columns_of_a_node_are_numbered_in_the_smallest_type(width, kind):
    blocks = _blocks(list(range(width)), np.zeros((3, width), np.int8))
    assert blocks.solution([]).columns.dtype == kind
