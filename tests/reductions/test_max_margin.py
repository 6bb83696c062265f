"""Known special cases of the max-margin model, and its optimality, by other methods."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from drawn import draw_labels
from labelweave import LabelCovariance, LabelMatrix, MaxMarginClassifier, Taxonomy
from labelweave.problems import swept_margins
from reference import margin_twins


def _data(n=60, d=8, n_labels=5, seed=0):
    X, Y = draw_labels(n, d, n_labels, seed=seed, kept=0.6, above=0.4)
    Y[0], Y[1] = 0, 1
    return X, Y


def _fit(X, Y, tol=1e-9, sample_weight=None, **parameters):
    return MaxMarginClassifier(tol=tol, max_iter=100_000, **parameters).fit(X, Y, sample_weight=sample_weight)


def _same(one, other, atol=1e-3):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=atol)


def _identical(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


def _objectives(model, X, Y, upper, R, margins=None):
    """The primal, including the label covariance, at the model's weights."""
    wide = np.c_[X, np.ones(len(X))]
    Z = np.r_[model.coef_.T, model.intercept_[None]]
    signs = LabelMatrix.from_any(Y).to_signs()
    margins = np.ones((2, Y.shape[1])) if margins is None else margins
    return margin_twins.primal_at(Z, wide, signs, upper, margins, R)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.05, 0.5])
def test_independent_labels_are_support_vector_machines(fit_intercept, weighted, C):
    X, Y = _data()
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else np.ones(len(X))
    wide = np.c_[X, np.full(len(X), float(fit_intercept))]
    for label in range(Y.shape[1]):
        ours = _fit(X, Y[:, [label]], C=C, fit_intercept=fit_intercept, sample_weight=weights)
        theirs = LinearSVC(loss="hinge", C=2 * C, tol=1e-10, max_iter=1_000_000, fit_intercept=fit_intercept)
        theirs.fit(X, Y[:, label], sample_weight=weights)
        signs = 2.0 * Y[:, [label]] - 1
        Z = np.append(theirs.coef_.ravel(), theirs.intercept_)[:, None]
        objective = margin_twins.primal_at(Z, wide, signs, 2 * C * weights, np.ones((2, 1)), np.eye(1))
        np.testing.assert_allclose(ours.trace_[-1].primal, objective, rtol=1e-6)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("R", [np.eye(4), 0.5 * np.eye(4) + 0.5, None])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (2.0, [0.5, 1.0, 1.5, 0.7])])
def test_the_exponential_program_has_the_same_optimum(R, costs):
    X, Y = _data(12, 3, 4, seed=3)
    if R is None:
        factor = np.random.default_rng(4).normal(size=(4, 4))
        R = factor @ factor.T + 0.3 * np.eye(4)  # negative covariances too
    model = _fit(
        X, Y, C=0.4, label_covariance=R, false_negative_cost=costs[0], false_positive_cost=costs[1]
    )  # fmt: skip
    margins = np.stack([np.broadcast_to(cost, 4) for cost in costs])
    optimum, Z = margin_twins.exponential_primal(np.c_[X, np.ones(12)], 2 * Y - 1, 0.4, R, margins)
    np.testing.assert_allclose(model.trace_[-1].primal, optimum, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, Z[:-1].T, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, Z[-1], atol=1e-3)


@pytest.mark.parametrize("R", [np.ones((2, 2)), np.array([[1, 1 - 1e-9], [1 - 1e-9, 1]])])
def test_labels_of_perfect_covariance_have_equal_scores(R):
    X, Y = _data(40, 6, 2)
    model = _fit(X, Y, tol=1e-7, C=0.1, label_covariance=R)
    np.testing.assert_allclose(*model.decision_function(X).T, atol=1e-6)
    assert np.abs(model.coef_).max() > 0.1


@pytest.mark.parametrize(("n_labels", "R"), [(1, 2.0), (3, 2.0), (17, 0.3)])
def test_a_multiple_of_the_identity_scales_c(n_labels, R):
    X, Y = _data(n_labels=n_labels)
    scaled = _fit(X, Y, C=0.1, label_covariance=R * np.eye(n_labels))
    _same(scaled, _fit(X, Y, C=0.1 * R))


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("n_labels", [1, 15, 16, 17, 33])
def test_order_and_number_of_labels_do_not_matter(n_labels, coupled):
    X, Y = _data(n_labels=n_labels)
    factor = np.random.default_rng(5).normal(size=(n_labels, 2))
    R = factor @ factor.T + np.eye(n_labels) if coupled else np.eye(n_labels)
    order = np.random.default_rng(6).permutation(n_labels)
    one = _fit(X, Y, 1e-7, C=0.05, label_covariance=R if coupled else None)
    other = _fit(X, Y[:, order], 1e-7, C=0.05, label_covariance=R[np.ix_(order, order)] if coupled else None)
    np.testing.assert_allclose(one.coef_[order], other.coef_, atol=5e-3)
    np.testing.assert_allclose(_objectives(one, X, Y, np.full(60, 0.1), R), one.trace_[-1].primal, rtol=1e-9)


