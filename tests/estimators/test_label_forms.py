"""Predictions have the type of the training labels; rows that arrive in several calls."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

import labelweave as lw
from labelweave import ClassProbabilities, LabelMatrix, MaxMarginClassifier, metrics
from labelweave.estimators.seen_rows import SeenRows, carried_columns
from labelweave.features import FeatureMatrix
from labelweave.labels.targets import has_many_labels, read_targets

X = np.random.default_rng(0).normal(size=(60, 3))
TABLE = (X > 0).astype(int)
NAMES = ["blue", "red", "sea"]
TAGS = [[name for name, has in zip(NAMES, row, strict=True) if has] for row in TABLE]


def _again(model, tmp_path):
    model.save(tmp_path / "m.lw")
    return lw.load(tmp_path / "m.lw")


def test_tags_that_are_numbers_come_back_as_numbers(tmp_path):
    tags = [{7 + 3 * label for label in np.flatnonzero(row)} for row in TABLE]
    model = lw.MaxMarginClassifier(C=100).fit(X, tags)
    predicted = _again(model, tmp_path).predict(X)
    assert np.mean([set(row) == given for row, given in zip(predicted, tags, strict=True)]) > 0.8
    assert {type(tag) for row in predicted for tag in row} == {int}


COLUMNS = {
    "int": [3, 1, 2],
    "mixed": [3, "a", 2.5],
    "tuples": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["kind", None]),
    "named": pd.Index(["a", "b", "c"], name="label"),
    "category": pd.CategoricalIndex(["a", "b", "c"]),
    "dates": pd.date_range("2020-01-01", periods=3),
}


@pytest.mark.parametrize("columns", COLUMNS)
def test_columns_come_back_as_they_went_in(columns, tmp_path):
    Y = pd.DataFrame(TABLE, columns=COLUMNS[columns])
    model = lw.MaxMarginClassifier(C=100).fit(X, Y)
    predicted = model.predict(X)
    assert (predicted == Y).to_numpy().mean() > 0.9
    assert predicted.columns.names == Y.columns.names
    again = _again(model, tmp_path).predict(X)
    if columns == "dates":  # no model file holds dates: they come back as text
        assert again.columns.tolist() == [str(day) for day in Y.columns]
    else:
        pd.testing.assert_frame_equal(predicted, again)


def test_later_columns_join_the_earlier_ones():
    Y = pd.DataFrame(TABLE, columns=[3, 1, 2])
    model = lw.MaxMarginClassifier(C=100, warm_start=True).fit(X, Y[[3, 1]])
    model.partial_fit(X, Y[[2, 1]])
    assert (model.predict(X) == Y).to_numpy().mean() > 0.9


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_frames_of_other_libraries_may_have_blanks(make, tmp_path):
    columns = {name: column.tolist() for name, column in zip(NAMES, TABLE.T, strict=True)}
    columns["red"][3] = None
    predicted = _again(lw.MaxMarginClassifier(C=100).fit(X, make(columns)), tmp_path).predict(X)
    assert type(predicted) is type(make(columns))
    assert metrics.hamming_loss(make(columns), predicted) < 0.1


def test_without_the_library_an_array_comes(monkeypatch):
    model = lw.MaxMarginClassifier(C=100).fit(X, pl.DataFrame(TABLE, schema=NAMES))
    tags = lw.MaxMarginClassifier(C=100).fit(X, pl.Series(TAGS))
    monkeypatch.delitem(__import__("sys").modules, "polars")
    assert isinstance(model.predict(X), np.ndarray)
    assert tags.predict(X).shape == (60,)


def test_rows_of_which_nothing_is_known():
    model = lw.MaxMarginClassifier(C=100).fit(X, [None, *TAGS[1:]])
    reference = lw.MaxMarginClassifier(C=100).fit(X, np.vstack([[np.nan] * 3, TABLE[1:]]))
    np.testing.assert_array_equal(model.decision_function(X), reference.decision_function(X))


def test_one_row_and_one_tag():
    model = lw.MaxMarginClassifier().fit(X[:1], [["red"]])
    assert model.predict(X[:1]).tolist() == [["red"]]
    with pytest.raises(ValueError, match="Y has no labels"):
        lw.MaxMarginClassifier().fit(X[:1], pd.Series([[]]))


@pytest.mark.filterwarnings("ignore:1 label unknown to the model")
def test_searches_over_lists_of_tags():
    rare = [[*row, "once"] if number == 5 else row for number, row in enumerate(TAGS)]
    search = GridSearchCV(
        lw.MaxMarginClassifier(), {"C": [0.01, 100]}, scoring=metrics.get_scorer("micro_f1"), cv=KFold(3)
    ).fit(X, rare)
    assert search.best_score_ > 0.8
    ranking = GridSearchCV(
        lw.MaxMarginClassifier(), {"C": [100]}, scoring=metrics.get_scorer("average_auc"), cv=KFold(3)
    ).fit(X, pd.Series(rare))
    assert ranking.best_score_ > 0.9
    predicted = cross_val_predict(lw.MaxMarginClassifier(C=100), X, rare, cv=KFold(3))
    assert metrics.f1_score(rare, predicted) > 0.8


def test_decisions_and_comparisons_of_lists():
    forest = OneVsRestClassifier(LogisticRegression())
    tuned = lw.TunedThresholdClassifier(forest, cv=3).fit(X, TAGS)
    assert metrics.f1_score(TAGS, tuned.predict(X)) > 0.9
    compared = lw.compare({"forest": forest, "margin": lw.MaxMarginClassifier(C=100)}, X, TAGS, cv=3)
    assert "margin" in str(compared)


def test_a_label_matrix_goes_through_a_search():
    labels = lw.LabelMatrix(sp.csr_array(TABLE), None, NAMES)
    search = GridSearchCV(
        lw.MaxMarginClassifier(), {"C": [100]}, scoring=metrics.get_scorer("micro_f1"), cv=KFold(3)
    ).fit(X, labels)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("blank", [None, np.nan])
def test_a_column_of_a_label_may_have_blanks(blank):
    labels, form = read_targets([[1], [blank], [0], [1]])
    assert form.kind == "labels"
    np.testing.assert_array_equal(labels.to_dense(), [[1], [np.nan], [0], [1]])
    assert not has_many_labels(np.array([["a"], [blank], ["b"]], object))


def test_rows_of_unknown_class_do_not_count_in_scores():
    names = np.array(["a", "b", "c"])[TABLE[:, 0] + TABLE[:, 1]]
    model = lw.MaxMarginClassifier(C=100).fit(X, names)
    known = np.arange(60) % 2 > 0
    expected = model.score(X[known], names[known])
    assert model.score(X, np.where(known, names, None)) == expected
    assert model.score(X, np.ma.array(names, mask=~known)) == expected
    assert model.score(X, np.where(known, names, None)[:, None], np.ones(60)) == expected
    with pytest.raises(ValueError, match="no observed class"):
        model.score(X, [None] * 60)
    with pytest.raises(ValueError, match="X has 60 rows but y has 9"):
        model.score(X, names[:9])


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
    assert labels.observed is None  # nothing of size rows times labels is stored
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


def test_masked_classes_are_unknown_and_probabilities_refused():
    y = np.ma.array(["a", "b", "b", "a"], mask=[True, False, False, False])
    labels, form = seen(y).targets()
    np.testing.assert_array_equal(labels.to_dense()[:, 0], [NAN, 1, 1, 0])
    assert form.classes.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="probabilities, which partial_fit does not keep"):
        seen(ClassProbabilities(np.eye(2)))


def test_classes_go_on_from_a_fit_with_warm_start():
    X, y = np.arange(12.0).reshape(6, 2), np.array(["a", "a", "b", "b", "c", "c"])
    model = MaxMarginClassifier(warm_start=True).fit(X[:4], y[:4]).partial_fit(X[4:], y[4:])
    np.testing.assert_array_equal(model._seen.labels, y)
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_columns_without_a_negative_are_told_of():
    y = pd.DataFrame({"a": [1, None, 1, None], "b": [1, 1, None, 1]})
    with pytest.warns(UserWarning, match=r"In Y 2 of 2 label columns .* 'a' \(2 and 2\).* y.fillna\(0\)"):
        lw.MaxMarginClassifier().fit(np.eye(4), y)
    lw.MaxMarginClassifier().fit(np.eye(4), lw.LabelMatrix.from_any(y))
    lw.MaxMarginClassifier().fit(np.eye(4), y.assign(b=[1, 0, None, 1]))  # of one column it may be chance
