"""Nested classifiers: names, ranking and probabilities."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier

import labelweave as lw
from labelweave.datasets import TableVectorizer
from labelweave.decisions.base import layers
from labelweave.decisions.layers import (
    guarantee_words,
    innermost,
    layer_words,
    shown_labels,
    shown_thresholds,
    with_probabilities,
)
from labelweave.estimators import TableModel
from labelweave.features import FeatureMatrix


@pytest.fixture(scope="module")
def data(rows):
    X, Y, X_test, _ = rows
    return X, lw.LabelMatrix(Y, None, [f"l{k}" for k in range(Y.shape[1])]), X_test


@pytest.mark.parametrize(
    "model",
    [
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), "macro_f1"),
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier(threshold=-0.2), "macro_f1"),
        lw.ConformalLabelClassifier(
            lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), "macro_f1"), level=0.3
        ),
    ],
)
def test_labels_and_rows_are_ranked_by_scores_before_all_thresholds(data, model):
    X, Y, X_test = data
    model = model.fit(X, Y)
    inner = innermost(model)
    away = model.decision_function(X_test) - inner.scorer_.scores(FeatureMatrix(X_test))
    np.testing.assert_allclose(away, np.full(away.shape, away.mean()), atol=1e-6)


def test_probabilities_are_ranked_as_they_are(data):
    X, Y, X_test = data
    inside = lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(threshold=-0.2))
    model = lw.TunedThresholdClassifier(inside, "macro_f1").fit(X, Y)
    away = model.decision_function(X_test) - model.estimator_.predict_proba(X_test)
    np.testing.assert_allclose(away, np.full(away.shape, -model.thresholds_.min()), atol=1e-12)


def logistic(**parameters):
    return lw.KernelLogisticClassifier(hyperparameters="fixed", tol=1e-2, **parameters)


tuned = partial(lw.TunedThresholdClassifier, objective="macro_f1")
calibrated = lw.CalibratedLabelClassifier


@pytest.mark.parametrize("form", ["table", "two classes"])
@pytest.mark.parametrize(
    "model",
    [
        logistic(),
        logistic(threshold=0.3),
        logistic(threshold=0.4),
        calibrated(lw.MaxMarginClassifier()),
        calibrated(lw.MaxMarginClassifier(threshold=-0.2), "isotonic"),
        tuned(logistic()),
        tuned(calibrated(lw.MaxMarginClassifier())),
        calibrated(tuned(lw.MaxMarginClassifier())),
        tuned(KNeighborsClassifier()),
        *(pytest.param(model, marks=pytest.mark.slow) for model in (
            calibrated(logistic(threshold=0.3)),
            calibrated(tuned(logistic())),
            calibrated(calibrated(logistic())),
            tuned(logistic(threshold=0.3), scope="global"),
            tuned(calibrated(logistic(), decision="expected_f1")),
            tuned(tuned(calibrated(lw.MaxMarginClassifier(threshold=-0.2)))),
            tuned(tuned(logistic()), response_method="predict_proba"),
            tuned(OneVsRestClassifier(LogisticRegression())),
        )),
    ],
    ids=repr,
)  # fmt: skip
def test_predictions_are_probabilities_above_thresholds(data, model, form, reloaded):
    X, Y, X_test = data
    y = Y.to_dense().astype(int)
    if form == "two classes":
        if "KNeighbors" in repr(model) or "OneVsRest" in repr(model):
            pytest.skip("scikit-learn's, where a row of labels is no pair of classes")
        if "expected_f1" in repr(model):
            pytest.skip("a decision about label sets")
        y = y[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(model).fit(X, y)
    models = [model]
    if "labelweave" in type(innermost(model)).__module__:
        models.append(reloaded(model))
    for one in models:
        shares = one.predict_proba(X_test)
        shares = shares[:, 1:] if form == "two classes" else shares
        predicted = one.predict(X_test)
        np.testing.assert_array_equal(shares > one.thresholds_, predicted.reshape(shares.shape) == 1)
        np.testing.assert_array_equal(predicted, model.predict(X_test))
        assert one.thresholds_.shape == (shares.shape[1],)
        if form == "two classes":
            np.testing.assert_array_equal(one.decision_function(X_test) > 0, predicted == 1)
        order, ranks = (np.argsort(v, axis=0, kind="stable") for v in (shares, one.decision_function(X_test)))
        np.testing.assert_array_equal(order, ranks.reshape(order.shape))


def test_thresholds_of_scores_leave_no_probabilities(data):
    X, Y, X_test = data
    model = tuned(calibrated(lw.MaxMarginClassifier()), response_method="decision_function").fit(X, Y)
    assert not hasattr(model, "predict_proba")
    limits = model.thresholds_ - model.thresholds_.min()
    found = model.predict(X_test).toarray() if sp.issparse(model.predict(X_test)) else model.predict(X_test)
    np.testing.assert_array_equal(found, model.decision_function(X_test) > limits)
    sets = calibrated(lw.MaxMarginClassifier(), decision="expected_f1").fit(X, Y)
    assert not hasattr(sets, "thresholds_")
    np.testing.assert_array_equal(sets.decision_function(X_test), sets.predict_proba(X_test) - 0.5)


def test_names_and_probabilities_come_from_inside(data):
    X, Y, _ = data
    model = lw.ConformalLabelClassifier(
        lw.CalibratedLabelClassifier(lw.MaxMarginClassifier()), level=0.3
    ).fit(X, Y)
    assert [type(layer).__name__ for layer in layers(model)] == [
        "ConformalLabelClassifier",
        "CalibratedLabelClassifier",
        "MaxMarginClassifier",
    ]
    assert innermost(model).label_names_.tolist() == Y.names.tolist()
    assert with_probabilities(model) is model.estimator_
    assert with_probabilities(innermost(model)) is None


def test_what_is_said(data):
    X, Y, _ = data
    model = lw.ConformalLabelClassifier(
        lw.CalibratedLabelClassifier(lw.MaxMarginClassifier()), guarantee="expectation"
    ).fit(X, Y)
    promise = guarantee_words(model)
    assert promise.startswith("for rows like the 150 calibration rows the expected share of a row's true")
    assert promise.endswith("is at most 0.1, on average over draws of the calibration rows")
    assert guarantee_words(model.estimator_) is None
    assert "label sets more probable than 1/2" in layer_words(model.estimator_)[0][1]
    assert "label sets" not in layer_words(model)[1][1]
    top = lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), "recall", target=0.5, scope="top_k").fit(X, Y)
    assert layer_words(top)[0][1].startswith(f"the {top.k_} best labels of every row, at recall 0.5")
    auto = lw.CalibratedLabelClassifier(lw.MaxMarginClassifier()).fit(X, Y)
    assert layer_words(auto)[0][1].startswith(
        ("probabilities by sigmoid maps, the better", "probabilities by isotonic maps, the better")
    )


@pytest.mark.parametrize("wrapper", [lw.TunedThresholdClassifier, lw.CalibratedLabelClassifier])
def test_the_best_labels_are_those_before_thresholds(data, wrapper):
    X, Y, X_test = data
    model = wrapper(lw.MaxMarginClassifier()).fit(X, Y)
    labels, scores = model.predict_top(X_test, 3)
    ranked = model.decision_function(X_test)
    np.testing.assert_array_equal(labels, np.argsort(-ranked, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(scores, np.take_along_axis(ranked, labels, axis=1))
    if wrapper is lw.TunedThresholdClassifier:
        assert np.ptp(model.thresholds_) > 0
        np.testing.assert_array_equal(labels, innermost(model).predict_top(X_test, 3)[0])
    for k in (0, 9):
        with pytest.raises(ValueError, match=rf"k is {k}; .* the number of labels, 8"):
            model.predict_top(X_test, k)


def test_a_model_of_table_rows_finds_the_best_labels_around_a_wrapper():
    frame = pd.DataFrame({"text": ["a red rose", "a blue sea", "the rose", "blue ink"] * 10})
    vectorizer = TableVectorizer(text="text").fit(frame)
    flower = np.array([[1, 0], [0, 1], [1, 0], [0, 1]] * 10)
    tuned = lw.TunedThresholdClassifier(lw.MaxMarginClassifier()).fit(vectorizer.transform(frame), flower)
    labels, scores = TableModel.of_fitted(vectorizer, tuned).predict_top(frame, 1)
    np.testing.assert_array_equal(labels[:, 0], 1 - flower[:, 0])
    assert scores.shape == (40, 1)


@pytest.mark.parametrize("inner", [{"objective": "macro_f1"}, {"scope": "top_k"}])
def test_label_sets_of_a_hierarchy_that_enforces_nothing_are_those_inside(inner):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    Y = pd.DataFrame((X + random.normal(size=(80, 3)) > 0.5).astype(int), columns=["animal", "dog", "cat"])
    tuned = lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), **inner)
    model = lw.HierarchicalClassifier(tuned, {"animal": ["dog", "cat"]}, enforce="none").fit(X, Y)
    np.testing.assert_array_equal(shown_labels(model, X).predicted, np.asarray(model.predict(X)) > 0)
    assert shown_thresholds(model) is None
