"""The label-tree classifier on Dask's collections has the bits of the ordinary one."""

import dask.array as da
import numpy as np
import pytest

import dask
import labelweave as lw
from labelweave import LabelTreeClassifier
from labelweave.datasets import make_text_like

CUTS = [slice(0, 60), slice(60, 80), slice(80, 150)]
DATA = make_text_like(150, 200, 20, random_state=0)


def parts(table):
    return [dask.delayed(table[rows]) for rows in CUTS]


def assert_same_trees(model, whole):
    for own, other in zip(model.scorer_.trees, whole.scorer_.trees, strict=True):
        assert np.array_equal(own.tree.targets, other.tree.targets)
        assert np.array_equal(own.values, other.values)
        assert np.array_equal(own.scales, other.scales)
        assert np.array_equal(own.intercepts, other.intercepts)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prune": "certified", "n_trees": 1, "flip_rates": "propensity"},
        {"negatives": "all", "loss": "hinge", "prune": "off", "tol": 1e-2},
    ],
)
def test_the_bits_are_those_of_one_machine(client, settings):
    settings = {"leaf_size": 3, "branching": 2, **settings}
    model = LabelTreeClassifier(**settings).fit(parts(DATA.X), parts(DATA.Y))
    whole = lw.LabelTreeClassifier(**settings).fit(DATA.X, DATA.Y)
    assert_same_trees(model, whole)
    assert model.duality_gap_ == whole.duality_gap_
    found = np.concatenate([part.compute() for part in model.predict_top(parts(DATA.X), 3)[0]])
    assert np.array_equal(found, whole.predict_top(DATA.X, 3)[0])
    assert model.score(parts(DATA.X), parts(DATA.Y)) == pytest.approx(whole.score(DATA.X, DATA.Y))


def test_classes_weights_and_missing_labels(client, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 5))
    y, weights = np.array(list("abc"))[X[:, :3].argmax(axis=1)], random.integers(0, 3, 150).astype(float)
    chunks = [rows.stop - rows.start for rows in CUTS]
    dX, dy, dw = (da.from_array(one, chunks=(chunks, *one.shape[1:])) for one in (X, y, weights))
    model = LabelTreeClassifier(leaf_size=2).fit(dX, dy, sample_weight=dw)
    whole = lw.LabelTreeClassifier(leaf_size=2).fit(X, y, sample_weight=weights)
    assert np.array_equal(model.predict(dX).compute(), whole.predict(X))
    Y = (X > 0.5).astype(float)
    Y[::3, 1] = np.nan
    entries = random.uniform(0.5, 2, Y.shape)
    dY, de = (da.from_array(one, chunks=(chunks, 5)) for one in (Y, entries))
    model = LabelTreeClassifier(leaf_size=2).fit(dX, dY, entry_weight=de)
    assert_same_trees(model, lw.LabelTreeClassifier(leaf_size=2).fit(X, Y, entry_weight=entries))
    lw.save(model, tmp_path / "model.lw")
    assert np.array_equal(lw.load(tmp_path / "model.lw").predict(X), model.predict(X))


def test_what_cannot_be_is_refused_in_a_sentence(client, monkeypatch):
    with pytest.raises(ValueError, match="fits the same labels more than once"):
        LabelTreeClassifier(n_trees=2, negatives="all").fit(parts(DATA.X), parts(DATA.Y))
    monkeypatch.setattr("labelweave.dask.label_tree.megabytes_of_workers", lambda client: [1e-3])
    with pytest.raises(ValueError, match="need all rows on each worker"):
        LabelTreeClassifier().fit(parts(DATA.X), parts(DATA.Y))
