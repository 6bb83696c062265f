"""Exact ridge fits of low-rank models and learned parameters; covariances, costs and weights of features."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.small_fits import grouped
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from drawn import draw_labels, draw_waves
from labelweave import HyperparameterSearch, LabelCovariance, LabelMatrix, LowRankClassifier, RankSearch
from labelweave.estimators.low_rank import fit as low_rank_fit
from labelweave.features import RBFKernel

_drawn = partial(draw_waves, n_labels=5, above=0.4)


@pytest.fixture
def iterates(monkeypatch):
    monkeypatch.setattr(low_rank_fit.ReadyRows, "is_exact", lambda self, settings: False)


@pytest.mark.parametrize("rank", [2, 5])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", "low rank"])
def test_exact_fits_are_those_of_alternating_minimization(kernel, rank, request):
    X, Y = _drawn()
    choice = {"kernel": kernel, "kernel_rank": None}
    if kernel == "low rank":
        choice = {"kernel": "rbf", "kernel_rank": 20}
    if kernel == "precomputed":
        X = X @ X.T
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(X))
    model = LowRankClassifier(rank, penalty="ridge", alpha=0.3, **choice, tol=1e-13, max_iter=2000)
    exact = model.fit(X, Y, sample_weight=weights)
    assert exact.n_iter_ == 1
    scores, objective = exact.decision_function(X), exact.objective_
    request.getfixturevalue("iterates")
    slow = model.fit(X, Y, sample_weight=weights)
    assert slow.n_iter_ > 1
    assert objective == pytest.approx(slow.objective_, rel=1e-8)
    np.testing.assert_allclose(scores, slow.decision_function(X), atol=2e-4)


def test_sparse_rows_and_more_features_than_rows_are_fitted_exactly_too(monkeypatch):
    monkeypatch.setattr(low_rank_fit.ReadyRows, "is_exact", lambda self, settings: True)
    X, Y = _drawn(n=20, d=50)
    dense = LowRankClassifier(3, penalty="ridge").fit(X, Y)
    sparse = LowRankClassifier(3, penalty="ridge").fit(sp.csr_array(X), sp.csr_array(Y))
    assert dense.n_iter_ == sparse.n_iter_ == 1
    np.testing.assert_allclose(dense.decision_function(X), sparse.decision_function(X), atol=1e-9)


def test_missing_labels_and_weights_of_negatives_are_left_to_the_iteration():
    X, Y = _drawn()
    missing = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
    assert LowRankClassifier(5, penalty="ridge").fit(X, missing).n_iter_ > 1
    assert LowRankClassifier(5, penalty="ridge", class_weight={0: 0.5}).fit(X, Y).n_iter_ > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert LowRankClassifier(5, penalty="ridge", alpha=0.0).fit(X, Y).n_iter_ > 1


def _held_out_loss(model, X, Y):
    total = 0.0
    for train, test in KFold(5, shuffle=True, random_state=3).split(X):
        scores = model.fit(X[train], Y[train]).decision_function(X[test]) + 0.5
        total += 0.5 * np.sum((scores - Y[test]) ** 2)
    return total / len(X)


def test_learned_parameters_are_a_minimum_of_the_held_out_squared_loss():
    X, Y = _drawn()
    folds = KFold(5, shuffle=True, random_state=3)
    model = grouped(LowRankClassifier, 5, penalty="ridge", kernel="rbf", fit_intercept=True, cv=folds).fit(
        X, Y
    )
    found = model.hyperparameters_
    assert set(found) == {"alpha", "gamma"}
    assert model.learning_status_ == "converged"
    assert model.alpha_ == found["alpha"]
    assert model.kernel_.gamma == pytest.approx(found["gamma"])
    fixed = LowRankClassifier(5, penalty="ridge", kernel=RBFKernel(found["gamma"]))
    best = _held_out_loss(fixed.set_params(alpha=found["alpha"]), X, Y)
    assert best == pytest.approx(model.cross_validation_loss_, rel=1e-9)
    for factor in (0.5, 2.0):
        other = LowRankClassifier(5, penalty="ridge", kernel=RBFKernel(factor * found["gamma"]))
        assert _held_out_loss(other.set_params(alpha=found["alpha"]), X, Y) > best
        fixed.set_params(alpha=factor * found["alpha"])
        assert _held_out_loss(fixed, X, Y) > best


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_kernels_without_parameters_learn_lambda(kernel, is_sparse):
    X, Y = _drawn()
    rows = X @ X.T if kernel == "precomputed" else X
    rows = sp.csr_array(rows) if is_sparse else rows
    model = LowRankClassifier(5, penalty="ridge", kernel=kernel, hyperparameters="learn").fit(rows, Y)
    assert list(model.hyperparameters_) == ["alpha"]
    dense = LowRankClassifier(5, penalty="ridge", hyperparameters="learn").fit(X, Y)
    assert model.alpha_ == pytest.approx(dense.alpha_, rel=1e-5)


def test_learns_from_observed_entries_only():
    X, Y = _drawn()
    hidden = np.random.default_rng(1).random(Y.shape) < 0.3
    hidden[0] = True
    search = HyperparameterSearch(max_learning_iter=20)
    choice = {"penalty": "ridge", "kernel": "rbf", "hyperparameters": search}
    model = LowRankClassifier(5, **choice).fit(X, np.where(hidden, np.nan, Y))
    assert 0 < model.cross_validation_loss_ < 0.5 * (~hidden).sum() / len(Y)
    other = LowRankClassifier(5, **choice).fit(X, LabelMatrix(Y).masked(sp.csr_array(~hidden)))
    assert other.hyperparameters_ == pytest.approx(model.hyperparameters_)


def test_the_loss_of_corrected_targets_is_the_same_with_and_without_weights_of_entries():
    X, Y = _drawn()
    choice = {"penalty": "ridge", "hyperparameters": "learn", "flip_rates": (0.2, 0.1)}
    closed = LowRankClassifier(5, **choice).fit(X, Y)
    general = LowRankClassifier(5, **choice).fit(X, Y, entry_weight=np.ones(Y.shape))
    assert closed.cross_validation_loss_ == pytest.approx(general.cross_validation_loss_, rel=1e-3)
    assert closed.alpha_ == pytest.approx(general.alpha_, rel=0.05)


def test_some_rows_a_limit_and_nothing_to_learn():
    X, Y = _drawn()
    choice = {"penalty": "ridge", "kernel": "rbf", "hyperparameters": "learn"}
    some = grouped(LowRankClassifier, 5, **choice, learning_rows=30, max_learning_iter=2).fit(X, Y)
    assert some.learning_status_ == "iteration_limit"
    assert len(some.learning_trace_) == 2
    one = LowRankClassifier(5, **choice).fit(X, Y, sample_weight=np.eye(len(X))[0])
    assert one.learning_status_ == "fixed"
    assert np.isnan(one.cross_validation_loss_)
    fixed = LowRankClassifier(5, kernel="rbf", gamma=0.3, alpha=2.0).fit(X, Y)
    assert fixed.hyperparameters_ == pytest.approx({"alpha": 2.0, "gamma": 0.3})


TIGHT = {"tol": 1e-11, "max_iter": 5000}
LOSSES = ["squared_error", "log_loss", "squared_hinge"]


def _linear(n=80, d=6, labels=6):
    return draw_labels(n, d, labels, size=0.5, rank=3, noise=0.3, missing=0.0)


def _assert_same_bits(one, two):
    np.testing.assert_array_equal(one.feature_factors_, two.feature_factors_)
    np.testing.assert_array_equal(one.label_factors_, two.label_factors_)
    assert one.duality_gap_ == two.duality_gap_ or np.isnan(one.duality_gap_)


@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("missing", [False, True])
def test_the_identity_gives_the_same_bits_as_none(penalty, missing):
    X, Y = _linear()
    Y = np.where(np.random.default_rng(1).random(Y.shape) < 0.3, np.nan, Y) if missing else Y
    plain = LowRankClassifier(3, penalty=penalty).fit(X, Y)
    for given in (np.eye(6), LabelCovariance.identity(6), LabelCovariance.low_rank(np.zeros((6, 1)), 1.0)):
        _assert_same_bits(LowRankClassifier(3, penalty=penalty, label_covariance=given).fit(X, Y), plain)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_ridge_penalty_at_full_rank_is_a_model_of_coupled_labels(loss, kernel):
    """lambda / 2 tr(Z R^-1 Z^T) at full rank is convex: its optimum by a dense reference in all of Z."""
    from scipy.optimize import minimize

    from labelweave.problems.losses.entry_losses import ENTRY_LOSSES

    X, Y = _linear(n=25, d=4, labels=4)
    R = 0.3 * np.eye(4) + 0.7
    K = X @ X.T + 1 if kernel == "linear" else np.exp(-0.4 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + 1
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    inverse, entry, signs = np.linalg.inv(R), ENTRY_LOSSES[loss](), np.where(Y > 0, 1, -1)

    def objective(flat):
        Z = flat.reshape(root.shape[1], 4)
        scores = root @ Z
        value = entry.value(signs, scores).sum() + 0.25 * np.sum(Z * (Z @ inverse))
        return value, (root.T @ entry.gradient(signs, scores) + 0.5 * Z @ inverse).ravel()

    best = minimize(objective, np.zeros(root.shape[1] * 4), jac=True, options={"maxiter": 5000, "gtol": 1e-9})
    model = LowRankClassifier(
        4, loss, penalty="ridge", alpha=0.5, kernel=kernel, gamma=0.4, label_covariance=R, **TIGHT
    ).fit(X, Y)
    assert model.objective_ == pytest.approx(best.fun, rel=1e-5)
    scores = root @ best.x.reshape(-1, 4)
    raw = model.decision_function(X) + model.thresholds_
    np.testing.assert_allclose(raw, scores, atol=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_trace_norm_at_full_rank_is_certified(loss):
    X, Y = _linear()
    random = np.random.default_rng(2)
    R = LabelCovariance.low_rank(random.normal(size=(6, 4))).shrink(0.1)
    model = LowRankClassifier(6, loss, label_covariance=R, **TIGHT).fit(X, Y)
    assert 0 <= model.duality_gap_ < 1e-3
    narrow = LowRankClassifier(1, loss, label_covariance=R, **TIGHT).fit(X, Y)
    assert narrow.objective_ > model.objective_
    assert narrow.duality_gap_ > 1e-2


def test_features_of_labels_score_labels_without_rows():
    """Inductive matrix completion: a rarely observed label borrows from similar ones."""
    random = np.random.default_rng(0)
    U = random.normal(size=(30, 3))
    X = random.normal(size=(150, 10))
    scores = X @ random.normal(size=(10, 3)) @ U.T
    Y = (scores > 0).astype(float)
    hidden = Y.copy()
    hidden[2:, 25:] = np.nan
    hidden = LabelMatrix.from_any(hidden)
    R = LabelCovariance.low_rank(np.hstack([U, np.ones((30, 1))]), 1e-3)  # the ones carry the intercept
    right = []
    for given in (None, R):
        model = LowRankClassifier(3, alpha=0.5, label_covariance=given, max_iter=500).fit(X, hidden)
        right.append((model.predict(X)[:, 25:] == Y[:, 25:]).mean())
    assert right[1] > max(0.85, right[0] + 0.1)


def test_a_path_with_a_covariance_and_costs():
    X, Y = _linear()
    R = 0.5 * np.eye(6) + 0.5
    model = LowRankClassifier(RankSearch([2, 4], 3, cv=3), label_covariance=R, class_weight={1: 2.0}).fit(
        X, Y, entry_weight=np.ones(Y.shape)
    )
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    weights = [{0: k} for k in range(1, 7)]
    shape = {"penalty": "ridge", "kernel": "rbf", "label_covariance": R, "class_weight": weights}
    learned = grouped(LowRankClassifier, 3, **shape, max_learning_iter=4).fit(X, Y)
    assert learned.predict(X).shape == Y.shape


def test_weights_of_features_are_made_on_demand():
    X, Y = _linear()
    model = LowRankClassifier(3).fit(X, Y)
    assert model.coef_.shape == (6, 6)
    np.testing.assert_allclose(model.coef_, model.label_factors_ @ model.feature_factors_.T)
    raw = X @ model.coef_.T + model.intercept_ - model.thresholds_
    np.testing.assert_allclose(raw, model.decision_function(X), atol=1e-12)
    assert not hasattr(LowRankClassifier(3, kernel="rbf").fit(X, Y), "coef_")
