"""Expensive choices cause a warning, with an estimate, before they start."""

from functools import partial
from time import perf_counter

import numpy as np
import pytest
from sklearn.exceptions import EfficiencyWarning

import labelweave as lw
from drawn import draw_labels
from labelweave.datasets import make_text_like
from labelweave.estimators.label_graph.fit import GraphFit
from labelweave.estimators.label_tree import classifier
from labelweave.estimators.label_tree.fit import TreeSettings
from labelweave.estimators.max_margin import fit
from labelweave.features.gram import choose
from labelweave.foundation import costs
from labelweave.labels import CliqueGraph
from labelweave.postprocessing.map import MapInference, component_orders, expected_seconds
from labelweave.problems import make_gram_margins


class BegunError(Exception):
    """The expensive work would begin here."""


def _begin(*_, **__):
    raise BegunError


_rows = partial(draw_labels, noise=0, above=0.5)


def _warned(model, X, Y, match):
    with pytest.warns(EfficiencyWarning, match=match) as caught, pytest.raises(BegunError):
        model.fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_full_graph_of_many_labels_is_warned_of(monkeypatch):
    monkeypatch.setattr(GraphFit, "given", _begin)
    X, Y = _rows(40, 5, 40)
    said = r"780 cliques over 40 of 40 labels .* 40 rows, .* takes about \d.* minutes; use a sparser graph"
    _warned(lw.LabelGraphClassifier(graph="full"), X, Y, said)
    for quick in (
        lw.LabelGraphClassifier(graph="chow-liu"),
        lw.LabelGraphClassifier(graph="full", inference=1),
    ):
        with pytest.raises(BegunError):
            quick.fit(X, Y)
    with pytest.raises(BegunError):
        lw.LabelGraphClassifier(graph="full").fit(X, Y[:, :14])


def test_the_estimate_is_of_the_order_of_the_search(monkeypatch):
    graph, random = CliqueGraph.complete(36), np.random.default_rng(0)
    scores = random.normal(size=(1, 36)), random.normal(size=int(graph.table_starts[-1]))
    MapInference(graph, max_nodes=10).solve(*scores)
    begin = perf_counter()
    MapInference(graph, max_nodes=200).solve(*scores)
    expected = expected_seconds(graph, component_orders(graph, 12), 200)
    assert expected / 20 < perf_counter() - begin < expected * 100


def test_wide_graphs_of_many_features_are_warned_of(monkeypatch):
    monkeypatch.setattr(GraphFit, "given", _begin)
    monkeypatch.setattr(costs, "_LARGE", 1e6)
    _warned(
        lw.LabelGraphClassifier(graph="full"),
        *_rows(40, 200, 12),
        r"66 cliques takes about 0.0013 GB of memory",
    )


def test_kernel_matrices_beyond_the_memory_budget_are_warned_of(monkeypatch):
    monkeypatch.setattr(costs, "_LONG", 0.05)
    X, Y = _rows(1500, 20, 3)
    monkeypatch.setattr(make_gram_margins, "StreamedGram", _begin)
    said = r"1500 rows exceeds memory_budget=6 .* seconds; raise it to 18"
    with lw.config_context(memory_budget=6.0):
        _warned(lw.MaxMarginClassifier(kernel="rbf"), X, Y, said)
    monkeypatch.setattr(choose, "StreamedGram", _begin)
    said = r"1500 rows does not fit memory_budget=6, .* pass a memory_budget of 18 megabytes, a kernel_rank"
    model = lw.KernelLogisticClassifier(hyperparameters="fixed")
    with lw.config_context(memory_budget=6.0):
        _warned(model, X, Y, said)


def test_learned_widths_and_exact_solves_are_warned_of(monkeypatch):
    monkeypatch.setattr(lw.KernelLogisticClassifier, "_settings", _begin)
    monkeypatch.setattr(costs, "_LONG", 0.05)
    X, Y = _rows(300, 200, 2)
    said = (
        r"widths of 200 features in 100 evaluations or fewer takes about .* seconds; set fewer learning_rows"
    )
    _warned(lw.KernelLogisticClassifier("ard"), X, Y[:, 0], said)
    X, Y = _rows(600, 3, 4)
    said = "factorizes 4 matrices of 600 rows .* use solver='auto'"
    _warned(lw.KernelLogisticClassifier(solver="exact", hyperparameters="fixed"), X, Y, said)


def test_margins_harder_than_rounding_are_warned_of(monkeypatch):
    monkeypatch.setattr("labelweave.estimators.max_margin.fit.MarginTask.solve", _begin)
    X, Y = _rows(100, 3, 2)
    _warned(
        lw.MaxMarginClassifier(C=1e12), X, Y, r"C=1e\+12 for 100 rows is .* C=2e\+10 is as good as a hard"
    )
    with pytest.raises(BegunError):
        lw.MaxMarginClassifier(C=1e9).fit(X, Y)


def test_trees_that_take_gigabytes_are_warned_of_and_are_one_by_default(monkeypatch):
    monkeypatch.setattr(TreeSettings, "solve", _begin)
    monkeypatch.setattr(costs, "_LARGE", 1e3)
    data = make_text_like(800, 500, 300)
    said = "A model of 300 labels by 3 trees takes about 0.00.* GB of memory; n_trees=1 takes less"
    _warned(lw.LabelTreeClassifier(), data.X, data.Y, said)
    monkeypatch.setattr(classifier, "_MANY_LABELS", 200)
    said = "A model of 300 labels by one tree takes .* GB of memory; a larger prune= keeps fewer"
    _warned(lw.LabelTreeClassifier(), data.X, data.Y, said)


def test_the_memory_of_a_tree_is_guessed_in_its_order(monkeypatch):
    monkeypatch.setattr(costs, "_LARGE", 0.0)
    data = make_text_like(800, 500, 300)
    with pytest.warns(EfficiencyWarning) as caught:
        model = lw.LabelTreeClassifier(n_trees=1).fit(data.X, data.Y)
    n_bytes = 1e9 * float(str(caught[0].message).split("about ")[1].split(" GB")[0])
    assert n_bytes / 5 < 12 * len(model.scorer_.trees[0].values) < 5 * n_bytes


def test_dense_weights_of_many_words_and_labels_are_warned_of(monkeypatch):
    data = make_text_like(40, 160, 6)
    X, Y = data.X, data.Y
    monkeypatch.setattr(fit, "_LARGE_MODEL", 160 * 6 * 8.0)
    lw.MaxMarginClassifier(solver="coordinate_ascent").fit(X, Y)
    monkeypatch.setattr(fit, "_LARGE_MODEL", 160 * 6 * 8.0 - 1)
    with pytest.warns(EfficiencyWarning, match="160 x 6 weights.*prune='certified'") as caught:
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier(solver="coordinate_ascent")).fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    for model in (
        lw.MaxMarginClassifier(prune="certified"),
        lw.MaxMarginClassifier(solver="coordinate_ascent", label_covariance=0.5 * np.eye(6) + 0.5),
    ):
        model.fit(X, Y)
