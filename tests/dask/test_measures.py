"""Measures on partitions are those of all rows at once."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import dask
import labelweave as lw
import partitioned
from labelweave import LowRankClassifier, MaxMarginClassifier, metrics
from labelweave.dask import score_table


def table(n=90, d=20, n_labels=6):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    Y = (X @ random.normal(size=(d, n_labels)) + 2 * random.normal(size=(n, n_labels)) > 1).astype(float)
    Y[::4, 2] = np.nan
    Y[7] = np.nan
    return X, Y, random.uniform(0, 2, n)


chunks = partial(partitioned.chunks, sizes=(30, 0, 40, 20))


@pytest.mark.parametrize("kind", [MaxMarginClassifier, LowRankClassifier])
def test_measures_of_labels_are_those_of_all_rows(client, monkeypatch, kind):
    monkeypatch.setattr("labelweave.dask.comparison._ENTRIES", 50)
    X, Y, weights = table()
    model = kind().fit(chunks(X), chunks(Y))
    found = score_table(model, chunks(X), chunks(Y), chunks(weights), k=(1, 3, 99))
    scores, predicted = model.decision_function(X), model.predict(X)
    expected = metrics.score_table(Y, scores, predicted, (1, 3, 99), sample_weight=weights)
    assert expected.pop("auc_label") > 0.5
    assert found == pytest.approx(expected, rel=1e-12)
    assert model.score(chunks(X), chunks(Y)) == pytest.approx(model.score(X, Y), rel=1e-12)


def test_rows_may_be_sparse_and_labels_probable(client):
    X, Y, _ = table()
    rows, P = sp.csr_array(X * (X > 0)), lw.LabelMatrix.from_probabilities(np.where(Y == 1, 0.8, Y))
    ends = [(0, 30), (30, 90)]
    parts = [[dask.delayed(part[a:b]) for a, b in ends] for part in (rows, P)]
    model = MaxMarginClassifier().fit(*parts)
    expected = metrics.score_table(P, model.decision_function(rows), model.predict(rows))
    del expected["auc_label"]
    assert score_table(model, *parts) == pytest.approx(expected, rel=1e-12)


def test_measures_of_classes(client):
    X, _, weights = table()
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = MaxMarginClassifier().fit(chunks(X), chunks(y))
    expected = model.score(X, y, weights)
    assert model.score(chunks(X), chunks(y), chunks(weights)) == pytest.approx(expected, rel=1e-12)
    some = np.where(np.arange(90) < 50, y, None)
    assert model.score(chunks(X), chunks(some)) == pytest.approx(model.score(X[:50], y[:50]))
    with pytest.raises(ValueError, match="one class a row; see score"):
        score_table(model, chunks(X), chunks(y))
    broken = [dask.delayed((X[:1], ValueError("a.svm at line 3: no number")))]
    with pytest.raises(ValueError, match=r"Partition 0: a\.svm at line 3: no number"):
        model.score(broken)


def test_what_makes_no_sense_is_refused_with_its_partition(client):
    X, Y, weights = table()
    model = MaxMarginClassifier().fit(chunks(X), chunks(Y))
    with pytest.raises(ValueError, match="Partition 2: Y at row 0"):
        model.score(chunks(X), chunks(np.where(np.arange(90)[:, None] >= 30, 7, Y)))
    with pytest.raises(ValueError, match="Partition 0: sample_weight is not one number from 0 on"):
        model.score(chunks(X), chunks(Y), chunks(weights - 3))
    with pytest.raises(ValueError, match="X has no rows"):
        model.score(chunks(X[:0], sizes=(0,)), chunks(Y[:0], sizes=(0,)))
    with pytest.raises(ValueError, match="which is not of partitions"):
        model.score(chunks(X), Y)


def test_columns_that_look_like_labels_here_and_like_classes_there_are_refused(client):
    X, y = table()[0], np.arange(90)[:, None] // 30
    with pytest.raises(ValueError, match=r"give one kind, classes in the shape \(n,\)"):
        MaxMarginClassifier().fit(chunks(X, sizes=(30, 30, 30)), chunks(y, sizes=(30, 30, 30)))
