"""Low-rank models with a label covariance, costs and weights of entries, and their weights of features."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave
from drawn import draw_labels
from labelweave import LabelCovariance, LowRankClassifier, LowRankClassifierCV, Taxonomy

TIGHT = {"tol": 1e-11, "max_iter": 5000}
LOSSES = ["squared", "logistic", "squared_hinge"]


def _drawn(n=80, d=6, labels=6):
    return draw_labels(n, d, labels, size=0.5, rank=3, noise=0.3, missing=0.0)


def _assert_same_bits(one, two):
    np.testing.assert_array_equal(one.feature_factors_, two.feature_factors_)
    np.testing.assert_array_equal(one.label_factors_, two.label_factors_)
    assert one.duality_gap_ == two.duality_gap_ or np.isnan(one.duality_gap_)


@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("missing", [False, True])
def test_the_identity_gives_the_same_bits_as_none(penalty, missing):
    X, Y = _drawn()
    Y = np.where(np.random.default_rng(1).random(Y.shape) < 0.3, np.nan, Y) if missing else Y
    plain = LowRankClassifier(3, penalty=penalty).fit(X, Y)
    for given in (np.eye(6), LabelCovariance.identity(6), LabelCovariance.low_rank(np.zeros((6, 1)), 1.0)):
        _assert_same_bits(LowRankClassifier(3, penalty=penalty, label_covariance=given).fit(X, Y), plain)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_ridge_penalty_at_full_rank_is_a_model_of_coupled_labels(loss, kernel):
    """lambda / 2 tr(Z R^-1 Z^T) at full rank is convex: its optimum by a dense twin in all of Z."""
    from scipy.optimize import minimize

    from labelweave.problems.losses.entry_losses import ENTRY_LOSSES

    X, Y = _drawn(n=25, d=4, labels=4)
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
        4, loss, penalty="ridge", regularization=0.5, kernel=kernel, gamma=0.4, label_covariance=R, **TIGHT
    ).fit(X, Y)
    assert model.objective_ == pytest.approx(best.fun, rel=1e-5)
    scores = root @ best.x.reshape(-1, 4)
    raw = model.decision_function(X) + model.thresholds_
    np.testing.assert_allclose(raw, scores, atol=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_trace_norm_at_full_rank_is_certified(loss):
    X, Y = _drawn()
    random = np.random.default_rng(2)
    R = LabelCovariance.low_rank(random.normal(size=(6, 4))).shrink(0.1)
    model = LowRankClassifier(6, loss, label_covariance=R, **TIGHT).fit(X, Y)
    assert 0 <= model.duality_gap_ < 1e-3
    narrow = LowRankClassifier(1, loss, label_covariance=R, **TIGHT).fit(X, Y)
    assert narrow.objective_ > model.objective_
    assert narrow.duality_gap_ > 1e-2


def test_features_of_labels_score_labels_without_rows():
    """Inductive matrix completion: a label that is hardly observed borrows from those like it."""
    random = np.random.default_rng(0)
    U = random.normal(size=(30, 3))
    X = random.normal(size=(150, 10))
    scores = X @ random.normal(size=(10, 3)) @ U.T
    Y = (scores > 0).astype(float)
    hidden = Y.copy()
    hidden[2:, 25:] = np.nan
    R = LabelCovariance.low_rank(np.hstack([U, np.ones((30, 1))]), 1e-3)  # the ones carry the intercept
    right = []
    for given in (None, R):
        model = LowRankClassifier(3, regularization=0.5, label_covariance=given, max_iter=500).fit(X, hidden)
        right.append((model.predict(X)[:, 25:] == Y[:, 25:]).mean())
    assert right[1] > max(0.85, right[0] + 0.1)


def test_a_taxonomy_is_a_covariance_and_models_are_kept(tmp_path):
    X, Y = _drawn()
    names = ["a", "b", "c", "d", "e", "f"]
    tree = Taxonomy.from_any({"left": ["a", "b", "c"], "right": ["d", "e", "f"]})
    labels = labelweave.LabelMatrix.from_any(Y, names=names)
    model = LowRankClassifier(3, label_covariance=tree).fit(X, labels)
    dense = LabelCovariance.from_taxonomy(tree, names).to_dense()
    other = LowRankClassifier(3, label_covariance=dense, **TIGHT).fit(X, labels)
    model = LowRankClassifier(3, label_covariance=tree, **TIGHT).fit(X, labels)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-5)
    model.save(tmp_path / "model.lw")
    again = labelweave.load(tmp_path / "model.lw")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.label_covariance_.to_dense(), dense)


def test_a_path_with_a_covariance_and_costs():
    X, Y = _drawn()
    R = 0.5 * np.eye(6) + 0.5
    model = LowRankClassifierCV(
        ranks=[2, 4], regularizations=3, cv=3, label_covariance=R, false_negative_cost=2.0
    ).fit(X, Y, entry_weight=np.ones(Y.shape))
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    learned = LowRankClassifier(
        3, penalty="ridge", kernel="rbf", hyperparameters="learn", label_covariance=R,
        false_positive_cost=np.arange(1.0, 7.0), max_learning_iter=4,
    ).fit(X, Y)  # fmt: skip
    assert learned.predict(X).shape == Y.shape


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_weights_of_entries_count_like_rows_given_more_often(loss, missing, kind):
    X, Y = _drawn()
    random = np.random.default_rng(1)
    Y = np.where(random.random(Y.shape) < missing, np.nan, Y)
    weights = random.choice([0.0, 1.0, 1.0, 2.0], Y.shape)
    weights[:, Y.shape[1] - 1] = 1
    repeated, hidden = np.vstack([X, X]), np.vstack([Y, Y])
    hidden[: len(X)][weights == 0] = np.nan
    hidden[len(X) :][weights < 2] = np.nan
    if kind == "sparse":
        rows, columns = np.nonzero(weights != 1)
        weights = sp.coo_array((weights[rows, columns], (rows, columns)), shape=Y.shape)
    model = LowRankClassifier(6, loss, **TIGHT).fit(X, Y, entry_weight=weights)
    other = LowRankClassifier(6, loss, **TIGHT).fit(repeated, hidden)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [0.0, 0.8])
def test_costs_are_weights_of_entries(loss, missing):
    X, Y = _drawn()
    Y = np.where(np.random.default_rng(1).random(Y.shape) < missing, np.nan, Y)
    missed, false = np.arange(1.0, 7.0), 0.5
    options = {"false_negative_cost": missed, "false_positive_cost": false}
    model = LowRankClassifier(4, loss, **options).fit(X, Y)
    weighted = LowRankClassifier(4, loss).fit(X, Y, entry_weight=np.where(Y == 1, missed, false))
    np.testing.assert_allclose(model.decision_function(X), weighted.decision_function(X), atol=1e-6)
    half = LowRankClassifier(4, loss, false_positive_cost=0.5).fit(X, Y)
    known = LowRankClassifier(4, loss, negative_weight=0.5).fit(X, Y)
    assert half.objective_ == pytest.approx(known.objective_, rel=1e-3)


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({"label_covariance": np.eye(5)}, {}, "label_covariance is over 5 labels but y has 6"),
        ({"false_positive_cost": np.ones(4)}, {}, r"false_positive_cost has shape \(4,\)"),
        ({"false_negative_cost": -np.ones(6)}, {}, "costs must be finite numbers >= 0"),
        ({}, {"entry_weight": np.full((80, 6), np.nan)}, "entry_weight at row 0, label 0 is nan"),
        ({}, {"entry_weight": np.ones((80, 5))}, "entry_weight has shape"),
    ],
)
def test_errors_are_one_sentence(parameters, data, message):
    with pytest.raises(ValueError, match=message):
        LowRankClassifier(3, **parameters).fit(*_drawn(), **data)


def test_weights_of_features_are_made_on_demand():
    X, Y = _drawn()
    model = LowRankClassifier(3).fit(X, Y)
    assert model.coef_.shape == (6, 6)
    np.testing.assert_allclose(model.coef_, model.label_factors_ @ model.feature_factors_.T)
    raw = X @ model.coef_.T + model.intercept_ - model.thresholds_
    np.testing.assert_allclose(raw, model.decision_function(X), atol=1e-12)
    assert not hasattr(LowRankClassifier(3, kernel="rbf").fit(X, Y), "coef_")
