"""Exact ridge fits of the low-rank classifier, and its kernel learned by the cross-validated squared loss."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from labelweave import LabelMatrix, LowRankClassifier, load
from labelweave.estimators.low_rank import fit as low_rank_fit
from labelweave.features import RBFKernel


def _drawn(n=60, d=4, labels=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = np.sin(2.0 * X @ random.normal(size=(d, labels))) + 0.3 * random.normal(size=(n, labels))
    return X, (scores > 0.4).astype(int)


@pytest.fixture
def iterates(monkeypatch):
    monkeypatch.setattr(low_rank_fit.ReadyRows, "is_exact", lambda self, settings: False)


@pytest.mark.parametrize("rank", [2, 5])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", "low rank"])
def test_exact_fits_are_those_of_alternating_minimisation(kernel, rank, request):
    X, Y = _drawn()
    choice = {"kernel": kernel, "kernel_rank": None}
    if kernel == "low rank":
        choice = {"kernel": "rbf", "kernel_rank": 20}
    if kernel == "precomputed":
        X = X @ X.T
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(X))
    model = LowRankClassifier(rank, penalty="ridge", regularization=0.3, **choice, tol=1e-13, max_iter=2000)
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
    assert LowRankClassifier(5, penalty="ridge", negative_weight=0.5).fit(X, Y).n_iter_ > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert LowRankClassifier(5, penalty="ridge", regularization=0.0).fit(X, Y).n_iter_ > 1


def _held_out_loss(model, X, Y):
    total = 0.0
    for train, test in KFold(5, shuffle=True, random_state=3).split(X):
        scores = model.fit(X[train], Y[train]).decision_function(X[test]) + 0.5
        total += 0.5 * np.sum((scores - Y[test]) ** 2)
    return total / len(X)


def test_learned_parameters_are_a_minimum_of_the_held_out_squared_loss():
    X, Y = _drawn()
    folds = KFold(5, shuffle=True, random_state=3)
    model = LowRankClassifier(
        5, penalty="ridge", kernel="rbf", hyperparameters="learn", cv=folds, fit_intercept=True
    ).fit(X, Y)
    found = model.hyperparameters_
    assert set(found) == {"regularization", "gamma"}
    assert model.learning_status_ == "converged"
    assert model.regularization_ == found["regularization"]
    assert model.kernel_.gamma == pytest.approx(found["gamma"])
    fixed = LowRankClassifier(5, penalty="ridge", kernel=RBFKernel(found["gamma"]))
    best = _held_out_loss(fixed.set_params(regularization=found["regularization"]), X, Y)
    assert best == pytest.approx(model.cross_validation_loss_, rel=1e-9)
    for factor in (0.5, 2.0):
        other = LowRankClassifier(5, penalty="ridge", kernel=RBFKernel(factor * found["gamma"]))
        assert _held_out_loss(other.set_params(regularization=found["regularization"]), X, Y) > best
        fixed.set_params(regularization=factor * found["regularization"])
        assert _held_out_loss(fixed, X, Y) > best


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_kernels_without_parameters_learn_lambda(kernel, is_sparse):
    X, Y = _drawn()
    rows = X @ X.T if kernel == "precomputed" else X
    rows = sp.csr_array(rows) if is_sparse else rows
    model = LowRankClassifier(5, penalty="ridge", kernel=kernel, hyperparameters="learn").fit(rows, Y)
    assert list(model.hyperparameters_) == ["regularization"]
    dense = LowRankClassifier(5, penalty="ridge", hyperparameters="learn").fit(X, Y)
    assert model.regularization_ == pytest.approx(dense.regularization_, rel=1e-5)


def test_learns_from_observed_entries_only():
    X, Y = _drawn()
    hidden = np.random.default_rng(1).random(Y.shape) < 0.3
    hidden[0] = True
    choice = {"penalty": "ridge", "kernel": "rbf", "hyperparameters": "learn", "max_learning_iter": 20}
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
    assert closed.regularization_ == pytest.approx(general.regularization_, rel=0.05)


def test_some_rows_a_limit_and_nothing_to_learn():
    X, Y = _drawn()
    choice = {"penalty": "ridge", "kernel": "rbf", "hyperparameters": "learn"}
    some = LowRankClassifier(5, **choice, learning_rows=30, max_learning_iter=2).fit(X, Y)
    assert some.learning_status_ == "iteration_limit"
    assert len(some.learning_trace_) == 2
    one = LowRankClassifier(5, **choice).fit(X, Y, sample_weight=np.eye(len(X))[0])
    assert one.learning_status_ == "fixed"
    assert np.isnan(one.cross_validation_loss_)
    fixed = LowRankClassifier(5, kernel="rbf", gamma=0.3, regularization=2.0).fit(X, Y)
    assert fixed.hyperparameters_ == pytest.approx({"regularization": 2.0, "gamma": 0.3})


@pytest.mark.parametrize("choice", [{}, {"loss": "logistic", "penalty": "ridge"}])
def test_learning_needs_the_squared_loss_and_the_ridge_penalty(choice):
    X, Y = _drawn()
    with pytest.raises(ValueError, match="loss='squared' with penalty='ridge'"):
        LowRankClassifier(5, hyperparameters="learn", **choice).fit(X, Y)


def test_an_interrupt_in_the_search_keeps_the_best_so_far(monkeypatch):
    from labelweave.problems.hyperparameters.ridge_cross_validation import RidgeCrossValidation

    calls, original = [], RidgeCrossValidation.__call__

    def interrupted(self, theta):
        calls.append(theta)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, theta)

    monkeypatch.setattr(RidgeCrossValidation, "__call__", interrupted)
    X, Y = _drawn()
    model = LowRankClassifier(5, penalty="ridge", kernel="rbf", hyperparameters="learn")
    with pytest.raises(KeyboardInterrupt, match="search for hyper-parameters was interrupted"):
        model.fit(X, Y)
    assert model.learning_status_ == "interrupted"
    assert len(model.learning_trace_) == 2


def test_learned_models_are_kept_in_files(tmp_path):
    X, Y = _drawn()
    folds = KFold(3)
    model = LowRankClassifier(5, penalty="ridge", kernel="rbf", hyperparameters="learn", cv=folds).fit(X, Y)
    model.save(tmp_path / "model.lw")
    again = load(tmp_path / "model.lw")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.hyperparameters_ == model.hyperparameters_
    assert again.learning_trace_ == model.learning_trace_
    assert again.cv is None
