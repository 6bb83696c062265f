"""Displays of few labels and of small models, each choice that a picture makes, without a screen."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("networkx")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from labelweave import CliqueGraph, LabelMatrix, Taxonomy  # noqa: E402
from labelweave.app.display.given_labels import model_truth, one_hot, predicted_labels  # noqa: E402
from labelweave.app.display.graph_drawing import fitting_drawing  # noqa: E402
from labelweave.app.display.icicle import NodeTexts, icicle_of  # noqa: E402
from labelweave.app.display.label_covariance_display import _strongest  # noqa: E402
from labelweave.app.display.threshold_curve_display import scores_and_thresholds  # noqa: E402
from labelweave.display import (  # noqa: E402
    CalibrationCurveDisplay,
    DualProgressDisplay,
    LabelCovarianceDisplay,
    LabelGraphDisplay,
    LabelGraphPathDisplay,
    LabelQualityDisplay,
    TaxonomyDisplay,
    ThresholdCurveDisplay,
)
from labelweave.labels import LabelCovariance  # noqa: E402
from labelweave.solvers.clique_generation import GraphRecord  # noqa: E402

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 2))
Y_TRUE = (X > 0).astype(int)


@pytest.fixture
def ax():
    figure, axes = plt.subplots(figsize=(4, 3))
    yield axes
    plt.close(figure)


class Fitted(BaseEstimator):
    """As much of a fitted model as pictures look at."""

    def __init__(self, **fitted):
        vars(self).update({f"{name}_": value for name, value in fitted.items()})

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answers_

    def decision_function(self, X):
        return np.asarray(X)[:, :2]


class Probable(Fitted):
    def predict_proba(self, X):
        return np.clip(np.asarray(X)[:, :2], 0, 1)


def test_the_covariance_of_a_model_is_drawn_with_its_names(ax):
    covariance = LabelCovariance.dense([[2.0, 1.0], [1.0, 2.0]])
    model = Fitted(label_covariance=covariance, label_names=["a", "b"])
    display = LabelCovarianceDisplay.from_estimator(model, ax=ax, colorbar=False)
    assert sorted(display.label_names) == ["a", "b"]
    np.testing.assert_allclose(display.matrix, [[1.0, 0.5], [0.5, 1.0]])
    two = Fitted(label_covariance=LabelCovariance.dense([[2.0]]), label_names=["no", "yes"])
    assert list(LabelCovarianceDisplay.from_estimator(two, ax=ax, colorbar=False).label_names) == ["0"]
    with pytest.raises(TypeError, match="Fitted has no label_covariance_ to draw"):
        LabelCovarianceDisplay.from_estimator(Fitted(label_covariance=None))
    with pytest.raises(ValueError, match="centered=True takes correlations"):
        LabelCovarianceDisplay.from_covariance(covariance, centered=True, correlations=False)


def test_of_too_many_labels_the_strongest_are_shown(ax):
    matrix = np.eye(5)
    matrix[3, 4] = matrix[4, 3] = -0.9
    display = LabelCovarianceDisplay.from_covariance(LabelCovariance.dense(matrix), max_labels=2, ax=ax)
    assert sorted(display.label_names) == ["3", "4"]


def test_blocks_of_cells_have_the_value_of_the_largest_size():
    matrix = RANDOM.normal(size=(5, 5))
    found = _strongest(matrix.copy(), 2)
    np.fill_diagonal(matrix, 0.0)
    for row in range(3):
        for column in range(3):
            block = matrix[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            assert abs(found[row, column]) == np.abs(block).max()
            assert found[row, column] in block


@pytest.mark.parametrize(
    ("model", "response", "thresholds"),
    [
        (Fitted(thresholds=[0.25, 0.5]), "auto", [0.25, 0.5]),
        (Fitted(threshold=0.25), "auto", [0.25, 0.25]),
        (Fitted(k=2), "auto", None),
        (Fitted(), "auto", [0.0, 0.0]),
        (Probable(thresholds=[0.25, 0.5]), "auto", [0.25, 0.5]),
        (Probable(thresholds=[0.25, 0.5]), "decision_function", None),
        (Probable(), "predict_proba", [0.5, 0.5]),
    ],
)
def test_thresholds_are_on_the_scale_of_the_scores(model, response, thresholds):
    scores, found = scores_and_thresholds(model, X, 2, response)
    assert (found is None) == (thresholds is None)
    if thresholds is not None:
        np.testing.assert_array_equal(found, thresholds)
    shift = 0.25 if type(model) is Fitted and thresholds and thresholds[0] else 0.0
    expected = np.clip(X, 0, 1) if type(model) is Probable and response != "decision_function" else X
    np.testing.assert_allclose(scores, expected + shift)


def test_infinite_thresholds_have_no_place():
    with pytest.raises(ValueError, match="A threshold of the Fitted is infinite"):
        scores_and_thresholds(Fitted(thresholds=[0.0, np.inf]), X, 2, "auto")


def test_classes_become_columns():
    classes = ["a", "b", "c"]
    labels = one_hot(np.array(["b", None, "a"], object), classes, "y")
    np.testing.assert_array_equal(labels.to_signs(), [[-1, 1, -1], [0, 0, 0], [1, -1, -1]])
    assert one_hot(np.array(["a", "b"]), ["a", "b"], "y").n_labels == 1
    with pytest.raises(ValueError, match=r"y at row 1 is 'd', which is none of the 3 classes \(2 rows"):
        one_hot(np.array(["a", "d", "e"], object), classes, "y")


def test_predictions_are_in_the_columns_of_the_truth():
    table = sp.csr_array(np.eye(2))
    truth = LabelMatrix.from_any(np.eye(2))
    assert predicted_labels(Fitted(answers=table), X, truth) is table
    one = LabelMatrix.from_any([[1], [0]])
    np.testing.assert_array_equal(
        predicted_labels(Fitted(answers=[1, 0], classes=[0, 1, 2]), X, one), [[1], [0]]
    )
    found = predicted_labels(Fitted(answers=["b", "a"], classes=np.array(["a", "b"])), X, one)
    np.testing.assert_array_equal(found.to_signs(), [[1], [-1]])
    model = Fitted(classes=np.array([0, 1]), label_names=["a", "b"])
    assert list(model_truth(model, np.eye(2)).names) == ["a", "b"]
    with pytest.raises(ValueError, match="in another order than the Fitted"):
        model_truth(model, LabelMatrix.from_any(np.eye(2), ["b", "a"]))


def _records(primal, dual=None, gap=None, seconds=1.0):
    steps = range(1, len(primal) + 1)
    parts = {"dual": dual, "gap": gap}
    return [
        SimpleNamespace(
            iteration=k, time=seconds * k, primal=primal[k - 1],
            **{name: part[k - 1] for name, part in parts.items() if part is not None},
        )
        for k in steps
    ]  # fmt: skip


def test_a_fit_without_a_dual_shows_its_decreases(ax):
    display = DualProgressDisplay.from_traces(_records([3.0, 2.0], gap=[np.nan, 0.5]), ax=ax, panels="gap")
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_ydata(), [0.5])
    assert line.get_linestyle() == ":"
    display = DualProgressDisplay.from_traces(_records([3.0, 2.0], gap=[0.0, 0.0]), ax=ax, panels="gap")
    assert display.lines_ == []


def test_fits_of_different_length_are_on_a_logarithmic_axis(ax):
    traces = {"short": _records([3.0, 2.0]), "long": _records([5.0, 4.0], seconds=1e3)}
    display = DualProgressDisplay.from_traces(traces, ax=ax, panels="objective")
    assert ax.get_xscale() == "log"
    assert ax.get_ylabel() == "Share of the last objective"
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [1.5, 1.0])
    by_rounds = DualProgressDisplay.from_traces(traces, ax=plt.figure().gca(), panels="objective",
                                                against="rounds", relative=False)  # fmt: skip
    assert by_rounds.ax_.get_xlabel() == "Rounds"
    np.testing.assert_array_equal(by_rounds.lines_[1].get_ydata(), [5.0, 4.0])
    plt.close(by_rounds.figure_)


def _rounds(cliques, losses):
    fields = dict.fromkeys(GraphRecord._fields, 0)
    pairs = zip(cliques, losses, strict=True)
    return [
        GraphRecord(**fields | {"cliques": added, "held_out_loss": loss, "primal": 2.0 - k})
        for k, (added, loss) in enumerate(pairs)
    ]


def test_rounds_in_which_a_graph_grew(ax):
    names = ["ant", "bee", "cow"]
    rounds = _rounds([[], [(0, 1)], [(1, 2)]], [0.3, 0.1, 0.2])
    display = LabelGraphPathDisplay(rounds, names, 1).plot(ax)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["none  0", "ant, bee  1", "bee, cow  2"]
    np.testing.assert_array_equal(display.loss_line_.get_ydata(), [0.3, 0.1, 0.2])
    legend = [text.get_text() for text in display.loss_ax_.get_legend().get_texts()]
    assert legend == ["objective", "held-out Hamming loss", "model: 1 clique"]
    plain = LabelGraphPathDisplay(_rounds([[(0, 1), (1, 2)]], [np.nan]), names, 2).plot(plt.figure().gca())
    assert plain.loss_line_ is None
    assert plain.ax_.get_xlabel() == "Cliques in the graph"
    plt.close(plain.figure_)


def test_as_much_of_a_graph_is_drawn_as_has_room(ax):
    pairs = [(k, j) for k in range(12) for j in range(k)]
    weights = np.linspace(2.0, 1.0, len(pairs))
    names = [f"a label of number {k}" for k in range(12)]
    graph = CliqueGraph(12, pairs, names, weights, np.ones(len(pairs)))
    whole, small = (fitting_drawing(graph, names, room) for room in ((5000.0, 5000.0), (120.0, 90.0)))
    assert whole.graph.n_cliques == len(pairs)
    assert 1 <= small.graph.n_cliques < len(pairs)
    assert small.graph.cliques == graph.cliques[: small.graph.n_cliques]
    few = CliqueGraph(3, [(0, 1), (1, 2)], names[:3], [2.0, 1.0], [1, -1])
    display = LabelGraphDisplay.from_graph(few, ax=ax, legend=False)
    assert display.ax_ is ax
    assert set(display.texts_) == {0, 1, 2}


TREE = Taxonomy.from_nested({"all": {"animal": {"dog": ["poodle", "boxer"], "cat": None}, "plant": None}})


def test_levels_of_a_tree(ax):
    rows, wrong = np.full(len(TREE), 4.0), np.arange(len(TREE)) % 3
    wide = TaxonomyDisplay(TREE, rows, wrong).plot(ax, max_levels=1, colorbar=False)
    assert "dog" not in " ".join(text.get_text() for text in ax.texts)
    assert wide.errors_["all"] == 0.0
    with pytest.raises(ValueError, match="max_levels is 0"):
        TaxonomyDisplay(TREE, rows, wrong).plot(ax, max_levels=0)


def test_texts_of_a_cell_get_shorter_and_tell_cells_without_rows(ax):
    rows = np.array([4.0, 0.0, 4.0, 4.0, 4.0, 4.0])
    layout = icicle_of(TREE)
    names = [str(TREE.nodes[k]) for k in layout.nodes]
    texts = NodeTexts(ax, layout, names, names, rows, np.array([1.0, 0, 0, 0, 0, 0]))
    first, without = list(texts._candidates(0)), list(texts._candidates(1))
    assert first[0] == (f"{names[0]}  25 % of 4", 0)
    assert without[0] == (f"{names[1]}  no rows", 0)
    assert {rotation for _, rotation in first} == {0, 90}
    assert first[-1] == (names[0][:9], 0)


def test_calibration_of_a_fitted_model(ax):
    y = (X[:, 0] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    display = CalibrationCurveDisplay.from_estimator(model, X, y, ax=ax, n_bins=2, least=0.0)
    assert display.curves[0].counts.sum() == 40
    high = model.predict_proba(X)[:, 1] >= 0.5
    np.testing.assert_allclose(display.curves[0].observed, [y[~high].mean(), y[high].mean()])
    with pytest.raises(TypeError, match="RidgeClassifier has no predict_proba to be checked"):
        CalibrationCurveDisplay.from_estimator(RidgeClassifier().fit(X, y), X, y)


def test_what_is_no_picture_is_said(ax):
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    for draw, error, words in (
        (lambda: LabelGraphDisplay.from_estimator(model), TypeError, "has no label_graph_ to draw"),
        (lambda: LabelGraphPathDisplay.from_estimator(model), TypeError, "has no learned graph"),
        (lambda: DualProgressDisplay.from_estimator(model), TypeError, "LogisticRegression has no trace_"),
        (lambda: DualProgressDisplay.from_traces({"a": 5}), TypeError, "The trace of a is 5"),
        (lambda: DualProgressDisplay.from_traces({}), ValueError, "There are no fits to draw"),
        (lambda: LabelCovarianceDisplay.from_covariance(LabelCovariance.dense([[1.0]]), ax=5), ValueError,
         "ax is 5; give matplotlib's axes"),
        (lambda: LabelQualityDisplay.from_predictions(np.eye(2), np.eye(2), label_names="ab"), ValueError,
         "The label names are 'ab'"),
        (lambda: ThresholdCurveDisplay.from_predictions([[1], [0]], [[np.inf], [-np.inf]]), ValueError,
         "no threshold between them"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            draw()


def test_fits_of_one_class_are_numbered_and_a_learned_graph_is_drawn(ax):
    rounds = _rounds([[], [(0, 1)]], [np.nan, np.nan])
    graph = CliqueGraph(2, [(0, 1)], ["ant", "bee"], [1.0], [1])
    model = Fitted(graph_trace=rounds, label_graph=graph, trace=_records([2.0, 1.0], [0.5, 0.9], [0.75, 0.1]))
    path = LabelGraphPathDisplay.from_estimator(model, ax=ax)
    assert ax.get_xticklabels()[1].get_text() == "ant, bee  1"
    np.testing.assert_array_equal(path.objective_line_.get_ydata(), [2.0, 1.0])
    progress = DualProgressDisplay.from_estimator([model, model], ax=ax, panels="gap")
    assert [fit.name for fit in progress.fits] == ["Fitted", "Fitted 2"]


def test_weak_correlations_have_colours_of_their_own(ax):
    weak = LabelCovariance.dense(np.eye(3) + 0.01 - 0.01 * np.eye(3))
    display = LabelCovarianceDisplay.from_covariance(weak, ax=ax, limit=0.005)
    assert display.image_.get_clim() == (-0.005, 0.005)
    assert display.figure_.axes[-1].get_ylabel() == "correlation"
    covariances = LabelCovarianceDisplay.from_covariance(
        LabelCovariance.dense(np.zeros((2, 2))), ax=plt.figure().gca(), correlations=False, colorbar=False
    )
    assert covariances.image_.get_clim() == (-1.0, 1.0)
    plt.close(covariances.figure_)


def test_errors_of_a_model_at_the_nodes_of_its_tree(ax):
    model = Fitted(answers=np.array(["poodle", "cat"]), classes=np.array(["poodle", "cat", "plant"]))
    display = TaxonomyDisplay.from_estimator(model, X[:2], ["poodle", "boxer"], taxonomy=TREE, ax=ax)
    assert display.errors_["animal"] == 0.0
    assert display.errors_["dog"] == 0.5
    assert display.errors_["boxer"] == 1.0
    assert "plant" not in display.errors_


def test_labels_that_nobody_has_are_left_out_of_qualities(ax):
    truth = np.column_stack([Y_TRUE, np.zeros(40, int)])
    display = LabelQualityDisplay.from_predictions(truth, truth, ax=ax, measures="f1")
    assert "1 of 3 labels left out: no positive rows" in ax.get_title()
    assert display.ax_ is ax
