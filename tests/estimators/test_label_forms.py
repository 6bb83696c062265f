"""Predictions come in the form that the training labels had, before and after a model file."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

import labelweave as lw
from labelweave import metrics
from labelweave.estimators.targets import has_many_labels, read_targets

X = np.random.default_rng(0).normal(size=(60, 3))
TABLE = (X > 0).astype(int)
NAMES = ["blue", "red", "sea"]
TAGS = [[name for name, has in zip(NAMES, row, strict=True) if has] for row in TABLE]
MODELS = {
    "max margin": lw.MaxMarginClassifier(C=100),
    "logistic": lw.KernelLogisticClassifier("linear", hyperparameters="fixed"),
    "low rank": lw.LowRankClassifier(rank=3),
    "graph": lw.LabelGraphClassifier("none", 1e-3),
    "tree": lw.LabelTreeClassifier(C=10, leaf_size=2, branching=2),
    "relevance": lw.BinaryRelevance(),
    "tuned": lw.TunedThresholdClassifier(lw.MaxMarginClassifier(C=100)),
}


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def _again(model, tmp_path):
    model.save(tmp_path / "m.lw")
    return lw.load(tmp_path / "m.lw")


@pytest.mark.parametrize("rows", [1, 60])
def test_a_series_comes_back_as_one(rows):
    frame = pd.DataFrame(X, index=[f"row {row}" for row in range(60)], columns=list("xyz"))
    tags = pd.Series(TAGS, index=frame.index)
    model = lw.MaxMarginClassifier(C=100).fit(frame, tags)
    predicted = model.predict(frame[:rows])
    assert isinstance(predicted, pd.Series)
    assert (predicted == tags[:rows]).mean() > 0.8


def test_columns_of_polars_and_pyarrow_come_back(tmp_path):
    for given, kind in [(pl.Series(TAGS), pl.Series), (pa.array(TAGS), pa.ListArray)]:
        model = lw.MaxMarginClassifier(C=100).fit(X, given)
        predicted = _again(model, tmp_path).predict(X)
        assert isinstance(predicted, kind)
        assert metrics.subset_accuracy(given, predicted) > 0.8


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


def test_columns_that_are_told_apart_by_type_alone_are_refused():
    with pytest.raises(ValueError, match="'1' occurs more than once"):
        lw.MaxMarginClassifier().fit(X, pd.DataFrame(TABLE, columns=[1, "1", 2]))


def test_later_columns_join_the_earlier_ones():
    Y = pd.DataFrame(TABLE, columns=[3, 1, 2])
    model = lw.MaxMarginClassifier(C=100, warm_start=True).fit(X, Y[[3, 1]])
    model.partial_fit(X, Y[[2, 1]])
    assert (model.predict(X) == Y).to_numpy().mean() > 0.9


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
@pytest.mark.parametrize("blank", [False, True])
def test_frames_of_other_libraries(model, make, blank, tmp_path):
    columns = {name: column.tolist() for name, column in zip(NAMES, TABLE.T, strict=True)}
    if blank:
        columns["red"][3] = None
    model.fit(X, make(columns))
    assert model.label_names_.tolist() == NAMES
    predicted = _again(model, tmp_path).predict(X)
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
    model = MODELS["max margin"].fit(X, names)
    known = np.arange(60) % 2 > 0
    expected = model.score(X[known], names[known])
    assert model.score(X, np.where(known, names, None)) == expected
    assert model.score(X, np.ma.array(names, mask=~known)) == expected
    assert model.score(X, np.where(known, names, None)[:, None], np.ones(60)) == expected
    with pytest.raises(ValueError, match="no observed class"):
        model.score(X, [None] * 60)
    with pytest.raises(ValueError, match="X has 60 rows but y has 9"):
        model.score(X, names[:9])
