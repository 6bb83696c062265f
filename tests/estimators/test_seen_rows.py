"""Rows that come call by call."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave import MaxMarginClassifier
from labelweave.estimators.seen_rows import SeenRows, carried_columns
from labelweave.features import FeatureMatrix
from labelweave.labels import ClassProbabilities, LabelMatrix

NAN = np.nan


def seen(y, X=None, weights=None):
    n = y.shape[0] if hasattr(y, "shape") else len(y)
    X = np.arange(2.0 * n).reshape(n, 2) if X is None else X
    return SeenRows.read(FeatureMatrix(X), y, np.ones(n) if weights is None else weights)


def test_rows_join():
    first = seen(np.array([[1, 0], [0, 1]]), weights=np.array([1.0, 2.0]))
    both = first.joined(seen(np.array([[1, 1]]), X=sp.csr_array([[5.0, 0.0]]), weights=np.array([3.0])))
    np.testing.assert_array_equal(both.features.data, [[0, 1], [2, 3], [5, 0]])
    np.testing.assert_array_equal(both.weights, [1, 2, 3])
    labels, form = both.targets()
    assert labels.observed is None  # nothing of rows times labels is stored
    np.testing.assert_array_equal(labels.to_dense(), [[1, 0], [0, 1], [1, 1]])
    assert (form.container, form.negative, form.classes.tolist()) == ("array", 0, [0, 1])


def test_sparse_rows_stay_sparse():
    first = seen(np.array([[1, 0]]), X=sp.csr_array([[1.0, 0.0]]))
    assert first.joined(seen(np.array([[0, 1]]))).features.is_sparse


def test_labels_without_names_go_by_place_and_a_wider_y_appends():
    first = seen(np.array([[1, -1], [-1, NAN]]))
    both = first.joined(seen(np.array([[1, 0, 1]])))
    np.testing.assert_array_equal(both.labels.to_dense(), [[1, 0, NAN], [0, NAN, NAN], [1, 0, 1]])
    assert both.form.negative == -1
    narrow = both.joined(seen(np.array([[0]])))
    np.testing.assert_array_equal(narrow.labels.to_dense()[-1], [0, NAN, NAN])
    assert narrow.targets()[1].classes.tolist() == [0, 1, 2]


def test_labels_with_names_go_by_name():
    first = seen(pd.DataFrame({"a": [1, 0], "b": [0, 1]}))
    both = first.joined(seen(LabelMatrix.from_any(np.array([[1, 0]]), names=["c", "a"])))
    np.testing.assert_array_equal(both.labels.to_dense(), [[1, 0, NAN], [0, 1, NAN], [0, NAN, 1]])
    assert both.form.classes.tolist() == ["a", "b", "c"]
    assert both.form.container == "frame"
    by_place = both.joined(seen(np.array([[0, 1, 1]])))
    np.testing.assert_array_equal(by_place.labels.to_dense()[-1], [0, 1, 1])


def test_a_later_call_may_hide_labels_but_the_first_one_must_show_each():
    first = seen(np.array([[1, NAN], [0, NAN]]))
    with pytest.raises(ValueError, match="Label 1 has no observed entry"):
        first.targets()
    both = first.joined(seen(np.array([[NAN, 1]])))
    np.testing.assert_array_equal(both.targets()[0].to_dense(), [[1, NAN], [0, NAN], [NAN, 1]])


def test_classes_are_those_of_all_rows():
    first = seen(["b", "b"])
    with pytest.raises(ValueError, match="one class only"):
        first.targets()
    two = first.joined(seen(["d"]))
    assert two.targets()[1].kind == "binary"
    four = two.joined(seen(["a", "c"])).joined(seen(["d"]))
    labels, form = four.targets()
    assert form.classes.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(labels.to_dense().argmax(axis=1), [1, 1, 3, 0, 2, 3])


def test_carried_columns():
    two, three = (seen(y).targets()[1] for y in (["b", "c"], ["b", "c", "d"]))
    four = seen(["a", "b", "c", "d"]).targets()[1]
    assert carried_columns(two, three) is None
    np.testing.assert_array_equal(carried_columns(three, four), [1, 2, 3])
    np.testing.assert_array_equal(carried_columns(two, two), [0])
    labels = seen(np.array([[1, 0]])).targets()[1]
    wider = seen(np.array([[1, 0, 1]])).targets()[1]
    np.testing.assert_array_equal(carried_columns(labels, wider), [0, 1])
    assert carried_columns(labels, four) is None


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        (np.array([[1, 0]]), ["a", "b"], "has one class a row, but had many labels"),
        (["a", "b"], np.array([[1, 0]]), "has many labels a row, but had one class"),
        (["a", "b"], [1, 2], "classes of type"),
        (np.array([[1, 0]]), pd.DataFrame({"a": [1]}), "the labels so far have none"),
        (pd.DataFrame({"a": [1]}), np.array([[1, 0]]), "name the new labels"),
    ],
)
def test_what_does_not_fit_is_refused(first, second, match):
    with pytest.raises(ValueError, match=match):
        seen(first).joined(seen(second))


def test_other_features_are_refused():
    with pytest.raises(ValueError, match="X has 3 features, but had 2"):
        seen([0, 1]).joined(seen([0, 1], X=np.ones((2, 3))))
    with pytest.raises(ValueError, match="X has 1 rows but y has 2"):
        seen([0, 1], X=np.ones((1, 3)))


def test_masked_classes_are_unknown_and_probabilities_refused():
    y = np.ma.array(["a", "b", "b", "a"], mask=[True, False, False, False])
    labels, form = seen(y).targets()
    np.testing.assert_array_equal(labels.to_dense()[:, 0], [NAN, 1, 1, 0])
    assert form.classes.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="probabilities of classes, which partial_fit does not keep"):
        seen(ClassProbabilities(np.eye(2)))


def test_classes_go_on_from_a_fit_with_warm_start():
    X, y = np.arange(12.0).reshape(6, 2), np.array(["a", "a", "b", "b", "c", "c"])
    model = MaxMarginClassifier(warm_start=True).fit(X[:4], y[:4]).partial_fit(X[4:], y[4:])
    np.testing.assert_array_equal(model._seen.labels, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
