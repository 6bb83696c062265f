"""Clique graphs: how they are made, their properties, and Chow-Liu trees."""

import itertools
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelweave.labels import LabelMatrix
from labelweave.labels.clique_graph import CliqueGraph, chow_liu
from labelweave.labels.clique_graph.graph import elimination_order
from labelweave.model_files import load_object, save_object

_NAMES = ["beach", "boat", "field", "sea"]


@st.composite
def graphs(draw):
    n_labels = draw(st.integers(1, 9))
    pairs = list(itertools.combinations(range(n_labels), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return CliqueGraph(n_labels, chosen)


def test_names_and_indices_in_any_order():
    graph = CliqueGraph.from_edges([("sea", "beach"), (1, 3), ("field", 1, "beach")], _NAMES)
    assert graph.cliques == ((0, 3), (1, 3), (0, 1, 2))
    assert graph.edges == ((0, 3), (1, 3))
    assert graph.table_starts.tolist() == [0, 4, 8, 16]
    assert repr(graph) == "CliqueGraph(4 labels, 3 cliques: 2 pairs, 1 triples)"
    assert graph.first(1) == CliqueGraph(4, [(0, 3)], _NAMES)
    assert hash(graph.first(1)) == hash(CliqueGraph(4, [(0, 3)], _NAMES))
    assert graph != graph.first(2)
    assert CliqueGraph.from_edges([(0, np.int64(2))], n_labels=3).cliques == ((0, 2),)


def test_the_complete_and_the_empty_graph():
    complete, empty = CliqueGraph.complete(5), CliqueGraph.empty(3, "abc")
    assert (complete.n_cliques, complete.width, complete.components) == (10, 4, ((0, 1, 2, 3, 4),))
    assert (empty.n_cliques, empty.width, empty.components) == (0, 0, ((0,), (1,), (2,)))
    assert repr(empty) == "CliqueGraph(3 labels, no cliques)"


def test_words_about_a_large_graph_take_no_elimination(monkeypatch):
    graph = CliqueGraph.complete(400)
    monkeypatch.setattr("labelweave.labels.clique_graph.graph.elimination_order", None)
    assert repr(graph) == "CliqueGraph(400 labels, 79800 cliques: 79800 pairs)"


def test_less_than_no_cliques_are_refused():
    assert CliqueGraph.complete(4).first(0).n_cliques == 0
    with pytest.raises(ValueError, match=r"count is -1; .* >= 0"):
        CliqueGraph.complete(4).first(-1)


@pytest.mark.parametrize(
    ("n_labels", "edges", "width"),
    [
        (6, [(k, k + 1) for k in range(5)], 1),
        (6, [(k, (k + 1) % 6) for k in range(6)], 2),
        (16, [(k, k + 1) for k in range(15) if k % 4 < 3] + [(k, k + 4) for k in range(12)], 4),
    ],
    ids=["path", "cycle", "grid"],
)
def test_widths_of_known_graphs(n_labels, edges, width):
    assert CliqueGraph(n_labels, edges).width == width


@given(graph=graphs())
def test_an_order_eliminates_every_node_with_the_neighbors_it_has_by_then(graph):
    left = graph.neighbors()
    order = elimination_order(left)
    assert sorted(node for node, _ in order) == list(range(graph.n_labels))
    for node, around in order:
        assert around == sorted(left[node])
        for other in around:
            left[other] |= set(around) - {other}
            left[other].discard(node)
    assert elimination_order(graph.neighbors(), graph.width) == order
    if graph.width:
        assert elimination_order(graph.neighbors(), graph.width - 1) is None


@given(graph=graphs())
def test_components_are_those_of_networkx(graph):
    networkx = pytest.importorskip("networkx")
    expected = networkx.connected_components(graph.to_networkx())
    assert sorted(graph.components) == sorted(tuple(sorted(labels)) for labels in expected)


def test_networkx_and_back():
    networkx = pytest.importorskip("networkx")
    graph = CliqueGraph(4, [(0, 3), (1, 3), (0, 1, 2)], _NAMES, [0.5, 2.0, 1.0], [1, -1, 0])
    network = graph.to_networkx()
    assert network.edges["beach", "sea"] == {"weight": 0.5, "sign": 1}
    assert network.nodes["beach", "boat", "field"] == {"kind": "clique", "weight": 1.0, "sign": 0}
    assert list(network.neighbors(("beach", "boat", "field"))) == ["beach", "boat", "field"]
    again = CliqueGraph.from_edges(network, _NAMES)
    assert again == graph
    assert CliqueGraph.from_edges(network).label_names.tolist() == _NAMES
    plain = networkx.Graph([(0, 2), (1, 2)])
    assert CliqueGraph.from_edges(plain, n_labels=5) == CliqueGraph(5, [(0, 2), (1, 2)])
    assert CliqueGraph.from_edges(plain, _NAMES).cliques == ((0, 2), (1, 2))
    assert CliqueGraph.from_edges(plain).n_labels == 3
    numbered = networkx.Graph([tuple(pair) for pair in np.array([[0, 2], [1, 2]])])
    assert CliqueGraph.from_edges(numbered, n_labels=5) == CliqueGraph(5, [(0, 2), (1, 2)])


def test_a_model_file_keeps_it(tmp_path):
    for graph in (CliqueGraph(4, [(0, 3), (0, 1, 2)], _NAMES, [0.5, 2.0], [1, -1]), CliqueGraph.empty(2)):
        save_object(tmp_path / "graph.lw", graph)
        assert load_object(tmp_path / "graph.lw") == graph


def test_it_does_not_change():
    graph = CliqueGraph(3, [(0, 1)], weights=[1.0], signs=[1])
    for array in (graph.weights, graph.signs, graph.table_starts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("beach", "moon")], r"edge \('beach', 'moon'\) at position 0 has the unknown label name 'moon'"),
        ([(0, 4)], r"edge \(0, 4\) at position 0 has the unknown label number 4; .* from 0 to 3"),
        ([(0, -1)], "unknown label number -1"),
        ([("sea", "boat"), ("sea", "sea")], "position 1 joins the label 'sea' to itself; remove it"),
        ([("sea", "boat"), (1, 3)], r"edge \('boat', 'sea'\) occurs twice, at positions 0 and 1"),
        ([("sea",)], r"edge \('sea'\) at position 0 has 1 label\(s\); pass 2 to 20"),
        (["sea"], "edge at position 0 is 'sea'; pass a pair of labels"),
        ([3], "edge at position 0 is 3; pass a pair of labels"),
        ([("sea", True)], "unknown label"),
    ],
)
def test_edges_that_make_no_sense_are_refused(edges, message):
    with pytest.raises(ValueError, match=message):
        CliqueGraph.from_edges(edges, _NAMES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CliqueGraph(0, []), "n_labels is 0"),
        (lambda: CliqueGraph(2.5, [(0, 2)]), "n_labels is 2.5; it must be an integer"),
        (lambda: CliqueGraph("3", []), "n_labels is '3'"),
        (lambda: CliqueGraph(3, [(0, 3)]), "unknown label 3; use numbers from 0 to 2"),
        (lambda: CliqueGraph(3, [("a", "b")]), "or CliqueGraph.from_edges for names"),
        (lambda: CliqueGraph(3, [(0, 1)], ["a", "b"]), "2 label names were given for 3 labels"),
        (lambda: CliqueGraph(3, [(0, 1)], weights=[1, 2]), r"weights has shape \(2,\) for 1 cliques"),
        (lambda: CliqueGraph(3, [(0, 1)], weights=[np.nan]), "weight of clique 0 is nan"),
        (lambda: CliqueGraph(3, [(0, 1)], signs=[2]), "sign of clique 0 is 2; it must be -1, 0 or 1"),
        (lambda: CliqueGraph(3, [(0, 1)], signs=[1, 1]), r"signs has shape \(2,\)"),
        (lambda: CliqueGraph.from_edges([(0, 1)]), "label_names and n_labels are"),
        (lambda: CliqueGraph(30, [range(21)]), r"has 21 label\(s\)"),
    ],
)
def test_graphs_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_networks_that_are_no_label_graph_are_refused():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="directed or has parallel edges"):
        CliqueGraph.from_edges(networkx.DiGraph([(0, 1)]))
    with pytest.raises(ValueError, match=r"node 'moon' of the graph is not a label.* the 4 labels"):
        CliqueGraph.from_edges(networkx.Graph([("sea", "moon")]), _NAMES)
    with pytest.raises(ValueError, match="node True of the graph is not a label"):
        CliqueGraph.from_edges(networkx.Graph([(True, False)]), n_labels=2)


