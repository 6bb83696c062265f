"""The label graph, the taxonomy and the correlations as plots on the page."""

import re
import sys

import numpy as np
import pytest

import labelweave as lw
from labelweave.app.report.label_numbers import LabelStructure, NodeNumbers
from labelweave.app.report.pictures import graph_picture, tree_branches, tree_picture

EVIL = "<script>document.title='owned'</script>"


def test_a_label_graph_is_drawn(report, data):
    pytest.importorskip("networkx")
    X, Y = data
    named = lw.LabelMatrix(Y.positives, None, [EVIL, "a & b", '"quoted"', "海", "n" * 300, "x$y$", "tag 6"])
    model = lw.LabelGraphClassifier("full", 0.1, tol=0.3).fit(X[:200], named[:200])
    page = report(model, X[200:], named[200:])
    picture = next(found for found in page.named("svg") if found["class"] == "graph")
    assert picture["role"] == "img"
    assert EVIL not in page.html
    assert "x$y$" in page.text
    assert page.still_open == []
    assert "21 groups of labels are connected" in page.text
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_graph_without_ties_or_without_networkx_has_its_table_alone(report, data, monkeypatch):
    X, Y = data
    none = lw.LabelGraphClassifier("none", 0.1, tol=0.3).fit(X[:200], Y[:200])
    page = report(none, X[200:], Y[200:])
    assert not any(found["class"] == "graph" for found in page.named("svg"))
    assert "0 groups of labels are connected." in page.text
    pair = lw.LabelGraphClassifier([(0, 1)], 0.1, tol=0.3).fit(X[:200], Y[:200])
    monkeypatch.setitem(sys.modules, "networkx", None)
    page = report(pair, X[200:], Y[200:])
    assert not any(found["class"] == "graph" for found in page.named("svg"))
    assert "1 group of labels is connected" in page.text


def test_the_strongest_cliques_have_wide_lines_and_signs():
    pytest.importorskip("networkx")
    graph = lw.CliqueGraph(5, [(0, 1), (1, 2), (2, 3, 4)], None, [1.0, 3.0, 2.0], [1, -1, 0])
    picture = graph_picture(graph, list("abcde"))
    kinds = {line.words.split(":")[0]: (line.kind, line.width) for line in picture.lines}
    assert kinds["b, c"][0] == "against"
    assert kinds["a, b"][0] == "for"
    assert kinds["c, d, e"][0] == "either"
    assert kinds["b, c"][1] > kinds["c, d, e"][1] > kinds["a, b"][1]
    assert len(picture.hubs) == 1
    assert picture.kinds == ["for", "against", "either"]
    assert all(0 <= name.x <= picture.width and 0 <= name.y <= picture.height for name in picture.names)
    many = lw.CliqueGraph.complete(40)
    assert graph_picture(many, [str(k) for k in range(40)]).n_shown == 40


def test_a_taxonomy_is_drawn_with_its_errors(report):
    rng = np.random.default_rng(0)
    tree = lw.Taxonomy([("all", "left"), ("all", "right"), ("left", "a"), ("left", EVIL), ("right", "c")])
    kinds = np.array(["a", EVIL, "c"])[rng.integers(0, 3, 90)]
    X = rng.normal(size=(90, 4)) + 2.0 * (kinds == "c")[:, None]
    model = lw.KernelLogisticClassifier(taxonomy=tree, hyperparameters="fixed").fit(X[:60], kinds[:60])
    page = report(model, X[60:], kinds[60:])
    assert next(found for found in page.named("svg") if found["class"] == "tree")
    assert EVIL not in page.html
    rows = int((kinds[60:] == "c").sum())
    assert re.search(rf"right: \d+ of {rows} predicted elsewhere", page.text)


def test_names_are_as_long_as_cells_are_wide():
    tree = lw.Taxonomy([("root", f"{'n' * 300}{k}") for k in range(500)])
    nodes = [NodeNumbers(k, k, 0, name, int(k > 0), k > 0) for k, name in enumerate(tree.nodes)]
    picture = tree_picture(tree, nodes)
    assert len(picture.cells) == 500  # without the root
    assert not any(cell.text for cell in picture.cells)  # no room for so many
    few = tree_picture(lw.Taxonomy([("root", "n" * 300), ("root", "m")]), nodes[:3])
    assert few.cells[0].text.endswith("…")
    assert len(few.cells[0].text) * 7.6 <= few.width
    assert tree_picture(lw.Taxonomy.from_nested({"a": None, "b": None}), [nodes[0], nodes[0]]) is None


