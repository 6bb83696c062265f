"""Taxonomies with errors at their nodes, drawn without a screen."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave import KernelLogisticClassifier, LabelMatrix, MaxMarginClassifier, Taxonomy
from labelweave.app.display.figures import spread
from labelweave.app.display.icicle import NodeTexts, icicle_of, rarest_parents, tail_names
from labelweave.display import TaxonomyDisplay

TREE = Taxonomy.from_nested({"all": {"animal": {"dog": ["poodle", "boxer"], "cat": None}, "plant": None}})


def random_case(n_nodes, n_rows=800, deep=False):
    generator = np.random.default_rng(n_nodes)
    above = [
        generator.integers(*((max(0, k - 3), k) if deep else (k // 8, k // 4 + 1))) for k in range(1, n_nodes)
    ]
    pairs = [(f"n{above[k - 1]}", f"n{k}") for k in range(1, n_nodes)]
    tree = Taxonomy(pairs, nodes=["n0"])
    truths = generator.choice(tree.leaves, n_rows)
    predicted = np.where(generator.random(n_rows) < 0.3, generator.choice(tree.leaves, n_rows), truths)
    return tree, truths, predicted


def slow_errors(tree, truths, predicted):
    """Count node by node, directly from the definition."""
    found = {}
    for node in tree.nodes:
        below = [k for k, name in enumerate(truths) if name is not None and node in tree.path(name)]
        if below:
            found[node] = np.mean([node not in tree.path(predicted[k]) for k in below])
    return found


def inside_texts(display):
    display.figure_.canvas.draw()
    end = max(path.vertices[:, 0].max() for path in display.ax_.collections[0].get_paths())
    return [text for text in display.ax_.texts if text.get_position()[0] < end]


def test_errors_are_those_of_the_definition():
    truths = ["poodle", "boxer", "cat", "dog", None, "plant", "plant"]
    predicted = ["boxer", "boxer", "plant", "poodle", "cat", "plant", "animal"]
    display = TaxonomyDisplay.from_predictions(TREE, truths, predicted)
    assert display.errors_ == pytest.approx(slow_errors(TREE, truths, predicted))
    assert display.errors_["dog"] == 0
    assert display.errors_["animal"] == 0.25
    tree, *case = random_case(60)
    expected = slow_errors(tree, *case)
    assert TaxonomyDisplay.from_predictions(tree, *case).errors_ == pytest.approx(expected)


def test_many_labels_a_row():
    names = ["poodle", "boxer", "cat", "plant"]
    Y = pd.DataFrame([[1, 1, 0, 0], [0, 0, 1, np.nan], [0, 0, 0, 1]], columns=names)
    predicted = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]])
    display = TaxonomyDisplay.from_predictions(TREE, Y, predicted)
    expected = {"all": 1 / 3, "animal": 0, "dog": 0, "poodle": 0, "boxer": 1, "cat": 1, "plant": 1}
    assert display.errors_ == pytest.approx(expected)
    assert display.rows.tolist() == [3, 2, 1, 1, 1, 1, 1]


def test_the_layout_is_nested():
    layout = icicle_of(TREE)
    assert [TREE.nodes[k] for k in layout.nodes] == TREE.nodes[1:]
    np.testing.assert_allclose(layout.columns, TREE.depth(TREE.nodes[1:]) - 1)
    heights = dict(zip(TREE.nodes[1:], layout.bottom - layout.top, strict=True))
    assert heights == pytest.approx(
        {"animal": 0.75, "dog": 0.5, "poodle": 0.25, "boxer": 0.25, "cat": 0.25, "plant": 0.25}
    )
    alone = icicle_of(Taxonomy([], nodes=["one"]))
    assert alone.corners().shape == (1, 4, 2)
    for tree in (random_case(200)[0], random_case(50, deep=True)[0]):
        layout = icicle_of(tree)
        places = {tree.nodes[k]: j for j, k in enumerate(layout.nodes)}
        for name, j in places.items():
            above = places.get(tree.parent.get(name))
            if above is not None:
                assert (
                    layout.top[above] - 1e-12
                    <= layout.top[j]
                    < layout.bottom[j]
                    <= layout.bottom[above] + 1e-12
                )


def test_paths_lose_what_their_parents_say():
    assert tail_names(Taxonomy.from_paths(["a/b/c", "a/bd"])) == ["a", "b", "c", "bd"]
    assert tail_names(Taxonomy([("cat", "catfish"), ("cat", "tom")])) == ["cat", "catfish", "tom"]


SMALL = (4.0, 3.4)


@pytest.mark.parametrize(
    ("n_nodes", "size", "leaf_height"),
    [
        (6, SMALL, "equal"),
        (100, None, "equal"),
        (100, SMALL, "rows"),
        (983, None, "rows"),
        (983, SMALL, "equal"),
    ],
)
def test_texts_lie_in_their_cells(n_nodes, size, leaf_height):
    ax = None if size is None else plt.subplots(figsize=size, layout="constrained")[1]
    display = TaxonomyDisplay.from_predictions(*random_case(n_nodes), ax=ax, leaf_height=leaf_height)
    texts = inside_texts(display)
    assert len(texts) >= min(3, n_nodes - 3)
    cells = [
        display.ax_.transData.transform(path.vertices) for path in display.ax_.collections[0].get_paths()
    ]
    for text in texts:
        box = text.get_window_extent()
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        (cell,) = [c for c in cells if (c.min(axis=0) <= middle).all() and (middle <= c.max(axis=0)).all()]
        assert cell[:, 0].min() <= box.x0
        assert box.x1 <= cell[:, 0].max()
    right = display.ax_.get_window_extent().x1 + 1
    assert all(text.get_window_extent().x1 <= right for text in display.ax_.texts)


def test_thin_leaves_are_named_beside_by_their_wrong_rows():
    tree, truths, predicted = random_case(983, n_rows=4000)
    display = TaxonomyDisplay.from_predictions(tree, truths, predicted)
    inside = set(inside_texts(display))
    beside = [text for text in display.ax_.texts if text not in inside]
    assert 40 <= len(beside) <= 120
    heights = np.sort([text.get_window_extent().y0 for text in beside])
    assert np.diff(heights).min() >= beside[0].get_window_extent().height * 0.8
    worst = tree.nodes[np.argmax(np.where(tree.is_leaf(tree.nodes), display.wrong, 0))]
    assert any(text.get_text().startswith(f"{worst}  ") for text in beside)


def test_names_beside_are_whole_or_end_as_they_do():
    tree = Taxonomy.from_paths([f"animal/group {k % 40}/{k}" for k in range(400)])
    display = TaxonomyDisplay.from_predictions(tree, tree.leaves, tree.leaves[1:] + tree.leaves[:1])
    inside = set(inside_texts(display))
    beside = [text.get_text() for text in display.ax_.texts if text not in inside]
    leaves = set(tree.leaves)
    assert all(any(leaf.endswith(text.split("  ")[0].lstrip("…")) for leaf in leaves) for text in beside)
    assert all("group" in text or text.startswith("…") for text in beside)


def test_deep_trees_are_drawn():
    display = TaxonomyDisplay.from_predictions(*random_case(60, deep=True), colorbar=False, limit=1.0)
    assert display.ax_.collections[0].get_clim() == (0, 1)
    assert len(display.figure_.axes) == 1
    assert len(inside_texts(display)) >= 10


def test_lower_levels_are_omitted_where_there_is_no_room():
    case = random_case(60, deep=True)
    _, ax = plt.subplots(figsize=(4.0, 3.4), layout="constrained")
    display = TaxonomyDisplay.from_predictions(*case, ax=ax)
    n_levels = case[0].depth(case[0].nodes).max()
    assert f" of {n_levels} levels: " in ax.get_title()
    assert len(inside_texts(display)) >= 3
    two = display.plot(max_levels=2)
    assert two.ax_.get_title().startswith(f"2 of {n_levels} levels: ")
    assert len(two.ax_.collections[0].get_paths()) == (case[0].depth(case[0].nodes[1:]) <= 2).sum()
    with pytest.raises(ValueError, match="max_levels is 0"):
        display.plot(max_levels=0)


def test_nodes_without_rows_are_gray():
    display = TaxonomyDisplay.from_predictions(TREE, ["cat", "cat"], ["cat", "plant"])
    assert display.errors_ == {"all": 0.0, "animal": 0.5, "cat": 0.5}
    assert display.ax_.get_title() == "6 nodes; 4 without rows (gray)"
    assert display.ax_.collections[0].get_array().mask.sum() == 4


def test_spread_places_keep_their_distance():
    generator = np.random.default_rng(0)
    for count in (0, 1, 5, 40):
        places = np.sort(generator.random(count) ** 3)
        moved = spread(places, 0.02, 0.01, 0.99)
        assert (np.diff(moved) >= 0.02 - 1e-9).all()
        assert ((moved >= 0.01 - 1e-9) & (moved <= 0.99 + 1e-9)).all()
    far = np.array([0.2, 0.5, 0.8])
    np.testing.assert_allclose(spread(far, 0.02, 0.0, 1.0), far)


def test_fitted_models():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 3))
    leaves = np.array(["poodle", "boxer", "cat", "plant"])
    y = leaves[np.argmax(np.column_stack([X, X[:, 0] - X[:, 1]]), axis=1)]
    model = KernelLogisticClassifier(gamma=0.5, taxonomy=TREE, hyperparameters="fixed").fit(X, y)
    display = TaxonomyDisplay.from_estimator(model, X, y)
    assert display.errors_ == pytest.approx(slow_errors(TREE, y, model.predict(X)))
    names = LabelMatrix.from_any((y[:, None] == leaves).astype(int), leaves)
    piped = make_pipeline(StandardScaler(), MaxMarginClassifier(label_covariance=TREE)).fit(X, names)
    assert TaxonomyDisplay.from_estimator(piped, X, names).rows[0] == 80
    flat = LogisticRegression().fit(X, y)
    assert TaxonomyDisplay.from_estimator(flat, X, y, taxonomy=TREE).errors_.keys() == display.errors_.keys()


def test_labels_are_those_that_the_model_names():
    X, leaves = np.random.default_rng(0).normal(size=(60, 4)), ["poodle", "boxer", "cat", "plant"]
    Y = (X > 0.5).astype(int)
    model = MaxMarginClassifier().fit(X, LabelMatrix.from_any(Y, leaves))
    expected = TaxonomyDisplay.from_predictions(TREE, pd.DataFrame(Y, columns=leaves), model.predict(X))
    display = TaxonomyDisplay.from_estimator(model, X, Y, taxonomy=TREE)
    assert display.errors_ == expected.errors_
    turned = pd.DataFrame(Y, columns=leaves)[leaves[::-1]]
    with pytest.raises(ValueError, match="another order than the MaxMarginClassifier: column 0 is 'plant'"):
        TaxonomyDisplay.from_estimator(model, X, turned, taxonomy=TREE)


def test_nodes_of_several_parents_stand_once_under_the_rarest():
    graph = Taxonomy([("pet", "dog"), ("canine", "dog"), ("pet", "cat"), ("canine", "wolf")])
    names = ["pet", "canine", "dog", "cat", "wolf"]
    truth = pd.DataFrame([[1, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 1, 0], [0, 1, 0, 0, 1]], columns=names)
    found = truth.assign(dog=0, wolf=0)
    display = TaxonomyDisplay.from_predictions(graph, truth, LabelMatrix.from_any(found))
    assert display.errors_ == {"pet": 0.0, "canine": 0.0, "dog": 1.0, "cat": 0.0, "wolf": 1.0}
    assert "5 nodes; 1 with several parents, under the rarest" in display.ax_.get_title()
    tree = rarest_parents(graph, np.array([{"pet": 3, "canine": 2}.get(name, 1) for name in graph.nodes]))
    assert tree.parent["dog"] == "canine"
    assert sorted(tree.nodes) == sorted(names)
    assert rarest_parents(TREE, np.zeros(len(TREE))) is TREE


def test_large_hierarchies_show_the_levels_whose_names_have_room():
    display = TaxonomyDisplay.from_predictions(*random_case(900, deep=True), max_levels=None)
    assert shown_levels(display) < max(display.taxonomy.depth(display.taxonomy.nodes))
    inside = [text.get_text() for text in display.ax_.texts if text.get_position()[0] % 1 == 0.5]
    assert len(inside) >= shown_levels(display)
    assert all(re.search(r"n\d+\s+\d+ % of", text) for text in inside)


def shown_levels(display):
    return int(display.ax_.get_title().split()[0])


def test_texts_of_a_cell_get_shorter_and_tell_cells_without_rows():
    rows = np.array([4.0, 0.0, 4.0, 4.0, 4.0, 4.0])
    layout = icicle_of(TREE)
    names = [str(TREE.nodes[k]) for k in layout.nodes]
    texts = NodeTexts(plt.gca(), layout, names, names, rows, np.array([1.0, 0, 0, 0, 0, 0]))
    first, without = list(texts._candidates(0)), list(texts._candidates(1))
    assert first[0] == (f"{names[0]}  25 % of 4", 0)
    assert without[0] == (f"{names[1]}  no rows", 0)
    assert {rotation for _, rotation in first} == {0, 90}
    assert first[-1] == (names[0][:9], 0)
