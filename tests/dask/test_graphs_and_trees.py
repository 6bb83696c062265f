"""Label graphs and trees on Dask's collections have the optimum of the ordinary ones, and their bits."""

from functools import partial

import numpy as np
import pytest

import dask
import labelweave as lw
import partitioned
from labelweave.datasets import make_text_like

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 6))
Y = (X @ RANDOM.normal(size=(6, 5)) + RANDOM.normal(size=(90, 5)) > 0).astype(float)
Y[:, 2] = Y[:, 0] != Y[:, 1]
MISSING = np.where(RANDOM.random(Y.shape) < 0.1, np.nan, Y)
MISSING[[5, 50]] = np.nan


chunks = partial(partitioned.chunks, sizes=(40, 20, 30))


GIVEN = {"tol": 1e-2, "alpha": 0.2}
CASES = {
    "learned": ({"graph": lw.GraphGrowth(max_rounds=2), **GIVEN}, Y),
    "measured": (
        {
            "graph": lw.GraphGrowth(max_rounds=2, early_stopping=True, refit=True, validation_fraction=0.3),
            **GIVEN,
        },
        Y,
    ),
    "missing": ({"graph": "chow-liu", "fit_intercept": False, **GIVEN}, MISSING),
    "label sets": ({"graph": lw.GraphGrowth(max_rounds=2, clique_size=3), "loss": "f1", **GIVEN}, MISSING),
    "classes weighted": ({"graph": "full", "class_weight": "balanced", **GIVEN}, Y),
}


@pytest.mark.parametrize("case", CASES)
def test_in_one_place_the_bits_are_those_in_memory(client, case):
    settings, labels = CASES[case]
    weights = np.arange(90) % 4 + 1.0
    model = lw.LabelGraphClassifier(**settings).fit(chunks(X), chunks(labels), chunks(weights))
    whole = lw.LabelGraphClassifier(**settings).fit(X, labels, weights)
    for name in ("coef_", "clique_coef_", "intercept_", "thresholds_"):
        assert np.array_equal(getattr(model, name), getattr(whole, name))
    assert model.duality_gap_ == whole.duality_gap_
    assert model.label_graph_.cliques == whole.label_graph_.cliques
    assert np.array_equal(model.predict(chunks(X)).compute(), whole.predict(X))


@pytest.mark.parametrize(
    ("settings", "labels", "slow"),
    [
        ({"graph": lw.GraphGrowth(max_rounds=2, graph_tol=0.0)}, Y, 1e-4),
        ({"graph": "chow-liu"}, MISSING, 1e-4),
        ({"graph": "full"}, Y, 0.0),  # all partitions find labelings at once
    ],
)
def test_apart_the_optimum_is_that_in_memory(client, apart, monkeypatch, settings, labels, slow):
    monkeypatch.setattr("labelweave.dask.graph_margin._SLOW", slow)
    settings = {**GIVEN, **settings}
    model = lw.LabelGraphClassifier(**settings).fit(chunks(X), chunks(labels))
    whole = lw.LabelGraphClassifier(**settings | {"tol": 1e-4}).fit(X, labels)
    assert model.status_ == ("settled" if labels is MISSING else "converged")
    assert model.duality_gap_ <= 1e-2
    assert model.label_graph_.cliques == whole.label_graph_.cliques
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-2)


def test_it_is_decided_around_and_compared(client):
    inner = lw.LabelGraphClassifier(graph="none", **GIVEN)
    calibrated = lw.CalibratedLabelClassifier(inner, "sigmoid", cv=2).fit(chunks(X), chunks(Y))
    whole = lw.CalibratedLabelClassifier(lw.LabelGraphClassifier(graph="none", **GIVEN), "sigmoid", cv=2).fit(
        X, Y
    )
    assert np.allclose(calibrated.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)
    found = lw.compare({"none": inner, "tree": inner.__sklearn_clone__()}, chunks(X), chunks(Y), cv=2)
    assert found.means()["none"]["micro_f1"] == found.means()["tree"]["micro_f1"]


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
    model = lw.LabelTreeClassifier(**settings).fit(parts(DATA.X), parts(DATA.Y))
    whole = lw.LabelTreeClassifier(**settings).fit(DATA.X, DATA.Y)
    assert_same_trees(model, whole)
    assert model.duality_gap_ == whole.duality_gap_
    found = np.concatenate([part.compute() for part in model.predict_top(parts(DATA.X), 3)[0]])
    assert np.array_equal(found, whole.predict_top(DATA.X, 3)[0])
    assert model.score(parts(DATA.X), parts(DATA.Y)) == pytest.approx(whole.score(DATA.X, DATA.Y))


def test_what_cannot_be_is_refused_in_a_sentence(client, monkeypatch):
    monkeypatch.setattr("labelweave.dask.label_tree.megabytes_of_workers", lambda client: [1e-3])
    with pytest.raises(ValueError, match="need all rows on each worker"):
        lw.LabelTreeClassifier().fit(parts(DATA.X), parts(DATA.Y))