@pytest.mark.parametrize("R", [np.eye(5), 0.5 * np.eye(5) + 0.5])
def test_no_direction_descends_from_the_solution(R):
    X, Y = _data()
    model = _fit(X, Y, 1e-10, C=0.1, label_covariance=R)
    upper, random = np.full(60, 0.2), np.random.default_rng(7)
    optimum = _objectives(model, X, Y, upper, R)
    for _ in range(50):
        coef, intercept = random.normal(size=(5, 8)), random.normal(size=5)
        moved = MaxMarginClassifier()
        moved.coef_, moved.intercept_ = model.coef_ + 1e-3 * coef, model.intercept_ + 1e-3 * intercept
        assert _objectives(moved, X, Y, upper, R) >= optimum * (1 - 1e-9)
    # the gap bounds what is left to gain
    rough = _fit(X, Y, 1e-2, C=0.1, label_covariance=R)
    excess = _objectives(rough, X, Y, upper, R) - optimum
    assert (
        -1e-9
        <= excess
        <= rough.duality_gap_ * max(1, rough.trace_[-1].primal)
        <= 1e-2 * rough.trace_[-1].primal
    )


def test_two_classes_are_one_label_and_more_are_one_label_each():
    X, Y = _data()
    words = np.array(["no", "yes"])[Y[:, 0]]
    binary = _fit(X, words, 1e-4)
    _identical(binary, _fit(X, Y[:, [0]], 1e-4))
    np.testing.assert_array_equal(binary.predict(X) == "yes", binary.decision_function(X) > 0)
    classes = np.arange(60) % 3
    many = _fit(X, classes, 1e-4)
    _identical(many, _fit(X, np.eye(3, dtype=int)[classes], 1e-4))
    np.testing.assert_array_equal(many.predict(X), many.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_taxonomy_is_its_dense_covariance(precision, monkeypatch):
    X, Y = _data()
    tree = Taxonomy([("all", "a"), ("all", "b"), ("a", "c"), ("a", "d")])
    covariance = LabelCovariance.from_taxonomy(tree, ["a", "b", "c", "d", "all"], {"all": 0.1})
    keep = {"tol": 1e-5, "C": 0.05, "dtype": precision}
    dense = _fit(X, Y, label_covariance=covariance.to_dense(), **keep)
    _same(dense, _fit(X, Y, label_covariance=covariance, **keep), atol=1e-2)
    monkeypatch.setattr(swept_margins, "_LARGEST_DENSE", 0)
    _same(dense, _fit(X, Y, label_covariance=covariance, **keep), atol=1e-2)
    by_tree = _fit(
        X, LabelMatrix(sp.csr_array(Y), None, ["a", "b", "c", "d", "all"]), label_covariance=tree, **keep
    )
    assert by_tree.duality_gap_ <= 1e-5


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("scale", [0, 1e-20, 1e-8, 1e-4, 1e-2, 1, 1e2])
def test_features_of_any_scale_and_empty_rows(scale, precision):
    X, Y = _data(40, 30, 3)
    X[::2] = 0
    model = _fit(X * scale, Y, 1e-3, dtype=precision, C=0.1 if scale <= 1 else 1e-6)
    assert model.duality_gap_ <= 1e-3


@pytest.mark.parametrize("case", ["one row", "all positive", "all negative", "constant", "repeated"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_degenerate_data(case, C):
    X, Y = _data(20, 30, 3)
    X, Y = {
        "one row": (X[1:2], Y[1:2]),
        "all positive": (X, np.ones_like(Y)),
        "all negative": (X, np.zeros_like(Y)),
        "constant": (np.ones((20, 1)), np.ones_like(Y)),
        "repeated": (np.repeat(X, 5, 0), np.repeat(Y, 5, 0)),
    }.get(case, (X, Y))
    assert _fit(X, Y, 1e-3, C=C, dtype="float64").duality_gap_ <= 1e-3


def test_an_intercept_does_not_hold_up_the_fit():
    random = np.random.default_rng(0)
    X = 0.05 * (random.normal(size=(1500, 10)) > 1)  # many free rows in few dimensions
    score = X @ random.normal(size=10) + 0.02 * random.normal(size=1500)
    Y = (score > np.quantile(score, 0.9)).astype(int)[:, None]
    model = MaxMarginClassifier(C=8.0, max_iter=1000, dtype="float64").fit(X, Y)
    assert model.converged_
