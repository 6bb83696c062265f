"""Losses of single entries: derivatives, conjugates, extremes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.problems.losses import EntrywiseLoss, SoftmaxLoss
from labelweave.problems.losses.entry_losses import ENTRY_LOSSES, GradedEntryLoss
from reference.entry_twins import LOSSES

SIGNS = np.array([1.0, -1.0])
SCALES = [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0]
SCORES = st.floats(-30, 30)


@pytest.fixture(params=ENTRY_LOSSES)
def name(request):
    return request.param


@given(sign=st.sampled_from(SIGNS), score=SCORES)
def test_values_are_those_of_the_formulas(sign, score):
    for name, loss in ENTRY_LOSSES.items():
        found = loss().value(np.array([sign]), np.array([score]))[0]
        assert found == pytest.approx(LOSSES[name](sign, score), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("scale", SCALES)
def test_derivatives_are_finite_differences(name, scale):
    loss, step = ENTRY_LOSSES[name](), 1e-6 * max(scale, 1e-2)
    # no score within a step of the hinge's corner
    scores = scale * np.array([-1.7, -0.6, -0.11, 0.13, 0.45, 1.9])
    for sign in SIGNS:
        signs = np.full(len(scores), sign)
        ahead, behind = scores + step, scores - step
        gradients = (loss.value(signs, ahead) - loss.value(signs, behind)) / (2 * step)
        assert np.allclose(loss.gradient(signs, scores), gradients, rtol=1e-5, atol=1e-7)
        curvatures = (loss.gradient(signs, ahead) - loss.gradient(signs, behind)) / (2 * step)
        assert np.allclose(loss.curvature(signs, scores), curvatures, rtol=1e-4, atol=1e-7)


@given(sign=st.sampled_from(SIGNS), score=SCORES, other=SCORES, share=st.floats(0, 1))
def test_the_conjugate_keeps_to_fenchel_and_young(sign, score, other, share):
    """conjugate(gradient) + loss(other) >= gradient * other, with equality where the gradient is taken."""
    for kind in ENTRY_LOSSES.values():
        loss, signs = kind(), np.array([sign])
        gradient = loss.gradient(signs, np.array([score]))
        value = loss.value(signs, np.array([other]))[0]
        conjugate = loss.conjugate(signs, share * gradient)[0]
        size = 1e-9 * (1 + abs(value) + abs(conjugate))
        assert conjugate + value >= share * gradient[0] * other - size
        tight = loss.conjugate(signs, gradient)[0] + loss.value(signs, np.array([score]))[0]
        assert tight == pytest.approx(gradient[0] * score, abs=1e-9 * (1 + abs(gradient[0] * score)))


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.93])
def test_the_conjugate_is_the_largest_of_a_fine_grid(name, sign, share):
    loss, grid = ENTRY_LOSSES[name](), np.linspace(-40, 40, 800_001)
    gradient = -sign * share
    brute = (gradient * grid - loss.value(np.full(len(grid), sign), grid)).max()
    found = loss.conjugate(np.array([sign]), np.array([gradient]))[0]
    assert found == pytest.approx(brute, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [40.0, 1e3, 1e15])
def test_extreme_scores_give_finite_numbers(name, dtype, size):
    loss = ENTRY_LOSSES[name]()
    signs = np.array([1, 1, -1, -1], dtype)
    scores = np.array([size, -size, size, -size], dtype)
    for found in (loss.value(signs, scores), loss.gradient(signs, scores), loss.curvature(signs, scores)):
        assert np.isfinite(found).all()
        assert found.dtype == dtype
    assert (loss.value(signs, scores) >= 0).all()
    assert np.isfinite(loss.conjugate(signs, loss.gradient(signs, scores))).all()


def test_only_the_squared_loss_is_quadratic(name):
    loss = ENTRY_LOSSES[name]()
    assert loss.is_quadratic == (name == "squared_error")
    # a score at the threshold is as far from one label as from the other
    at = np.array([loss.threshold] * 2)
    one, other = loss.value(SIGNS, at)
    assert one == other


@given(target=st.floats(0, 1).filter(lambda q: abs(q - 0.5) > 1e-6), score=SCORES)
def test_a_soft_target_is_the_expected_loss(target, score):
    signs, scores = np.array([2 * target - 1]), np.array([score])
    for name, kind in ENTRY_LOSSES.items():
        loss, graded = kind(), GradedEntryLoss(kind())
        value, gradient, curvature = graded.evaluate(signs, scores)
        np.testing.assert_allclose(value, graded.value(signs, scores), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradient, graded.gradient(signs, scores), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(curvature, graded.curvature(signs, scores), rtol=1e-9, atol=1e-12)
        if name != "squared_hinge":  # the losses of both signs differ by a linear function
            there, not_there = (loss.value(np.array([sign]), scores) for sign in (1.0, -1.0))
            expected = target * there + (1 - target) * not_there
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


def test_separate_labels_are_the_columns_of_tied_ones():
    rng = np.random.default_rng(0)
    signs = rng.integers(-1, 2, (7, 4)).astype(np.int8)
    weights, scores = rng.uniform(0, 2, (7, 3)), 3 * rng.normal(size=(7, 3, 4))
    tied = EntrywiseLoss("log_loss", signs, weights, is_separate=False)
    separate = EntrywiseLoss("log_loss", signs, weights, is_separate=True)
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
    loss = EntrywiseLoss("log_loss", signs, np.ones((2, 1)), is_separate=False)
    scores = np.array([[0.0, 1e6], [-1e6, 0.0]])[:, None, :]
    found = loss.evaluate(scores, slice(0, 2), np.array([0]))
    assert np.isclose(found.values[0], 2 * np.log(2))
    assert np.array_equal(found.residuals[:, 0] != 0, signs != 0)
    assert np.array_equal(found.state[:, 0] != 0, signs != 0)


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
@pytest.mark.parametrize("library", ["numpy", "array_api_strict"])
def test_losses_and_residuals_of_sure_rows_are_right(margin, library):
    library = pytest.importorskip(library)
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
