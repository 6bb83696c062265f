"""Losses of single entries: derivatives, conjugates, extremes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert loss.is_quadratic == (name == "squared")
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
