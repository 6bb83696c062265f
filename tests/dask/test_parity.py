"""Weights, corrections, draws and decisions on Dask's collections have the same effect as on one machine."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import labelweave as lw
from drawn import draw_labels
from labelweave import AutoLabelClassifier, LowRankClassifier, MaxMarginClassifier
from partitioned import chunks, partitions

MARGIN = {"C": 0.1, "tol": 1e-2}
RANK = {"rank": 3, "tol": 1e-8}


table = partial(draw_labels, n=90, d=30, n_labels=5, kept=0.4, above=0.7, missing=0.0)


def assert_same(model, whole, X):
    """Both are within the tolerance of one optimum."""
    assert model.status_ in ("converged", "settled")
    if isinstance(whole, lw.MaxMarginClassifier):
        assert model.trace_[-1].primal == pytest.approx(whole.trace_[-1].primal, rel=2 * MARGIN["tol"])
        # the objective has half the squares of weights, by label variances of at most 2
        squares = np.square(model.coef_ - whole.coef_).sum() / (2 * 2)
        assert squares <= MARGIN["tol"] * model.trace_[-1].primal
    else:
        assert model.objective_ == pytest.approx(whole.objective_, rel=1e-6)
        assert np.allclose(model.decision_function(X), whole.decision_function(X), atol=1e-3)


def pair(name, **more):
    """Make a classifier for the cluster, and one for memory that is fitted to the optimum."""
    if name == "one-call":
        return tuple(AutoLabelClassifier(members=["linear"]) for _ in range(2))
    if name == "max-margin":
        return MaxMarginClassifier(**MARGIN | more), MaxMarginClassifier(**MARGIN | {"tol": 1e-5} | more)
    return tuple(LowRankClassifier(**RANK | more) for _ in range(2))


CASES = {
    "rates": {"flip_rates": (0.2, 0.0)},
    "propensity": {"flip_rates": "propensity", "class_weight": "balanced"},
    "mean": {"label_mean": 0.3 * np.random.default_rng(1).normal(size=(5, 30))},
    "mean of factors": {
        "label_mean": lw.LabelMean(
            np.random.default_rng(1).normal(size=(5, 2)), 0.2 * np.ones((30, 2)), [0.1, 0, -0.5, 0.2, 1.0]
        ),
        "label_covariance": np.diag([1.0, 2.0, 0.5, 1.0, 1.5]),
    },
}


@pytest.mark.parametrize("name", ["max-margin", "low-rank"])
@pytest.mark.parametrize("case", CASES)
def test_rates_and_means(client, apart, name, case):
    X, Y = table()
    Y[::9, 1] = np.nan
    model, whole = pair(name, **CASES[case])
    assert_same(model.fit(chunks(X), chunks(Y)), whole.fit(X, Y), X)
    again, _ = pair(name, **CASES[case])
    assert np.array_equal(again.fit(chunks(X), chunks(Y)).coef_, model.coef_)


@pytest.mark.parametrize("name", ["max-margin", "low-rank"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_weights_of_entries(client, apart, name, kind):
    X, Y = table()
    weights = np.random.default_rng(2).uniform(0, 2, Y.shape)
    if kind == "sparse":
        weights = sp.csr_array(np.where(weights > 1.5, weights, 0))
    model, whole = pair(name)
    given = chunks(weights) if kind == "dense" else partitions(weights)
    model.fit(chunks(X), chunks(Y), entry_weight=given)
    assert_same(model, whole.fit(X, Y, entry_weight=weights), X)


@pytest.mark.parametrize("name", ["max-margin", "low-rank"])
def test_labels_by_probability(client, apart, name):
    X, Y = table()
    P = lw.LabelMatrix.from_probabilities(
        np.clip(Y + np.random.default_rng(3).uniform(-0.4, 0.4, Y.shape), 0, 1)
    )
    more = {"flip_rates": (0.1, 0.05)} if name == "low-rank" else {}
    model, whole = pair(name, **more)
    model.fit(chunks(X), partitions(P), entry_weight=chunks(1 + Y))
    assert_same(model, whole.fit(X, P, entry_weight=1 + Y), X)


@pytest.mark.parametrize("name", ["max-margin", "one-call"])
def test_what_is_masked_is_unknown(client, name):
    X, _ = table()
    y = np.ma.array(np.arange(90) % 3, mask=np.arange(90) % 5 == 0)
    model, whole = pair(name, tol=1e-5)
    model.fit(partitions(X), partitions(y))
    whole.fit(X, y)
    assert np.array_equal(model.classes_, whole.classes_)
    assert np.array_equal(model.predict(X), whole.predict(X))
    weights = np.ma.array(np.ones(90), mask=y.mask)
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match="sample_weight"):
            call(partitions(X), partitions(y), partitions(weights))


def test_tags_that_are_numbers_are_those_of_all_partitions(client):
    X, _ = table()
    tags = pd.Series([[10, 20], [30], []] * 30)
    model, whole = pair("low-rank")
    model.fit(partitions(X), partitions(tags))
    whole.fit(X, tags)
    assert model.classes_.tolist() == whole.classes_.tolist() == ["10", "20", "30"]
    assert list(model.predict(X[:9])) == list(whole.predict(X[:9]))


def test_probabilities_of_classes_are_refused_where_they_would_be_lost(client):
    X, _ = table()
    y = lw.ClassProbabilities(np.random.default_rng(0).dirichlet(np.ones(3), 90))
    with pytest.raises(ValueError, match=r"Partition 0: y has probabilities .*from_probabilities"):
        MaxMarginClassifier().fit(partitions(X), partitions(y))
    model, whole = pair("one-call")
    model.fit(partitions(X), partitions(y))
    whole.fit(X, y)
    assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))
