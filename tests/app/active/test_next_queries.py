import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import labelweave as lw
from labelweave.app.active import Queries
from refused import refusals

N_LABELS = 3

test_what_makes_no_sense_is_refused = refusals(__file__)


@pytest.fixture(scope="module")
def data():
    """Rows with a few known entries, the first six completely."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    Y = (X[:, :N_LABELS] + 0.3 * rng.normal(size=(30, N_LABELS)) > 0).astype(float)
    known = np.where(rng.random(Y.shape) < 0.2, Y, np.nan)
    known[:6] = Y[:6]
    return X, Y, known


@pytest.fixture(scope="module")
def fitted(data):
    X, _, known = data
    return lw.KernelLogisticClassifier(hyperparameters="fixed").fit(X, known)


def are_free(found, known):
    return np.isnan(known[found.rows, found.labels]).all()


@pytest.mark.parametrize("strategy", ["expected_error", "uncertainty", "random"])
def test_asks_for_what_is_unknown_and_once(data, fitted, strategy):
    X, _, known = data
    found = lw.suggest_queries(fitted, X, 20, known, strategy=strategy, random_state=3)
    assert isinstance(found, Queries)
    assert len(found) == 20 == len(set(zip(found.rows, found.labels, strict=True)))
    assert are_free(found, known)
    again = lw.suggest_queries(fitted, X, 20, known, strategy=strategy, random_state=3)
    assert (again.rows == found.rows).all()
    assert (again.labels == found.labels).all()
    np.testing.assert_allclose(found.probabilities, fitted.predict_proba(X)[found.rows, found.labels])


def test_gives_fewer_where_fewer_are_unknown(data, fitted):
    X, Y, known = data
    assert len(lw.suggest_queries(fitted, X, 1000, known)) == np.isnan(known).sum()
    assert len(lw.suggest_queries(fitted, X, 5, Y)) == 0
    assert list(lw.suggest_queries(fitted, X, 5, Y)) == []


def test_takes_models_without_probabilities(data):
    X, Y, known = data
    for model in (lw.MaxMarginClassifier(), lw.LowRankClassifier(rank=2)):
        assert are_free(lw.suggest_queries(model.fit(X, known), X, 4, known), known)
    svm = OneVsRestClassifier(LinearSVC()).fit(X, Y)
    assert len(lw.suggest_queries(svm, X, 4)) == 4


def test_takes_models_of_scikit_learn(data):
    X, Y, known = data
    for model in (
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(3, random_state=0),
    ):
        model.fit(X, Y.astype(int))
        for given in (None, known):
            assert len(lw.suggest_queries(model, X, 4, given)) == 4


def test_takes_sparse_rows_and_frames(data, fitted):
    X, _, known = data
    dense = lw.suggest_queries(fitted, X, 6, known)
    framed = lw.suggest_queries(fitted, pd.DataFrame(X), 6, pd.DataFrame(known))
    assert (dense.rows == framed.rows).all()
    model = lw.KernelLogisticClassifier(hyperparameters="fixed").fit(sp.csr_array(X), known)
    assert len(lw.suggest_queries(model, sp.csr_array(X), 6, known)) == 6


def test_takes_texts_and_tables():
    texts = ["red rose", "blue sea", "red sea", "a rose", "blue rose", "sea"]
    known = pd.DataFrame({"flower": [1, 0, np.nan, np.nan, np.nan, 0], "water": [0, 1, np.nan, 0, 0, np.nan]})
    piped = make_pipeline(TfidfVectorizer(), lw.MaxMarginClassifier()).fit(
        texts, lw.LabelMatrix.from_any(known)
    )
    found = lw.suggest_queries(piped, texts, 2, known)
    assert {name for _, name in found} <= {"flower", "water"}
    frame = pd.DataFrame({"text": texts})
    table = lw.TableModel(lw.MaxMarginClassifier(), text="text").fit(frame, known)
    assert len(lw.suggest_queries(table, frame, 9, known)) == 5


def test_names_are_matched_with_those_of_the_model(data):
    X, _, known = data
    frame = pd.DataFrame(known, columns=list("abc"))
    model = lw.KernelLogisticClassifier(hyperparameters="fixed").fit(X, frame)
    found = lw.suggest_queries(model, X, 10, frame)
    turned = lw.suggest_queries(model, X, 10, frame[list("cab")])
    assert list(found) == list(turned)
    some = lw.suggest_queries(model, X, 100, frame[["b"]])  # the others are unknown
    assert {name for _, name in some} == set("abc")


def test_asks_without_a_model(data):
    X, _, known = data
    found = lw.suggest_queries(None, X, 8, np.full_like(known, np.nan))
    assert len(set(found.rows)) == 3  # all labels of each, which look the same
    assert are_free(lw.suggest_queries(None, X, 8, known), known)


def test_a_cost_moves_queries_elsewhere(data, fitted):
    X, _, known = data
    found = lw.suggest_queries(fitted, X, 8, known, cost=[1.0, 1e9, 1.0])
    assert 1 not in found.labels
    named = [str(name) for name in fitted.classes_]
    turned = pd.Series([1.0, 1.0, 1e9], index=[named[2], named[0], named[1]])
    assert list(lw.suggest_queries(fitted, X, 8, known, cost=turned)) == list(found)
    rows = pd.DataFrame(np.ones(known.shape), columns=named).assign(**{named[1]: 1e9})
    assert list(lw.suggest_queries(fitted, X, 8, known, cost=rows[named[::-1]])) == list(found)
    whole = np.ones(known.shape)
    whole[found.rows[0], found.labels[0]] = 1e9
    moved = lw.suggest_queries(fitted, X, 8, known, cost=whole)
    assert (found.rows[0], found.labels[0]) not in set(zip(moved.rows, moved.labels, strict=True))


def test_one_row_one_label(data):
    X, Y, _ = data
    model = lw.KernelLogisticClassifier(hyperparameters="fixed").fit(X, Y[:, :1])
    assert list(lw.suggest_queries(model, X[:1], 3)) == [(0, "0")]
    one = LogisticRegression().fit(X, Y[:, 0])
    assert len(lw.suggest_queries(one, X, 3, np.full((30, 1), np.nan))) == 3


def test_a_batch_does_not_ask_twice_for_the_same_thing():
    """Among copies of a row, one is queried before any other copy."""
    X = np.repeat(np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.5], [0.5, -1.0]]), 5, axis=0)
    found = lw.suggest_queries(None, X, 4, np.full((20, 1), np.nan))
    assert sorted(row // 5 for row, _ in found) == [0, 1, 2, 3]


def test_labels_that_are_coupled_are_asked_about_in_turn():
    """For two labels with the same scores an answer informs both; for independent ones it does not."""
    X = np.eye(6)
    known = np.full((6, 2), np.nan)
    known[:2] = [[0, 0], [1, 1]]
    twin = lw.LabelCovariance.dense([[1.0, 0.95], [0.95, 1.0]])
    rows = {}
    for name, covariance in (("coupled", twin), ("apart", None)):
        model = lw.MaxMarginClassifier(label_covariance=covariance).fit(X, known)
        rows[name] = len(set(lw.suggest_queries(model, X, 4, known).rows.tolist()))
    assert rows == {"coupled": 4, "apart": 2} or rows["coupled"] > rows["apart"]


def test_looks_at_some_of_many_rows(data, fitted, monkeypatch):
    X, _, known = data
    monkeypatch.setattr("labelweave.app.active.pool._MOST_ENTRIES", 10 * N_LABELS)
    found = lw.suggest_queries(fitted, X, 100, known, cost=np.ones(known.shape))
    assert len(set(found.rows)) <= 10
    assert are_free(found, known)


def test_to_frame(data, fitted):
    X, _, known = data
    frame = lw.suggest_queries(fitted, X, 3, known).to_frame()
    assert list(frame) == ["row", "label", "probability", "gain", "informs"]
    assert frame.gain.is_monotonic_decreasing
