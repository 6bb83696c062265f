"""The label-graph classifier on Dask's collections has the optimum of the ordinary one, and its bits."""

from functools import partial

import numpy as np
import pytest

import labelweave as lw
import partitioned
from labelweave import CalibratedLabelClassifier, GraphGrowth, LabelGraphClassifier, compare

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 6))
Y = (X @ RANDOM.normal(size=(6, 5)) + RANDOM.normal(size=(90, 5)) > 0).astype(float)
Y[:, 2] = Y[:, 0] != Y[:, 1]
MISSING = np.where(RANDOM.random(Y.shape) < 0.1, np.nan, Y)
MISSING[[5, 50]] = np.nan


chunks = partial(partitioned.chunks, sizes=(40, 20, 30))


GIVEN = {"tol": 1e-2, "alpha": 0.2}
CASES = {
    "learned": ({"graph": GraphGrowth(max_rounds=2), **GIVEN}, Y),
    "measured": (
        {
            "graph": GraphGrowth(max_rounds=2, early_stopping=True, refit=True, validation_fraction=0.3),
            **GIVEN,
        },
        Y,
    ),
    "missing": ({"graph": "chow-liu", "fit_intercept": False, **GIVEN}, MISSING),
    "label sets": ({"graph": GraphGrowth(max_rounds=2, clique_size=3), "loss": "f1", **GIVEN}, MISSING),
    "classes weighted": ({"graph": "full", "class_weight": "balanced", **GIVEN}, Y),
}


@pytest.mark.parametrize("case", CASES)
def test_in_one_place_the_bits_are_those_in_memory(client, case):
    settings, labels = CASES[case]
    weights = np.arange(90) % 4 + 1.0
    model = LabelGraphClassifier(**settings).fit(chunks(X), chunks(labels), chunks(weights))
    whole = lw.LabelGraphClassifier(**settings).fit(X, labels, weights)
    for name in ("coef_", "clique_coef_", "intercept_", "thresholds_"):
        assert np.array_equal(getattr(model, name), getattr(whole, name))
    assert model.duality_gap_ == whole.duality_gap_
    assert model.label_graph_.cliques == whole.label_graph_.cliques
    assert np.array_equal(model.predict(chunks(X)).compute(), whole.predict(X))


@pytest.mark.parametrize(
    ("settings", "labels", "slow"),
    [
        ({"graph": GraphGrowth(max_rounds=2, graph_tol=0.0)}, Y, 1e-4),
        ({"graph": "chow-liu"}, MISSING, 1e-4),
        ({"graph": "full"}, Y, 0.0),  # all partitions find labelings at once
    ],
)
def test_apart_the_optimum_is_that_in_memory(client, apart, monkeypatch, settings, labels, slow):
    monkeypatch.setattr("labelweave.dask.graph_margin._SLOW", slow)
    settings = {**GIVEN, **settings}
    model = LabelGraphClassifier(**settings).fit(chunks(X), chunks(labels))
    whole = lw.LabelGraphClassifier(**settings | {"tol": 1e-4}).fit(X, labels)
    assert model.status_ == ("settled" if labels is MISSING else "converged")
    assert model.duality_gap_ <= 1e-2
    assert model.label_graph_.cliques == whole.label_graph_.cliques
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-2)


def test_it_is_decided_around_and_compared(client):
    inner = LabelGraphClassifier(graph="none", **GIVEN)
    calibrated = CalibratedLabelClassifier(inner, "sigmoid", cv=2).fit(chunks(X), chunks(Y))
    whole = lw.CalibratedLabelClassifier(lw.LabelGraphClassifier(graph="none", **GIVEN), "sigmoid", cv=2).fit(
        X, Y
    )
    assert np.allclose(calibrated.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)
    found = compare({"none": inner, "tree": inner.__sklearn_clone__()}, chunks(X), chunks(Y), cv=2)
    assert found.means()["none"]["micro_f1"] == found.means()["tree"]["micro_f1"]


def test_classes_and_weights_of_entries(client):
    y = np.array(list("abc"))[X[:, :3].argmax(axis=1)]
    model = LabelGraphClassifier(graph="full", **GIVEN).fit(chunks(X), chunks(y))
    whole = lw.LabelGraphClassifier(graph="full", **GIVEN).fit(X, y)
    assert np.array_equal(model.predict(chunks(X)).compute(), whole.predict(X))
    entries = RANDOM.uniform(0.5, 2, Y.shape)
    settings = {"graph": "none", "false_positive_cost": 2.0, **GIVEN}
    model = LabelGraphClassifier(**settings)
    model.fit(chunks(X), chunks(Y), entry_weight=chunks(entries))
    whole = lw.LabelGraphClassifier(**settings).fit(X, Y, entry_weight=entries)
    assert np.array_equal(model.coef_, whole.coef_)


def test_its_memory_is_that_of_the_configuration(client):
    with (
        lw.config_context(memory_budget=0.01),
        pytest.raises(ValueError, match=r"90 rows x 5 labels take 0 MB .* is 0\.01; raise it"),
    ):
        LabelGraphClassifier(graph="none").fit(chunks(X), chunks(Y))
