"""Comparisons on partitions are those of all rows at once."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import KFold

import labelweave as lw
import partitioned


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 8))
    Y = (X @ random.normal(size=(8, 4)) + random.normal(size=(90, 4)) > 0).astype(float)
    Y[::4, 2] = np.nan
    return X, Y


chunks = partial(partitioned.chunks, sizes=(30, 0, 40, 20))


def require_equal(found, expected):
    assert found.models == expected.models
    assert found.reference == expected.reference
    assert found.test_share == expected.test_share
    assert [name for name in expected.metrics if name != "auc_label"] == found.metrics
    for model, metrics in found.values.items():
        for name in found.metrics[:-3]:
            assert metrics[name] == pytest.approx(expected.values[model][name], rel=1e-9, nan_ok=True), name


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


@pytest.mark.parametrize("kind", [lw.MaxMarginClassifier, lw.KernelLogisticClassifier])
def test_classes_are_compared_as_in_memory(client, table, kind):
    X, _ = table
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = kind(kernel="linear")
    require_equal(lw.compare(model, chunks(X), chunks(y), KFold(2)), lw.compare(model, X, y, KFold(2)))


@pytest.mark.parametrize("of_classes", [False, True], ids=["labels", "classes"])
def test_the_one_call_is_compared_as_in_memory(client, table, of_classes):
    X, y = table
    if of_classes:
        y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    models = {"one call": lw.AutoLabelClassifier(members=["linear"]), "margins": lw.MaxMarginClassifier()}
    require_equal(lw.compare(models, chunks(X), chunks(y), 2), lw.compare(models, X, y, 2))


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


def test_what_makes_no_sense_is_refused(client, table):
    X, Y = map(chunks, table)
    with pytest.raises(ValueError, match="BinaryRelevance is fitted to data in memory"):
        lw.compare(lw.BinaryRelevance(), X, Y)
    with pytest.raises(ValueError, match="checkpoint keeps one fit"):
        lw.compare(lw.MaxMarginClassifier(checkpoint="somewhere"), X, Y)
    with pytest.raises(ValueError, match="reference is 'b'"):
        lw.compare({"a": lw.LowRankClassifier()}, X, Y, reference="b")
    y = np.where(table[0][:, 0] > 0, "a", "b").astype(object)
    y[40] = None
    with pytest.raises(ValueError, match="A row of y has no class"):
        lw.compare(lw.MaxMarginClassifier(), X, chunks(y), 2)
