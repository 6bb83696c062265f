"""Columns of text, categories and numbers of Dask's frames become features as those of a frame in memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import dask
import labelweave as lw
from labelweave.dask import score_table

WORDS = np.array(["red", "green", "blue", "sea", "rose", "sky", "tree", "bird"])
LABELS = ["sea", "rose"]
MARGIN = {"C": 1.0, "tol": 1e-3}


def table(n=90, seed=0):
    """Return rows of text, categories and numbers, and the words that are labels."""
    random = np.random.default_rng(seed)
    text = [" ".join(random.choice(WORDS, 4)) for _ in range(n)]
    rows = {"text": text, "kind": random.choice(["a", "b"], n), "size": random.normal(3, 50, n)}
    labels = {name: [int(name in words.split()) for words in text] for name in LABELS}
    return pd.DataFrame(rows), pd.DataFrame(labels)


ROWS, TRUTH = table()
TAGS = pd.Series([[name for name in LABELS if of_row[name]] for of_row in TRUTH.to_dict("records")])


def parted(values, sizes=(30, 0, 40, 20)):
    ends = np.cumsum(sizes)
    return [
        dask.delayed(values.iloc[end - size : end]) for end, size in zip(ends, sizes, strict=True)
    ]  # fmt: skip


def frame(values, n=3):
    return dd.from_pandas(values, npartitions=n)


@pytest.mark.parametrize("named", [{"vectors": "emb"}, {"vectors": "emb", "text": "text"}], ids=str)
def test_vectors_of_partitions_are_those_of_the_whole_frame(client, named):
    vectors = [*np.random.default_rng(0).normal(size=(89, 3)).astype(np.float32), None]
    rows = ROWS.assign(emb=vectors)
    model = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), **named).fit(parted(rows), parted(TRUTH))
    whole = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), **named).fit(rows, TRUTH)
    np.testing.assert_allclose(
        model.vectorizer_.vector_blocks_[0].means, whole.vectorizer_.vector_blocks_[0].means
    )
    np.testing.assert_allclose(model.decision_function(rows), whole.decision_function(rows), atol=0.01)
    with pytest.raises(ValueError, match="vectors of 3 numbers in some rows and of 2 in others"):
        model.fit(parted(rows.assign(emb=[*vectors[:70], *([[1.0, 2.0]] * 20)])), parted(TRUTH))


@pytest.mark.parametrize("named", [{}, {"text": "text", "numeric": ["size"], "ngram_range": (1, 2)}])
def test_it_is_the_model_of_the_whole_frame(client, reloaded, named):
    model = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), **named).fit(frame(ROWS), frame(TRUTH))
    whole = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), **named).fit(ROWS, TRUTH)
    assert list(model.feature_names_) == list(whole.feature_names_)
    assert model.columns_ == whole.columns_
    assert np.allclose(
        model.vectorizer_.transform(ROWS).toarray(), whole.vectorizer_.transform(ROWS).toarray()
    )
    assert np.allclose(model.classifier_.coef_, whole.classifier_.coef_, atol=1e-3)
    predicted = model.predict(frame(ROWS))
    assert list(predicted.columns) == LABELS
    assert predicted.compute().equals(whole.predict(ROWS))
    assert np.allclose(
        model.decision_function(frame(ROWS)).compute(), whole.decision_function(ROWS), atol=1e-2
    )
    labels, _ = model.predict_top(frame(ROWS), k=1)
    assert (labels.compute() == whole.predict_top(ROWS, 1)[0]).all()
    assert model.score(frame(ROWS), frame(TRUTH)) == whole.score(ROWS, TRUTH)
    assert score_table(model, frame(ROWS), frame(TRUTH))["micro_f1"] > 0.95
    assert reloaded(model).predict(ROWS).equals(model.predict(ROWS))


@pytest.mark.parametrize("kind", ["delayed", "futures", "pairs", "polars", "arrow strings"])
def test_partitions_of_all_kinds(client, kind):
    X, Y = parted(ROWS), parted(TRUTH)
    if kind == "futures":
        X, Y = client.compute(X), client.compute(Y)
    elif kind == "pairs":
        X, Y = [dask.delayed((*pair,)) for pair in zip(X, Y, strict=True)], None
    elif kind == "polars":
        X = [dask.delayed(pl.from_pandas)(part) for part in X]
    elif kind == "arrow strings":
        X = [dask.delayed(part.astype({"text": "string[pyarrow]"})) for part in dask.compute(*X)]
    model = lw.TableModel(lw.MaxMarginClassifier(**MARGIN)).fit(X, Y)
    whole = lw.TableModel(lw.MaxMarginClassifier(**MARGIN)).fit(ROWS, TRUTH)
    if kind == "pairs":
        X = parted(ROWS)
    found = [part for part in client.gather(client.compute(model.predict(X))) if len(part)]
    assert (np.concatenate(found) == whole.predict(ROWS).to_numpy()).all()


def test_columns_of_the_same_files_have_the_same_partitions(client, tmp_path):
    rows = ROWS.assign(text=ROWS["text"] + " sky tree" * 9, **TRUTH)
    for number, part in enumerate(np.array_split(np.arange(len(rows)), 4)):
        rows.iloc[part].to_parquet(tmp_path / f"part-{number}.parquet")
    table = dd.read_parquet(tmp_path)
    narrow = table["sea"]
    assert len(narrow.to_delayed()) < table.npartitions  # Dask reads several files as one
    model = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), text="text", numeric="size")
    predicted = model.fit(table, narrow).predict(table)
    assert predicted.compute().shape == (90,)
    assert model.score(table, narrow) > 0.9
    plain = lw.MaxMarginClassifier(**MARGIN).fit(table[["size"]], table[LABELS])
    assert plain.predict(table[["size"]]).npartitions == table.npartitions


def test_targets_of_all_kinds(client):
    with dask.config.set({"dataframe.convert-string": False}):
        listed = frame(ROWS), frame(TAGS)
    tags = lw.TableModel(lw.CalibratedLabelClassifier(lw.MaxMarginClassifier())).fit(*listed)
    assert sorted(tags.classes_) == sorted(LABELS)
    assert list(tags.predict(listed[0]).compute()[0]) == TAGS[0]
    assert tags.predict_proba(listed[0]).compute().shape == (90, 2)
    one = lw.TableModel(lw.MaxMarginClassifier(), text="text").fit(frame(ROWS), frame(ROWS)["kind"])
    assert set(one.predict(frame(ROWS)).compute()) <= {"a", "b"}
    missing = TRUTH.astype(float).mask(np.random.default_rng(0).random(TRUTH.shape) < 0.3)
    model = lw.TableModel(lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed"), text="text")
    assert model.fit(frame(ROWS), frame(missing)).score(frame(ROWS), frame(missing)) > 0.9
    named_by_nobody = TRUTH.assign(none=0)
    never = (
        lw.TableModel(lw.MaxMarginClassifier()).fit(frame(ROWS), frame(named_by_nobody)).predict(frame(ROWS))
    )
    assert not never["none"].compute().any()


def test_one_call_on_a_frame(client):
    whole = lw.TableModel(lw.AutoLabelClassifier(members=["linear"])).fit(ROWS, TRUTH)
    model = lw.TableModel(lw.AutoLabelClassifier(members=["linear"])).fit(frame(ROWS), frame(TRUTH))
    assert np.allclose(model.predict_proba(frame(ROWS)).compute(), whole.predict_proba(ROWS), atol=1e-6)


def test_weights_of_rows(client):
    weights = np.r_[np.ones(45), np.zeros(45)]
    for given_weights in (
        da.from_array(weights, chunks=30),
        dd.from_pandas(pd.Series(weights), npartitions=3),
    ):
        model = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), text="text")
        model.fit(frame(ROWS), frame(TRUTH), given_weights)
        whole = lw.TableModel(lw.MaxMarginClassifier(**MARGIN), text="text").fit(ROWS, TRUTH, weights)
        assert np.allclose(model.classifier_.coef_, whole.classifier_.coef_, atol=1e-2)


def test_kinds_are_those_of_the_first_thousand_rows(client, monkeypatch):
    monkeypatch.setattr("labelweave.dask.table_model._ENOUGH", 31)
    rows = ROWS.assign(row_id=np.arange(len(ROWS)), late=[None] * 70 + ["x"] * 20)
    with pytest.warns(UserWarning, match="'row_id' look like identifiers") as caught:
        model = lw.TableModel(lw.MaxMarginClassifier()).fit(parted(rows), parted(TRUTH))
    assert len(caught) == 1
    assert model.columns_.drop == ("row_id", "late")  # of 70 rows in three partitions
    assert model.columns_.categorical == ("kind",)


def test_a_row_and_a_label(client):
    rows, truth = ROWS.iloc[:1], TRUTH.iloc[:1, :1]
    model = lw.TableModel(lw.LowRankClassifier(rank=1), text="text").fit(
        parted(rows, (1,)), parted(truth, (1,))
    )
    assert model.predict(rows).shape == (1, 1)


@settings(max_examples=8)
@given(cuts=st.lists(st.integers(0, 90), max_size=4), min_df=st.sampled_from([1, 3, 0.2]))
def test_partitions_do_not_matter(client, cuts, min_df):
    sizes = np.diff([0, *sorted(cuts), 90])
    settings_ = {"text": "text", "categorical": "kind", "numeric": "size", "min_df": min_df}
    model = lw.TableModel(lw.MaxMarginClassifier(C=0.01, tol=0.1), **settings_)
    found = model.fit(parted(ROWS, sizes), parted(TRUTH, sizes)).vectorizer_
    whole = lw.TableModel(lw.MaxMarginClassifier(C=0.01, tol=0.1), **settings_).fit(ROWS, TRUTH).vectorizer_
    assert list(found.get_feature_names_out()) == list(whole.get_feature_names_out())
    assert np.array_equal(found.text_vectorizers_[0].idf_, whole.text_vectorizers_[0].idf_)
    assert np.allclose([found.means_, found.scales_], [whole.means_, whole.scales_], rtol=1e-12)


def test_it_is_a_scikit_learn_estimator(client):
    model = lw.TableModel(lw.MaxMarginClassifier(C=2.0), text="text")
    assert clone(model).set_params(classifier__C=3.0).classifier.C == 3.0
    assert not hasattr(model, "predict_proba")
    assert hasattr(lw.TableModel(lw.KernelLogisticClassifier()), "predict_proba")
    with pytest.raises(AttributeError, match="vectorizer_"):
        _ = model.vectorizer_
