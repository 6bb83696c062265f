"""WSABIE: its steps are the paper's, from observed entries; it learns to rank."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import LabelMatrix, metrics
from labelweave.baselines import WSABIE
from labelweave.baselines.baseline_classifier import TrainingData
from labelweave.baselines.wsabie import RankingFit
from labelweave.features import FeatureMatrix
from reference import ranking_twin


def _toy(n=120, seed=0):
    """Rows whose three labels of nine are told by the largest of three groups of features."""
    random = np.random.default_rng(seed)
    group = random.integers(3, size=n)
    X = np.eye(3)[group] + 0.2 * random.normal(size=(n, 3))
    Y = np.repeat(np.eye(3, dtype=int)[group], 3, axis=1)
    return X, Y


@pytest.mark.parametrize("adapts", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("trials", [1, 1000])
def test_the_compiled_epoch_is_the_slow_one(adapts, share, container, trials):
    random = np.random.default_rng(3)
    X = random.normal(size=(12, 4)) * (random.random((12, 4)) < 0.7)
    Y = (random.random((12, 6)) < 0.4).astype(float)
    Y[random.random(Y.shape) > share] = np.nan
    labels, weights = LabelMatrix.from_any(Y), random.uniform(0.5, 2, 12)
    steps = {"learning_rate": 0.2, "schedule": "adagrad" if adapts else "constant", "max_trials": trials}
    model = WSABIE(3, margin=0.7, max_norm=1.1, **steps)
    fit = RankingFit(model, TrainingData(FeatureMatrix(container(X)), labels, weights), seed=5)
    W, H = fit.feature_factors.copy(), fit.label_factors.copy()
    squares = ([0.0] * 4, [0.0] * 6) if adapts else None
    draws = ranking_twin.SplitMix(fit.state[0])
    order = np.random.default_rng()
    order.bit_generator.state = fit.random.bit_generator.state
    entries, losses = np.argwhere(Y == 1), 0.0
    for pair in order.permutation(fit.pairs):
        losses += ranking_twin.visit(*entries[pair], X, labels.to_signs(), weights, W, H, squares, fit, draws)
    loss, share_of_steps = fit.run_epoch()
    np.testing.assert_allclose(fit.feature_factors, W, atol=1e-12)
    np.testing.assert_allclose(fit.label_factors, H, atol=1e-12)
    np.testing.assert_allclose(loss, losses / len(fit.pairs))
    assert 0 < share_of_steps <= 1


@pytest.mark.parametrize("schedule", ["adagrad", "constant"])
def test_it_learns_a_separable_toy(schedule):
    X, Y = _toy()
    model = WSABIE(rank=4, schedule=schedule, n_epochs=20).fit(X, Y)
    X_test, Y_test = _toy(seed=1)
    assert metrics.precision_at_k(Y_test, model.decision_function(X_test), k=3) > 0.95
    assert metrics.f1_score(Y_test, model.predict(X_test)) > 0.95
    assert model.trace_[-1].primal < 0.2 * model.trace_[0].primal
    assert len(model.trace_) == 20


def test_labels_that_were_never_compared_stay_where_they_started():
    X, Y = _toy()
    Y = Y.astype(float)
    Y[:, 8] = np.nan
    Y[0, 8] = 0  # the one row in which label 8 was seen has no positive
    Y[0, :8] = np.nan
    data = TrainingData(FeatureMatrix(X), LabelMatrix.from_any(Y), np.ones(len(X)))
    fit = RankingFit(WSABIE(3, max_trials=100), data, seed=0)
    before = fit.label_factors.copy()
    fit.run_epoch()
    np.testing.assert_array_equal(fit.label_factors[8], before[8])
    assert (fit.label_factors[:8] != before[:8]).any()


def test_missing_labels_are_learned_around():
    X, Y = _toy(300)
    hidden = np.random.default_rng(2).random(Y.shape) < 0.7
    model = WSABIE(rank=4, n_epochs=20).fit(X, np.where(hidden, np.nan, Y))
    X_test, Y_test = _toy(seed=1)
    assert metrics.precision_at_k(Y_test, model.decision_function(X_test), k=3) > 0.9


def test_vectors_are_no_longer_than_allowed():
    X, Y = _toy()
    model = WSABIE(rank=4, max_norm=0.3, learning_rate=5.0).fit(X, Y)
    for factors in (model.feature_factors_, model.label_factors_):
        assert np.linalg.norm(factors, axis=1).max() <= 0.3 + 1e-12


def test_the_threshold_has_the_best_f1_on_the_training_rows():
    X, Y = _toy()
    flipped = np.random.default_rng(4).random(Y.shape) < 0.15
    Y = np.where(flipped, 1 - Y, Y)
    model = WSABIE(rank=2, n_epochs=3).fit(X, Y)
    scores = model.decision_function(X)
    reached = metrics.f1_score(Y, (scores > 0).astype(int))
    others = [metrics.f1_score(Y, (scores > s).astype(int)) for s in np.linspace(-2, 2, 101)]
    assert reached >= max(others)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_the_threshold_of_many_scores_is_chosen_on_a_part(monkeypatch):
    monkeypatch.setattr("labelweave.baselines.wsabie._SCORES_FOR_THRESHOLD", 9 * 40)
    X, Y = _toy()
    model = WSABIE(rank=0.5).fit(X, Y)
    assert model.label_factors_.shape == (9, 4)
    assert metrics.f1_score(Y, model.predict(X)) > 0.9


@pytest.mark.parametrize(
    "Y",
    [
        np.zeros((4, 2)),
        np.ones((4, 2)),
        [[1, np.nan], [np.nan, 0], [1, np.nan], [0, np.nan]],
        np.eye(4)[:, :1],
    ],
)
def test_nothing_to_rank_is_said(Y):
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(ValueError, match="both an observed positive and an observed negative"):
        WSABIE().fit(X, Y)


def test_steps_that_overflow_are_said():
    X, Y = _toy()
    with pytest.raises(ValueError, match="WSABIE overflowed; scale the features"):
        WSABIE(schedule="constant", learning_rate=1e200).fit(X * 1e39, Y)
