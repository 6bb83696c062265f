"""What users of LabelGraphClassifier rely on."""

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from labelweave import CliqueGraph, LabelGraphClassifier, LabelMatrix

GRAPHS = ["learn", "chow-liu", "full", "none", [(0, 1), (1, 2, 4)]]
NAMES = ["sea", "sand", "boat", "city", "road"]


def rows(n_rows=60, seed=0):
    """Make labels of which 0 and 1 come together, and 3 leaves no room for 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    Y = (X @ rng.normal(size=(4, 5)) + rng.normal(size=(n_rows, 5)) > 0).astype(int)
    Y[:, 1] = np.where(rng.random(n_rows) < 0.9, Y[:, 0], Y[:, 1])
    Y[:, 2] = np.where(rng.random(n_rows) < 0.9, 1 - Y[:, 3], Y[:, 2])
    return X, Y


def model(graph="learn", **parameters):
    return LabelGraphClassifier(
        graph, **({"regularization": 0.05, "max_rounds": 3, "tol": 0.02} | parameters)
    )


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
def test_sparse_features_give_the_same_model(graph):
    X, Y = rows()
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0
    dense = model(graph, tol=1e-4).fit(X, Y)
    sparse = model(graph, tol=1e-4).fit(sp.csr_array(X), sp.csr_array(Y))
    assert sparse.label_graph_.cliques == dense.label_graph_.cliques
    scores = sparse.decision_function(sp.csr_array(X))
    np.testing.assert_allclose(scores, dense.decision_function(X), atol=0.05)


@pytest.mark.parametrize("inference", ["auto", "exact", "message_passing"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_positive_scores_are_what_is_predicted(graph, inference):
    X, Y = rows()
    fitted = model(graph, inference=inference).fit(X, Y)
    X = np.r_[X, np.zeros((2, 4))]
    labels = fitted.predict(X)
    np.testing.assert_array_equal(labels, fitted.decision_function(X) > 0)
    found = fitted.predict_map(X)
    np.testing.assert_array_equal(found.labels, labels)
    assert (found.bounds >= found.values - 1e-9).all()
    assert found.proven.all() or inference == "message_passing"


@pytest.mark.parametrize("graph", ["learn", "full", "none"])
def test_ties_are_predicted_as_they_are_scored(graph):
    X, Y = rows()
    fitted = model(graph, fit_intercept=False).fit(X, Y)
    nothing = np.zeros((1, 4))
    np.testing.assert_array_equal(fitted.predict(nothing), fitted.decision_function(nothing) > 0)


def test_scores_are_what_the_best_labeling_gains_by_a_label():
    X, Y = rows()
    fitted = model("full").fit(X, Y)
    unary = X @ fitted.coef_.T + fitted.intercept_
    tables = X @ fitted.clique_coef_.T + fitted.clique_intercept_
    labelings = np.array(list(np.ndindex(*(2,) * 5)))
    starts = fitted.label_graph_.table_starts
    totals = unary @ labelings.T
    for place, (one, other) in enumerate(fitted.label_graph_.cliques):
        states = labelings[:, one] + 2 * labelings[:, other]
        totals += tables[:, starts[place] + states]
    with_it = np.array([totals[:, labelings[:, k] == 1].max(axis=1) for k in range(5)]).T
    without = np.array([totals[:, labelings[:, k] == 0].max(axis=1) for k in range(5)]).T
    np.testing.assert_allclose(fitted.decision_function(X), with_it - without, atol=1e-9)
    np.testing.assert_allclose(fitted.predict_map(X).values, totals.max(axis=1))


def test_without_a_graph_labels_are_independent_support_vector_machines():
    X, Y = rows()
    fitted = model("none", tol=1e-7, max_iter=20000).fit(X, Y)
    C = 2 / (0.05 * len(X))
    for label in range(5):
        alone = LinearSVC(loss="hinge", C=C, tol=1e-9, max_iter=1_000_000).fit(X, Y[:, label])
        np.testing.assert_allclose(fitted.coef_[label], alone.coef_[0], atol=5e-3)
        np.testing.assert_allclose(fitted.intercept_[label], alone.intercept_[0], atol=5e-3)


@pytest.mark.parametrize("graph", GRAPHS)
def test_classes_in_one_dimension(graph):
    X, Y = rows()
    if not isinstance(graph, list):
        binary = model(graph).fit(X, np.where(Y[:, 0], "yes", "no"))
        assert set(binary.predict(X)) == {"no", "yes"}
        assert binary.decision_function(X).shape == (60,)
        assert binary.label_graph_.label_names.tolist() == ["yes"]
    kinds = np.array(NAMES)[np.argmax(X @ np.random.default_rng(3).normal(size=(4, 5)), axis=1)]
    many = model(graph).fit(X, kinds)
    assert many.score(X, kinds) > 0.6
    assert many.label_graph_.label_names.tolist() == sorted(NAMES)
    assert set(many.predict(X)) <= set(NAMES)
    numbers = model("none").fit(X, Y.sum(axis=1) * 10)
    assert numbers.label_graph_.label_names.tolist() == [str(c) for c in numbers.classes_]


@pytest.mark.slow
def test_the_usual_penalty_goes_with_the_scale_of_the_features():
    X, Y = rows()
    weights = np.random.default_rng(4).random(len(X))
    fitted = model("full", regularization="auto").fit(X, Y, weights)
    norms = (X**2).sum(axis=1) + 1  # the constant feature
    assert fitted.regularization_ == pytest.approx(1e-3 * np.average(norms, weights=weights))
    assert model("full").fit(X, Y).regularization_ == 0.05
    free = {"regularization": "auto", "fit_intercept": False, "tol": 1e-4, "max_iter": 5000}
    small, large = (model("full", **free).fit(scale * X, Y) for scale in (1.0, 64.0))
    np.testing.assert_array_equal(small.predict(X), large.predict(64 * X))
    assert model("none", regularization="auto", fit_intercept=False).fit(0 * X, Y).regularization_ == 1e-3


def test_weights_count_like_repetitions():
    X, Y = rows(40)
    counts = np.random.default_rng(5).integers(1, 4, 40)
    weighted = model("full", tol=1e-6, max_iter=20000).fit(X, Y, counts)
    repeated = model("full", tol=1e-6, max_iter=20000).fit(X.repeat(counts, 0), Y.repeat(counts, 0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=0.01)


@pytest.mark.parametrize("graph", ["learn", "none", [(0, 1), (1, 2, 4)]])
def test_weights_of_entries_are_costs_of_entries(graph):
    X, Y = rows()
    weights = np.where(Y == 1, [1, 2, 1, 3, 1], [1, 1, 0.5, 1, 4.0])
    by_entry = model(graph).fit(X, Y, entry_weight=weights)
    by_label = model(graph, false_negative_cost=[1, 2, 1, 3, 1], false_positive_cost=[1, 1, 0.5, 1, 4]).fit(
        X, Y
    )
    np.testing.assert_array_equal(by_entry.coef_, by_label.coef_)
    np.testing.assert_array_equal(by_entry.clique_coef_, by_label.clique_coef_)
    # what is not stored has the weight 1; weights multiply costs
    stored = sp.coo_array(np.where(weights == 1, 0, weights))
    np.testing.assert_array_equal(model(graph).fit(X, Y, entry_weight=stored).coef_, by_entry.coef_)
    half = model(graph, false_negative_cost=0.5, false_positive_cost=0.5).fit(X, Y, entry_weight=2 * weights)
    np.testing.assert_array_equal(half.coef_, by_entry.coef_)
    plain = model(graph).fit(X, Y)
    np.testing.assert_array_equal(model(graph).fit(X, Y, entry_weight=np.ones(Y.shape)).coef_, plain.coef_)
    heavy = np.ones(Y.shape)
    heavy[:, 3] = np.where(Y[:, 3] == 0, 5, 1)
    assert model(graph).fit(X, Y, None, heavy).predict(X)[:, 3].sum() < plain.predict(X)[:, 3].sum()


def test_costs_move_the_predictions():
    X, Y = rows()
    even = model().fit(X, Y).predict(X).sum(axis=0)
    careful = model(false_positive_cost=[1, 1, 1, 5, 1]).fit(X, Y).predict(X).sum(axis=0)
    eager = model(false_negative_cost=5.0).fit(X, Y).predict(X).sum(axis=0)
    assert careful[3] < even[3]
    assert (eager >= even).all()


@pytest.mark.parametrize(
    ("graph", "cliques"),
    [
        ("none", ()),
        ("full", tuple((j, k) for j in range(5) for k in range(j + 1, 5))),
        ([("sea", "sand"), ("boat", "city")], ((0, 1), (2, 3))),
        ([(0, 1), ("boat", 3)], ((0, 1), (2, 3))),
        (np.array([[0, 1], [2, 3]]), ((0, 1), (2, 3))),
        ([("sea", "sand", "city")], ((0, 1, 3),)),
        (networkx.Graph([("sea", "sand"), ("city", "boat")]), ((0, 1), (2, 3))),
        (CliqueGraph(5, [(0, 1), (2, 3)]), ((0, 1), (2, 3))),
        (CliqueGraph(3, [(0, 2)], ["city", "road", "boat"]), ((2, 3),)),
    ],
)
def test_ways_to_give_a_graph(graph, cliques):
    X, Y = rows()
    fitted = model(graph).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert fitted.label_graph_.cliques == cliques
    assert fitted.label_graph_.label_names.tolist() == NAMES
    assert (fitted.label_graph_.weights > 0).all()
    assert fitted.graph_trace_ == []
    assert len(fitted.clique_coef_) == sum(2 ** len(clique) for clique in cliques)


def test_classes_can_be_named_in_a_graph():
    X, _ = rows()
    kinds = np.array(["a", "b", "c"])[np.arange(60) % 3]
    assert model([("a", "c")]).fit(X, kinds).label_graph_.cliques == ((0, 2),)


def test_the_tree_is_that_of_chow_and_liu():
    X, Y = rows()
    tree = model("chow-liu").fit(X, pd.DataFrame(Y, columns=NAMES)).label_graph_
    assert tree.n_cliques == 4
    assert {(0, 1), (2, 3)} <= set(tree.cliques)
    assert tree.width == 1


@pytest.mark.parametrize("scale", [1e-9, 1e15])
def test_the_tree_does_not_depend_on_the_scale_of_weights(scale):
    X, Y = rows()
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    whole, scaled = (model("chow-liu").fit(X, Y, weights * by) for by in (1.0, scale))
    assert whole.label_graph_.cliques == scaled.label_graph_.cliques


def test_known_labels_are_kept_and_move_the_others():
    X, Y = rows()
    fitted = model("full").fit(X, pd.DataFrame(Y, columns=NAMES))
    free = fitted.predict_map(X)
    known = np.full(Y.shape, np.nan)
    known[:, 0] = 1 - free.labels[:, 0]
    held = fitted.predict_map(X, known)
    np.testing.assert_array_equal(held.labels[:, 0], known[:, 0])
    assert (held.labels[:, 1:] != free.labels[:, 1:]).any()
    assert (held.values <= free.values + 1e-9).all()
    by_name = fitted.predict_map(X, pd.DataFrame({"city": np.full(60, np.nan), "sea": known[:, 0]}))
    np.testing.assert_array_equal(by_name.labels, held.labels)
    truth = fitted.predict_map(X, pd.DataFrame(Y, columns=NAMES)[NAMES[::-1]])
    np.testing.assert_array_equal(truth.labels, Y)


def test_known_labels_of_a_frame_are_found_by_number_where_labels_have_no_names():
    X, Y = rows()
    fitted = model("full").fit(X, Y)
    by_place = np.full(Y.shape, np.nan)
    by_place[:, 2] = 1 - fitted.predict(X)[:, 2]
    expected = fitted.predict_map(X, by_place).labels
    for columns in ([2, 3, 4, 0, 1], [2], [0, 1, 2, 3, 4]):
        known = pd.DataFrame(by_place[:, columns], columns=columns)
        np.testing.assert_array_equal(fitted.predict_map(X, known).labels, expected)


def test_of_probabilities_the_likelier_value_is_known():
    X, Y = rows()
    fitted = model("full").fit(X, Y)
    shares = LabelMatrix.from_probabilities(np.tile([0.5, 0.9, np.nan, 0.2, 1.0], (len(X), 1)))
    known = np.tile([np.nan, 1.0, np.nan, 0.0, 1.0], (len(X), 1))
    np.testing.assert_array_equal(fitted.predict_map(X, shares).labels, fitted.predict_map(X, known).labels)


def test_any_number_of_threads_gives_the_same_bits():
    X, Y = rows(80)
    for graph in ("learn", "full"):
        one, two = (model(graph, n_jobs=n, inference="message_passing").fit(X, Y) for n in (1, 2))
        np.testing.assert_array_equal(one.clique_coef_, two.clique_coef_)
        np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, Y = rows()
    fitted = model("full").fit(X, Y)
    scores, values = fitted.decision_function(X), fitted.predict_map(X).values
    monkeypatch.setattr("labelweave.estimators.label_graph.model._NUMBERS_AT_ONCE", 300)
    np.testing.assert_allclose(fitted.decision_function(X), scores, atol=1e-12)
    np.testing.assert_allclose(fitted.predict_map(X).values, values, atol=1e-12)


def test_it_works_with_what_scikit_learn_has():
    X, Y = rows()
    search = GridSearchCV(
        model("chow-liu"), {"regularization": [0.01, 0.1], "graph": ["none", [(0, 1)]]}, cv=2
    )
    search.fit(X, Y)
    assert search.best_params_["graph"] in ("none", [(0, 1)])
    pipeline = make_pipeline(StandardScaler(), model()).fit(X, Y)
    assert pipeline.score(X, Y) > 0.2
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()
    assert "LabelGraphClassifier" in pipeline._repr_html_()


def test_columns_that_are_numbers_name_labels():
    X, Y = rows()
    frame = pd.DataFrame(Y, columns=range(1, 6))
    fitted = model([(1, 2), (4, 5)]).fit(X, frame)
    assert fitted.label_graph_.cliques == ((0, 1), (3, 4))
    assert fitted.label_graph_.label_names.tolist() == ["1", "2", "3", "4", "5"]
    assert list(fitted.predict(X).columns) == [1, 2, 3, 4, 5]
    assert fitted.predict_map(X, pd.DataFrame({5: Y[:, 4]})).labels[:, 4].tolist() == Y[:, 4].tolist()


def test_too_few_passes_are_said():
    X, Y = rows()
    with pytest.warns(ConvergenceWarning, match=r"limit of passes .* after 3 passes") as caught:
        fitted = model("full", max_iter=3, tol=1e-9).fit(X, Y)
    assert caught[0].filename == __file__
    assert (fitted.converged_, fitted.status_, fitted.n_iter_) == (False, "iteration_limit", 3)
    assert fitted.duality_gap_ == fitted.trace_[-1].gap > 0


def test_lists_of_rows_are_predicted_as_frames_too():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    Y = pd.DataFrame((X[:, :2] > 0).astype(int), columns=["left", "right"])
    model = LabelGraphClassifier("full", regularization=0.01).fit(X, Y)
    pd.testing.assert_frame_equal(model.predict(X.tolist()), model.predict(X))
