"""PLST and CPLST: the closed forms they are, and what they equal in special cases."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from labelweave.baselines import CPLST, PLST, ridge

BOTH = pytest.mark.parametrize("kind", [PLST, CPLST])


def _data(n=40, d=7, n_labels=5, rank=None, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)
    if rank is not None:
        X = random.normal(size=(n, rank)) @ random.normal(size=(rank, d))
    Y = (X @ random.normal(size=(d, n_labels)) + random.normal(size=(n, n_labels)) > 0.5).astype(int)
    return X, Y


def _weights(model):
    return model.feature_factors_ @ model.label_factors_.T


@BOTH
@pytest.mark.parametrize("penalty", [0.0, 0.5])
@pytest.mark.parametrize("center", [False, True])
def test_at_full_rank_it_is_ridge_regression(kind, penalty, center):
    X, Y = _data()
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    model = kind(rank=5, regularization=penalty, center=center).fit(X, Y, sample_weight=weights)
    theirs = Ridge(penalty, fit_intercept=center).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(_weights(model), theirs.coef_.T, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(X), theirs.predict(X) - 0.5, atol=1e-10)


@BOTH
def test_a_rank_above_the_number_of_labels_is_that_number(kind):
    X, Y = _data()
    model, full = kind(rank=50).fit(X, Y), kind(rank=5).fit(X, Y)
    assert model.rank_ == 5
    np.testing.assert_array_equal(_weights(model), _weights(full))


@BOTH
@pytest.mark.parametrize(("share", "rank"), [(0.4, 2), (0.01, 1), (0.99, 5)])
def test_a_rank_may_be_a_share_of_the_labels(kind, share, rank):
    assert kind(rank=share).fit(*_data()).rank_ == rank


@pytest.mark.parametrize("rank_of_X", [None, 3])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_cplst_is_the_closed_form_of_claim_1(rank_of_X, rank):
    X, Y = _data(rank=rank_of_X)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    kept = values > 1e-10 * values[0]
    left, values, right = left[:, kept], values[kept], right[kept]
    inner, sizes, outer = np.linalg.svd(left.T @ Y, full_matrices=False)
    truncated = inner[:, :rank] * sizes[:rank] @ outer[:rank]
    expected = right.T @ (truncated / values[:, None])
    model = CPLST(rank=rank, center=False).fit(X, Y)
    np.testing.assert_allclose(_weights(model), expected, atol=1e-9)
    np.testing.assert_array_equal(model.intercept_, 0)


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_cplst_is_the_best_model_of_its_rank(penalty):
    X, Y = _data(n=15, d=4, n_labels=3)
    wide, centred = X - X.mean(axis=0), Y - Y.mean(axis=0)

    def objective(flat):
        Z = flat[:8].reshape(4, 2) @ flat[8:].reshape(2, 3)
        return np.sum((centred - wide @ Z) ** 2) + penalty * np.sum(Z**2)

    model = CPLST(rank=2, regularization=penalty).fit(X, Y)
    found = objective(np.r_[model.feature_factors_.ravel(), model.label_factors_.T.ravel()])
    random = np.random.default_rng(0)
    others = [minimize(objective, random.normal(size=14)).fun for _ in range(5)]
    np.testing.assert_allclose(found, min(others), rtol=1e-6)
    worse = PLST(rank=2, regularization=penalty).fit(X, Y)
    assert objective(np.r_[worse.feature_factors_.ravel(), worse.label_factors_.T.ravel()]) >= found


@pytest.mark.parametrize("rank", [1, 3])
def test_plst_codes_are_principal_components_of_the_labels(rank):
    X, Y = _data()
    model = PLST(rank=rank, regularization=0.1).fit(X, Y)
    directions = np.linalg.svd(Y - Y.mean(axis=0))[2][:rank].T
    span = directions @ directions.T
    np.testing.assert_allclose(model.label_factors_ @ model.label_factors_.T, span, atol=1e-10)
    np.testing.assert_allclose(_weights(model), Ridge(0.1).fit(X, Y @ span).coef_.T, atol=1e-10)


@BOTH
def test_large_sparse_data_give_the_same_model(kind, monkeypatch):
    X, Y = _data(n=60, n_labels=20)
    expected = kind(rank=3, regularization=0.2).fit(X, Y)
    monkeypatch.setattr(ridge, "_MOST_LABELS", 1)
    monkeypatch.setattr(ridge, "_LARGEST_GRAM", 1)
    monkeypatch.setattr(sp.csr_array, "toarray", None)  # a sparse Y is never written out
    model = kind(rank=3, regularization=0.2).fit(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_allclose(_weights(model), _weights(expected), atol=1e-7)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)


@BOTH
def test_labels_that_do_not_vary_are_predicted_as_they_are(kind):
    X, Y = _data()
    Y[:, 1], Y[:, 3] = 0, 1
    model = kind(rank=4).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X)[:, [1, 3]], Y[:, [1, 3]])
    constant = kind(rank=2).fit(X, np.zeros((len(X), 3)))
    np.testing.assert_array_equal(constant.predict(X), 0)


@BOTH
def test_unobserved_labels_are_refused_by_name(kind):
    pandas = pytest.importorskip("pandas")
    X, Y = _data()
    Y = Y.astype(float)
    Y[7, 2] = Y[7, 4] = Y[9, 0] = np.nan
    message = rf"Y at row 7, label 2 is not observed, and {kind.__name__} needs .* BinaryRelevance, WSABIE"
    with pytest.raises(ValueError, match=message):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match="row 7, label 'c' is not observed"):
        kind().fit(X, pandas.DataFrame(Y, columns=list("abcde")))


@BOTH
def test_regressions_that_stop_early_warn(kind, monkeypatch):
    X, Y = _data()
    monkeypatch.setattr(ridge, "_LARGEST_GRAM", 1)
    monkeypatch.setattr(ridge, "_ITERATIONS_A_DIMENSION", 0.2)
    with pytest.warns(UserWarning, match="did not converge; scale the features") as caught:
        model = kind().fit(X, Y)
    assert not model.converged_
    assert caught[0].filename == __file__
