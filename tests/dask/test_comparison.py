"""Comparisons on partitions are those of all rows at once."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import KFold

import labelweave as lw
import labelweave.dask
import partitioned
from labelweave.dask import (
    AutoLabelClassifier,
    ConformalLabelClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    compare,
)


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
    on_cluster = {C: MaxMarginClassifier(client, C=C, tol=1e-6) for C in (0.01, 1.0)}
    local = {C: lw.MaxMarginClassifier(C=C, tol=1e-6) for C in (0.01, 1.0)}
    if tuned:
        on_cluster[1.0] = TunedThresholdClassifier(on_cluster[1.0])
        local[1.0] = lw.TunedThresholdClassifier(local[1.0])
    found = compare(
        on_cluster, chunks(X), chunks(Y), 2, reference="1.0", on_fit=lambda *one: fitted.append(one)
    )
    require_equal(found, lw.compare(local, X, Y, 2, reference="1.0"))
    assert fitted == [(name, fold) for name in ("0.01", "1.0") for fold in range(2)]


@pytest.mark.parametrize("kind", ["MaxMarginClassifier", "KernelLogisticClassifier"])
def test_classes_are_compared_as_in_memory(client, table, kind):
    X, _ = table
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = getattr(labelweave.dask, kind)(client, kernel="linear")
    local = getattr(lw, kind)(kernel="linear")
    require_equal(compare(model, chunks(X), chunks(y), KFold(2)), lw.compare(local, X, y, KFold(2)))


@pytest.mark.parametrize("of_classes", [False, True], ids=["labels", "classes"])
def test_the_one_call_is_compared_as_in_memory(client, table, of_classes):
    X, y = table
    if of_classes:
        y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    found, expected = (
        {"one call": kind(*first, members=["linear"]), "margins": other(*first)}
        for kind, other, first in (
            (AutoLabelClassifier, MaxMarginClassifier, (client,)),
            (lw.AutoLabelClassifier, lw.MaxMarginClassifier, ()),
        )
    )
    require_equal(compare(found, chunks(X), chunks(y), 2), lw.compare(expected, X, y, 2))


def test_sets_of_classes_are_compared_as_in_memory(client, table):
    X = table[0]
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    given = {"level": 0.3, "guarantee": "expectation"}
    found = ConformalLabelClassifier(MaxMarginClassifier(client), **given)
    expected = lw.compare(lw.ConformalLabelClassifier(lw.MaxMarginClassifier(), **given), X, y, KFold(2))
    assert expected.metrics[:2] == ["coverage", "set_size"]
    require_equal(compare(found, chunks(X), chunks(y), KFold(2)), expected)
    model = found.fit(chunks(X), chunks(y))
    assert model.score(chunks(X), chunks(y)) == pytest.approx(model.to_local().score(X, y))
    unknown = np.where(np.arange(90) % 5 == 0, None, y)
    assert model.score(chunks(X), chunks(unknown)) == pytest.approx(model.to_local().score(X, unknown))


def test_what_makes_no_sense_is_refused(client, table):
    X, Y = map(chunks, table)
    with pytest.raises(ValueError, match=r"for data in memory; give models of labelweave\.dask"):
        compare(lw.MaxMarginClassifier(), X, Y)
    with pytest.raises(ValueError, match="checkpoint keeps one fit"):
        compare(MaxMarginClassifier(client, checkpoint="somewhere"), X, Y)
    with pytest.raises(ValueError, match="reference is 'b'"):
        compare({"a": LowRankClassifier(client)}, X, Y, reference="b")
    y = np.where(table[0][:, 0] > 0, "a", "b").astype(object)
    y[40] = None
    with pytest.raises(ValueError, match="A row of y has no class"):
        compare(MaxMarginClassifier(client), X, chunks(y), 2)