def test_a_graph_is_drawn_too_and_the_nodes_of_a_large_one_that_can_be_seen():
    graph = lw.Taxonomy([("a", "b"), ("c", "b"), ("c", "d")])
    rows = {"a": 9, "c": 6, "b": 4, "d": 2}
    depths = dict(zip(graph.nodes, graph.depth(graph.nodes), strict=True))
    nodes = [NodeNumbers(rows[name], 5, 1, name, depths[name], name in "bd") for name in graph.nodes]
    picture = tree_picture(graph, nodes)
    place = {cell.text: cell for cell in picture.cells}
    assert place.keys() == set("abcd")
    assert place["b"].x > place["c"].x == place["a"].x
    assert place["c"].y <= place["b"].y < place["c"].y + place["c"].height  # under the rarer of its two
    assert (picture.several, picture.omitted) == (1, 0)
    random = np.random.default_rng(0)
    large = lw.Taxonomy([(f"n{random.integers(k)}", f"n{k}") for k in range(1, 6000)])
    counts = random.pareto(1.0, len(large)).astype(int)
    depths = large.depth(large.nodes)
    nodes = [
        NodeNumbers(count, 0, 0, name, depth, leaf)
        for count, name, depth, leaf in zip(
            counts, large.nodes, depths, large.is_leaf(large.nodes), strict=True
        )
    ]
    picture = tree_picture(large, nodes)
    assert 300 < len(picture.cells) <= 3000
    assert picture.n_shown == 8 < picture.n_levels
    assert 1000 < picture.omitted + len(picture.cells) < len(large)  # upper levels
    assert min(cell.height for cell in picture.cells) >= 0.4


def test_priors_of_rare_labels_show_what_goes_together(report):
    rng = np.random.default_rng(0)
    Y = (rng.random((600, 20)) < 0.03).astype(int)
    Y[:, 1] = Y[:, 0]
    labels = lw.LabelMatrix.from_any(Y, [f"l{k}" for k in range(20)])
    X = Y + rng.normal(size=Y.shape)
    prior = lw.LabelCovariance.from_labels(labels, centered=False).shrink(0.05)
    model = lw.MaxMarginClassifier(label_covariance=prior, tol=0.1).fit(X, labels)
    ties = LabelStructure(model).ties()
    assert {ties[0].first, ties[0].second} == {"l0", "l1"}
    assert ties[0].value > 3 * ties[1].value
    assert "without this common factor" in report(model, X, labels).text


def test_branches_of_a_large_hierarchy_nest_those_with_the_most_missed_first():
    pairs = [("a", "b"), ("c", "b"), *(("a" if k % 2 else "c", f"n{k}") for k in range(50))]
    graph = lw.Taxonomy(pairs)
    rows = {"a": 90, "c": 60, "b": 20, "n1": 7}
    nodes = [
        NodeNumbers(rows.get(name, 0), 5, min(5, rows.get(name, 0)), name, depth, depth > 0)
        for name, depth in zip(graph.nodes, graph.depth(graph.nodes), strict=True)
    ]
    first, second = tree_branches(graph, nodes)
    assert (first.node.name, second.node.name) == ("a", "c")
    assert (first.below[0].node.name, first.below[0].node.missed) == ("n1", 2)
    assert (second.below[0].node.name, second.below[0].others) == ("b", ["a"])
    assert len(first.below) + len(second.below) == 51
    assert tree_branches(lw.Taxonomy([("a", "b")]), nodes[:2]) == []


def test_a_report_of_a_graph_opens_branch_by_branch_without_scripts(report):
    rng = np.random.default_rng(0)
    names = ["a", "c", "b", *(f"n{k}" for k in range(50))]
    graph = lw.Taxonomy([("a", "b"), ("c", "b"), *(("a" if k % 2 else "c", f"n{k}") for k in range(50))])
    X = rng.normal(size=(60, 4))
    Y = graph.with_ancestors(lw.LabelMatrix.from_any((X @ rng.normal(size=(4, 53)) > 1).astype(int), names))
    page = report(lw.HierarchicalClassifier(lw.BinaryRelevance(), graph).fit(X, Y), X, Y)
    assert "Open a branch to see its children" in page.text
    assert "The rows of a node are those of its label" in page.text
    assert "also under" in page.text
