"""Measures on partitions are those of all rows at once."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import dask
import labelweave as lw
import partitioned
from labelweave.dask import LowRankClassifier, MaxMarginClassifier
from labelweave.metrics import score_table


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
    monkeypatch.setattr("labelweave.dask.measures._ENTRIES", 50)
    X, Y, weights = table()
    model = kind(client).fit(chunks(X), chunks(Y))
    local = model.to_local()
    found = model.score_table(chunks(X), chunks(Y), chunks(weights), k=(1, 3, 99))
    expected = score_table(Y, local.decision_function(X), local.predict(X), (1, 3, 99), sample_weight=weights)
    assert expected.pop("auc_label") > 0.5
    assert found == pytest.approx(expected, rel=1e-12)
    assert model.score(chunks(X), chunks(Y)) == pytest.approx(local.score(X, Y), rel=1e-12)


def test_rows_may_be_sparse_and_labels_probable(client):
    X, Y, _ = table()
    rows, P = sp.csr_array(X * (X > 0)), lw.LabelMatrix.from_probabilities(np.where(Y == 1, 0.8, Y))
    ends = [(0, 30), (30, 90)]
    parts = [[dask.delayed(part[a:b]) for a, b in ends] for part in (rows, P)]
    model = MaxMarginClassifier(client).fit(*parts)
    local = model.to_local()
    expected = score_table(P, local.decision_function(rows), local.predict(rows))
    del expected["auc_label"]
    assert model.score_table(*parts) == pytest.approx(expected, rel=1e-12)


def test_measures_of_classes(client):
    X, _, weights = table()
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = MaxMarginClassifier(client).fit(chunks(X), chunks(y))
    expected = model.to_local().score(X, y, weights)
    assert model.score(chunks(X), chunks(y), chunks(weights)) == pytest.approx(expected, rel=1e-12)
    some = np.where(np.arange(90) < 50, y, None)
    assert model.score(chunks(X), chunks(some)) == pytest.approx(model.to_local().score(X[:50], y[:50]))
    with pytest.raises(ValueError, match="one class a row; see score"):
        model.score_table(chunks(X), chunks(y))
    broken = [dask.delayed((X[:1], ValueError("a.svm at line 3: no number")))]
    with pytest.raises(ValueError, match=r"Partition 0: a\.svm at line 3: no number"):
        model.score(broken)


def test_what_makes_no_sense_is_refused_with_its_partition(client):
    X, Y, weights = table()
    model = MaxMarginClassifier(client).fit(chunks(X), chunks(Y))
    with pytest.raises(ValueError, match="Partition 2: Y at row 0"):
        model.score(chunks(X), chunks(np.where(np.arange(90)[:, None] >= 30, 7, Y)))
    with pytest.raises(ValueError, match="Partition 0: sample_weight is not one number from 0 on"):
        model.score(chunks(X), chunks(Y), chunks(weights - 3))
    with pytest.raises(ValueError, match="X has no rows"):
        model.score(chunks(X[:0], sizes=(0,)), chunks(Y[:0], sizes=(0,)))
    with pytest.raises(ValueError, match="which is not of partitions"):
        model.score(X, Y)


def test_columns_that_look_like_labels_here_and_like_classes_there_are_refused(client):
    X, y = table()[0], np.arange(90)[:, None] // 30
    with pytest.raises(ValueError, match=r"give one kind, classes in the shape \(n,\)"):
        MaxMarginClassifier(client).fit(chunks(X, sizes=(30, 30, 30)), chunks(y, sizes=(30, 30, 30)))
