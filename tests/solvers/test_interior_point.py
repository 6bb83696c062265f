"""Interior point steps: the optimum to tight gaps however the problem is scaled."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from labelweave import MaxMarginClassifier
from labelweave.solvers import box_ends as interior
from labelweave.solvers.box_dual import box_loss
from labelweave.solvers.box_ends import interior_point, interior_steps, interior_work

STEPS = 188  # of 18 problems together; 182 were measured


def _data(seed=0, n=120, d=4, scale=1.0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)) * scale
    y = np.where(X @ generator.standard_normal(d) / scale + generator.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


def _gap(signed, margins, bounds, a, weights):
    primal = weights @ weights / 2 + bounds @ np.maximum(0, margins - signed @ weights)
    return (primal - (margins @ a - (signed.T @ a) @ (signed.T @ a) / 2)) / abs(primal)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 6), st.sampled_from([1e-3, 1.0, 1e3]))
@example(seed=32, n=32, d=4, scale=1e3)
@example(seed=175, n=15, d=3, scale=1.0)
def test_the_gap_is_reached_within_the_box(seed, n, d, scale):
    X, y = _data(seed, n, d, scale)
    generator = np.random.default_rng(seed)
    bounds, margins = generator.random(n) + 0.01, generator.random(n)
    a, weights = interior_point(y[:, None] * X, margins, bounds, 1e-8)
    assert (a >= 0).all()
    assert (a <= bounds).all()
    assert -1e-9 <= _gap(y[:, None] * X, margins, bounds, a, weights) <= 1e-8


def test_steps_are_few(monkeypatch):
    made = []

    class Counted(interior._System):
        def __init__(self, *arguments):
            made.append(1)
            super().__init__(*arguments)

    monkeypatch.setattr(interior, "_System", Counted)
    for seed in range(6):
        for scale in (1e-2, 1.0, 1e3):
            X, y = _data(seed, 60, 4, scale)
            interior_point(y[:, None] * X, np.ones(60), np.linspace(0.01, 3.0, 60), 1e-8)
    assert len(made) <= STEPS


def test_it_is_the_machine_of_liblinear():
    X, y = _data()
    a, weights = interior_point(y[:, None] * X, np.ones(len(y)), np.full(len(y), 2.0), 1e-10)
    peer = LinearSVC(C=2.0, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=200_000).fit(X, y)
    np.testing.assert_allclose(weights, peer.coef_[0], atol=1e-4)
    np.testing.assert_allclose(X.T @ (y * a), weights, atol=1e-4)


def test_labels_are_solved_one_by_one_and_unobserved_entries_left_alone():
    X, y = _data()
    upper = np.stack([np.maximum(y, 0), np.zeros_like(y)], axis=1)
    lower = np.stack([np.minimum(y, 0), np.zeros_like(y)], axis=1)
    upper[:5], lower[:5] = 0, 0
    terms = SimpleNamespace(targets=np.stack([y, np.zeros_like(y)], axis=1), lower=lower, upper=upper)
    end = interior_steps(terms, X, 1e-9, np.inf)
    scores, square = X @ end.weights, (end.weights**2).sum()
    np.testing.assert_allclose(end.gradient, terms.targets - scores)
    primal = square / 2 + box_loss(terms, scores)
    dual = (terms.targets * end.boxed).sum() - ((X.T @ end.boxed) ** 2).sum() / 2
    assert end.gap == pytest.approx((primal - dual) / primal, abs=1e-12)
    assert -1e-12 <= end.gap <= 1e-8
    assert not end.boxed[:5].any()
    assert not end.boxed[:, 1].any()
    assert interior_steps(terms, X, 1e-9, 0.9 * interior_work(terms, X)) is None


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("n", [200, 1500])
def test_unscaled_features_converge(scale, n):
    X, y = _data(1, n, 5, scale)
    model = MaxMarginClassifier(tol=1e-4).fit(X, y > 0)
    assert model.converged_


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4, 1e6])
def test_any_cost_converges_on_features_of_few_dimensions(C):
    X, y = _data(2, 300, 6)
    model = MaxMarginClassifier(C=C, tol=1e-6).fit(X, y > 0)
    assert model.converged_


def test_single_precision_that_was_asked_for_goes_on_where_automatic_precision_hands_over():
    X, y = _data(1, 1500, 5, 10.0)
    options = {"tol": 1e-3, "max_iter": 300}
    automatic = MaxMarginClassifier(**options).fit(X, y > 0)
    with pytest.warns(ConvergenceWarning):
        single = MaxMarginClassifier(dtype="float32", **options).fit(X, y > 0)
    assert automatic.converged_
    assert single.status_ == "iteration_limit"


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_factorisation_without_squaring_is_of_the_same_matrix(scale):
    random = np.random.default_rng(0)
    factor, weight = random.normal(size=(30, 4)) * [scale, 1, 1, 1], random.uniform(1e-3, 1e3, 30)
    root = interior._orthogonal_root(factor, weight)
    expected = np.eye(4) + factor.T @ (factor / weight[:, None])
    np.testing.assert_allclose(root.T @ root, expected, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_array_equal(root, np.triu(root))


def test_multipliers_begin_at_the_gradient_with_one_product_for_all():
    X, y = _data(3, 30)
    bounds = np.linspace(0.01, 3.0, 30)
    state = interior._Interior(y[:, None] * X, np.ones(30), bounds, 1e-6)
    np.testing.assert_allclose(state.below - state.above, state.gradient(), atol=1e-12)
    least = np.minimum(state.below, state.above) * bounds
    np.testing.assert_allclose(least, least[0])


def test_products_fall_as_far_as_the_gap_asked_for_needs():
    X, y = _data(3, 30)
    signed, bounds = y[:, None] * X, np.full(30, 2.0)
    state = interior._Interior(signed, np.ones(30), bounds, 1e-6)
    weights = signed.T @ state.point
    primal = weights @ weights / 2 + bounds @ np.maximum(0, 1 - signed @ weights)
    expected = interior._FINER * 1e-6 * primal
    assert state.least_products(state.gradient()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gaps", "is_low", "steps"),
    [
        ([1.0] * 60, True, interior._IDLE),  # nothing moves any more
        (0.4 ** np.arange(60), True, 24),  # every step brings much, to the gap asked for
        (0.9 ** np.arange(60), True, interior._IDLE),  # too little
        ([1.0] * 60, False, 60),
    ],
)
def test_steps_end_where_they_bring_nothing_more(monkeypatch, gaps, is_low, steps):
    class Scripted:
        def __init__(self, *_):
            self.step, self.is_low = 0, is_low
            self.best_point = self.best_weights = None

        def noted(self):
            return gaps[self.step]

        def advance(self):
            self.step += 1
            made.append(self.step)
            return self.step < len(gaps)

    made = []
    monkeypatch.setattr(interior, "_Interior", Scripted)
    interior_point(None, None, None, 4e-10)
    assert len(made) == steps
