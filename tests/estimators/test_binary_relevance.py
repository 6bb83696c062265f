"""Binary relevance: scikit-learn's fits label by label, Ctrl-C between labels, its ridge regressions."""

import itertools
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from drawn import draw_labels
from labelweave import BinaryRelevance, LabelMatrix
from labelweave.estimators.binary_relevance import fit

VALUES = {
    "squared_error": lambda signs, scores: 0.5 * (scores - (signs > 0)) ** 2,
    "log_loss": lambda signs, scores: np.logaddexp(0, -signs * scores),
    "squared_hinge": lambda signs, scores: 0.5 * np.maximum(0, 1 - signs * scores) ** 2,
}
LOSSES = list(VALUES)
PENALTY = 0.3


def _data(n=50, d=6, n_labels=4, share=0.6, seed=0):
    return draw_labels(n, d, n_labels, seed=seed, kept=0.8, missing=1 - share)


def _fit(loss, X, Y, **parameters):
    return BinaryRelevance(loss, alpha=PENALTY, tol=1e-10, **parameters).fit(X, Y)


def _theirs(loss):
    if loss == "squared_error":
        return Ridge(PENALTY, fit_intercept=False)
    if loss == "log_loss":
        return LogisticRegression(C=1 / PENALTY, fit_intercept=False, tol=1e-10, max_iter=1000)
    return LinearSVC(C=0.5 / PENALTY, fit_intercept=False, tol=1e-10, dual=False)


def _objective(flat, loss, wide, signs, weights):
    return weights @ VALUES[loss](signs, wide @ flat) + PENALTY / 2 * flat @ flat


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_every_label_is_scikit_learns_fit_of_its_observed_rows(loss, share, container):
    X, Y = _data(share=share)
    model = _fit(loss, container(X), Y)
    for label in range(Y.shape[1]):
        rows = np.flatnonzero(~np.isnan(Y[:, label]))
        wide = np.c_[X, np.ones(len(X))][rows]  # the intercept is the weight of a constant
        expected = _theirs(loss).fit(wide, Y[rows, label]).coef_.ravel()
        np.testing.assert_allclose(np.r_[model.coef_[label], model.intercept_[label]], expected, atol=1e-5)
    scores = X @ model.coef_.T + model.intercept_ - model.threshold_
    np.testing.assert_allclose(model.decision_function(container(X)), scores, atol=1e-9)


