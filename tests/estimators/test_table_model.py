"""Frames with text, categories and numbers go into ``fit``, and the model into one file."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import labelweave as lw
from labelweave import metrics
from labelweave.datasets import TableVectorizer

WORDS = {"bug": "the printer crashes again", "billing": "my invoice is wrong", "urgent": "help now please"}
SHOWN = np.random.default_rng(0).random((40, 3)) < 0.5
TAGS = [[name for name, shown in zip(WORDS, row, strict=True) if shown] for row in SHOWN]
FRAME = pd.DataFrame(
    {
        "title": [" ".join(WORDS[tag] for tag in tags) + f" ticket {row}" for row, tags in enumerate(TAGS)],
        "channel": pd.Categorical(np.where(SHOWN[:, 2], "phone", "mail")),
        "size": np.where(SHOWN[:, 0], 3.5, 1.0),
        "customer": [f"customer {row} of many" for row in range(40)],
    },
    index=[f"ticket {row}" for row in range(40)],
)


def _model(**settings):
    return lw.TableModel(lw.MaxMarginClassifier(C=10), text="title", categorical="channel", **settings)


def test_a_frame_is_fitted_saved_and_loaded(reloaded):
    model = _model(numeric=["size"], ngram_range=(1, 2)).fit(FRAME, pd.Series(TAGS, index=FRAME.index))
    predicted = model.predict(FRAME)
    assert metrics.f1_score(TAGS, predicted) > 0.95
    assert predicted.index.equals(FRAME.index)
    assert model.score(FRAME, TAGS) > 0.9
    assert model.feature_names_in_.tolist() == ["title", "channel", "size"]
    assert "title:my invoice" in model.feature_names_
    assert model.label_names_.tolist() == ["billing", "bug", "urgent"]
    assert not hasattr(model, "predict_proba")
    again = reloaded(model)
    pd.testing.assert_series_equal(again.predict(FRAME), predicted)
    np.testing.assert_array_equal(again.predict_top(FRAME[:1], 2)[1], model.predict_top(FRAME[:1], 2)[1])
    assert again.get_params()["ngram_range"] == (1, 2)
    refitted = clone(again).fit(FRAME, pd.Series(TAGS, index=FRAME.index))
    pd.testing.assert_series_equal(refitted.predict(FRAME), predicted)


def test_kinds_are_found_as_on_the_command_line():
    model = lw.TableModel(lw.MaxMarginClassifier(), drop="customer").fit(FRAME, TAGS)
    columns = model.columns_
    assert (columns.text, columns.categorical, columns.numeric) == (("title",), ("channel",), ("size",))
    assert model.predict(FRAME[["size", "title", "channel"]][:1]).shape == (1,)


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_frames_of_other_libraries_give_the_same(make):
    columns = {name: column.tolist() for name, column in FRAME.items()}
    model, other = (
        lw.TableModel(lw.MaxMarginClassifier(), drop="customer").fit(X, TAGS) for X in (FRAME, make(columns))
    )
    scores = model.decision_function(FRAME)
    np.testing.assert_array_equal(other.decision_function(make(columns)), scores)
    np.testing.assert_array_equal(model.decision_function(make(columns)), scores)


def test_it_is_an_estimator_of_scikit_learn():
    model = _model()
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    search = GridSearchCV(
        model, {"min_df": [1, 5], "classifier__C": [0.001, 10]}, scoring=metrics.get_scorer("micro_f1"),
        cv=KFold(3),
    ).fit(FRAME, TAGS)  # fmt: skip
    assert search.best_params_["classifier__C"] == 10
    assert search.best_score_ > 0.9
    weighted = _model().fit(FRAME, TAGS, sample_weight=np.r_[np.zeros(20), np.ones(20)])
    assert not np.array_equal(weighted.classifier_.coef_, search.best_estimator_.classifier_.coef_)


def test_what_decides_on_scores_may_be_inside_or_around(reloaded):
    inside = lw.TableModel(lw.CalibratedLabelClassifier(lw.MaxMarginClassifier()), text="title")
    around = lw.TunedThresholdClassifier(lw.TableModel(lw.MaxMarginClassifier(), text="title"))
    assert inside.fit(FRAME, TAGS).predict_proba(FRAME).shape == (40, 3)
    for model in (inside, around.fit(FRAME, TAGS)):
        again = reloaded(model)
        assert again.predict(FRAME).tolist() == model.predict(FRAME).tolist()


def test_one_class_a_row():
    names = np.where(SHOWN[:, 0], "bug", "other")
    model = lw.TableModel(lw.MaxMarginClassifier(), text="title", numeric="size").fit(FRAME, names)
    assert (model.predict(FRAME) == names).mean() > 0.9
    assert model.classes_.tolist() == ["bug", "other"]


def test_the_vectorizer_is_a_step_of_a_pipeline():
    pipeline = make_pipeline(TableVectorizer("title", ngram_range=(1, 2)), lw.MaxMarginClassifier(C=10))
    assert metrics.f1_score(TAGS, clone(pipeline).fit(FRAME, TAGS).predict(FRAME)) > 0.9
    vectorizer = TableVectorizer("title").set_params(text="customer", min_df=2)
    assert vectorizer.text == ("customer",)
    assert "min_df=2" in repr(vectorizer)


def test_one_row():
    frame = pd.DataFrame({"title": ["a word"]})
    model = lw.TableModel(lw.MaxMarginClassifier(), text="title").fit(frame, [["tag"]])
    assert model.predict(frame).tolist() == [["tag"]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_report_takes_it_with_lists_of_tags(make, tmp_path):
    columns = {name: column.tolist() for name, column in FRAME.items()}
    model = _model(numeric="size").fit(FRAME, TAGS)
    lw.report.write_report(model, make(columns), TAGS, tmp_path / "r.html")
    assert "billing" in (tmp_path / "r.html").read_text(encoding="utf-8")
