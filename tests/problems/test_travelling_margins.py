"""What travels between partitions of rows: sums whose bits do not depend on who added them."""

import numpy as np
import pytest

from labelweave.problems.travelling_margins import in_tree_order


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13])
def test_every_part_is_added_once(count):
    parts = [np.array([2.0**k]) for k in range(count)]
    assert in_tree_order(parts)[0] == 2.0**count - 1
    assert in_tree_order(iter(["a", "b", "c", "d", "e"])) == "abcde"