@settings(max_examples=15)
@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 100),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    fit_intercept=st.booleans(),
)
def test_the_objective_is_at_its_minimum(loss, seed, share, fit_intercept):
    X, Y = _data(12, 3, 2, share, seed)
    Y[0] = 1.0
    weights = np.random.default_rng(seed).uniform(0, 2, 12)
    model = BinaryRelevance(loss, alpha=PENALTY, tol=1e-10, fit_intercept=fit_intercept)
    model.fit(X, LabelMatrix.from_any(Y), sample_weight=weights)
    wide = np.c_[X, np.full(12, float(fit_intercept))]
    for label in range(2):
        rows = np.flatnonzero(~np.isnan(Y[:, label]))
        data = loss, wide[rows], 2 * Y[rows, label] - 1, weights[rows]
        found = _objective(np.r_[model.coef_[label], model.intercept_[label]], *data)
        best = minimize(_objective, np.zeros(4), data, tol=1e-12).fun
        assert found <= best + 1e-7


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [0, 1])
def test_a_label_seen_with_one_value_gets_the_optimum_of_its_problem(loss, value):
    X, Y = _data(share=1.0)
    Y[:, 1] = value
    Y[10:, 1] = np.nan
    model = _fit(loss, X, LabelMatrix.from_any(Y))
    wide = np.c_[X, np.ones(len(X))]
    data = loss, wide[:10], np.full(10, 2 * value - 1), np.ones(10)
    best = minimize(_objective, np.zeros(7), data, tol=1e-10).x
    np.testing.assert_allclose(np.r_[model.coef_[1], model.intercept_[1]], best, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_label_whose_observed_rows_have_no_weight_has_no_weights(loss):
    X, Y = _data(share=1.0)
    Y[5:, 0] = np.nan
    model = BinaryRelevance(loss).fit(X, Y, sample_weight=np.arange(50) >= 5)
    np.testing.assert_array_equal(model.coef_[0], 0)
    assert model.intercept_[0] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_of_no_weight_is_as_one_that_is_not_there(loss):
    X, Y = _data(share=1.0)
    weighted = _fit(loss, X, Y, class_weight={0: 1, 1: 0})
    part = _fit(loss, X, np.where(Y > 0, np.nan, 0.0))
    np.testing.assert_allclose(weighted.coef_, part.coef_, rtol=0, atol=1e-6)
    assert weighted.predict(X).mean() < 0.2
    assert not _fit(loss, X, Y, class_weight={0: 0, 1: 0}).coef_.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_wide_indices_are_taken(loss):
    X, Y = _data(share=1.0)
    rows = sp.csr_array(X)
    narrow = _fit(loss, rows, Y)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    np.testing.assert_allclose(_fit(loss, rows, Y).coef_, narrow.coef_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_large_data_are_solved_iteratively(share, monkeypatch):
    X, Y = _data(share=share)
    expected = _fit("squared_error", X, Y)
    monkeypatch.setattr(fit, "_LARGEST_GRAM", 1)
    np.testing.assert_allclose(_fit("squared_error", sp.csr_array(X), Y).coef_, expected.coef_, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_binary_relevance_keeps_the_labels_that_were_fitted(loss, monkeypatch, reloaded):
    X, Y = draw_labels(n_labels=6, missing=0.2)  # labels observed in other rows are fitted one by one
    whole = BinaryRelevance(loss).fit(X, Y)
    assert (whole.status_, whole.labels_fitted_) == ("converged", 6)
    name = "make_ridge" if loss == "squared_error" else "_fit_label"
    original, calls = getattr(fit, name), itertools.count(1)

    def interrupted(*arguments, **options):
        if next(calls) == 4:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments, **options)

    monkeypatch.setattr(fit, name, interrupted)
    model = BinaryRelevance(loss)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 3 of 6 labels; the weights of the others"):
        model.fit(X, Y)
    assert (model.status_, model.labels_fitted_, model.converged_) == ("interrupted", 3, False)
    is_fitted = model.coef_.any(axis=1)
    assert is_fitted.sum() == 3
    np.testing.assert_array_equal(model.coef_[is_fitted], whole.coef_[is_fitted])
    assert not model.predict(X)[:, ~is_fitted].any()
    assert reloaded(model).labels_fitted_ == 3


def test_binary_relevance_in_threads_keeps_what_is_done(monkeypatch):
    X, Y = draw_labels(n_labels=40, missing=0.0)
    original, calls, served = fit._fit_label, itertools.count(1), threading.Event()

    def interrupted(*arguments):
        number = next(calls)
        if number == 12:  # the other thread is working on one: ten are done
            signal.raise_signal(signal.SIGINT)  # which the main thread is to serve
        if number >= 12:
            served.wait(2.0)
            served.set()
        return original(*arguments)

    monkeypatch.setattr(fit, "_fit_label", interrupted)
    model = BinaryRelevance("log_loss", n_jobs=2)
    with pytest.raises(KeyboardInterrupt, match="interrupted after"):
        model.fit(X, Y)
    assert 10 <= model.labels_fitted_ < 40
    assert model.coef_.any(axis=1).sum() == model.labels_fitted_


def _table(n, d, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=(n, d)) + 0.5) * (random.random((n, d)) < 0.7)


@pytest.mark.parametrize("kind", [fit.CholeskyRidge, fit.SpectralRidge, fit.IterativeRidge])
@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
@pytest.mark.parametrize("container", [np.array, sp.csr_array])
def test_all_solvers_agree_with_scikit_learn(kind, shape, container):
    table = _table(*shape)
    targets, rows = np.random.default_rng(2).normal(size=(shape[0], 3)), container(table)
    expected = Ridge(0.3, fit_intercept=False).fit(table, targets).coef_.T
    np.testing.assert_allclose(kind(rows, 0.3).solve(targets), expected, atol=1e-8)
    np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, table)


@pytest.mark.parametrize("kind", [fit.SpectralRidge, fit.IterativeRidge])
def test_without_penalty_the_shortest_solution_is_taken(kind):
    table = _table(12, 3) @ _table(3, 7, seed=1)  # rank 3
    targets = np.random.default_rng(2).normal(size=(12, 2))
    np.testing.assert_allclose(kind(table, 0.0).solve(targets), np.linalg.pinv(table) @ targets, atol=1e-7)


def test_a_penalty_lost_in_rounding_goes_to_the_spectrum():
    rows = _table(12, 3)
    assert isinstance(fit.make_ridge(rows, 1e-3), fit.CholeskyRidge)
    assert isinstance(fit.make_ridge(rows, 1e-12), fit.SpectralRidge)
    assert isinstance(fit.make_ridge(rows, 0.0), fit.SpectralRidge)


def test_large_matrices_are_solved_iteratively(monkeypatch):
    monkeypatch.setattr(fit, "_LARGEST_GRAM", 2)
    assert isinstance(fit.make_ridge(_table(12, 3), 1.0), fit.IterativeRidge)


def test_regressions_that_stop_early_say_so():
    solver = fit.IterativeRidge(_table(12, 6), 0.0)
    solver.max_iter = 1
    solver.solve(np.ones((12, 1)))
    assert not solver.converged
