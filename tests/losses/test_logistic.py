"""The logistic loss: tied and separate labels are the same numbers in another shape."""

import numpy as np

from labelweave.problems.losses import EntrywiseLoss


def test_separate_labels_are_the_columns_of_tied_ones():
    rng = np.random.default_rng(0)
    signs = rng.integers(-1, 2, (7, 4)).astype(np.int8)
    weights, scores = rng.uniform(0, 2, (7, 3)), 3 * rng.normal(size=(7, 3, 4))
    tied = EntrywiseLoss("logistic", signs, weights, is_separate=False)
    separate = EntrywiseLoss("logistic", signs, weights, is_separate=True)
    assert tied.shape == (7, 3, 4)
    assert separate.shape == (7, 12, 1)
    rows = slice(0, 7)
    one = tied.evaluate(scores, rows, np.arange(3))
    other = separate.evaluate(scores.reshape(7, 12, 1), rows, np.arange(12))
    assert np.array_equal(other.residuals.reshape(7, 3, 4), one.residuals)
    assert np.array_equal(other.state.reshape(7, 3, 4), one.state)
    assert np.allclose(other.values.reshape(3, 4).sum(axis=1), one.values)


def test_unobserved_entries_count_for_nothing():
    signs = np.array([[1, 0], [0, -1]], dtype=np.int8)
    loss = EntrywiseLoss("logistic", signs, np.ones((2, 1)), is_separate=False)
    scores = np.array([[0.0, 1e6], [-1e6, 0.0]])[:, None, :]
    found = loss.evaluate(scores, slice(0, 2), np.array([0]))
    assert np.isclose(found.values[0], 2 * np.log(2))
    assert np.array_equal(found.residuals[:, 0] != 0, signs != 0)
    assert np.array_equal(found.state[:, 0] != 0, signs != 0)
