"""Taxonomies in which nodes have several parents."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave import KernelLogisticClassifier, MaxMarginClassifier, metrics
from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.model_files import load_object, save_object
from reference.random_graphs import taxonomies

networkx = pytest.importorskip("networkx")

_GRAPH = Taxonomy([("animal", "dog"), ("pet", "dog"), ("dog", "poodle"), ("pet", "cat"), ("animal", "cat")])


def test_what_is_above_and_below():
    assert _GRAPH.nodes == ["animal", "pet", "dog", "poodle", "cat"]
    assert _GRAPH.roots == ["animal", "pet"]
    assert _GRAPH.leaves == ["poodle", "cat"]
    assert _GRAPH.parents == {"dog": ("animal", "pet"), "poodle": ("dog",), "cat": ("animal", "pet")}
    assert not _GRAPH.is_tree
    assert repr(_GRAPH) == "Taxonomy(5 nodes, 5 edges, 2 roots)"
    assert _GRAPH.ancestors("poodle") == ["animal", "pet", "dog"]
    assert _GRAPH.descendants("animal") == ["dog", "poodle", "cat"]
    assert _GRAPH.children("pet") == ["dog", "cat"]
    assert _GRAPH.leaves_below("dog") == ["poodle"]
    with pytest.raises(ValueError, match="'bird' is not in the taxonomy"):
        _GRAPH.leaves_below("bird")


def test_a_node_is_drawn_once_and_its_other_parents_are_named():
    assert str(_GRAPH).splitlines() == [
        *["animal", "pet", "  dog (also under animal)", "    poodle", "  cat (also under animal)"]
    ]


@settings(max_examples=100)
@given(graph=taxonomies(), seed=st.integers(0, 99))
def test_questions_against_networkx(graph, seed):
    other = graph.to_networkx()
    place = {name: k for k, name in enumerate(graph.nodes)}
    assert all(place[above] < place[below] for above, below in graph.pairs())
    names = np.random.default_rng(seed).permutation(graph.nodes)[: 1 + seed % len(graph)]
    membership, under = graph.membership(names), graph.under(names, graph.leaves)
    assert membership.has_sorted_indices
    for row, name in enumerate(names):
        above, below = networkx.ancestors(other, name), networkx.descendants(other, name)
        assert set(graph.ancestors(name)) == above
        assert set(graph.descendants(name)) == below
        assert {graph.nodes[k] for k in membership[[row]].indices} == above | {name}
        assert {graph.leaves[k] for k in under[[row]].indices} == {
            leaf for leaf in graph.leaves if leaf == name or leaf in below
        }
        assert set(graph.leaves_below(name)) == {leaf for leaf in graph.leaves if leaf in below | {name}}
        assert set(graph.parents.get(name, ())) == set(other.predecessors(name))
        assert set(graph.children(name)) == set(other.successors(name))
    lengths = networkx.dag_longest_path_length(other) if len(graph) > 1 else 0
    assert graph.depth(graph.nodes).max() == lengths
    part = graph.restricted(names)
    kept = set(names).union(*(networkx.ancestors(other, name) for name in names))
    assert set(part.nodes) == kept
    assert set(part.pairs()) == set(other.subgraph(kept).edges)
    assert Taxonomy.from_networkx(other) == graph


@settings(max_examples=50)
@given(graph=taxonomies())
def test_the_order_of_nodes_is_kept_in_model_files(graph):
    again = Taxonomy.from_state(graph.to_state())
    assert again.nodes == graph.nodes
    assert again.pairs() == graph.pairs()
    assert again == graph
    assert hash(again) == hash(graph)


def test_it_survives_a_model_file(tmp_path):
    save_object(tmp_path / "graph.lw", _GRAPH)
    assert load_object(tmp_path / "graph.lw") == _GRAPH


@settings(max_examples=50)
@given(graph=taxonomies(), seed=st.integers(0, 99))
def test_the_most_specific_class_of_a_row(graph, seed):
    name = graph.nodes[seed % len(graph)]
    closed = np.isin(graph.nodes, [name, *graph.ancestors(name)]).astype(int)
    assert graph.deepest(LabelMatrix.from_any([closed], graph.nodes)).tolist() == [name]


def test_two_most_specific_classes_of_a_row_are_refused():
    Y = LabelMatrix.from_any([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], _GRAPH.nodes)
    with pytest.raises(ValueError, match="Row 1 has two most specific nodes, 'poodle' and 'cat'"):
        _GRAPH.deepest(Y)


def test_labels_share_the_variances_of_all_nodes_above_both():
    found = LabelCovariance.from_taxonomy(_GRAPH, ["dog", "poodle", "cat"], {"pet": 0.5}).to_dense()
    np.testing.assert_allclose(found, [[2.5, 2.5, 1.5], [2.5, 3.5, 1.5], [1.5, 1.5, 2.5]])


def test_a_graph_relates_the_labels_of_a_max_margin_model():
    X = np.random.default_rng(0).normal(size=(40, 3))
    Y = LabelMatrix.from_any((X[:, [0, 1, 2, 0, 1]] > 0).astype(int), _GRAPH.nodes)
    model = MaxMarginClassifier(label_covariance=_GRAPH).fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    "needs_a_tree",
    [
        lambda: _GRAPH.path("dog"),
        lambda: _GRAPH.parent,
        lambda: _GRAPH.top("dog"),
        lambda: _GRAPH.parents_of(["dog"]),
        lambda: _GRAPH.common_ancestor("dog", "cat"),
        lambda: _GRAPH.distances(["dog"]),
        lambda: _GRAPH.groups("level"),
        lambda: _GRAPH.groups("subtree"),
        _GRAPH.pruned,
        lambda: metrics.taxonomic_loss(["dog"], ["cat"], _GRAPH),
        lambda: metrics.parent_accuracy(["dog"], ["cat"], _GRAPH),
        lambda: KernelLogisticClassifier(taxonomy=_GRAPH).fit(np.eye(4), ["dog", "cat", "dog", "cat"]),
    ],
)
def test_what_makes_sense_for_trees_only_is_refused(needs_a_tree):
    words = r"needs a tree, but node 'dog' has two parents, 'animal' and 'pet', and 1 other nodes have"
    with pytest.raises(ValueError, match=words):
        needs_a_tree()


def test_a_graph_takes_time_in_proportion_to_its_nodes():
    """40,000 nodes took 0.5 s."""

    def seconds(n_nodes):
        rng, below = np.random.default_rng(0), np.arange(1, n_nodes)
        above = (below[:, None] * rng.random((len(below), 2)) ** 0.5).astype(int).tolist()
        pairs = [(f"n{up}", f"n{k}") for k, ups in zip(below.tolist(), above, strict=True) for up in ups]
        clock = time.process_time()
        graph = Taxonomy(pairs)
        taken = time.process_time() - clock
        assert len(graph) == n_nodes
        return taken

    small, large = (min(seconds(n_nodes) for _ in range(3)) for n_nodes in (5000, 40_000))
    assert large < 4 * 8 * small


def test_a_long_cycle_is_shown_in_part():
    pairs = [(f"n{k}", f"n{(k + 1) % 2000}") for k in range(2000)]
    with pytest.raises(ValueError, match=r"cycle: (n\d+ -> ){5}\.\.\. -> (n\d+ -> ){4}n\d+; remove"):
        Taxonomy(pairs)
