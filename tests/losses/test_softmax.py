"""The softmax loss: partial rows, and rows whose class is sure."""

import array_api_strict
import numpy as np
import pytest

from labelweave.problems.losses import SoftmaxLoss

EVERY = (slice(0, 2), np.array([0]))


def _two_rows(scores, **partial):
    loss = SoftmaxLoss(np.array([0, 2]), 3, np.ones((2, 1)), **partial)
    return loss, np.array(scores, dtype=float)[:, None, :]


def test_a_row_that_may_be_anything_contributes_nothing():
    allowed = np.ones((1, 3), dtype=bool)
    loss, scores = _two_rows([[3, 1, -2], [0, 0, 0]], partial=np.array([0]), allowed=allowed)
    found = loss.evaluate(scores, *EVERY)
    assert np.allclose(found.residuals[0], 0.0, atol=1e-16)
    assert np.isclose(found.values[0], np.log(3))


def test_a_row_known_in_part_is_a_sum_of_likelihoods():
    allowed = np.array([[True, True, False]])
    loss, scores = _two_rows([[3, 1, -2], [0, 0, 0]], partial=np.array([0]), allowed=allowed)
    powers = np.exp([3.0, 1.0, -2.0])
    expected = -np.log(powers[:2].sum() / powers.sum()) + np.log(3)
    assert np.isclose(loss.evaluate(scores, *EVERY).values[0], expected)


def test_partial_rows_are_found_in_every_run_of_rows():
    rng, partial = np.random.default_rng(0), np.array([0, 3, 4, 9])
    allowed = np.array([[True, True, False]] * 4)
    loss = SoftmaxLoss(np.zeros(10, int), 3, np.ones((10, 1)), partial, allowed)
    scores = rng.normal(size=(10, 1, 3))
    whole = loss.evaluate(scores, slice(0, 10), np.array([0])).residuals
    for start in range(10):
        rows = slice(start, min(10, start + 3))
        found = loss.evaluate(scores[rows], rows, np.array([0])).residuals
        assert np.array_equal(found, whole[rows])


@pytest.mark.parametrize("margin", [20.0, 40.0, 300.0])
def test_curvatures_beneath_the_rounding_of_sure_classes_are_right(margin):
    loss, scores = _two_rows([[margin, 0, -1], [0, -1, margin]])
    state = loss.evaluate(scores, *EVERY).state
    small = np.exp(-margin) * (1 + np.exp(-1))
    assert np.allclose(loss.row_curvatures(state, *EVERY)[:, 0], 2 * small, rtol=1e-7)
    total = loss.mean_curvature(state, *EVERY)
    shares = np.array([2 + np.exp(-1), 1 + np.exp(-1), 1 + 2 * np.exp(-1)])
    assert np.allclose(np.diag(total), np.exp(-margin) * shares, rtol=1e-6)
    assert np.abs(total.sum(axis=0)).max() <= 1e-15 * small
    assert np.linalg.eigvalsh(total / small).min() >= -1e-14


@pytest.mark.parametrize("margin", [3.0, 40.0, 300.0])
@pytest.mark.parametrize("library", [np, array_api_strict])
def test_losses_and_residuals_of_sure_rows_are_right(margin, library):
    loss, scores = _two_rows([[margin, 0, -1], [0, -1, margin]])
    found = loss.evaluate(library.asarray(scores), *EVERY)
    small = np.exp(-margin) * (1 + np.exp(-1))
    own = np.asarray(found.residuals)[[0, 1], 0, [0, 2]]
    assert np.allclose(found.values, 2 * np.log1p(small), rtol=1e-12, atol=0)
    assert np.allclose(own, small / (1 + small), rtol=1e-12, atol=0)
    assert np.allclose(np.asarray(found.residuals).sum(axis=2) / small, 0, atol=1e-12)


def test_losses_of_scores_of_any_size_are_differences_of_scores():
    loss, scores = _two_rows([[-1e14, 0, -3e14], [0, 0, 1e14]])
    assert loss.evaluate(scores, *EVERY).values[0] == 1e14


def test_no_scores_lose_less_than_the_least():
    loss, scores = _two_rows([[800, 0, -1], [0, -1, 800]])
    assert loss.evaluate(scores, *EVERY).values.sum() == loss.least == 0.0
