"""One class a row that is known by probabilities."""

import numpy as np
import pandas as pd
import pytest

from labelweave import KernelLogisticClassifier, LabelMatrix, MaxMarginClassifier
from labelweave.labels import ClassProbabilities

TREE = {"x": ["a", "b"], "y": ["c"]}
NAMES = ["a", "b", "c"]


def _data(n=24):
    random = np.random.default_rng(0)
    return random.normal(size=(n, 3)), random.dirichlet(np.full(3, 0.4), n)


def _exact(**options):
    return KernelLogisticClassifier(**{"hyperparameters": "fixed", "tol": 1e-11, "gamma": 0.2} | options)


def _repeated(X, P):
    """Give every row once a class, weighted by its probability: the same loss, with certain classes."""
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
    model = KernelLogisticClassifier(class_weight={"a": 2.0}, max_learning_iter=3).fit(X, y)
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


def test_names_are_sorted_and_what_reads_classes_finds_the_likeliest():
    y = ClassProbabilities([[0.2, 0.8], [np.nan, np.nan], [0.5, 0.5]], ["pear", "apple"])
    assert y.classes.tolist() == ["apple", "pear"]
    assert y.likeliest().tolist() == ["apple", None, "apple"]
    assert np.asarray(y[[2, 0]]).tolist() == ["apple", "apple"]
    assert (len(y), y.shape, y.observed.tolist()) == (3, (3,), [True, False, True])
    assert repr(y) == "ClassProbabilities(3 rows, 2 classes, 2 observed)"


@pytest.mark.parametrize(
    ("table", "classes", "words"),
    [
        ([[0.5, 0.4]], None, "row 0 sum to 0.9"),
        ([[1.0, 0.0], [1.5, -0.5]], None, "row 1, class 1 is -0.5"),
        ([[np.nan, 1.0]], None, "row 0, class 0 is nan"),
        ([[1.0]], None, "one class only"),
        ([[0.5, 0.5]], ["a"], r"shape \(1,\) but the probabilities have 2 columns"),
        ([[0.5, 0.5]], ["a", "a"], "'a' twice"),
        ([[0.5, 0.5]], ["a", 1], "mixes text and numbers"),
        ([0.5, 0.5], None, "shape"),
        ([["x", "y"]], None, "number"),
    ],
)
def test_what_is_no_distribution_is_refused(table, classes, words):
    with pytest.raises(ValueError, match=words):
        ClassProbabilities(table, classes)


def test_classes_that_are_no_leaves_are_refused():
    X, P = _data()
    with pytest.raises(ValueError, match="'x', which is no leaf of the taxonomy"):
        _exact(taxonomy=TREE).fit(X, ClassProbabilities(P, ["a", "x", "c"]))
    with pytest.raises(ValueError, match="no class that is observed"):
        _exact().fit(X, ClassProbabilities(np.full((24, 3), np.nan)))
