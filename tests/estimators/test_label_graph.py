"""LabelGraphClassifier: its guarantees, what is refused, and warm starts."""

from inspect import signature

import networkx
import numpy as np
import pandas as pd
import pytest
from attacks.small_fits import grouped
from sklearn.svm import LinearSVC

from drawn import draw_labels
from labelweave import CliqueGraph, GraphGrowth, LabelGraphClassifier, LabelMatrix, model_files
from labelweave.estimators import journal

GRAPHS = ["learn", "chow-liu", "full", "none", [(0, 1), (1, 2, 4)]]
NAMES = ["sea", "sand", "boat", "city", "road"]


def rows(n_rows=60, seed=0):
    """Make labels of which 0 and 1 co-occur, and 3 excludes 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    Y = (X @ rng.normal(size=(4, 5)) + rng.normal(size=(n_rows, 5)) > 0).astype(int)
    Y[:, 1] = np.where(rng.random(n_rows) < 0.9, Y[:, 0], Y[:, 1])
    Y[:, 2] = np.where(rng.random(n_rows) < 0.9, 1 - Y[:, 3], Y[:, 2])
    return X, Y


def model(graph="learn", **parameters):
    if isinstance(graph, str) and graph == "learn":
        own = signature(GraphGrowth).parameters
        graph = GraphGrowth(**{"max_rounds": 3} | {k: parameters.pop(k) for k in own if k in parameters})
    return grouped(LabelGraphClassifier, graph, **({"alpha": 0.05, "tol": 0.02} | parameters))


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


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.filterwarnings("ignore::labelweave.UnobservedLabelWarning")
def test_a_label_that_nobody_has_is_scored_alike_and_not_predicted(graph):
    X, Y = rows()
    fitted = model(graph).fit(X, np.where(np.arange(5) == 1, np.nan, Y))
    assert not fitted.decision_function(X)[:, 1].any()
    assert not fitted.predict(X)[:, 1].any()


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


def test_classes_are_the_labels_of_a_graph():
    X, Y = rows()
    binary = model().fit(X, np.where(Y[:, 0], "yes", "no"))
    assert binary.label_graph_.label_names.tolist() == ["yes"]
    kinds = np.array(NAMES)[np.argmax(X @ np.random.default_rng(3).normal(size=(4, 5)), axis=1)]
    many = model([(0, 1), (1, 2, 4)]).fit(X, kinds)
    assert many.score(X, kinds) > 0.6
    assert many.label_graph_.label_names.tolist() == sorted(NAMES)
    numbers = model("none").fit(X, Y.sum(axis=1) * 10)
    assert numbers.label_graph_.label_names.tolist() == [str(c) for c in numbers.classes_]


@pytest.mark.slow
def test_the_usual_penalty_goes_with_the_scale_of_the_features():
    X, Y = rows()
    weights = np.random.default_rng(4).random(len(X))
    fitted = model("full", alpha="auto").fit(X, Y, weights)
    norms = (X**2).sum(axis=1) + 1  # the constant feature
    assert fitted.alpha_ == pytest.approx(1e-3 * np.average(norms, weights=weights))
    assert model("full").fit(X, Y).alpha_ == 0.05
    free = {"alpha": "auto", "fit_intercept": False, "tol": 1e-4, "max_iter": 5000}
    small, large = (model("full", **free).fit(scale * X, Y) for scale in (1.0, 64.0))
    np.testing.assert_array_equal(small.predict(X), large.predict(64 * X))
    assert model("none", alpha="auto", fit_intercept=False).fit(0 * X, Y).alpha_ == 1e-3


def test_weights_count_like_repetitions():
    X, Y = rows(40)
    counts = np.random.default_rng(5).integers(1, 4, 40)
    weighted = model("full", tol=1e-6, max_iter=20000).fit(X, Y, counts)
    repeated = model("full", tol=1e-6, max_iter=20000).fit(X.repeat(counts, 0), Y.repeat(counts, 0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=0.01)


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


def test_columns_that_are_numbers_name_labels():
    X, Y = rows()
    frame = pd.DataFrame(Y, columns=range(1, 6))
    fitted = model([(1, 2), (4, 5)]).fit(X, frame)
    assert fitted.label_graph_.cliques == ((0, 1), (3, 4))
    assert fitted.label_graph_.label_names.tolist() == ["1", "2", "3", "4", "5"]
    assert list(fitted.predict(X).columns) == [1, 2, 3, 4, 5]
    assert fitted.predict_map(X, pd.DataFrame({5: Y[:, 4]})).labels[:, 4].tolist() == Y[:, 4].tolist()


def with_gaps():
    return draw_labels(above=0.5, missing=0.1)


def of_two_rounds(**parameters):
    return model(**({"max_rounds": 2} if "graph" not in parameters else {}) | parameters)


def test_a_warm_start_goes_on_growing_and_with_another_penalty():
    X, Y = with_gaps()
    fitted = of_two_rounds(warm_start=True, graph_tol=0.0, alpha=0.01).fit(X, Y)
    assert fitted.label_graph_.n_cliques == 2
    first = fitted.label_graph_.cliques
    fitted.set_params(graph__max_rounds=3).fit(X, Y)
    assert fitted.label_graph_.cliques[:2] == first
    assert fitted.label_graph_.n_cliques == 3
    Y = np.nan_to_num(Y)
    given = of_two_rounds(warm_start=True, graph="full", tol=1e-3).fit(X, Y)
    warm = given.set_params(alpha=0.06).fit(X, Y)
    cold = of_two_rounds(graph="full", tol=1e-3, alpha=0.06).fit(X, Y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=3e-3)


def spoil_iterations(plain):
    for name, part in plain.items() if isinstance(plain, dict) else enumerate(plain):
        if name == "iteration":
            plain[name] = np.zeros(2)
        elif isinstance(part, dict | list | tuple):
            spoil_iterations(part)


def test_an_edited_checkpoint_is_refused_in_a_sentence(tmp_path, monkeypatch):
    """Its checksum may be right: records that are no numbers, a place of a random stream that is none."""
    X, Y = with_gaps()
    written = []

    def noted(self, stage, state):
        usual(self, stage, state)
        self.write()
        written.append((self.path.read_bytes(), stage))

    usual = journal.Journal.note
    monkeypatch.setattr(journal.Journal, "note", noted)
    path = tmp_path / "fit.lwc"
    of_two_rounds(checkpoint=path).fit(X, Y)
    monkeypatch.setattr(journal.Journal, "note", usual)
    path.write_bytes(written[-1][0])
    content = model_files.read_model_file(path)
    plain = model_files.decode(content.state, content.arrays)
    spoil_iterations(plain["states"])
    arrays = {}
    model_files.write_model_file(
        path, model_files.ModelContent("Checkpoint", model_files.encode(plain, arrays), arrays)
    )
    with pytest.raises(model_files.ModelFileError, match="The iteration of a TraceRecord is not a number"):
        of_two_rounds(checkpoint=path).fit(X, Y)
    with pytest.raises(model_files.ModelFileError, match="is not a state"):
        journal._state_of("a", {"kind of state": "numpy.random._generator.Generator", "stream": {
            "bit_generator": "PCG64", "state": {"state": 2**200, "inc": 1},
            "has_uint32": 0, "uinteger": 2**99,
        }})  # fmt: skip
