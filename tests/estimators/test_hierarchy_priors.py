"""Hierarchies as priors: several classes a row, several parents a class."""

import numpy as np
import pandas as pd
import pytest

from labelweave import (
    KernelLogisticClassifier,
    LabelCovariance,
    LowRankClassifier,
    MaxMarginClassifier,
    Taxonomy,
)
from labelweave.metrics import average_precision_score
from reference.random_graphs import random_taxonomy

_TREE = Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": ["oak"]})
_GRAPH = Taxonomy([("pet", "dog"), ("canine", "dog"), ("pet", "cat"), ("canine", "wolf")], nodes=["oak"])


def _rows(names, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, pd.DataFrame((X @ rng.normal(size=(3, len(names))) > 0.3).astype(int), columns=names)


@pytest.mark.parametrize(
    ("graph", "names"), [(_TREE, ["dog", "cat", "oak"]), (_GRAPH, ["dog", "wolf", "cat", "pet"])]
)
def test_several_leaves_a_row_have_the_logistic_loss_and_the_prior_of_the_hierarchy(graph, names):
    X, Y = _rows(names)
    assert (Y.sum(axis=1) > 1).any()
    fixed = {"hyperparameters": "fixed", "gamma": 0.5, "tol": 1e-8}
    model = KernelLogisticClassifier(taxonomy=graph, **fixed).fit(X, Y)
    shared = LabelCovariance.from_taxonomy(graph.pruned(keep=names) if graph.is_tree else graph, names)
    other = KernelLogisticClassifier(label_covariance=shared, **fixed).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-5)
    tags = [[name for name in names if row[name]] for _, row in Y.iterrows()]
    again = KernelLogisticClassifier(taxonomy=graph, **fixed).fit(X, tags)
    order = [again.classes_.tolist().index(name) for name in names]
    np.testing.assert_allclose(again.predict_proba(X)[:, order], model.predict_proba(X), atol=1e-6)
    assert average_precision_score(Y, model.predict_proba(X)) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [({}, "for one class a row needs a tree"), ({"tie": "level"}, "level needs a tree")],
)
def test_what_needs_a_tree_says_so(settings, words):
    X, Y = _rows(["dog", "wolf", "cat"])
    with pytest.raises(ValueError, match=words):
        KernelLogisticClassifier(taxonomy=_GRAPH, **settings).fit(X, Y if settings else Y.idxmax(axis=1))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda given: MaxMarginClassifier(label_covariance=given, tol=1e-6),
        lambda given: KernelLogisticClassifier(label_covariance=given, hyperparameters="fixed", tol=1e-8),
        lambda given: LowRankClassifier(3, label_covariance=given, random_state=0, tol=1e-9, max_iter=200),
    ],
    ids=["max-margin", "logistic", "low rank"],
)
def test_ancestor_kernels_and_the_same_matrices_give_the_same_models(make, normalized):
    names = ["dog", "wolf", "cat", "pet"]
    X, Y = _rows(names)
    shared = LabelCovariance.from_taxonomy(_GRAPH, names, normalized=normalized)
    found, expected = make(shared).fit(X, Y), make(shared.to_dense()).fit(X, Y)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("seed", range(10))
def test_ancestor_kernels_are_positive_definite_and_their_operator_is_the_matrix(seed):
    graph, rng = random_taxonomy(seed, 30, 1.5), np.random.default_rng(seed)
    names = rng.permutation(graph.nodes)[:20].tolist()
    variances = {name: float(v) for name, v in zip(graph.nodes, rng.uniform(0.1, 2, 30), strict=True)}
    above = {name: {name, *graph.ancestors(name)} for name in names}
    plain = [[sum(variances[up] for up in above[a] & above[b]) for b in names] for a in names]
    lengths = np.sqrt(np.diag(plain))
    matrices = {False: np.array(plain), True: plain / np.outer(lengths, lengths)}
    for normalized, expected in matrices.items():
        found = LabelCovariance.from_taxonomy(graph, names, variances, normalized=normalized)
        np.testing.assert_allclose(found.to_dense(), expected, atol=1e-12)
        assert np.linalg.eigvalsh(found.to_dense())[0] > 1e-6
        table = rng.normal(size=(4, 20))
        np.testing.assert_allclose(found.matmul(table), table @ expected, atol=1e-10)


def test_a_label_without_variance_stays_so():
    found = LabelCovariance.from_taxonomy(_TREE, ["dog", "oak"], {"plant": 0.0, "oak": 0.0}, normalized=True)
    np.testing.assert_allclose(found.to_dense(), [[1, 0], [0, 0]])