def mutual_information(one, other, smoothing):
    """The mutual information of two columns of 0, 1 and NaN, cell by cell."""
    seen = ~np.isnan(one) & ~np.isnan(other)
    joint = np.full((2, 2), smoothing)
    for a, b in zip(one[seen].astype(int), other[seen].astype(int), strict=True):
        joint[a, b] += 1
    joint /= joint.sum()
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return (joint * np.log(joint / product)).sum()


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("smoothing", [0.5, 1.0])
def test_chow_liu_trees_are_maximal(missing, smoothing):
    networkx = pytest.importorskip("networkx")
    generator = np.random.default_rng(0)
    Y = (generator.normal(size=(60, 7)) + generator.normal(size=(60, 1)) > 0.3).astype(float)
    Y[generator.random(Y.shape) < missing] = np.nan
    tree = chow_liu(LabelMatrix.from_any(Y), smoothing)
    network = networkx.Graph()
    for a, b in itertools.combinations(range(7), 2):
        network.add_edge(a, b, weight=mutual_information(Y[:, a], Y[:, b], smoothing))
    expected = networkx.maximum_spanning_tree(network)
    assert set(tree.cliques) == {tuple(sorted(pair)) for pair in expected.edges}
    np.testing.assert_allclose(tree.weights, [network.edges[pair]["weight"] for pair in tree.cliques])
    assert (np.diff(tree.weights) <= 0).all()
    assert (tree.width, len(tree.components)) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"smoothing": 0.0}, "smoothing is 0.0; .*it must be above 0"),
        ({"smoothing": np.inf}, "smoothing is inf"),
        ({"sample_weight": np.ones(2)}, r"sample_weight has shape \(2,\), but there are 3 rows"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight at row 1 is -1;"),
    ],
    ids=str,
)
def test_what_chow_liu_cannot_count_by_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        chow_liu(LabelMatrix.from_any(np.eye(3)), **arguments)


