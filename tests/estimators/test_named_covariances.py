"""Arguments per label are matched by label names if there are any; hierarchies as priors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import labelweave as lw
from drawn import draw_labels
from labelweave.metrics import average_precision_score
from reference.random_graphs import random_taxonomy

NAMES = ["sun", "rain", "snow"]


def test_some_names_of_y_among_others_are_refused():
    X, Y = np.eye(3), pd.DataFrame(np.eye(3, dtype=int), columns=NAMES)
    R = lw.LabelCovariance.dense(np.eye(3), label_names=["snow", "sun", "fog"])
    mean = lw.LabelMean(np.eye(3), label_names=R.label_names)
    for what, given in (("label_covariance", R), ("label_mean", mean)):
        for model in (lw.MaxMarginClassifier(), lw.KernelLogisticClassifier(hyperparameters="fixed")):
            with pytest.raises(ValueError, match=f"{what} has 'fog', .*the label 'rain'; name"):
                model.set_params(**{what: given}).fit(X, Y)
    numbered = Y.set_axis([1, 2, 3], axis=1)
    assert lw.MaxMarginClassifier(label_covariance=pd.DataFrame(np.eye(3))).fit(X, numbered).label_covariance_
    other = lw.LabelCovariance.dense(np.eye(3), label_names=list("abc"))
    assert lw.MaxMarginClassifier(label_covariance=other).fit(X, Y).label_covariance_


def _drawn():
    random = np.random.default_rng(1)
    X = random.normal(size=(40, 4))
    Y = pd.DataFrame((X[:, :3] + random.normal(size=(40, 3)) > 0).astype(int), columns=NAMES)
    return random, X, Y


def test_series_that_name_no_label_go_by_place():
    _, X, Y = _drawn()
    costs = np.array([1.0, 5.0, 0.2])
    model = lw.MaxMarginClassifier(false_negative_cost=costs)
    expected = model.fit(X, Y).coef_
    for index in (range(3), list("abc")):
        model.set_params(false_negative_cost=pd.Series(costs, index))
        np.testing.assert_array_equal(model.fit(X, Y).coef_, expected)


def test_weights_of_labels_go_by_the_names_in_their_index():
    random, X, Y = _drawn()
    mean = pd.DataFrame(random.normal(size=(3, 4)), NAMES)
    model = lw.MaxMarginClassifier(label_mean=mean.iloc[[2, 0, 1]])
    expected = lw.MaxMarginClassifier(label_mean=mean.to_numpy()).fit(X, Y).coef_
    np.testing.assert_array_equal(model.fit(X, Y).coef_, expected)


def test_label_vectors_of_a_tree_go_by_the_names_in_their_index():
    _, X, Y = _drawn()
    vectors = pd.DataFrame([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], NAMES)
    model = lw.LabelTreeClassifier(branching=2, leaf_size=1)
    expected = model.set_params(tree=vectors.to_numpy()).fit(X, Y).decision_function(X)
    found = model.set_params(tree=vectors.iloc[[2, 0, 1]]).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(found, expected)


_TREE = lw.Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": ["oak"]})
_GRAPH = lw.Taxonomy([("pet", "dog"), ("canine", "dog"), ("pet", "cat"), ("canine", "wolf")], nodes=["oak"])


def _rows(names, n=60):
    X, Y = draw_labels(n, 3, len(names), noise=0)
    return X, pd.DataFrame(Y, columns=names)


@pytest.mark.parametrize(
    ("graph", "names"), [(_TREE, ["dog", "cat", "oak"]), (_GRAPH, ["dog", "wolf", "cat", "pet"])]
)
def test_several_leaves_a_row_have_the_logistic_loss_and_the_prior_of_the_hierarchy(graph, names):
    X, Y = _rows(names)
    assert (Y.sum(axis=1) > 1).any()
    fixed = {"hyperparameters": "fixed", "gamma": 0.5, "tol": 1e-8}
    model = lw.KernelLogisticClassifier(taxonomy=graph, **fixed).fit(X, Y)
    shared = lw.LabelCovariance.from_taxonomy(graph.pruned(keep=names) if graph.is_tree else graph, names)
    other = lw.KernelLogisticClassifier(label_covariance=shared, **fixed).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-5)
    tags = [[name for name in names if row[name]] for _, row in Y.iterrows()]
    again = lw.KernelLogisticClassifier(taxonomy=graph, **fixed).fit(X, tags)
    order = [again.classes_.tolist().index(name) for name in names]
    np.testing.assert_allclose(again.predict_proba(X)[:, order], model.predict_proba(X), atol=1e-6)
    assert average_precision_score(Y, model.predict_proba(X)) > 0.9


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda given: lw.MaxMarginClassifier(label_covariance=given, tol=1e-6),
        lambda given: lw.KernelLogisticClassifier(label_covariance=given, hyperparameters="fixed", tol=1e-8),
        lambda given: lw.LowRankClassifier(3, label_covariance=given, random_state=0, tol=1e-9, max_iter=200),
    ],
    ids=["max-margin", "log_loss", "low rank"],
)
def test_ancestor_kernels_and_the_same_matrices_give_the_same_models(make, normalized):
    names = ["dog", "wolf", "cat", "pet"]
    X, Y = _rows(names)
    shared = lw.LabelCovariance.from_taxonomy(_GRAPH, names, normalized=normalized)
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
        found = lw.LabelCovariance.from_taxonomy(graph, names, variances, normalized=normalized)
        np.testing.assert_allclose(found.to_dense(), expected, atol=1e-12)
        assert np.linalg.eigvalsh(found.to_dense())[0] > 1e-6
        table = rng.normal(size=(4, 20))
        np.testing.assert_allclose(found.matmul(table), table @ expected, atol=1e-10)


def test_a_label_without_variance_stays_so():
    found = lw.LabelCovariance.from_taxonomy(
        _TREE, ["dog", "oak"], {"plant": 0.0, "oak": 0.0}, normalized=True
    )
    np.testing.assert_allclose(found.to_dense(), [[1, 0], [0, 0]])


@pytest.mark.parametrize(
    "model", [lw.MaxMarginClassifier(tol=1e-6), lw.LowRankClassifier(3, tol=1e-9, max_iter=500)], ids=str
)
def test_a_row_known_to_an_inner_node_is_no_class_of_its_own(model):
    random = np.random.default_rng(1)
    X = random.normal(size=(200, 4))
    leaves = np.array(["dog", "cat", "oak", "elm"], object)[X.argmax(axis=1)]
    tree = lw.Taxonomy.from_nested({"animal": ["dog", "cat"], "tree": ["oak", "elm"]})
    above = {"dog": "animal", "cat": "animal", "oak": "tree", "elm": "tree"}
    coarse = random.random(200) < 0.4
    y = np.array([above[leaf] if flag else leaf for leaf, flag in zip(leaves, coarse, strict=True)], object)
    model.set_params(label_covariance=tree).fit(X, y)
    assert list(model.classes_) == ["cat", "dog", "elm", "oak"]
    wide = (leaves[:, None] == model.classes_).astype(float)
    siblings = np.array([[above[leaf] == above[name] for name in model.classes_] for leaf in leaves])
    wide[coarse[:, None] & siblings] = np.nan
    twin = clone(model).fit(X, pd.DataFrame(wide, columns=model.classes_))
    lowest = (
        getattr(twin, "thresholds_", np.zeros(1)).min() - getattr(model, "thresholds_", np.zeros(1)).min()
    )
    np.testing.assert_allclose(model.decision_function(X), twin.decision_function(X) + lowest, atol=1e-3)
    with pytest.raises(ValueError, match="not a node of the taxonomy"):
        model.fit(X, np.where(coarse, "stone", leaves))
