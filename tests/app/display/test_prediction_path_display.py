"""The path of one prediction in a hierarchy, drawn without a screen."""

import numpy as np
import pandas as pd
import pytest

import labelweave as lw
from labelweave.display import PredictionPathDisplay

TREE = lw.Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": ["rose", "oak"]})
GRAPH = lw.Taxonomy([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("c", "e")])


def texts(display):
    return [text.get_text().split("\n")[0] for text in display.ax_.texts]


def framed(display, style):
    frames = [patch.get_linestyle() == style for patch in display.ax_.patches]
    return {name for name, is_so in zip(texts(display), frames, strict=True) if is_so}


def test_classes_add_up_to_the_nodes_above_them():
    display = PredictionPathDisplay.from_predictions(
        TREE, ["dog"], [[0.5, 0.3, 0.15, 0.05]], ["dog", "cat", "rose", "oak"], others=2
    )
    assert display.probabilities == pytest.approx(
        {"animal": 0.8, "dog": 0.5, "cat": 0.3, "plant": 0.2, "rose": 0.15}
    )
    assert display.predicted == framed(display, "-") == {"animal", "dog"}
    assert framed(display, "--") == {"cat", "plant", "rose"}
    assert len(display.ax_.lines) == 3
    assert "2 nodes predicted" in display.ax_.get_title()


def test_labels_of_a_graph_with_two_parents():
    """Every edge is a line; a node without a label has the probability of the most likely below it."""
    display = PredictionPathDisplay.from_predictions(GRAPH, [1, 0], [0.7, 0.2], ["d", "e"])
    assert display.probabilities == {"a": 0.7, "b": 0.7, "c": 0.7, "d": 0.7, "e": 0.2}
    assert display.predicted == {"a", "b", "c", "d"}
    assert len(display.ax_.lines) == len(GRAPH.pairs())
    left = dict(zip(texts(display), (patch.get_x() for patch in display.ax_.patches), strict=True))
    assert left["a"] < left["b"] == left["c"] < left["d"] == left["e"]


def test_boxes_do_not_overlap():
    random = np.random.default_rng(0)
    pairs = [(f"n{random.integers(k // 3, k)}", f"n{k}") for k in range(1, 400)]
    graph = lw.Taxonomy(pairs, nodes=["n0"])
    labels = (random.random(400) < 0.2).astype(int)
    display = PredictionPathDisplay.from_predictions(graph, labels, random.random(400), graph.nodes)
    assert 20 < len(display.probabilities) <= 60 < len(display.predicted)
    assert f"of {len(display.predicted)} nodes" in display.ax_.get_title()
    boxes = [patch.get_bbox() for patch in display.ax_.patches]
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            assert not (one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)


def test_nothing_predicted():
    display = PredictionPathDisplay.from_predictions(GRAPH, [0, 0], [0.4, 0.2], ["d", "e"], others=0)
    assert display.probabilities == {}
    assert "0 nodes predicted" in display.ax_.get_title()


def test_models_with_a_hierarchy():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    leaves = np.array(["dog", "cat", "rose", "oak"])
    model = lw.KernelLogisticClassifier(taxonomy=TREE, hyperparameters="fixed").fit(
        X, leaves[np.arange(40) % 4]
    )
    display = PredictionPathDisplay.from_estimator(model, X[:1])
    assert display.probabilities["animal"] + display.probabilities["plant"] == pytest.approx(1)
    assert model.predict(X[:1])[0] in display.predicted
    names = ["a", "b", "c", "d", "e"]
    Y = lw.LabelMatrix.from_any((random.random((40, 5)) < 0.4).astype(float), names)
    inner = lw.KernelLogisticClassifier(hyperparameters="fixed")
    many = lw.HierarchicalClassifier(inner, GRAPH, "max").fit(X, GRAPH.with_ancestors(Y))
    display = PredictionPathDisplay.from_estimator(many, X[:1], others=5)
    assert set(display.probabilities) == set(names)
    table = lw.TableModel(many).fit(pd.DataFrame(X, columns=["a", "b", "c"]), GRAPH.with_ancestors(Y))
    display = PredictionPathDisplay.from_estimator(table, pd.DataFrame(X[:1], columns=["a", "b", "c"]))
    assert set(display.probabilities) <= set(names)
    with pytest.raises(ValueError, match="X has 2 rows; pass one row"):
        PredictionPathDisplay.from_estimator(many, X[:2])
    with pytest.raises(TypeError, match="no probabilities"):
        PredictionPathDisplay.from_estimator(lw.MaxMarginClassifier().fit(X, Y), X[:1], taxonomy=GRAPH)