@pytest.mark.parametrize("is_network", [False, True])
def test_numbers_are_names_where_all_of_them_are(is_network):
    networkx = pytest.importorskip("networkx")
    names, read = ["1", "2", "3", "4", "5"], networkx.Graph if is_network else list
    assert sorted(CliqueGraph.from_edges(read([(1, 2), (2, 5)]), names).cliques) == [(0, 1), (1, 4)]
    assert sorted(CliqueGraph.from_edges(read([(0, 1), (1, 4)]), names).cliques) == [(0, 1), (1, 4)]
    assert CliqueGraph.from_edges(read([("1", 2)]), names).cliques == ((0, 1),)


def test_chow_liu_tells_the_sign_of_each_edge():
    on = np.arange(40) % 2
    tree = chow_liu(LabelMatrix.from_any(np.column_stack([on, on, 1 - on]), ["a", "b", "c"]))
    signs = {tree.cliques[place]: int(sign) for place, sign in enumerate(tree.signs)}
    assert all(sign == (1 if pair == (0, 1) else -1) for pair, sign in signs.items())
    assert tree.label_names.tolist() == ["a", "b", "c"]


def test_labels_never_seen_together_and_a_single_label():
    Y = np.array([[1, np.nan], [0, np.nan], [np.nan, 1]])
    assert chow_liu(LabelMatrix.from_any(Y)).n_cliques == 0
    assert chow_liu(LabelMatrix.from_any(Y[:, :1])).n_cliques == 0
    with pytest.raises(ValueError, match=r"smoothing is 0.0; it must be"):
        chow_liu(LabelMatrix.from_any(Y), 0.0)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_weighted_rows_count_like_repetitions(missing):
    generator = np.random.default_rng(2)
    Y = (generator.normal(size=(50, 6)) + generator.normal(size=(50, 1)) > 0).astype(float)
    Y[generator.random(Y.shape) < missing] = np.nan
    times = generator.integers(0, 4, size=50)
    weighted = chow_liu(LabelMatrix.from_any(Y), sample_weight=times)
    repeated = chow_liu(LabelMatrix.from_any(np.repeat(Y, times, axis=0)))
    assert weighted.cliques == repeated.cliques
    np.testing.assert_allclose(weighted.weights, repeated.weights)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_tree_needs_some_numbers_a_pair_of_labels(monkeypatch, missing):
    generator = np.random.default_rng(3)
    Y = (generator.random((50, 300)) < 0.1).astype(float)
    Y[generator.random(Y.shape) < missing] = np.nan
    labels = LabelMatrix.from_any(Y)
    whole = chow_liu(labels)
    monkeypatch.setitem(chow_liu.__globals__, "_PAIRS_AT_ONCE", 1000)
    tracemalloc.start()
    tree = chow_liu(labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tree == whole
    assert peak < 64 * 300 * 299 / 2


def test_a_tree_of_sparse_labels_takes_time_in_proportion_to_its_pairs():
    """That of a thousand labels took 0.5 s."""

    def seconds(n_labels):
        rng = np.random.default_rng(1)
        Y = sp.random_array((5000, n_labels), density=0.01, rng=rng, format="csr")
        labels = LabelMatrix.from_any((Y > 0).astype(np.int8))
        clock = time.process_time()
        tree = chow_liu(labels)
        taken = time.process_time() - clock
        assert (tree.n_cliques, tree.width) == (n_labels - 1, 1)
        return taken

    small, large = (min(seconds(n_labels) for _ in range(3)) for n_labels in (250, 1000))
    assert large < 4 * 16 * small
