from functools import reduce

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.foundation.loops.structured import DualPoint
from labelweave.problems.structured_margin.structured_margin import joined


def _point(random, n, capacity, parts):
    """Random vertices and shares for parts, each a list of labels; a part of one label has a mean."""
    n_labels = sum(len(part) for part in parts)
    vertices = random.integers(0, 2, (n, capacity, n_labels)).astype(np.int8)
    shares = random.random((n, capacity, len(parts))) * (random.random((n, capacity, len(parts))) < 0.4)
    shares[:, 0] += 1e-3
    shares /= shares.sum(axis=1, keepdims=True)
    means = random.choice([0.0, 0.25, 1.0], (n, n_labels))
    return DualPoint(means, vertices, shares)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([(1, 1), (2, 0), (3, 2), (1, 3)]), st.booleans())
def test_margins_of_parts_are_kept(seed, counts, is_tight):
    random, (n_wide, n_alone), n = np.random.default_rng(seed), counts, 6
    labels = np.arange(2 * n_wide + n_alone)
    parts = [labels[2 * k : 2 * k + 2] for k in range(n_wide)] + [[label] for label in labels[2 * n_wide :]]
    old = _point(random, n, 4, parts)
    # room for independent parts, or for the shares of two parts along one line
    capacity = 7 if is_tight and len(parts) == 2 else 4**n_wide * 2**n_alone
    pieces = [
        (old.shares[:, :, k], old.vertices[:, :, part])
        if k < n_wide
        else (np.c_[1 - old.means[:, part[0]], old.means[:, part[0]]], np.tile([[[0], [1]]], (n, 1, 1)))
        for k, part in enumerate(parts)
    ]
    shares, vertices = reduce(lambda one, other: joined(one, other, capacity), pieces)
    shares = shares[:, :, None]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for number, part in enumerate(parts):
        states, power = np.eye(2 ** len(part)), 1 << np.arange(len(part))
        found = (states[vertices[:, :, part] @ power] * shares).sum(axis=1)
        expected = np.stack([1 - old.means[:, part[0]], old.means[:, part[0]]], axis=1)
        if number < n_wide:
            own = old.shares[:, :, number, None]
            expected = (states[old.vertices[:, :, part] @ power] * own).sum(axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_with_too_few_places_the_largest_shares_stay():
    shares = np.array([[[0.7, 0.6], [0.3, 0.4]]])
    vertices = np.array([[[0, 0, 0, 0], [1, 1, 1, 1]]], np.int8)
    found = joined((shares[:, :, 0], vertices[:, :, :2]), (shares[:, :, 1], vertices[:, :, 2:]), capacity=2)
    assert found[1][0].tolist() == [[0, 0, 0, 0], [1, 1, 1, 1]]
    np.testing.assert_allclose(found[0][0], [0.6 / 0.9, 0.3 / 0.9])
