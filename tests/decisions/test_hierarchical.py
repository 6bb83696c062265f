"""Classifiers whose labels form a hierarchy: every prediction includes its ancestors."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier

import labelweave as lw
from labelweave import BinaryRelevance, HierarchicalClassifier, MaxMarginClassifier, Taxonomy
from labelweave.decisions.layers import shown_labels
from labelweave.postprocessing import term_lists
from reference.random_graphs import random_taxonomy, taxonomies


def _data(graph, seed=0, n=60, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    table = (X @ rng.normal(size=(4, len(graph))) + rng.normal(size=(n, len(graph))) > 1).astype(float)
    table[:2] = [[1.0], [0.0]]
    table[rng.random(table.shape) < missing] = np.nan
    return X, pd.DataFrame(table, columns=graph.nodes)


def _violations(graph, table):
    above = graph.at_or_above(graph.nodes).toarray() > 0
    table = np.asarray(table, float)
    return sum(int((table[:, [k]] > table[:, up]).sum()) for k, up in enumerate(above))


_GRAPH = random_taxonomy(1, 12)
_AROUND = {
    "alone": lambda model: model,
    "tuned": lambda model: lw.TunedThresholdClassifier(model, "macro_f1", cv=2),
    "top k": lambda model: lw.TunedThresholdClassifier(model, scope="top_k", cv=2),
    "calibrated": lambda model: lw.CalibratedLabelClassifier(model, cv=2),
    "expected F1": lambda model: lw.CalibratedLabelClassifier(model, cv=2, decision="expected_f1"),
    "conformal": lambda model: lw.ConformalLabelClassifier(model, level=0.3, confidence=0.5),
}
_INSIDE = {
    "linear": BinaryRelevance,
    "own thresholds": lambda: lw.MaxMarginClassifier(threshold=-0.2),
    "low rank": lambda: lw.LowRankClassifier(2),
    "scikit-learn": lambda: OneVsRestClassifier(LogisticRegression()),
    "without scores": lambda: KNeighborsClassifier(3),
    "tuned inside": lambda: lw.TunedThresholdClassifier(BinaryRelevance(), "macro_f1", cv=2),
}


@pytest.mark.parametrize("enforce", ["max", "projection"])
@pytest.mark.parametrize(
    ("around", "inside"), [*((a, "linear") for a in _AROUND), *(("alone", i) for i in _INSIDE)]
)
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_predicted_without_what_is_above_it(around, inside, enforce):
    X, y = _data(_GRAPH)
    model = _AROUND[around](lw.HierarchicalClassifier(_INSIDE[inside](), _GRAPH, enforce)).fit(X, y)
    rows = np.random.default_rng(9).normal(size=(50, 4)) * 2
    assert _violations(_GRAPH, model.predict(rows)) == 0
    assert _violations(_GRAPH, model.decision_function(rows)) == 0
    if hasattr(model, "predict_proba"):
        assert _violations(_GRAPH, model.predict_proba(rows)) == 0
    shown = shown_labels(model, rows)
    np.testing.assert_array_equal(shown.predicted, np.asarray(model.predict(rows)) > 0)
    assert _violations(_GRAPH, shown.numbers) == 0


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    graph=taxonomies(),
    seed=st.integers(0, 999),
    enforce=st.sampled_from(["max", "projection"]),
    missing=st.sampled_from([0.0, 0.3]),
    incomplete=st.booleans(),
)
@pytest.mark.filterwarnings("ignore")
def test_random_graphs_with_missing_labels(graph, seed, enforce, missing, incomplete):
    X, y = _data(graph, seed, 20, missing)
    model = lw.HierarchicalClassifier(BinaryRelevance(), graph, enforce, incomplete=incomplete).fit(X, y)
    assert _violations(graph, model.predict(X)) == 0
    assert _violations(graph, model.decision_function(X)) == 0


def test_labels_are_completed_before_the_fit():
    tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    X = np.repeat(np.eye(3), 10, axis=0)
    leaves = pd.DataFrame(np.repeat([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 10, axis=0), columns=tree.nodes)
    model = lw.HierarchicalClassifier(BinaryRelevance(), tree).fit(X, leaves)
    assert model.predict(np.eye(3)).to_numpy().tolist() == [[1, 1, 0], [1, 0, 1], [0, 0, 0]]
    scores = model.estimator_.decision_function(X)
    same = BinaryRelevance().fit(X, tree.with_ancestors(leaves)).decision_function(X)
    np.testing.assert_array_equal(scores, same)


def test_thresholds_are_chosen_on_completed_labels():
    tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    X = np.repeat(np.eye(3), 20, axis=0)
    leaves = pd.DataFrame(np.repeat([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 20, axis=0), columns=tree.nodes)
    model = lw.TunedThresholdClassifier(lw.HierarchicalClassifier(BinaryRelevance(), tree), cv=2).fit(
        X, leaves
    )
    assert model.objective_value_ == 1.0


def test_without_enforcement_scores_are_those_of_the_estimator():
    X, y = _data(_GRAPH)
    model = lw.HierarchicalClassifier(BinaryRelevance(), _GRAPH, "none").fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), model.estimator_.decision_function(X))
    assert _violations(_GRAPH, model.predict(X)) > 0


def test_a_fitted_classifier_can_be_put_in():
    X, y = _data(_GRAPH)
    fitted = BinaryRelevance().fit(X, y)
    model = lw.HierarchicalClassifier(fitted, _GRAPH, cv="prefit").fit(X, y)
    assert model.estimator_ is fitted
    assert _violations(_GRAPH, model.predict(X)) == 0


@pytest.mark.parametrize(
    "settings_",
    [
        {"conditional": True},
        {"decision": "h_loss"},
        {"decision": "stepwise", "confidence": 0.4},
        {"conditional": True, "decision": "stepwise"},
        {"conditional": True, "decision": "h_loss", "enforce": "none"},
    ],
)
def test_models_of_rows_that_have_what_is_above_and_sets_of_least_loss_obey(settings_, reloaded):
    X, y = _data(_GRAPH, n=80, missing=0.2)
    inner = lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed")
    model = lw.HierarchicalClassifier(inner, _GRAPH, **settings_).fit(X, y)
    assert _violations(_GRAPH, model.predict(X)) == _violations(_GRAPH, model.predict_proba(X)) == 0
    if "conditional" in settings_:
        assert _violations(_GRAPH, model.decision_function(X)) == 0
        np.testing.assert_array_equal(model.decision_function(X), model.predict_proba(X) - 0.5)
    if settings_.get("decision") == "h_loss":
        expected = lw.postprocessing.h_loss_sets(model.predict_proba(X), _GRAPH, y.columns)
        np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))
    tuned = lw.TunedThresholdClassifier(lw.HierarchicalClassifier(inner, _GRAPH, **settings_), cv=2)
    if settings_.get("enforce") != "none":
        assert _violations(_GRAPH, tuned.fit(X, y).predict(X)) == 0


@pytest.mark.parametrize("conditional", [True, False])
def test_stepwise_sets_go_down_as_long_as_a_step_is_probable_enough(conditional):
    X, y = _data(_GRAPH, n=80)
    inner = lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed")
    options = {"conditional": conditional, "decision": "stepwise"}
    few = {}
    for confidence in (0.3, 0.5, 0.9):
        model = lw.HierarchicalClassifier(inner, _GRAPH, **options, confidence=confidence).fit(X, y)
        probability = pd.DataFrame(model.predict_proba(X), columns=y.columns)
        expected = pd.DataFrame(False, index=probability.index, columns=y.columns)
        for name in (node for node in _GRAPH.nodes if node in y.columns):  # ancestors first
            above = [up for up in _GRAPH.parents.get(name, ()) if up in y.columns]
            given = probability[above].min(axis=1) if above else 1.0
            is_reached = expected[above].all(axis=1) if above else True
            expected[name] = is_reached & (probability[name] > confidence * given)
        found = np.asarray(model.predict(X))
        np.testing.assert_array_equal(found, expected)
        assert _violations(_GRAPH, found) == 0
        few[confidence] = found.sum()
    assert few[0.3] > few[0.5] > few[0.9] > 0
    plain = lw.MaxMarginClassifier()
    with pytest.raises(ValueError, match=r"decision='stepwise' needs probabilities"):
        lw.HierarchicalClassifier(plain, _GRAPH, decision="stepwise").fit(X, y)
    for wrong in (0.0, 1.0, "half"):
        with pytest.raises(ValueError, match="confidence"):
            lw.HierarchicalClassifier(inner, _GRAPH, decision="stepwise", confidence=wrong).fit(X, y)


def test_a_conditional_model_is_fitted_to_rows_that_have_what_is_above():
    tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    X, y = _data(tree, n=50)
    inner = lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed")
    model = lw.HierarchicalClassifier(inner, tree, conditional=True).fit(X, y)
    closed = tree.with_ancestors(y).to_dense()
    closed[closed[:, 0] == 0, 1:] = np.nan
    each = inner.fit(X, closed).predict_proba(X)
    each[:, 1:] *= each[:, [0]]
    np.testing.assert_allclose(model.predict_proba(X), each)
    with pytest.raises(ValueError, match=r"conditional=True needs probabilities.*CalibratedLabelClassifier"):
        lw.HierarchicalClassifier(BinaryRelevance(), tree, conditional=True).fit(X, y)


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_one_label_around_a_classifier_that_predicts_a_vector():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = pd.DataFrame({"dog": (X[:, 0] > 0).astype(int)})
    model = lw.HierarchicalClassifier(LogisticRegression(), {"animal": ["dog"]}).fit(X, y)
    expected = LogisticRegression().fit(X, y["dog"]).predict(X)
    np.testing.assert_array_equal(model.predict(X)["dog"], expected)


_ANIMALS = Taxonomy.from_nested(
    {"Bird": None, "Reptile": ["Snake", "Lizard"], "Mammal": {"Cat": None, "Wolf": ["Dog"]}}
)
_DEPTHS = [
    {"Bird"},
    {"Reptile", "Snake"},
    {"Reptile", "Lizard"},
    {"Mammal", "Cat"},
    {"Mammal", "Wolf", "Dog"},
]


def _found(graph, tags, X=None, **settings):
    X = np.eye(len(tags)) if X is None else X
    model = HierarchicalClassifier(MaxMarginClassifier(C=100.0, tol=1e-6), graph, **settings).fit(X, tags)
    return model, [set(row) for row in term_lists(model.predict(X), model.taxonomy_, model.classes_)]


@pytest.mark.parametrize("enforce", ["max", "projection"])
def test_rows_of_several_paths_and_of_one(enforce):
    graph = Taxonomy.from_nested({"Mammal": ["Human", "Bovine"], "Fish": None})
    tags = [["Mammal", "Human", "Fish"], ["Mammal", "Human", "Bovine"], ["Mammal", "Human"]]
    X = np.array([[1, 2, 0], [3, 4, 1], [5, 6, 9]])
    assert _found(graph, tags, X, enforce=enforce)[1] == [set(row) for row in tags]


@pytest.mark.parametrize("enforce", ["max", "projection"])
def test_rows_end_at_different_depths(enforce):
    tags = [sorted(row) for row in _DEPTHS]
    assert _found(_ANIMALS, tags, enforce=enforce)[1] == _DEPTHS


def test_leaves_that_no_row_has_are_no_labels_and_what_is_above_is_completed():
    graph = Taxonomy.from_nested({"Reptile": ["Snake", "Lizard", "Turtle"], "Bird": None})
    names = ["Reptile", "Snake", "Lizard", "Bird"]
    Y = pd.DataFrame([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], columns=names)
    model, found = _found(graph, Y)
    assert "Turtle" not in model.classes_
    assert found == [{"Reptile", "Snake"}, {"Reptile", "Lizard"}, {"Bird"}, {"Reptile"}]


def test_several_roots_stand_beside_each_other_as_if_below_one_that_all_rows_have():
    tags = [sorted(row) for row in _DEPTHS]
    below_one = Taxonomy([*_ANIMALS.pairs(), *(("all", root) for root in _ANIMALS.roots)])
    apart, found = _found(_ANIMALS, tags)
    whole, within = _found(below_one, [["all", *row] for row in tags])
    assert [row - {"all"} for row in within] == found
    assert all("all" in row for row in within)
    assert apart.taxonomy_.roots == ["Bird", "Reptile", "Mammal"]
    assert whole.taxonomy_.roots == ["all"]


def test_a_chain_and_a_node_alone_are_hierarchies():
    tags = [["a", "b", "c"], ["a", "b"], ["a"], ["z"]]
    assert _found(Taxonomy([("a", "b"), ("b", "c")], nodes=["z"]), tags)[1] == [set(row) for row in tags]


def test_one_name_below_two_parents_is_two_nodes_where_nodes_are_paths():
    paths = Taxonomy.from_paths(["a/b", "b/c", "d/b"])
    tags = [["a", "a/b"], ["b", "b/c"], ["d", "d/b"]]
    assert _found(paths, tags)[1] == [set(row) for row in tags]
    assert len(paths) == 6


def test_numbers_are_names_too():
    graph = Taxonomy([(1, 11), (1, 12), (2, 21)])
    Y = pd.DataFrame(np.eye(4, dtype=int)[:, :3], columns=[11, 12, 21]).assign(**{"1": 0, "2": 0})
    found = _found(graph, Y)[1]
    assert found == [{"1", "11"}, {"1", "12"}, {"2", "21"}, set()]
