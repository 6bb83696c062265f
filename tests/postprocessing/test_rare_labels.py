"""Best labels with rare ones ranked higher."""

import numpy as np

from labelweave.postprocessing import favor_rare_labels

LABELS, SCORES = np.array([[3, 0, 2], [1, 2, 0]]), np.array([[0.5, 0.4, -0.2], [0.0, 0.0, -900.0]])
CHANCES = np.array([0.25, 0.5, 1.0, 0.9])


def test_scores_are_logarithms_of_quotients():
    labels, scores = favor_rare_labels(LABELS, SCORES, CHANCES, 3, power=1.0, sharpness=2.0)
    chances = 1 / (1 + np.exp(-2.0 * np.array([[0.4, 0.5, -0.2], [0.0, 0.0, 0.0]])))
    np.testing.assert_array_equal(labels, [[0, 3, 2], [1, 2, 0]])
    expected = np.log(chances / np.array([[0.25, 0.9, 1.0], [0.5, 1.0, 1.0]]))
    np.testing.assert_allclose(scores[0], expected[0])
    np.testing.assert_allclose(scores[1, :2], expected[1, :2])
    assert np.isfinite(scores).all()


def test_a_rare_label_passes_one_that_is_somewhat_likelier():
    labels, scores = np.array([[0, 1]]), np.array([[0.3, 0.2]])
    for power, best in ((0.0, 0), (1.0, 1)):
        assert favor_rare_labels(labels, scores, np.array([0.9, 0.5]), 1, power=power)[0] == best


def test_no_power_leaves_the_order():
    labels, scores = favor_rare_labels(LABELS, SCORES, CHANCES, 2, power=0.0)
    np.testing.assert_array_equal(labels, LABELS[:, :2])
    assert (np.diff(scores, axis=1) <= 0).all()
    empty = favor_rare_labels(np.empty((0, 3), int), np.empty((0, 3)), CHANCES, 2)
    assert empty[0].shape == empty[1].shape == (0, 2)
