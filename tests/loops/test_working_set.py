import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labelweave.foundation.loops.kernel_ascent import (
    begin_visit,
    choose_second,
    largest_gradients,
    solve_two_variables,
    spread_scores,
    take_step,
)
from reference import working_set_twin as twin

_NUMBER = st.floats(-5, 5).map(lambda value: round(value, 3))
_WIDTH = st.sampled_from([0.0, 0.5, 1.0, 4.0])
_PLACE = st.sampled_from([0.0, 0.3, 1.0])
_PAIR = st.tuples(_NUMBER, _NUMBER)


def _fast_pair(Q, slopes, old, lower, upper):
    curvatures = (Q[0, 0], Q[0, 1], Q[1, 1])
    return np.array(solve_two_variables(curvatures, *(tuple(v) for v in (slopes, old, lower, upper))))


def _best_of_nine(Q, slopes, old, lower, upper):
    """The maximum over every face of the box: each variable free, at its lower or at its upper bound."""
    best = -np.inf
    for kinds in itertools.product(("free", "lower", "upper"), repeat=2):
        fixed = np.array([kind != "free" for kind in kinds])
        new = np.where([kind == "upper" for kind in kinds], upper, lower).astype(float)
        free = ~fixed
        if free.any():
            pull = slopes[free] - Q[np.ix_(free, fixed)] @ (new - old)[fixed]
            new[free] = old[free] + np.linalg.solve(Q[np.ix_(free, free)], pull)
        if (lower <= new).all() and (new <= upper).all():
            best = max(best, twin.gain(Q, slopes, new - old))
    return best


@settings(max_examples=500)
@given(
    st.tuples(st.floats(0.01, 9), st.floats(0.01, 9), st.floats(-0.999, 0.999)),
    _PAIR, st.tuples(_WIDTH, _WIDTH), st.tuples(_PLACE, _PLACE), _PAIR,
)  # fmt: skip
@example((1.0, 1.0, 0.0), (1.0, -1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
@example((1.0, 1.0, 0.999), (5.0, -5.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0))
@example((1.0, 1.0, 0.5), (0.0, 0.0), (1.0, 1.0), (0.3, 0.3), (0.0, 0.0))
def test_two_variables_are_at_the_best_point_of_their_box(kernel, slopes, widths, places, lower):
    first, second, cosine = kernel
    Q = np.array([[first, 0], [0, second]])
    Q[0, 1] = Q[1, 0] = cosine * np.sqrt(first * second)
    slopes, lower = np.array(slopes), np.array(lower)
    upper = lower + np.array(widths)
    old = np.where(np.array(places) < 1, lower + np.array(places) * np.array(widths), upper)
    new = _fast_pair(Q, slopes, old, lower, upper)
    assert (lower <= new).all()
    assert (new <= upper).all()
    gain = twin.gain(Q, slopes, new - old)
    assert gain >= -1e-12
    np.testing.assert_allclose(gain, _best_of_nine(Q, slopes, old, lower, upper), atol=1e-8)
    left = twin.projected(slopes - Q @ (new - old), new, lower, upper)
    # a variable a rounding away from its bound may keep a slope that it cannot follow
    room = np.where(left > 0, upper - new, new - lower)
    assert (np.abs(left) * np.minimum(room, 1) <= 1e-9 * np.linalg.cond(Q)).all()
    slow = twin.solve_two_variables(Q, slopes, old, lower, upper)
    np.testing.assert_allclose(new, slow, atol=1e-9 * np.linalg.cond(Q))


def _problem(seed, n=12, n_labels=3):
    random = np.random.default_rng(seed)
    features = random.normal(size=(n, 4))
    features[1], features[2], features[3] = features[0], -2 * features[0], 0
    K = features @ features.T
    targets = random.choice([-1.0, 1.0], (n_labels, n))
    width = random.choice([0.0, 0.5, 2.0], (n_labels, n))
    lower, upper = np.where(targets < 0, -width, 0), np.where(targets > 0, width, 0)
    beta = lower + random.choice([0, 0.4, 1], (n_labels, n)) * (upper - lower)
    return K, [targets, random.normal(size=(n_labels, n)), beta, lower, upper]


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_the_second_row_is_the_twins(seed):
    K, (targets, scores, beta, lower, upper) = _problem(seed)
    slopes = twin.projected(targets - scores, beta, lower, upper)[0]
    bounds = np.empty(len(K))
    for first in range(len(K)):
        second = choose_second(first, K[first], np.diag(K).copy(), slopes, bounds)
        expected = twin.choose_second(first, K, slopes)
        assert second == (-1 if expected is None else expected)
        assert np.isfinite(bounds).all()


@pytest.mark.parametrize("first", [1, 2, 3])
def test_parallel_and_empty_rows_are_never_chosen_together(first):
    K, _ = _problem(0)
    slopes = np.zeros(len(K))
    slopes[:4] = 1.0  # all parallel to the first, or empty
    assert choose_second(first, K[first], np.diag(K).copy(), slopes, np.empty(len(K))) == -1


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.7, 2.0]))
def test_a_step_is_the_twins_and_keeps_the_slopes_right(seed, variance):
    K, arrays = _problem(seed)
    column = [array[0].copy() for array in arrays]
    targets, scores, beta, lower, upper = column
    start, moved, slopes = np.empty((3, len(K)))
    largest, first = begin_visit(*column, start, moved, slopes)
    np.testing.assert_array_equal(slopes, twin.projected(targets - scores, beta, lower, upper))
    assert (largest, first) == (np.abs(slopes).max(), np.abs(slopes).argmax())
    second = choose_second(first, K[first], np.diag(K).copy(), slopes, np.empty(len(K))) if variance else -1
    old = beta.copy()
    taken, largest, place = take_step(
        first, second, K[first], K[second], variance, start, beta, lower, upper, moved, slopes
    )
    assert taken == (beta != old).any() == (abs(slopes).max() > 0 or taken)
    assert set(np.flatnonzero(beta != old)) <= {first, second}
    np.testing.assert_allclose(moved, K @ (beta - old), atol=1e-12)
    left = targets - scores - variance * moved
    np.testing.assert_allclose(slopes, twin.projected(left, beta, lower, upper), atol=1e-12)
    if taken:
        assert (largest, place) == (np.abs(slopes).max(), np.abs(slopes).argmax())


def test_a_step_lost_in_rounding_is_not_taken():
    ones = np.ones(1)
    start, beta = np.array([1e-17]), np.array([0.5])
    moved, slopes = np.zeros(1), start.copy()
    taken, largest, place = take_step(0, -1, ones, ones, 1.0, start, beta, -ones, ones, moved, slopes)
    assert (taken, largest, place) == (False, 1e-17, 0)
    assert (beta[0], moved[0]) == (0.5, 0.0)


def test_scores_spread_to_related_labels_only():
    K, arrays = _problem(5)
    targets, scores, beta, lower, upper = arrays
    moved, maxima = K[4] * 0.3, np.full(3, -1.0)
    before = scores.copy()
    spread_scores(moved, np.array([0.5, 0.0, -2.0]), *arrays, maxima)
    np.testing.assert_allclose(scores, before + np.outer([0.5, 0.0, -2.0], moved), rtol=1e-14)
    renewed = np.abs(twin.projected(targets - scores, beta, lower, upper)).max(axis=1)
    np.testing.assert_allclose(maxima, [renewed[0], -1.0, renewed[2]], rtol=1e-14)
    largest_gradients(*arrays, maxima)
    np.testing.assert_allclose(maxima, renewed, rtol=1e-14)
