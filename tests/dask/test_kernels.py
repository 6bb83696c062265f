"""Kernel models on Dask's collections equal the ordinary ones."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import dask
import labelweave as lw
import partitioned
from labelweave.dask.data import read
from labelweave.dask.features import PartitionedFeatures
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.gram import LowRankGram, choose_gram, incomplete_cholesky
from labelweave.features.gram.sources import kernel_source
from labelweave.foundation.arrays import Workers

SIZES = (50, 20, 50)
TREE = {"first": [0, 1], "second": [2]}


def table(n=120, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)) * (random.random((n, 4)) < 0.8)
    scores = np.tanh(X @ random.normal(size=(4, 3)))
    Y = (scores > 0.1).astype(float)
    Y[::5, 1] = np.nan
    return X, Y, scores.argmax(axis=1)


chunks = partial(partitioned.chunks, sizes=SIZES)


def sparse_chunks(X):
    return [dask.delayed(sp.csr_array(part)) for part in np.split(X, np.cumsum(SIZES)[:-1])]


@pytest.mark.parametrize(
    ("settings", "is_of_classes"),
    [
        ({"kernel": "linear"}, False),
        ({"kernel": "linear", "taxonomy": TREE, "decision": "least_expected_loss"}, True),
        ({"kernel": "cosine", "class_weight": "balanced"}, True),
        ({"kernel_rank": 30}, False),
        ({"kernel": "laplacian", "gamma": "scale", "kernel_rank": 120}, True),
        ({"kernel": "linear", "label_covariance": [[2, 1, 0], [1, 2, 0], [0, 0, 1]]}, False),
    ],
)
def test_the_model_is_that_of_one_machine(client, settings, is_of_classes):
    X, Y, classes = table()
    y = classes if is_of_classes else Y
    settings = {"hyperparameters": "fixed", **settings}
    model = lw.KernelLogisticClassifier(**settings).fit(chunks(X), chunks(y))
    whole = lw.KernelLogisticClassifier(**settings).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(model.thresholds_, whole.thresholds_, atol=1e-6)
    assert model.converged_
    assert np.array_equal(model.predict(chunks(X)).compute(), whole.predict(X))


def test_hyperparameters_are_learned_from_rows_that_are_brought_here(client):
    X, Y, _ = table()
    search = lw.HyperparameterSearch(max_learning_iter=3, learning_rows=60)
    settings = {"hyperparameters": search, "kernel_rank": 40}
    model = lw.KernelLogisticClassifier(**settings).fit(chunks(X), chunks(Y))
    whole = lw.KernelLogisticClassifier(**settings).fit(X, Y)
    assert model.hyperparameters_ == pytest.approx(whole.hyperparameters_, rel=1e-6)


def test_weights_of_features_take_the_place_of_rows_in_the_model_file(client, reloaded):
    X, Y, _ = table()
    mean = np.random.default_rng(0).normal(size=(3, 4))
    settings = {"kernel": "linear", "hyperparameters": "fixed", "label_mean": mean}
    model = lw.KernelLogisticClassifier(**settings).fit(chunks(X), chunks(Y))
    whole = lw.KernelLogisticClassifier(**settings).fit(X, Y)
    loaded = reloaded(model)
    assert loaded.coef_.shape == (3, 4)
    assert not hasattr(loaded, "support_")
    np.testing.assert_allclose(loaded.predict_proba(X), whole.predict_proba(X), atol=1e-7)
    wide = loaded.add_labels(["new"], label_mean=np.vstack([mean, mean[:1]]))
    np.testing.assert_allclose(wide.predict_proba(X)[:, :3], whole.predict_proba(X), atol=1e-7)
    old = whole.add_labels(["new"], label_mean=np.vstack([mean, mean[:1]]))
    np.testing.assert_allclose(wide.predict_proba(X)[:, 3], old.predict_proba(X)[:, 3], atol=1e-7)


def partitioned(client, X):
    parts = [(part, None, None, None) for part in sparse_chunks(X)]
    labels = [dask.delayed(np.ones((size, 1))) for size in SIZES]
    parts = [(rows, y, None, None) for (rows, *_), y in zip(parts, labels, strict=True)]
    return PartitionedFeatures(client, read(client, lw.MaxMarginClassifier(), parts))


@pytest.mark.parametrize("kernel", [RBFKernel(0.3), LinearKernel()])
def test_matrices_over_partitions_do_what_those_in_memory_do(client, kernel):
    X = table()[0]
    here, apart = FeatureMatrix(sp.csr_array(X)), partitioned(client, X)
    workers, random = Workers(1), np.random.default_rng(0)
    if kernel.explicit_features(here) is None:
        grams = [
            LowRankGram(
                incomplete_cholesky(kernel_source(kernel, rows), 25, workers), 0.5, np.float64, workers
            )
            for rows in (here, apart)
        ]
        assert np.array_equal(grams[0].active_rows, grams[1].active_rows)
        np.testing.assert_allclose(grams[0].triangle, grams[1].triangle, atol=1e-10)
    else:
        grams = [
            choose_gram(
                kernel_source(kernel, rows), kernel.explicit_features(rows), 3, 1e9, workers, constant=0.5
            )
            for rows in (here, apart)
        ]
    vectors, which = random.normal(size=(len(X), 3)), np.array([70, 3, 119, 51, 3])
    for of_gram in (
        lambda gram: gram.product(vectors),
        lambda gram: gram.columns(which),
        lambda gram: gram.block(which),
        lambda gram: gram.diagonal(),
    ):
        np.testing.assert_allclose(of_gram(grams[0]), of_gram(grams[1]), atol=1e-9)


@pytest.mark.parametrize("settings", [{"kernel_rank": 30}, {"kernel_rank": 30, "loss": "log_loss"}])
@pytest.mark.filterwarnings("ignore:The iteration limit")
def test_kernels_of_low_rank_models(client, settings):
    X, Y, _ = table()
    settings = {"rank": 3, "kernel": "rbf", "alpha": 1.0, "tol": 1e-12, "max_iter": 300, **settings}
    model = lw.LowRankClassifier(**settings).fit(chunks(X), chunks(Y))
    whole = lw.LowRankClassifier(**settings).fit(X, Y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-7)
    np.testing.assert_allclose(
        model.decision_function(chunks(X)).compute(), whole.decision_function(X), atol=1e-5
    )


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
def test_max_margin_models_are_those_of_one_machine(client, settings, reloaded):
    X, Y, _ = table()
    settings = {"tol": 1e-5, **settings}
    model = lw.MaxMarginClassifier(**settings).fit(chunks(X), chunks(Y))
    if settings["kernel"] == "poly":
        settings |= {"kernel_rank": 2000, "solver": "coordinate_ascent"}
    whole = lw.MaxMarginClassifier(**settings).fit(X, Y)
    assert type(model.scorer_) is type(whole.scorer_)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=0.02)
    assert model.trace_[-1].primal == pytest.approx(whole.trace_[-1].primal, rel=2e-5)
    assert model.duality_gap_ <= 1e-5
    loaded = reloaded(model)
    scores = [loaded.decision_function(part) for part in np.split(X, np.cumsum(SIZES)[:-1])]
    np.testing.assert_array_equal(model.decision_function(chunks(X)).compute(), np.concatenate(scores))
    if settings["kernel"] != "cosine":
        np.testing.assert_array_equal(model.support_, whole.support_)


def test_rows_that_travel_have_the_objective_of_one_machine(client, apart):
    X, Y, _ = table()
    given = {"kernel": "rbf", "kernel_rank": 20, "C": 0.3, "tol": 0.02}
    parts = [dask.delayed(sp.csr_array(part)) for part in np.split(X, np.cumsum(SIZES)[:-1])]
    labels = [dask.delayed(part) for part in np.split(Y, np.cumsum(SIZES)[:-1])]
    first, second = (lw.MaxMarginClassifier(**given).fit(parts, labels) for _ in range(2))
    np.testing.assert_array_equal(first.scorer_.dual_coef_, second.scorer_.dual_coef_)
    exact = lw.MaxMarginClassifier(**{**given, "tol": 1e-6}).fit(sp.csr_array(X), Y)
    least = exact.trace_[-1].primal
    assert first.duality_gap_ <= 0.02
    assert least * (1 - 1e-5) <= first.trace_[-1].primal <= least * 1.03
    np.testing.assert_array_equal(first.support_, exact.support_)


def test_decisions_go_around_it(client):
    X, Y, _ = table()
    given = {"kernel": "rbf", "kernel_rank": 20, "solver": "coordinate_ascent", "tol": 1e-6}
    model = lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(**given), cv=2).fit(chunks(X), chunks(Y))
    whole = lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(**given), cv=2).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-3)
