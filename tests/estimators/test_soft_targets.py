"""Targets that are probabilities, and classes known by probabilities: equal to weighted copies in every
model.
"""

import numpy as np
import pandas as pd
import pytest
from attacks.small_fits import grouped
from scipy.optimize import minimize
from sklearn.base import clone

from labelweave import (
    AutoLabelClassifier,
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LabelTreeClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
)
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.labels.flip_rates import corrected_targets
from labelweave.metrics import propensities
from labelweave.noise import FlipRates

N_ROWS, N_FEATURES, N_LABELS = 40, 4, 3


def _problem(seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    P = 1 / (1 + np.exp(-X @ rng.standard_normal((N_FEATURES, N_LABELS))))
    certain = rng.random(P.shape) < 0.4
    P[certain] = P[certain] > 0.5
    P[0], P[rng.random(P.shape) < missing] = 0.5, np.nan
    return X, P


def _twins(X, P):
    """Return every row twice, with and without all labels, and the weights of the entries."""
    there = np.where(np.isnan(P), np.nan, 1.0)
    weights = np.nan_to_num(np.vstack([P, 1 - P]), nan=1.0)
    return np.vstack([X, X]), np.vstack([there, 1 - there]), weights


def _likelier(P):
    hard = np.where(np.isnan(P), np.nan, P > 0.5)
    return hard, np.where(np.isnan(P), 1.0, np.abs(2 * P - 1))


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    "model",
    [
        LowRankClassifier(N_LABELS, penalty="ridge", tol=1e-12),
        LowRankClassifier(N_LABELS, tol=1e-12, max_iter=400),
        LowRankClassifier(N_LABELS, "log_loss", tol=1e-12, max_iter=400),
    ],
)
def test_smooth_losses_are_those_of_both_values(model, missing):
    X, P = _problem(missing=missing)
    rows, labels, weights = _twins(X, P)
    soft = clone(model).fit(X, LabelMatrix.from_probabilities(P))
    both = clone(model).fit(rows, labels, entry_weight=weights)
    np.testing.assert_allclose(soft.decision_function(X), both.decision_function(X), atol=2e-5)
    if not np.isnan(both.duality_gap_):  # the closed form has one, while weights of entries have none
        np.testing.assert_allclose(soft.duality_gap_, both.duality_gap_, atol=1e-6)
    assert soft.objective_ == pytest.approx(both.objective_, rel=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        MaxMarginClassifier(prune="certified"),
        LowRankClassifier(N_LABELS, "squared_hinge", init="random"),
        LabelGraphClassifier(graph="chow-liu"),
    ],
)
def test_hinges_weigh_the_likelier_value(model):
    X, P = _problem()
    labels, weights = _likelier(P)
    soft = clone(model).fit(X, LabelMatrix.from_probabilities(P))
    weighted = clone(model).fit(X, labels, entry_weight=weights)
    np.testing.assert_allclose(soft.decision_function(X), weighted.decision_function(X), atol=1e-9)
    assert soft.duality_gap_ == pytest.approx(weighted.duality_gap_, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("negatives", ["reached", "all"])
def test_a_tree_of_one_node_is_its_weighted_problem(negatives):
    X, P = _problem()
    labels, weights = _likelier(P)
    tree = LabelTreeClassifier(loss="hinge", tol=1e-6, prune="off", negatives=negatives)
    soft = tree.fit(X, LabelMatrix.from_probabilities(P))
    flat = MaxMarginClassifier(C=soft.C, tol=1e-6).fit(X, labels, entry_weight=weights)
    assert ((flat.decision_function(X) > 0) == (soft.predict(X) > 0)).mean() > 0.98


def test_nodes_of_a_tree_take_the_greatest_target_below():
    rng = np.random.default_rng(0)
    X, P = rng.standard_normal((60, 5)), np.where(rng.random((60, 6)) < 0.5, 0.0, rng.random((60, 6)))
    model = LabelTreeClassifier(leaf_size=2, branching=2, tol=1e-4).fit(X, LabelMatrix.from_probabilities(P))
    assert model.duality_gap_ < 1e-4
    hard = LabelTreeClassifier(leaf_size=2, branching=2, tol=1e-4).fit(X, (P > 0.5).astype(int))
    assert model.trace_[0].primal < hard.trace_[0].primal  # of weights that are at most as large


@pytest.mark.parametrize("rates", [(0.3, 0.0), (0.2, 0.1), ([0.1, 0.2, 0.3], 0.05)])
def test_targets_undo_flips_on_average(rates):
    missed, false = (np.broadcast_to(rate, N_LABELS).astype(float) for rate in rates)
    truth = LabelMatrix.from_any(np.vstack([np.ones(N_LABELS), np.zeros(N_LABELS)]))
    recorded = [
        corrected_targets(LabelMatrix.from_any(np.full((1, N_LABELS), y)), missed, false) for y in (0, 1)
    ]
    absent, there = (one.to_dense()[0] for one in recorded)
    np.testing.assert_allclose(missed * absent + (1 - missed) * there, truth.to_dense()[0], atol=1e-12)
    np.testing.assert_allclose(false * there + (1 - false) * absent, truth.to_dense()[1], atol=1e-12)


def test_corrected_logistic_losses_are_solved_as_any_minimizer_solves_them():
    X, P = _problem()
    labels = np.where(np.isnan(P), np.nan, P > 0.5)
    rates = FlipRates(np.array([0.1, 0.2, 0.3]), np.array([0.05, 0.1, 0.0]))
    model = KernelLogisticClassifier(
        "linear", hyperparameters="fixed", scale=2.0, intercept_variance=1.0, tol=1e-10, flip_rates=rates
    ).fit(X, labels)
    targets = (labels - rates.false) / (1 - rates.missed - rates.false)
    for k in range(N_LABELS):
        seen = ~np.isnan(labels[:, k])

        def objective(w, seen=seen, k=k):
            scores = np.sqrt(2.0) * X[seen] @ w[:-1] + w[-1]
            return (np.logaddexp(0, scores) - targets[seen, k] * scores).sum() + 0.5 * w @ w

        best = minimize(objective, np.zeros(N_FEATURES + 1), method="BFGS", options={"gtol": 1e-9}).x
        expected = np.sqrt(2.0) * X @ best[:-1] + best[-1]
        np.testing.assert_allclose(model.decision_function(X)[:, k], expected, atol=1e-4)
    assert model.duality_gap_ < 1e-10


def test_propensities_are_rates_of_forgetting():
    X, P = _problem(missing=0.0)
    labels = (P > 0.5).astype(int)
    found = MaxMarginClassifier(flip_rates="propensity").fit(X, labels).coef_
    shares = propensities(labels)
    weights = np.where(labels == 1, 2 / shares - 1, 1.0)
    np.testing.assert_allclose(found, MaxMarginClassifier().fit(X, labels, entry_weight=weights).coef_)


def test_an_automatic_model_takes_probabilities():
    X, P = _problem()
    soft = LabelMatrix.from_probabilities(P)
    model = AutoLabelClassifier(members=["linear", "max-margin"]).fit(X, soft)
    assert np.isfinite(model.oof_loss_)
    assert model.predict_proba(X).shape == P.shape
    assert model.predict(X).shape == P.shape


def test_partial_fits_keep_doubts():
    X, P = _problem()
    parts = MaxMarginClassifier(tol=1e-6)
    for rows in (slice(0, 25), slice(25, None)):
        parts.partial_fit(X[rows], LabelMatrix.from_probabilities(P[rows]))
    whole = MaxMarginClassifier(tol=1e-6).fit(X, LabelMatrix.from_probabilities(P))
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_losses_below_zero_are_minimised_and_certified(missing):
    X, P = _problem(missing=missing)
    X = np.hstack([X, np.eye(N_ROWS)])  # which fits every target
    labels = np.where(np.isnan(P), np.nan, P > 0.5)
    model = LowRankClassifier(N_LABELS, alpha=0.01, tol=1e-10, max_iter=999, flip_rates=(0.3, 0.2))
    model.fit(X, labels)
    assert model.objective_ < 0
    assert abs(model.duality_gap_) < 1e-3


def test_exact_and_alternating_fits_of_losses_below_zero_agree():
    X, P = _problem(missing=0.0)
    X, labels = np.hstack([X, np.eye(N_ROWS)]), (P > 0.5).astype(int)
    model = LowRankClassifier(
        N_LABELS, penalty="ridge", alpha=0.01, tol=1e-12, max_iter=999, flip_rates=(0.3, 0.2)
    )
    exact = model.fit(X, labels).objective_
    assert exact < 0
    assert model.fit(X, labels, entry_weight=np.ones(P.shape)).objective_ == pytest.approx(exact, rel=1e-6)


TREE = {"x": ["a", "b"], "y": ["c"]}
NAMES = ["a", "b", "c"]


def _data(n=24):
    random = np.random.default_rng(0)
    return random.normal(size=(n, 3)), random.dirichlet(np.full(3, 0.4), n)


def _exact(**options):
    return KernelLogisticClassifier(**{"hyperparameters": "fixed", "tol": 1e-11, "gamma": 0.2} | options)


def _repeated(X, P):
    """Return every row once per class, weighted by its probability: the same loss, with certain classes."""
    n, classes = P.shape
    return np.repeat(X, classes, axis=0), np.tile(NAMES[:classes], n), P.ravel()


@pytest.mark.parametrize("options", [{}, {"taxonomy": TREE}, {"label_covariance": np.eye(3) + 0.3}])
def test_the_fit_is_that_of_rows_repeated_once_a_class(options):
    X, P = _data()
    model = _exact(**options).fit(X, ClassProbabilities(P, NAMES))
    rows, y, weights = _repeated(X, P)
    other = _exact(**options).fit(rows, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-7)
    assert model.duality_gap_ <= 1e-11
    assert model.classes_.tolist() == NAMES


def test_two_classes_are_one_label_of_probabilities():
    X, P = _data()
    P = P[:, :2] / P[:, :2].sum(axis=1, keepdims=True)
    model = _exact().fit(X, ClassProbabilities(P))
    labels = _exact().fit(X, LabelMatrix.from_probabilities(P[:, 1:]))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1:], labels.predict_proba(X), atol=1e-9)
    assert model.predict(X).shape == (24,)


