"""Each wrapper improves what it is for, on unseen rows."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier

from labelweave import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    metrics,
)


class CountingClassifier(ClassifierMixin, BaseEstimator):
    fitted_rows = 0

    def fit(self, X, y, sample_weight=None):
        CountingClassifier.fitted_rows += len(X)
        self.is_weighted_ = sample_weight is not None
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, :2]

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


@pytest.mark.parametrize(
    ("share", "rows", "fitted"), [(0.2, 100, 180), ("auto", 100, 500), ("auto", 5001, 9002)]
)
def test_tuning_costs_less_than_one_more_fit_where_one_part_is_held_out(share, rows, fitted):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    labels = (X[:, :2] > 0.5).astype(int)
    CountingClassifier.fitted_rows = 0
    model = TunedThresholdClassifier(CountingClassifier(), validation_fraction=share).fit(X, labels)
    assert CountingClassifier.fitted_rows == fitted
    assert not model.estimator_.is_weighted_
    assert (
        TunedThresholdClassifier(CountingClassifier()).fit(X, labels, np.ones(rows)).estimator_.is_weighted_
    )


@pytest.mark.parametrize("scope", ["label", "global", "top_k"])
def test_tuned_thresholds_raise_f1(scope, rows):
    X, Y, X_test, Y_test = rows
    plain = MaxMarginClassifier(C=0.1).fit(X, Y)
    tuned = TunedThresholdClassifier(MaxMarginClassifier(C=0.1), scope=scope).fit(X, Y)
    before, after = (metrics.f1_score(Y_test, model.predict(X_test)) for model in (plain, tuned))
    assert after > before + 0.03
    assert tuned.objective_value_ == pytest.approx(after, abs=0.1)


def test_shrinkage_is_chosen_on_held_out_rows(rows):
    X, Y, *_ = rows
    chosen = TunedThresholdClassifier(MaxMarginClassifier(), "macro_f1").fit(X, Y)
    assert chosen.shrinkage_ in (0, 10, 50, 200)
    given = TunedThresholdClassifier(MaxMarginClassifier(), "macro_f1", shrinkage=chosen.shrinkage_).fit(X, Y)
    np.testing.assert_array_equal(given.thresholds_, chosen.thresholds_)
    assert not hasattr(given.set_params(scope="top_k").fit(X, Y), "shrinkage_")


@pytest.mark.parametrize("objective", ["precision", "recall"])
def test_targets_are_about_reached(objective, rows):
    X, Y, X_test, Y_test = rows
    model = TunedThresholdClassifier(MaxMarginClassifier(), objective, scope="global", target=0.8, cv=5)
    predicted = model.fit(X, Y).predict(X_test)
    found = {"precision": metrics.precision_score, "recall": metrics.recall_score}[objective]
    assert found(Y_test, predicted) == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("method", ["auto", "sigmoid", "isotonic"])
@pytest.mark.parametrize("inner", [MaxMarginClassifier(), RandomForestClassifier(20, random_state=0)])
def test_calibration_lowers_error_and_loss(method, inner, rows):
    X, Y, X_test, Y_test = rows
    options = {"min_positives": 50} if method == "isotonic" else {}  # so few rows have separate maps
    model = CalibratedLabelClassifier(inner, method, **options).fit(X, Y.toarray())
    if hasattr(inner, "predict_proba"):
        before = np.column_stack([table[:, 1] for table in model.estimator_.predict_proba(X_test)])
    else:
        before = expit(model.estimator_.decision_function(X_test))
    after = model.predict_proba(X_test)
    error = metrics.expected_calibration_error
    assert error(Y_test, after) < min(error(Y_test, before), 0.05)
    if method != "isotonic":  # steps need more rows for their likelihood
        assert metrics.log_loss(Y_test, after) < metrics.log_loss(Y_test, before)


def test_sets_of_expected_f1_beat_one_half():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(800, 2)) - 0.5
    labels = (rng.random(scores.shape) < expit(scores)).astype(int)
    inner = CountingClassifier().fit(scores, labels)
    found = {}
    for decision in ("half", "expected_f1"):
        model = CalibratedLabelClassifier(inner, decision=decision, cv="prefit").fit(
            scores[:400], labels[:400]
        )
        found[decision] = metrics.f1_score(labels[400:], model.predict(scores[400:]), average="example")
    assert found["expected_f1"] > found["half"] + 0.1


def test_missed_labels_are_below_the_level(rows):
    X, Y, X_test, Y_test = rows
    inner = CalibratedLabelClassifier(MaxMarginClassifier())
    model = ConformalLabelClassifier(inner, level=0.3).fit(X, Y)
    hits = (model.predict(X_test).toarray() & Y_test.toarray()).sum(axis=1)
    assert np.mean(1 - hits / np.maximum(Y_test.sum(axis=1), 1)) <= 0.3
    assert model.n_calibration_rows_ == 150
    wrong = ConformalLabelClassifier(inner, "false_discoveries", level=0.3).fit(X, Y)
    assert wrong.threshold_ > model.threshold_


def test_the_model_of_conformal_sets_is_solved_as_far_as_any(rows):
    X, Y, _, _ = rows
    inner = ConformalLabelClassifier(MaxMarginClassifier(tol=1e-5), level=0.3).fit(X, Y).estimator_
    assert not inner.warm_start
    assert inner.duality_gap_ <= 1e-5


def test_single_precision_scores_keep_the_threshold():
    """The threshold lies next to a score; in single precision the difference must not vanish."""

    class SinglePrecision(CountingClassifier):
        def decision_function(self, X):
            return super().decision_function(X).astype(np.float32)

    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = (X > 0).astype(int)
    inner = SinglePrecision().fit(X, labels)
    model = ConformalLabelClassifier(inner, level=0.1, guarantee="expectation", cv="prefit").fit(X, labels)
    hits = (model.predict(X) & labels).sum(axis=1)
    share = np.mean((labels.sum(axis=1) - hits) / np.maximum(labels.sum(axis=1), 1))
    assert share == pytest.approx(model.calibration_risk_)


@pytest.mark.parametrize("guarantee", ["expectation", "probability"])
def test_weighted_calibration_rows_stand_for_rows_that_come_more_often(guarantee):
    """Rows of the hard group are a tenth of the calibration rows and half of the rows to come."""
    rng = np.random.default_rng(0)
    inner = CountingClassifier().fit(np.zeros((2, 2)), None)

    def draw(n, share):
        hard = rng.random(n) < share
        positive = rng.normal(size=(n, 2)) - 2.0 * hard[:, None]
        return np.hstack([positive, hard[:, None]]), np.ones((n, 2), int), np.where(hard, 9.0, 1.0)

    later, _, _ = draw(3000, 0.5)
    risks = {True: [], False: []}
    for _ in range(12):
        X, Y, weights = draw(800, 0.1)
        for is_weighted, found in risks.items():
            model = ConformalLabelClassifier(inner, level=0.2, guarantee=guarantee, cv="prefit")
            model.fit(X, Y, weights if is_weighted else None)
            found.append(1 - model.predict(later).mean())
    assert np.mean(risks[True]) < 0.215
    assert np.mean(risks[False]) > 0.25
    if guarantee == "probability":
        assert np.mean(np.array(risks[True]) < 0.21) >= 0.9


def test_weights_of_calibration_rows_may_be_equal_or_too_unequal():
    X = np.random.default_rng(1).normal(size=(200, 2))
    inner = CountingClassifier().fit(X, None)
    plain, even = (
        ConformalLabelClassifier(inner, level=0.3, cv="prefit").fit(X, X > 0.5, weights)
        for weights in (None, np.full(200, 7.0))
    )
    assert (plain.threshold_, plain.n_calibration_rows_) == (even.threshold_, even.n_calibration_rows_)
    unequal = np.where(np.arange(200) == 0, 1e6, 1.0)
    with pytest.raises(ValueError, match="calibration rows"):
        ConformalLabelClassifier(inner, level=0.3, cv="prefit").fit(X, X > 0.5, unequal)
