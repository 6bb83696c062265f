"""Plots of label graphs and of how they were learned, drawn without a screen."""

import sys
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drawn import draw_labels
from labelweave import CliqueGraph, GraphGrowth, LabelGraphClassifier
from labelweave.display import LabelGraphDisplay, LabelGraphPathDisplay
from pictures import records


def drawn(n_labels, n_edges, seed=0):
    """A graph with hubs, and names of several lengths."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(n_labels), 2))
    chance = np.array([1.0 / (1 + one) for one, _ in pairs])
    chosen = rng.choice(len(pairs), n_edges, replace=False, p=chance / chance.sum())
    names = [f"label {'x' * int(rng.integers(0, 14))} {k}" for k in range(n_labels)]
    weights, signs = rng.gamma(2.0, 1.0, n_edges), rng.integers(-1, 2, n_edges)
    return CliqueGraph(n_labels, [pairs[k] for k in chosen], names, weights, signs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_labels", "n_edges"), [(2, 1), (6, 5), (6, 15), (30, 29), (100, 60), (100, 900), (983, 500)]
)
def test_every_name_can_be_read(n_labels, n_edges):
    display = LabelGraphDisplay.from_graph(drawn(n_labels, n_edges))
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.texts_.values()]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    frame = display.figure_.bbox
    assert all(box.x0 >= 0 and box.x1 <= frame.width and box.y0 >= 0 for box in boxes)
    assert all(text.get_fontsize() >= 7 for text in display.texts_.values())
    assert len(display.lines_) == min(50, n_edges)
    width, height = display.figure_.get_size_inches()
    assert width < 20
    assert height < 20


def test_small_axes_show_what_can_be_read():
    figure, ax = plt.subplots(figsize=(4.0, 3.4), layout="constrained")
    display = LabelGraphDisplay.from_graph(drawn(983, 500), ax=ax)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in display.texts_.values()]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert 3 <= len(display.lines_) < 50
    note = display.ax_.get_xlabel().replace("\n", " ")
    assert note.startswith(f"the strongest {len(display.lines_)} of 500 cliques")
    assert display.ax_.xaxis.label.get_window_extent().width <= figure.bbox.width
    assert display.ax_.get_legend().get_window_extent().width <= figure.bbox.width
    assert display.graph.n_cliques == 50


def test_the_same_picture_every_time():
    first, second = (LabelGraphDisplay.from_graph(drawn(20, 25)) for _ in range(2))
    for label, text in first.texts_.items():
        assert text.get_position() == second.texts_[label].get_position()


def test_lines_tell_weights_and_signs_in_grey_too():
    graph = CliqueGraph(6, [(0, 1), (2, 3), (4, 5)], None, [1.0, 3.0, 2.0], [1, -1, 0])
    display = LabelGraphDisplay.from_graph(graph)
    strongest, weaker, weakest = display.lines_
    widths = [line.get_linewidth() for line in (strongest, weaker, weakest)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[2]
    assert len({line._dash_pattern[1] and tuple(line._dash_pattern[1]) for line in display.lines_}) == 3
    assert len({to_rgb(line.get_color()) for line in display.lines_}) == 3
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == ["together", "apart", "depends on the row", "widest line: weight 3"]
    assert LabelGraphDisplay.from_graph(graph, legend=False).ax_.get_legend() is None
    plain = LabelGraphDisplay.from_graph(CliqueGraph(3, [(0, 1)]))
    assert plain.ax_.get_legend() is None


@pytest.mark.parametrize(
    ("graph", "options", "note"),
    [
        (CliqueGraph(3, [(0, 1), (1, 2)]), {}, ""),
        (CliqueGraph(4, [(0, 1)], ["a", "b", "c", "d"]), {}, "without edges: c, d"),
        (CliqueGraph(30, [(0, 1)]), {}, "28 of 30 labels without edges omitted"),
        (CliqueGraph(5, [(0, 1), (1, 2), (3, 4)], None, [1, 3, 2]), {"max_cliques": 2},
         "the strongest 2 of 3 cliques; 1 of 5 labels with weaker edges, or none, omitted"),
        (CliqueGraph(3, [(0, 1), (1, 2)]), {"max_cliques": 1},
         "the first 1 of 2 cliques; 1 of 3 labels with weaker edges, or none, omitted"),
    ],
)  # fmt: skip
def test_omitted_note_is_said(graph, options, note):
    display = LabelGraphDisplay.from_graph(graph, **options)
    assert display.note == note
    assert display.ax_.get_xlabel().replace("\n", " ") == note


def test_the_strongest_are_shown():
    graph = CliqueGraph(5, [(0, 1), (1, 2), (3, 4)], ["a", "b", "c", "d", "e"], [1, 3, 2], [1, 1, -1])
    display = LabelGraphDisplay.from_graph(graph, max_cliques=2)
    assert display.graph.cliques == ((1, 2), (3, 4))
    assert sorted(text.get_text() for text in display.texts_.values()) == ["b", "c", "d", "e"]


def test_larger_cliques_are_points_with_lines():
    display = LabelGraphDisplay.from_graph(CliqueGraph(5, [(0, 1, 2), (2, 3)]))
    assert len(display.lines_) == 4
    assert len(display.ax_.lines) == 5


def test_of_a_model():
    X, Y = draw_labels(50, 3, noise=0, above=0)
    model = LabelGraphClassifier(GraphGrowth(max_rounds=3, validation_fraction=0.2), alpha=0.05, tol=0.05)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y)
    display = LabelGraphDisplay.from_estimator(pipeline, max_cliques=2)
    assert len(display.lines_) == min(2, pipeline[-1].label_graph_.n_cliques)
    path = LabelGraphPathDisplay.from_estimator(pipeline)
    rounds = pipeline[-1].graph_trace_
    np.testing.assert_allclose(path.objective_line_.get_ydata(), [record.primal for record in rounds])
    np.testing.assert_allclose(path.loss_line_.get_ydata(), [record.held_out_loss for record in rounds])
    assert path.loss_ax_.get_ylabel() == "Held-out Hamming loss"
    pipeline[-1].set_params(loss="f1")
    assert LabelGraphPathDisplay.from_estimator(pipeline).loss_ax_.get_ylabel() == "Held-out F1 loss"


def test_cliques_that_return_count_once():
    groups = [(), ((0, 1), (1, 2)), ((0, 1), (0, 2))]
    rounds = [
        record._replace(cliques=cliques) for record, cliques in zip(records([0, 2, 2]), groups, strict=True)
    ]
    path = LabelGraphPathDisplay(rounds, ["a", "b", "c"], 3).plot()
    assert path.objective_line_.get_xdata().tolist() == [0, 2, 3]


def test_rounds_are_named_where_they_are_few():
    names = [f"label {k}" for k in range(60)]
    few = LabelGraphPathDisplay(records([0, 1, 1]), names, 1).plot()
    assert [text.get_text() for text in few.ax_.get_xticklabels()] == [
        "none  0", "label 0, label 1  1", "label 0, label 2  2",
    ]  # fmt: skip
    assert few.loss_ax_ is None
    words = [text.get_text() for text in few.ax_.get_legend().get_texts()]
    assert words == ["objective", "model: 1 clique"]
    many = LabelGraphPathDisplay(records([0] + [1] * 40), names, 40).plot()
    assert many.ax_.get_xlabel() == "Cliques in the graph"
    several = LabelGraphPathDisplay(records([0, 3, 3], [0.3, 0.2, 0.1]), names, 6).plot()
    assert several.objective_line_.get_xdata().tolist() == [0, 3, 6]
    assert several.loss_ax_ is not None
    figure, ax = plt.subplots()
    assert several.plot(ax).figure_ is figure


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"need networkx: install labelweave\[app\]"):
        LabelGraphDisplay.from_graph(CliqueGraph(3, [(0, 1)]))
