"""The papers' opponents: PLST and CPLST equal their closed forms, and WSABIE's steps are the paper's."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.opponents import CPLST, PLST, WSABIE, label_space, wsabie
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from labelweave import LabelMatrix, metrics
from labelweave.estimators.binary_relevance import fit
from labelweave.features import FeatureMatrix
from reference import ranking_twin

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
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_at_full_rank_it_is_ridge_regression(kind, penalty, container):
    X, Y = _data()
    model = kind(rank=50, alpha=penalty).fit(container(X), Y)
    theirs = Ridge(penalty).fit(X, Y)
    assert model.rank_ == 5
    np.testing.assert_allclose(_weights(model), theirs.coef_.T, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(container(X)), theirs.predict(X) - 0.5, atol=1e-10)
    np.testing.assert_array_equal(model.predict(container(X)), theirs.predict(X) > 0.5)


@pytest.mark.parametrize("rank_of_X", [None, 3])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_cplst_is_the_closed_form_of_claim_1(rank_of_X, rank):
    X, Y = _data(rank=rank_of_X)
    left, values, right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = values > 1e-10 * values[0]
    left, values, right = left[:, kept], values[kept], right[kept]
    inner, sizes, outer = np.linalg.svd(left.T @ (Y - Y.mean(axis=0)), full_matrices=False)
    truncated = inner[:, :rank] * sizes[:rank] @ outer[:rank]
    expected = right.T @ (truncated / values[:, None])
    np.testing.assert_allclose(_weights(CPLST(rank=rank).fit(X, Y)), expected, atol=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_cplst_is_the_best_model_of_its_rank(penalty):
    X, Y = _data(n=15, d=4, n_labels=3)
    wide, centered = X - X.mean(axis=0), Y - Y.mean(axis=0)

    def objective(flat):
        Z = flat[:8].reshape(4, 2) @ flat[8:].reshape(2, 3)
        return np.sum((centered - wide @ Z) ** 2) + penalty * np.sum(Z**2)

    model = CPLST(rank=2, alpha=penalty).fit(X, Y)
    found = objective(np.r_[model.feature_factors_.ravel(), model.label_factors_.T.ravel()])
    random = np.random.default_rng(0)
    others = [minimize(objective, random.normal(size=14)).fun for _ in range(5)]
    np.testing.assert_allclose(found, min(others), rtol=1e-6)
    worse = PLST(rank=2, alpha=penalty).fit(X, Y)
    assert objective(np.r_[worse.feature_factors_.ravel(), worse.label_factors_.T.ravel()]) >= found


@pytest.mark.parametrize(("rank", "columns"), [(1, 1), (3, 3), (0.4, 2)])
def test_plst_codes_are_principal_components_of_the_labels(rank, columns):
    X, Y = _data()
    model = PLST(rank=rank, alpha=0.1).fit(X, Y)
    directions = np.linalg.svd(Y - Y.mean(axis=0))[2][:columns].T
    span = directions @ directions.T
    np.testing.assert_allclose(model.label_factors_ @ model.label_factors_.T, span, atol=1e-10)
    np.testing.assert_allclose(_weights(model), Ridge(0.1).fit(X, Y @ span).coef_.T, atol=1e-10)


@BOTH
def test_large_sparse_data_give_the_same_model(kind, monkeypatch):
    X, Y = _data(n=60, n_labels=20)
    expected = kind(rank=3, alpha=0.2).fit(X, Y)
    monkeypatch.setattr(label_space, "_LARGEST_TABLE", 1)
    monkeypatch.setattr(sp.csr_array, "toarray", None)  # nothing sparse is written out
    model = kind(rank=3, alpha=0.2).fit(sp.csr_array(X), sp.csr_array(Y))
    assert isinstance(label_space._centered_ridge(label_space._Centered(X), 1.0), fit.IterativeRidge)
    np.testing.assert_allclose(_weights(model), _weights(expected), atol=1e-7)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)


@BOTH
def test_every_label_must_be_observed(kind):
    X, Y = _data()
    with pytest.raises(ValueError, match=f"{kind.__name__} needs every label"):
        kind().fit(X, np.where(np.arange(200).reshape(Y.shape) == 7, np.nan, Y))


def _toy(n=120, seed=0):
    """Rows whose three labels of nine depend on the largest of three groups of features."""
    random = np.random.default_rng(seed)
    group = random.integers(3, size=n)
    X = np.eye(3)[group] + 0.2 * random.normal(size=(n, 3))
    return X, np.repeat(np.eye(3, dtype=int)[group], 3, axis=1)


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_the_compiled_epoch_is_the_slow_one(share, container, monkeypatch):
    random = np.random.default_rng(3)
    X = random.normal(size=(12, 4)) * (random.random((12, 4)) < 0.7)
    Y = (random.random((12, 6)) < 0.4).astype(float)
    Y[random.random(Y.shape) > share] = np.nan
    monkeypatch.setattr(wsabie, "_MAX_NORM", 1.1)
    labels = LabelMatrix.from_any(Y)
    fit = wsabie.RankingFit(FeatureMatrix(container(X)), labels, 3, 0.2, seed=5)
    settings = ranking_twin.Settings(0.2, wsabie._MARGIN, 1.1)
    W, H = fit.feature_factors[:, :-1].copy(), fit.label_factors[:, :-1].copy()
    squares, draws = ([0.0] * 4, [0.0] * 6), ranking_twin.SplitMix(fit.state[0])
    order = np.random.default_rng()
    order.bit_generator.state = fit.random.bit_generator.state
    entries, losses = np.argwhere(Y == 1), 0.0
    for pair in order.permutation(fit.pairs):
        losses += ranking_twin.visit(*entries[pair], X, labels.to_signs(), W, H, squares, settings, draws)
    loss = fit.run_epoch()
    np.testing.assert_allclose(fit.feature_factors[:, :-1], W, atol=1e-12)
    np.testing.assert_allclose(fit.label_factors[:, :-1], H, atol=1e-12)
    np.testing.assert_allclose(loss, losses / len(fit.pairs))
    assert max(np.linalg.norm(factors, axis=1).max() for factors in (W, H)) <= 1.1 + 1e-12


@pytest.mark.parametrize("hidden", [0.0, 0.7])
def test_wsabie_learns_a_separable_toy(hidden):
    X, Y = _toy(300)
    Y = np.where(np.random.default_rng(2).random(Y.shape) < hidden, np.nan, Y)
    model = WSABIE(rank=4, n_epochs=20).fit(X, Y)
    X_test, Y_test = _toy(seed=1)
    assert metrics.precision_at_k(Y_test, model.decision_function(X_test), k=3) > (0.9 if hidden else 0.95)
    assert model.epoch_losses[-1] < 0.2 * model.epoch_losses[0]
    again = WSABIE(rank=4, n_epochs=20).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_threshold_has_the_best_f1_on_the_training_rows():
    X, Y = _toy()
    flipped = np.random.default_rng(4).random(Y.shape) < 0.15
    Y = np.where(flipped, 1 - Y, Y)
    model = WSABIE(rank=2, n_epochs=3).fit(X, Y)
    scores = model.decision_function(X)
    reached = metrics.f1_score(Y, (scores > 0).astype(int))
    assert reached >= max(metrics.f1_score(Y, (scores > s).astype(int)) for s in np.linspace(-2, 2, 101))
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_the_threshold_of_many_scores_is_chosen_on_a_part(monkeypatch):
    monkeypatch.setattr(wsabie, "_SCORES_FOR_THRESHOLD", 9 * 40)
    X, Y = _toy()
    assert metrics.f1_score(Y, WSABIE(rank=0.5).fit(X, Y).predict(X)) > 0.9


def test_nothing_to_rank_is_said():
    with pytest.raises(ValueError, match="both an observed positive and an observed negative"):
        WSABIE().fit(np.eye(4), np.ones((4, 2)))
