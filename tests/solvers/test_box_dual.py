"""Objectives of a box-constrained quadratic dual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.problems import MarginBox
from labelweave.solvers.box_dual import dual_value, dual_value_above, primal_value
from labelweave.solvers.frame import relative_gap
from reference import gram_twins


def _problem(seed, n=7, n_labels=3):
    random = np.random.default_rng(seed)
    rank = random.integers(1, n + 1)
    G, H = random.normal(size=(n, rank)), random.normal(size=(n_labels, random.integers(1, 4)))
    signs = random.choice([-1, 0, 1], (n, n_labels))
    weights, margins = random.uniform(0, 3, n) * (random.random(n) < 0.8), random.uniform(0, 2, (2, n_labels))
    return random, G @ G.T, H @ H.T, MarginBox(*gram_twins.box(signs, weights, margins))


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_no_dual_value_exceeds_a_primal_value(seed, scale):
    random, K, R, box = _problem(seed)
    B = scale * random.normal(size=box.targets.shape)
    V = random.uniform(box.lower, box.upper)
    primal = primal_value(box, B, K @ B @ R)
    dual = dual_value(box, V, K @ V @ R)
    assert dual <= primal + 1e-10 * max(1, abs(primal), abs(dual))
    np.testing.assert_allclose(
        primal, gram_twins.primal(B, K, R, box.targets, box.lower, box.upper), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(dual, gram_twins.dual(V, K, R, box.targets), rtol=1e-9, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_the_tangent_is_above_the_dual_and_meets_it(seed):
    random, K, R, box = _problem(seed)
    V = random.uniform(box.lower, box.upper)
    near = V + random.normal(size=V.shape)
    dual = dual_value(box, V, K @ V @ R)
    above = dual_value_above(box, near, K @ near @ R, V)
    assert above >= dual - 1e-9 * max(1, abs(dual), abs(above))
    np.testing.assert_allclose(dual_value_above(box, V, K @ V @ R, V), dual, atol=1e-8)


def test_the_loss_is_the_weighted_hinge_loss():
    signs = np.array([[1, -1, 0]])
    box = MarginBox(*gram_twins.box(signs, np.array([3.0]), [[1.0, 1, 1], [2.0, 2, 2]]))
    nothing = np.zeros((1, 3))
    scores = np.array([[0.25, -0.5, 100.0]])
    assert primal_value(box, nothing, scores) == 3 * (0.75 + 1.5)
    assert primal_value(box, nothing, np.array([[1.5, -2.0, 0.0]])) == 0


def test_sums_are_in_double_precision():
    ones = np.ones((4096, 512), np.float32)
    box = MarginBox(ones, 0 * ones, np.float32(1 / 3) * ones)
    exact = 4096 * 512 * float(np.float32(1 / 3))
    assert primal_value(box, 0 * ones, 0 * ones) == pytest.approx(exact, rel=1e-12)


def test_the_gap_is_relative_to_the_objective_also_below_one():
    assert relative_gap(200.0, 150.0) == 0.25
    assert relative_gap(0.5, 0.25) == 0.5
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, -1.0) == np.inf
    assert relative_gap(0.0, 0.0) == 0
