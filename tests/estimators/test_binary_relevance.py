"""Binary relevance: what scikit-learn fits label by label, from observed entries."""

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
from labelweave.estimators.binary_relevance import ridge

VALUES = {
    "squared": lambda signs, scores: 0.5 * (scores - (signs > 0)) ** 2,
    "logistic": lambda signs, scores: np.logaddexp(0, -signs * scores),
    "squared_hinge": lambda signs, scores: 0.5 * np.maximum(0, 1 - signs * scores) ** 2,
}
LOSSES = list(VALUES)
PENALTY = 0.3


def _data(n=50, d=6, n_labels=4, share=0.6, seed=0):
    return draw_labels(n, d, n_labels, seed=seed, kept=0.8, missing=1 - share)


def _fit(loss, X, Y, **parameters):
    return BinaryRelevance(loss, regularization=PENALTY, tol=1e-10, **parameters).fit(X, Y)


def _theirs(loss):
    if loss == "squared":
        return Ridge(PENALTY, fit_intercept=False)
    if loss == "logistic":
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
    model = BinaryRelevance(loss, regularization=PENALTY, tol=1e-10, fit_intercept=fit_intercept)
    model.fit(X, Y, sample_weight=weights)
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
    model = _fit(loss, X, Y)
    wide = np.c_[X, np.ones(len(X))]
    data = loss, wide[:10], np.full(10, 2 * value - 1), np.ones(10)
    best = minimize(_objective, np.zeros(7), data, tol=1e-10).x
    np.testing.assert_allclose(np.r_[model.coef_[1], model.intercept_[1]], best, atol=1e-5)


def test_absent_labels_have_no_weights_under_the_squared_loss():
    X, Y = _data(share=1.0)
    Y[:, 2] = 0
    model = _fit("squared", X, Y)
    np.testing.assert_array_equal(model.coef_[2], 0)
    assert not model.predict(X)[:, 2].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_unobserved_entries_and_rows_of_no_weight_do_nothing(loss):
    X, Y = _data()
    labels = LabelMatrix.from_any(Y)
    model = _fit(loss, X, labels)
    weights = np.r_[np.ones(50), np.zeros(3)]
    wider = BinaryRelevance(loss, regularization=PENALTY, tol=1e-10)
    wider.fit(np.r_[X, np.full((3, 6), 9.0)], np.r_[Y, np.ones((3, 4))], sample_weight=weights)
    np.testing.assert_allclose(model.coef_, wider.coef_, atol=1e-12)
    np.testing.assert_allclose(model.coef_, _fit(loss, X, Y).coef_, atol=1e-12)


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
    expected = _fit("squared", X, Y)
    monkeypatch.setattr(ridge, "_LARGEST_GRAM", 1)
    np.testing.assert_allclose(_fit("squared", sp.csr_array(X), Y).coef_, expected.coef_, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_threads_change_nothing(loss):
    X, Y = _data()
    np.testing.assert_array_equal(_fit(loss, X, Y).coef_, _fit(loss, X, Y, n_jobs=2).coef_)


@pytest.mark.parametrize("regularization", [0, -1.0])
def test_a_penalty_is_needed(regularization):
    with pytest.raises(ValueError, match="regularization"):
        BinaryRelevance(regularization=regularization).fit(*_data())