def test_certain_rows_are_those_of_classes():
    X, P = _data()
    codes = P.argmax(axis=1)
    model = _exact().fit(X, ClassProbabilities(np.eye(3)[codes], NAMES))
    other = _exact().fit(X, np.array(NAMES)[codes])
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-9)


def test_rows_of_which_nothing_is_known_say_nothing():
    X, P = _data()
    Q = np.where(np.arange(24)[:, None] < 20, P, np.nan)
    model = _exact().fit(X, ClassProbabilities(Q, NAMES))
    other = _exact().fit(X[:20], ClassProbabilities(P[:20], NAMES))
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-7)


def test_hyperparameters_are_learned_and_weights_of_classes_expected():
    X, P = _data()
    y = ClassProbabilities(pd.DataFrame(P, columns=NAMES))
    model = grouped(KernelLogisticClassifier, class_weight={"a": 2.0}, max_learning_iter=3).fit(X, y)
    assert model.hyperparameters_
    fixed = _exact(class_weight={"a": 2.0}).fit(X, y)
    other = _exact().fit(X, y, sample_weight=1.0 + P[:, 0])
    np.testing.assert_allclose(fixed.predict_proba(X), other.predict_proba(X), atol=1e-9)


def test_other_models_have_a_label_a_class():
    X, P = _data()
    model = MaxMarginClassifier().fit(X, ClassProbabilities(P, NAMES))
    other = MaxMarginClassifier().fit(X, LabelMatrix.from_probabilities(P))
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-9)
    assert set(model.predict(X)) <= set(NAMES)


def test_names_are_sorted_and_what_reads_classes_finds_the_most_likely():
    y = ClassProbabilities([[0.2, 0.8], [np.nan, np.nan], [0.5, 0.5]], ["pear", "apple"])
    assert y.classes.tolist() == ["apple", "pear"]
    assert y.most_likely().tolist() == ["apple", None, "apple"]
    assert np.asarray(y[[2, 0]]).tolist() == ["apple", "apple"]
    assert (len(y), y.shape, y.observed.tolist()) == (3, (3,), [True, False, True])
    assert repr(y) == "ClassProbabilities(3 rows, 2 classes, 2 observed)"
