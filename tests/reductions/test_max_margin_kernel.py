"""Known special cases of the max-margin model with a kernel, by other methods."""

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from drawn import draw_labels
from labelweave import LabelCovariance, MaxMarginClassifier, Taxonomy
from reference import gram_twins


def _data(n=50, d=5, n_labels=3):
    X, Y = draw_labels(n, d, n_labels)
    Y[0], Y[1] = 0, 1
    return X, Y


def _fit(X, Y, sample_weight=None, **parameters):
    defaults = {"kernel": "rbf", "gamma": 0.3, "tol": 1e-9, "max_iter": 50_000}
    return MaxMarginClassifier(**{**defaults, **parameters}).fit(X, Y, sample_weight)


def _primal(model):
    return model.trace_[-1].primal


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("covariance", [None, "dense", "ones", "taxonomy", "low rank"])
@pytest.mark.parametrize("C", [0.05, 0.5])
def test_the_optimum_is_that_of_the_quadratic_program(intercept, covariance, C):
    X, Y = _data(25)
    factor = np.random.default_rng(1).normal(size=(3, 2))
    tree = Taxonomy([("all", "a"), ("all", "b"), ("a", "c")])
    given = {
        None: None,
        "dense": factor @ factor.T + 0.3 * np.eye(3),
        "ones": np.ones((3, 3)),
        "taxonomy": LabelCovariance.from_taxonomy(tree, ["a", "b", "c"]),
        "low rank": LabelCovariance.low_rank(factor),
    }[covariance]
    R = np.eye(3) if given is None else given if isinstance(given, np.ndarray) else given.to_dense()
    weights = np.random.default_rng(2).uniform(0.2, 2, 25)
    K = rbf_kernel(X, gamma=0.3) + intercept
    box = gram_twins.box(2 * Y - 1, 2 * C * weights, np.ones((2, 3)))
    optimum, V = gram_twins.optimum(K, R, *box)
    model = _fit(X, Y, weights, C=C, label_covariance=given, fit_intercept=intercept)
    assert _primal(model) == pytest.approx(optimum, rel=1e-7)
    np.testing.assert_allclose(model.decision_function(X), K @ V @ R, atol=2e-3)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_a_label_without_bias_is_a_support_vector_machine_whose_bias_is_zero(C):
    """With every row doubled at -x, -y the machine of an odd kernel needs no bias."""
    X, Y = _data(40)
    mirrored = np.r_[X, -X]
    K = polynomial_kernel(mirrored, degree=3, gamma=0.3, coef0=0.0)
    labels = np.r_[Y[:, 0], 1 - Y[:, 0]]
    theirs = SVC(kernel="precomputed", C=2 * C, tol=1e-10).fit(K, labels)
    assert abs(theirs.intercept_[0]) < 1e-6
    ours = _fit(K, labels[:, None], kernel="precomputed", C=C, fit_intercept=False)
    np.testing.assert_allclose(ours.decision_function(K)[:, 0], theirs.decision_function(K), atol=1e-3)
    signs = 2 * labels - 1
    objective = 0.5 * (
        theirs.dual_coef_[0] @ K[np.ix_(theirs.support_, theirs.support_)] @ theirs.dual_coef_[0]
    )
    objective += 2 * C * np.maximum(0, 1 - signs * theirs.decision_function(K)).sum()
    assert _primal(ours) == pytest.approx(objective, rel=1e-6)


def test_a_penalised_bias_is_not_a_free_one_but_is_never_better():
    X, Y = _data()
    K = rbf_kernel(X, gamma=0.3)
    free = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(K, Y[:, 0])
    alpha = free.dual_coef_[0]
    slack = np.maximum(0, 1 - (2 * Y[:, 0] - 1) * free.decision_function(K)).sum()
    objective = 0.5 * alpha @ K[np.ix_(free.support_, free.support_)] @ alpha + 2.0 * slack
    ours = _fit(K, Y[:, :1], kernel="precomputed")
    assert objective <= _primal(ours) <= objective + 0.5 * free.intercept_[0] ** 2 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("covariance", [None, 0.5 * np.eye(3) + 0.5])
