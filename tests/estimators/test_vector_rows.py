"""Rows that are vectors, as in a column of embeddings, are read as a matrix by every estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import labelweave as lw
from labelweave.datasets import TableVectorizer

ROWS = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
TRUTH = pd.DataFrame((ROWS[:, :2] > 0).astype(int), columns=["red", "sea"])
SERIES = pd.Series(list(ROWS))
FRAME = SERIES.to_frame("emb")
COLUMNS = {
    "series": SERIES,
    "series of lists": pd.Series(ROWS.tolist()),
    "frame": FRAME,
    "array": SERIES.to_numpy(),
    "array of one column": FRAME.to_numpy(),
    "list": list(ROWS),
    "pyarrow": pa.array(list(ROWS)),
    "pyarrow chunks": pa.chunked_array([pa.FixedSizeListArray.from_arrays(ROWS.ravel(), 4)]),
    "pyarrow table": pa.table({"emb": pa.array(list(ROWS))}),
    "polars": pl.Series(ROWS.tolist()),
    "polars arrays": pl.Series(list(ROWS), dtype=pl.Array(pl.Float32, 4)),
    "polars frame": pl.DataFrame({"emb": pl.Series(ROWS.tolist())}),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_vectors_are_rows(name):
    whole = lw.MaxMarginClassifier().fit(ROWS, TRUTH)
    model = lw.MaxMarginClassifier().fit(COLUMNS[name], TRUTH)
    np.testing.assert_allclose(
        model.decision_function(COLUMNS[name]), whole.decision_function(ROWS), rtol=1e-4
    )
    np.testing.assert_array_equal(model.predict(ROWS), model.predict(COLUMNS[name]))


MODELS = [
    lw.AutoLabelClassifier(time_budget=1e-3),
    lw.KernelLogisticClassifier(hyperparameters="fixed"),
    lw.LabelTextClassifier(lw.KernelLogisticClassifier(hyperparameters="fixed"), ["red", "sea"]),
    lw.TunedThresholdClassifier(lw.LowRankClassifier(rank=1), cv=2),
    make_pipeline(TableVectorizer(vectors="emb"), lw.LabelTreeClassifier()),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("X", [FRAME, SERIES], ids=["frame", "series"])
def test_every_model_takes_them(model, X):
    if X is FRAME or not hasattr(model, "steps"):
        assert model.fit(X, TRUTH).predict(X).shape == TRUTH.shape


@pytest.mark.parametrize("named", [{}, {"vectors": "emb", "text": "text"}, {"vectors": ["emb"]}], ids=str)
def test_models_of_tables_take_them_and_are_saved(named, reloaded):
    frame = FRAME.assign(text=["red sea", "blue"] * 20)
    model = lw.TableModel(lw.MaxMarginClassifier(), **named).fit(frame, TRUTH)
    assert model.columns_.vectors == ("emb",)
    again = reloaded(model)
    assert again.feature_names_.tolist()[-1] == "emb[3]"
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    with pytest.raises(
        ValueError, match=r"vector of length 3; it must be one of length 4, as in the training rows"
    ):
        again.predict(frame.assign(emb=list(ROWS[:, :3])))


def test_a_table_of_vectors_alone_is_the_matrix():
    model = lw.TableModel(lw.MaxMarginClassifier()).fit(FRAME, TRUTH)
    whole = lw.MaxMarginClassifier().fit(ROWS, TRUTH)
    np.testing.assert_array_equal(model.decision_function(FRAME), whole.decision_function(ROWS))
    assert model.vectorizer_.transform(FRAME).dtype == np.float32
