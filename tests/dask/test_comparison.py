"""Comparisons and metrics on partitions are those of all rows at once."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

import dask
import labelweave as lw
import partitioned
from drawn import draw_labels
from labelweave import LowRankClassifier, MaxMarginClassifier, metrics
from labelweave.dask import score_table


@pytest.fixture(scope="module")
def table():
    X, Y = draw_labels(90, 8, above=0, missing=0.0)
    Y[::4, 2] = np.nan
    return X, Y


chunks = partial(partitioned.chunks, sizes=(30, 0, 40, 20))


def require_equal(found, expected):
    assert found.models == expected.models
    assert found.reference == expected.reference
    assert found.test_share == expected.test_share
    assert [name for name in expected.metrics if name != "auc_label"] == found.metrics
    for model, values in found.values.items():
        for name in found.metrics[:-3]:
            assert values[name] == pytest.approx(expected.values[model][name], rel=1e-9, nan_ok=True), name


@pytest.mark.parametrize("tuned", [False, True], ids=["scores", "thresholds"])
def test_labels_are_compared_as_in_memory(client, table, tuned):
    X, Y = table
    fitted = []
    models = {C: lw.MaxMarginClassifier(C=C, tol=1e-6) for C in (0.01, 1.0)}
    if tuned:
        models[1.0] = lw.TunedThresholdClassifier(models[1.0])
    found = lw.compare(
        models, chunks(X), chunks(Y), 2, reference="1.0", on_fit=lambda *one: fitted.append(one)
    )
    require_equal(found, lw.compare(models, X, Y, 2, reference="1.0"))
    assert fitted == [(name, fold) for name in ("0.01", "1.0") for fold in range(2)]


ONE_CALL = {"one call": lw.AutoLabelClassifier(members=["linear"]), "margins": lw.MaxMarginClassifier()}


@pytest.mark.parametrize(
    ("models", "cv", "of_classes"),
    [
        (lw.MaxMarginClassifier(kernel="linear"), KFold(2), True),
        (lw.KernelLogisticClassifier(kernel="linear"), KFold(2), True),
        (ONE_CALL, 2, False),
        (ONE_CALL, 2, True),
    ],
    ids=["margins", "log_loss", "one call", "one call of classes"],
)
def test_models_are_compared_as_in_memory(client, table, models, cv, of_classes):
    X, y = table
    if of_classes:
        y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    require_equal(lw.compare(models, chunks(X), chunks(y), cv), lw.compare(models, X, y, cv))


def test_sets_of_classes_are_compared_as_in_memory(client, table):
    X = table[0]
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    given = {"level": 0.3, "guarantee": "expectation"}
    model = lw.ConformalLabelClassifier(lw.MaxMarginClassifier(), **given)
    expected = lw.compare(model, X, y, KFold(2))
    assert expected.metrics[:2] == ["coverage", "set_size"]
    require_equal(lw.compare(model, chunks(X), chunks(y), KFold(2)), expected)
    model.fit(chunks(X), chunks(y))
    assert model.score(chunks(X), chunks(y)) == pytest.approx(model.score(X, y))
    unknown = np.where(np.arange(90) % 5 == 0, None, y)
    assert model.score(chunks(X), chunks(unknown)) == pytest.approx(model.score(X, unknown))


def rows_and_weights(n=90, d=20, n_labels=6):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    Y = (X @ random.normal(size=(d, n_labels)) + 2 * random.normal(size=(n, n_labels)) > 1).astype(float)
    Y[::4, 2] = np.nan
    Y[7] = np.nan
    return X, Y, random.uniform(0, 2, n)


@pytest.mark.parametrize("kind", [MaxMarginClassifier, LowRankClassifier])
def test_measures_of_labels_are_those_of_all_rows(client, monkeypatch, kind):
    monkeypatch.setattr("labelweave.dask.comparison._ENTRIES", 50)
    X, Y, weights = rows_and_weights()
    model = kind().fit(chunks(X), chunks(Y))
    found = score_table(model, chunks(X), chunks(Y), chunks(weights), k=(1, 3, 99))
    scores, predicted = model.decision_function(X), model.predict(X)
    expected = metrics.score_table(Y, scores, predicted, (1, 3, 99), sample_weight=weights)
    assert expected.pop("auc_label") > 0.5
    assert found == pytest.approx(expected, rel=1e-12)
    assert model.score(chunks(X), chunks(Y)) == pytest.approx(model.score(X, Y), rel=1e-12)


def test_rows_may_be_sparse_and_labels_probable(client):
    X, Y, _ = rows_and_weights()
    rows, P = sp.csr_array(X * (X > 0)), lw.LabelMatrix.from_probabilities(np.where(Y == 1, 0.8, Y))
    ends = [(0, 30), (30, 90)]
    parts = [[dask.delayed(part[a:b]) for a, b in ends] for part in (rows, P)]
    model = MaxMarginClassifier().fit(*parts)
    expected = metrics.score_table(P, model.decision_function(rows), model.predict(rows))
    del expected["auc_label"]
    assert score_table(model, *parts) == pytest.approx(expected, rel=1e-12)


def test_measures_of_classes(client):
    X, _, weights = rows_and_weights()
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = MaxMarginClassifier().fit(chunks(X), chunks(y))
    expected = model.score(X, y, weights)
    assert model.score(chunks(X), chunks(y), chunks(weights)) == pytest.approx(expected, rel=1e-12)
    some = np.where(np.arange(90) < 50, y, None)
    assert model.score(chunks(X), chunks(some)) == pytest.approx(model.score(X[:50], y[:50]))
    with pytest.raises(ValueError, match="one class per row; use score"):
        score_table(model, chunks(X), chunks(y))
    broken = [dask.delayed((X[:1], ValueError("a.svm at line 3: no number")))]
    with pytest.raises(ValueError, match=r"Partition 0: a\.svm at line 3: no number"):
        model.score(broken)