@pytest.mark.parametrize("shape", [(50, 5), (12, 40)])
def test_all_solvers_find_the_same_weights(intercept, covariance, shape):
    X, Y = _data(*shape)
    same = {"kernel": "linear", "C": 0.1, "fit_intercept": intercept, "label_covariance": covariance}
    walked = _fit(X, Y, solver="coordinate_ascent", **same)
    global_steps = _fit(X, Y, solver="alternating_directions", **same)
    np.testing.assert_allclose(walked.coef_, global_steps.coef_, atol=1e-3)
    np.testing.assert_allclose(walked.intercept_, global_steps.intercept_, atol=1e-3)
    assert _primal(walked) == pytest.approx(_primal(global_steps), rel=1e-8)
    given = _fit(X @ X.T, Y, **{**same, "kernel": "precomputed"})
    assert _primal(given) == pytest.approx(_primal(walked), rel=1e-8)
    np.testing.assert_allclose(given.decision_function(X @ X.T), walked.decision_function(X), atol=1e-3)


def test_a_cosine_is_a_linear_kernel_of_scaled_rows():
    X, Y = _data()
    scaled = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine, linear = _fit(X, Y, kernel="cosine", C=0.3), _fit(scaled, Y, kernel="linear", C=0.3)
    np.testing.assert_allclose(cosine.coef_, linear.coef_, atol=1e-3)


def test_a_kernel_is_the_linear_kernel_of_its_map():
    X, Y = _data(40)
    images = Nystroem(gamma=0.3, n_components=40, random_state=0).fit_transform(X)
    mapped = _fit(images, Y, kernel="linear", C=0.3, tol=1e-7)
    kernel = _fit(X, Y, C=0.3, tol=1e-7)
    assert _primal(mapped) == pytest.approx(_primal(kernel), rel=1e-6)


def test_labels_of_perfect_covariance_are_one_label_with_both_losses():
    X, Y = _data(40, 5, 2)
    together = _fit(X, Y, C=0.3, label_covariance=np.ones((2, 2)))
    one = _fit(np.r_[X, X], np.r_[Y[:, :1], Y[:, 1:]], C=0.3)
    assert _primal(together) == pytest.approx(_primal(one), rel=1e-7)
    np.testing.assert_allclose(together.decision_function(X)[:, :1], one.decision_function(X), atol=2e-3)


def test_a_block_of_independent_labels_is_a_model_of_its_own():
    X, Y = _data(40, 5, 4)
    block = np.array([[1.0, 0.7], [0.7, 2.0]])
    R = np.zeros((4, 4))
    R[:2, :2], R[2:, 2:] = block, 0.3 * np.eye(2)
    together = _fit(X, Y, C=0.3, label_covariance=R)
    first = _fit(X, Y[:, :2], C=0.3, label_covariance=block)
    second = _fit(X, Y[:, 2:], C=0.3 * 0.3)
    scores = together.decision_function(X)
    np.testing.assert_allclose(scores[:, :2], first.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(scores[:, 2:], second.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_a_multiple_of_the_kernel_or_of_the_identity_scales_c(factor):
    X, Y = _data()
    K = rbf_kernel(X, gamma=0.3)
    keep = {"kernel": "precomputed", "fit_intercept": False}
    plain = _fit(K, Y, C=0.3 * factor, **keep)
    for scaled, at in (
        (_fit(factor * K, Y, C=0.3, **keep), factor * K),
        (_fit(K, Y, C=0.3, label_covariance=factor * np.eye(3), **keep), K),
    ):
        np.testing.assert_allclose(scaled.decision_function(at), plain.decision_function(K), atol=2e-3)
