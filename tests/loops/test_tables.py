"""Updates of tables in place, by one factor, one per row and one per column; the smallest weights dropped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from labelweave.foundation.loops.tables import (
    add_column_products,
    add_multiples,
    drop_smallest,
    multiply_and_add_rows,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 3)])
def test_factors_of_every_shape(shape, dtype):
    random = np.random.default_rng(0)
    target, vector = random.normal(size=(2, 5, 3)).astype(dtype)
    factors = random.normal(size=shape).astype(dtype)
    added, moved = target.copy(), target.copy()
    add_multiples(added, factors, vector)
    multiply_and_add_rows(moved, factors, vector)
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(added, target + factors * vector, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(moved, factors * target + vector, rtol=tolerance, atol=tolerance)


def test_products_of_columns_are_added_in_double_precision():
    left, right = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(np.float32)
    sums = np.ones(3)
    add_column_products(left, right, sums)
    np.testing.assert_allclose(sums, 1 + (left.astype(float) * right).sum(axis=0), rtol=1e-7)


_FEW = st.integers(-3, 3).map(float)  # with ties


@given(arrays(np.float64, (9, 3), elements=_FEW), st.floats(0.0, 1.0), arrays(bool, 3))
def test_the_smallest_weights_of_active_labels_go(weights, share, active):
    left = weights.copy()
    drop_smallest(left, np.full(3, share), active)
    for label in range(3):
        sizes = np.abs(weights[:, label])
        places = np.flatnonzero(sizes)
        n_dropped = min(len(places), 1 + int((1 - share) * len(places))) if active[label] else 0
        order = places[np.argsort(sizes[places], kind="stable")]
        expected = weights[:, label].copy()
        expected[order[:n_dropped]] = 0
        np.testing.assert_array_equal(left[:, label], expected)
