"""Classifiers inside one another: names, ranking and probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from labelweave import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    LabelMatrix,
    MaxMarginClassifier,
    TunedThresholdClassifier,
)
from labelweave.datasets import TableVectorizer
from labelweave.decisions.base import layers, ranking_offsets
from labelweave.decisions.layers import (
    guarantee_words,
    innermost,
    layer_words,
    with_probabilities,
)
from labelweave.estimators import TableModel


@pytest.fixture(scope="module")
def data(rows):
    X, Y, X_test, _ = rows
    return X, LabelMatrix(Y, None, [f"l{k}" for k in range(Y.shape[1])]), X_test


@pytest.mark.parametrize(
    "model",
    [
        TunedThresholdClassifier(MaxMarginClassifier(), "macro_f1"),
        TunedThresholdClassifier(MaxMarginClassifier(threshold="macro_f1"), "macro_f1"),
        ConformalLabelClassifier(TunedThresholdClassifier(MaxMarginClassifier(), "macro_f1"), level=0.3),
    ],
)
def test_labels_are_ranked_by_scores_before_all_thresholds(data, model):
    X, Y, X_test = data
    model = model.fit(X, Y)
    inner = innermost(model)
    plain = inner.decision_function(X_test) + inner.thresholds_
    ranked = model.decision_function(X_test) + ranking_offsets(model)
    np.testing.assert_allclose(ranked - ranked.mean(axis=1)[:, None], plain - plain.mean(axis=1)[:, None])


def test_probabilities_are_ranked_as_they_are(data):
    X, Y, X_test = data
    inside = CalibratedLabelClassifier(MaxMarginClassifier(threshold="macro_f1"))
    model = TunedThresholdClassifier(inside, "macro_f1", response_method="predict_proba").fit(X, Y)
    ranked = model.decision_function(X_test) + ranking_offsets(model)
    np.testing.assert_array_equal(
        ranked.argmax(axis=1), model.estimator_.predict_proba(X_test).argmax(axis=1)
    )
    assert not ranking_offsets(model.estimator_).any()


def test_names_and_probabilities_come_from_inside(data):
    X, Y, _ = data
    model = ConformalLabelClassifier(CalibratedLabelClassifier(MaxMarginClassifier()), level=0.3).fit(X, Y)
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
    model = ConformalLabelClassifier(
        CalibratedLabelClassifier(MaxMarginClassifier()), guarantee="expectation"
    ).fit(X, Y)
    promise = guarantee_words(model)
    assert promise.startswith("for rows like the 150 calibration rows the expected share of a row's true")
    assert promise.endswith("is at most 0.1, on average over draws of the calibration rows")
    assert guarantee_words(model.estimator_) is None
    assert "label sets more probable than 1/2" in layer_words(model.estimator_)[0][1]
    assert "label sets" not in layer_words(model)[1][1]
    top = TunedThresholdClassifier(MaxMarginClassifier(), "recall", target=0.5, scope="top_k").fit(X, Y)
    assert layer_words(top)[0][1].startswith(f"the {top.k_} best labels of every row, with recall 0.5")
    auto = CalibratedLabelClassifier(MaxMarginClassifier()).fit(X, Y)
    assert layer_words(auto)[0][1].startswith(
        ("probabilities by sigmoid maps, the better", "probabilities by isotonic maps, the better")
    )


@pytest.mark.parametrize("wrapper", [TunedThresholdClassifier, CalibratedLabelClassifier])
def test_the_best_labels_are_those_before_thresholds(data, wrapper):
    X, Y, X_test = data
    model = wrapper(MaxMarginClassifier()).fit(X, Y)
    labels, scores = model.predict_top(X_test, 3)
    ranked = model.decision_function(X_test) + ranking_offsets(model)
    np.testing.assert_array_equal(labels, np.argsort(-ranked, axis=1, kind="stable")[:, :3])
    np.testing.assert_array_equal(scores, np.take_along_axis(ranked, labels, axis=1))
    if wrapper is TunedThresholdClassifier:
        assert np.ptp(model.thresholds_) > 0
        np.testing.assert_array_equal(labels, innermost(model).predict_top(X_test, 3)[0])
    for k in (0, 9):
        with pytest.raises(ValueError, match=rf"k is {k}; .* the number of labels, 8"):
            model.predict_top(X_test, k)


def test_a_model_of_table_rows_finds_the_best_labels_around_a_wrapper():
    frame = pd.DataFrame({"text": ["a red rose", "a blue sea", "the rose", "blue ink"] * 10})
    vectorizer = TableVectorizer(text="text").fit(frame)
    flower = np.array([[1, 0], [0, 1], [1, 0], [0, 1]] * 10)
    tuned = TunedThresholdClassifier(MaxMarginClassifier()).fit(vectorizer.transform(frame), flower)
    labels, scores = TableModel.of_fitted(vectorizer, tuned).predict_top(frame, 1)
    np.testing.assert_array_equal(labels[:, 0], 1 - flower[:, 0])
    assert scores.shape == (40, 1)
