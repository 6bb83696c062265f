"""What every model that takes Dask's collections makes of them: what it makes of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dask
import labelweave as lw
from dask import dataframe as dd
from drawn import draw_labels
from partitioned import chunks, partitions

X, Y = draw_labels(90, 12, 5, kept=0.5, above=0.7, missing=0.1)
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2, 90)
CLASSES = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
MODELS = {
    "margins": (lw.MaxMarginClassifier(C=0.1, tol=1e-6), 1e-2),
    "margins, rbf": (lw.MaxMarginClassifier(kernel="rbf", kernel_rank=30, gamma=0.1, tol=1e-6), 1e-2),
    "logistic": (lw.KernelLogisticClassifier("linear", hyperparameters="fixed"), 1e-4),
    "logistic, rbf": (lw.KernelLogisticClassifier(kernel_rank=40, gamma=0.1, hyperparameters="fixed"), 1e-4),
    "low rank": (lw.LowRankClassifier(3, tol=1e-8), 1e-3),
    "graph": (lw.LabelGraphClassifier("full", alpha=0.2, tol=1e-2), 1e-9),
    "tree": (lw.LabelTreeClassifier(leaf_size=2, branching=2), 0),
}
each = pytest.mark.parametrize("name", MODELS)


def parted(table):
    """Give a table in partitions, of which one has no rows; labels that are not written out in a list."""
    return (partitions if sp.issparse(table) else chunks)(table, sizes=(30, 0, 40, 20))


def both(name, rows, y, **weights):
    """Fit a model on the cluster and one in memory, and compare their scores."""
    made, atol = MODELS[name]
    there = clone(made).fit(parted(rows), parted(y), **{key: parted(one) for key, one in weights.items()})
    # of sparse rows, as dense ones in memory take other steps of low-rank models, in their principal axes
    here = clone(made).fit(sp.csr_array(rows) if name == "low rank" else rows, y, **weights)
    np.testing.assert_allclose(there.decision_function(rows), here.decision_function(rows), rtol=0, atol=atol)
    return there, here


@each
def test_labels_with_gaps_and_weights_of_rows(client, name, reloaded):
    there, _ = both(name, X, Y, sample_weight=WEIGHTS)
    rows = parted(X)
    np.testing.assert_allclose(there.decision_function(rows).compute(), there.decision_function(X), rtol=1e-9)
    np.testing.assert_array_equal(there.predict(rows).compute(), there.predict(X))
    if hasattr(there, "predict_proba"):
        np.testing.assert_allclose(there.predict_proba(rows).compute(), there.predict_proba(X), rtol=1e-9)
    assert there.score(rows, parted(Y)) == pytest.approx(there.score(X, Y))
    labels, _ = there.predict_top(rows, 2)
    np.testing.assert_array_equal(labels.compute(), there.predict_top(X, 2)[0])
    with pytest.raises(ValueError, match="the number of labels, 5"):
        there.predict_top(rows, 6)
    loaded = reloaded(there)
    assert type(loaded) is type(MODELS[name][0])
    np.testing.assert_array_equal(loaded.decision_function(X), there.decision_function(X))


@each
@pytest.mark.parametrize("classes", [["no", "yes"], [1, 5, 9]], ids=str)
def test_one_class_a_row(client, name, classes):
    y = np.asarray(classes)[X[:, : len(classes)].argmax(axis=1)]
    there, here = both(name, X, y, sample_weight=np.round(WEIGHTS))
    np.testing.assert_array_equal(there.classes_, here.classes_)
    assert np.mean(there.predict(parted(X)).compute() == here.predict(X)) > 0.98


@pytest.mark.parametrize("name", [name for name in MODELS if "logistic" not in name])
@pytest.mark.parametrize("kind", ["dense", "sparse", "classes"])
def test_weights_of_entries(client, name, kind):
    weights = np.random.default_rng(2).uniform(0, 2, Y.shape)
    if kind == "sparse":  # what is not stored is 1
        weights = sp.csr_array(np.where(weights > 1.5, weights, 0))
    if kind == "classes":
        both(name, X, CLASSES, entry_weight=weights[:, :3])
        with pytest.raises(ValueError, match="has 2 columns, but y has 3 classes"):
            clone(MODELS[name][0]).fit(parted(X), parted(CLASSES), entry_weight=parted(weights[:, :2]))
    else:
        both(name, X, Y, entry_weight=weights)


@each
def test_sparse_rows_and_the_same_bits(client, name):
    rows = sp.csr_array(X)
    there, _ = both(name, rows, Y)
    again = clone(MODELS[name][0]).fit(parted(rows), parted(Y))
    np.testing.assert_array_equal(again.decision_function(rows), there.decision_function(rows))
    found = dask.compute(*there.predict(parted(rows)))
    np.testing.assert_array_equal(np.concatenate(found), there.predict(rows))


@each
def test_frames_with_names_of_features_and_labels(client, name):
    rows, labels = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(Y).add_prefix("y")
    frames = [dd.from_pandas(one, npartitions=3, sort=False) for one in (rows, labels)]
    model = clone(MODELS[name][0]).fit(*frames)
    assert list(model.feature_names_in_) == list(rows.columns)
    assert list(model.classes_) == list(labels.columns)
    assert model.predict(frames[0]).compute().equals(model.predict(rows))


@each
def test_one_row_one_label_and_a_label_that_nobody_has(client, name):
    labels = np.nan_to_num(Y)
    labels[:, 2] = 0
    model = clone(MODELS[name][0]).fit(parted(X), parted(labels))
    assert not model.predict(X)[:, 2].any()
    one = clone(MODELS[name][0]).fit(chunks(X[:1], sizes=(1,)), chunks(labels[:1, :1], sizes=(1,)))
    assert one.predict(X[:2]).shape == (2, 1)
