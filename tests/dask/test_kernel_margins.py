"""Kernels of max-margin models on Dask's collections: by the factor that the ordinary estimator makes."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import dask
import labelweave as lw
import partitioned
from labelweave import CalibratedLabelClassifier, MaxMarginClassifier

SIZES = (50, 20, 50)


def table(n=120, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)) * (random.random((n, 4)) < 0.8)
    Y = (np.tanh(X @ random.normal(size=(4, 3))) > 0.1).astype(float)
    Y[::5, 1] = np.nan
    return X, Y


chunks = partial(partitioned.chunks, sizes=SIZES)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf", "kernel_rank": 30},
        {"kernel": "rbf", "kernel_rank": 30, "class_weight": "balanced"},
        {"kernel": "laplacian", "kernel_rank": 120, "label_covariance": 0.5 + 0.5 * np.eye(3)},
        {"kernel": "poly", "C": 0.1},
        {"kernel": "cosine"},
    ],
    ids=["rbf", "classes weighted", "coupled", "poly", "cosine"],
)
def test_the_model_is_that_of_one_machine(client, settings, tmp_path):
    X, Y = table()
    settings = {"tol": 1e-5, **settings}
    model = MaxMarginClassifier(**settings).fit(chunks(X), chunks(Y))
    if settings["kernel"] == "poly":
        settings |= {"kernel_rank": 2000, "solver": "coordinate_ascent"}
    whole = lw.MaxMarginClassifier(**settings).fit(X, Y)
    assert type(model.scorer_) is type(whole.scorer_)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=0.02)
    assert model.trace_[-1].primal == pytest.approx(whole.trace_[-1].primal, rel=2e-5)
    assert model.duality_gap_ <= 1e-5
    model.save(tmp_path / "m.lw")
    loaded = lw.load(tmp_path / "m.lw")
    scores = [loaded.decision_function(part) for part in np.split(X, np.cumsum(SIZES)[:-1])]
    np.testing.assert_array_equal(model.decision_function(chunks(X)).compute(), np.concatenate(scores))
    if settings["kernel"] != "cosine":
        np.testing.assert_array_equal(model.support_, whole.support_)


def test_rows_that_travel_have_the_objective_of_one_machine(client, apart):
    X, Y = table()
    given = {"kernel": "rbf", "kernel_rank": 20, "C": 0.3, "tol": 0.02}
    parts = [dask.delayed(sp.csr_array(part)) for part in np.split(X, np.cumsum(SIZES)[:-1])]
    labels = [dask.delayed(part) for part in np.split(Y, np.cumsum(SIZES)[:-1])]
    first, second = (MaxMarginClassifier(**given).fit(parts, labels) for _ in range(2))
    np.testing.assert_array_equal(first.scorer_.dual_coef_, second.scorer_.dual_coef_)
    exact = lw.MaxMarginClassifier(**{**given, "tol": 1e-6}).fit(sp.csr_array(X), Y)
    least = exact.trace_[-1].primal
    assert first.duality_gap_ <= 0.02
    assert least * (1 - 1e-5) <= first.trace_[-1].primal <= least * 1.03
    np.testing.assert_array_equal(first.support_, exact.support_)


def test_decisions_go_around_it(client):
    X, Y = table()
    given = {"kernel": "rbf", "kernel_rank": 20, "solver": "coordinate_ascent", "tol": 1e-6}
    model = CalibratedLabelClassifier(MaxMarginClassifier(**given), cv=2).fit(chunks(X), chunks(Y))
    whole = lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(**given), cv=2).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kernel": "precomputed"}, "kernel='precomputed' is for data in memory"),
        ({"kernel": ["rbf", "linear"]}, "a list of kernels, which are for data in memory"),
        ({"kernel": "rbf", "label_mean": np.ones((3, 4))}, "label_mean is of weights of features"),
    ],
)
def test_what_cannot_be_is_refused(client, settings, said):
    X, Y = table()
    with pytest.raises(ValueError, match=said):
        MaxMarginClassifier(**settings).fit(chunks(X), chunks(Y))
