"""Taxonomies in which nodes have several parents, labels that they complete, and their matrices."""

import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave import KernelLogisticClassifier, MaxMarginClassifier, metrics
from labelweave.datasets import LabeledData, make_taxonomy, read_hierarchical_arff
from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.model_files import load_object, save_object
from reference import taxonomy_twin as twin
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


_TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle", "terrier"], "cat": None}, "plant": None})


def _slow(graph, names, row, incomplete):
    """Complete one row, entry by entry, in dicts."""
    above = {name: set(graph.ancestors(name)) for name in names}
    has = {name for name in names if row[name] == 1}
    has |= {name for name in names if any(name in above[other] for other in has)}
    specific = {name for name in has if not any(name in above[other] for other in has)}
    lacks = {name for name in names if row[name] == 0 and name not in has}
    if incomplete:
        lacks -= {name for name in lacks if above[name] & specific}
    lacks |= {name for name in names if above[name] & lacks}
    return [1.0 if name in has else 0.0 if name in lacks else np.nan for name in names]


@settings(max_examples=150)
@given(graph=taxonomies(), incomplete=st.booleans(), seed=st.integers(0, 999), share=st.floats(0, 1))
def test_closure_against_a_slow_one(graph, incomplete, seed, share):
    rng = np.random.default_rng(seed)
    names = rng.permutation(graph.nodes)[: 1 + rng.integers(len(graph))]
    table = (rng.random((4, len(names))) < 0.3).astype(float)
    table[rng.random(table.shape) < share] = np.nan
    closed = graph.with_ancestors(LabelMatrix.from_any(table, names), incomplete=incomplete)
    expected = [_slow(graph, names, dict(zip(names, row, strict=True)), incomplete) for row in table]
    np.testing.assert_array_equal(closed.to_dense(), expected)
    again = graph.with_ancestors(closed, incomplete=incomplete)
    np.testing.assert_array_equal(again.to_dense(), expected)


def test_labels_that_are_known_stay_complete_and_sparse():
    rng = np.random.default_rng(0)
    Y = LabelMatrix(sp.random_array((500, 6), density=0.2, rng=rng) > 0, None, _TREE.nodes)
    closed = _TREE.with_ancestors(Y)
    assert closed.observed is None
    assert (closed.positives > Y.positives).nnz > 0
    assert (closed.positives < Y.positives).nnz == 0


def test_a_class_with_hundreds_below_it_counts_once():
    names = ["top", *map(str, range(600))]
    tree = Taxonomy([("top", name) for name in names[1:]])
    closed = tree.with_ancestors(
        LabelMatrix(np.eye(601, dtype=int)[1:].sum(axis=0, keepdims=True), None, names)
    )
    assert closed.positives.toarray().all()


def test_rows_are_closed_some_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.choice([0.0, 1.0, np.nan], size=(50, 6), p=[0.6, 0.1, 0.3])
    Y = LabelMatrix.from_any(table, _TREE.nodes)
    whole = _TREE.with_ancestors(Y, incomplete=True).to_dense()
    monkeypatch.setattr("labelweave.labels.taxonomy.node_matrices._ENTRIES_AT_ONCE", 20)
    np.testing.assert_array_equal(_TREE.with_ancestors(Y, incomplete=True).to_dense(), whole)
    assert _TREE.with_ancestors(Y[:0], incomplete=True).shape == (0, 6)


def test_labels_without_names_or_with_other_names_are_refused():
    with pytest.raises(ValueError, match=r"labels have no names; name them: LabelMatrix\.from_any"):
        _TREE.with_ancestors(LabelMatrix.from_any([[1, 0]]))
    with pytest.raises(ValueError, match="label 'bee' is not in the taxonomy"):
        _TREE.with_ancestors(LabelMatrix.from_any([[1]], ["bee"]))


def test_pairs_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr("labelweave.labels.taxonomy.node_matrices._MOST_PAIRS", 10)
    graph = Taxonomy([(f"r{k}", "m") for k in range(5)] + [("m", f"l{k}") for k in range(5)])
    with pytest.raises(ValueError, match="more than 10 pairs of a node and an"):
        graph.membership(["l0"])


_PETS = Taxonomy([("animal", "dog"), ("animal", "cat"), ("dog", "poodle"), ("plant", "oak")])
_FILE = Path(__file__).parents[2].parent / "shared" / "data" / "imclef07a" / "ImCLEF07A_Test.arff"


@st.composite
def forests(draw):
    """Return each node an earlier one as parent, or none; then shuffle the names."""
    size = draw(st.integers(1, 14))
    names = draw(st.permutations([f"n{k}" for k in range(size)]))
    above = [draw(st.integers(-1, k - 1)) for k in range(size)]
    pairs = [(names[up], names[k]) for k, up in enumerate(above) if up >= 0]
    return Taxonomy(
        draw(st.permutations(pairs)), nodes=[n for n in names if n not in dict(map(reversed, pairs))]
    )


@settings(max_examples=100)
@given(tree=forests(), seed=st.integers(0, 99))
def test_matrices_against_walks_through_the_tree(tree, seed):
    names = np.random.default_rng(seed).permutation(tree.nodes)[: 1 + seed % len(tree)]
    parent = tree.parent
    assert set(tree.leaves) == twin.leaves(parent, tree.nodes)
    membership = tree.membership(names)
    assert membership.has_sorted_indices
    assert [[tree.nodes[k] for k in row.indices] for row in membership] == [
        twin.path(parent, n) for n in names
    ]
    expected = [[twin.distance(parent, a, b) for b in names] for a in names]
    assert tree.distances(names).tolist() == expected
    assert tree.distances(names[:1], names).tolist() == expected[:1]
    below = [[b in twin.path(parent, leaf) for leaf in tree.leaves] for b in names]
    np.testing.assert_array_equal(tree.under(names, tree.leaves).toarray(), below)
    for row, name in zip(below, names, strict=True):
        assert tree.leaves_below(name) == [
            leaf for leaf, inside in zip(tree.leaves, row, strict=True) if inside
        ]
        assert tree.common_ancestor(name, names[0]) == twin.common_ancestor(parent, name, names[0])
        assert tree.children(name) == [child for child in tree.nodes if parent.get(child) == name]
        assert (tree.depth(name), tree.top(name)) == (len(tree.path(name)) - 1, tree.path(name)[0])


@settings(max_examples=100)
@given(tree=forests(), seed=st.integers(0, 99))
def test_parts_against_removing_one_node_at_a_time(tree, seed):
    rng = np.random.default_rng(seed)
    keep = rng.permutation(tree.nodes)[: seed % 3]
    pruned = tree.pruned(keep)
    assert (pruned.parent, set(pruned.nodes)) == twin.pruned(tree.parent, tree.nodes, keep)
    assert set(pruned.leaves) == set(tree.leaves)
    assert pruned.pruned(keep) == pruned
    chosen = rng.permutation(tree.nodes)[: 1 + seed % len(tree)]
    part = tree.restricted(chosen)
    above = {node for name in chosen for node in tree.path(name)}
    assert part.nodes == [node for node in tree.nodes if node in above]
    assert all(part.path(name) == tree.path(name) for name in chosen)


@settings(max_examples=50)
@given(tree=forests())
def test_subtree_groups_against_paths(tree):
    numbers, heads = tree.groups("subtree")
    assert [heads[k] for k in numbers] == [twin.subtree_head(tree.parent, tree.nodes, n) for n in tree.nodes]


def test_inner_nodes_may_be_labels():
    np.testing.assert_array_equal(
        _PETS.membership(["dog", "plant"]).toarray(), [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]]
    )
    assert _PETS.membership([]).shape == (0, 6)
    assert _PETS.distances(["animal", "poodle", "oak"]).tolist() == [
        [0, 1, 1.5],
        [1, 0, 2.5],
        [1.5, 2.5, 0],
    ]


def test_targets_mark_the_leaves_below_them():
    under = _PETS.under(["animal", "oak", "poodle", "animal"], ["oak", "cat", "poodle"])
    assert under.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
    assert _PETS.under([], ["oak"]).shape == (0, 1)


def test_groups():
    assert _PETS.groups("shared")[0].tolist() == [0] * 6
    assert _PETS.groups("class")[1] == _PETS.nodes
    assert _PETS.groups("level")[0].tolist() == [0, 1, 2, 1, 0, 1]
    assert _PETS.groups("level")[1] == ["level 0", "level 1", "level 2"]
    assert _PETS.groups("subtree")[1] == ["animal", "plant"]
    numbers, names = Taxonomy([("root", above) for above in _PETS.roots] + _PETS.pairs()).groups("subtree")
    assert names == ["root", "animal", "plant"]
    assert numbers.tolist() == [0, 1, 1, 1, 1, 2, 2]
    numbers, names = _PETS.groups("class", ["oak", "dog", "oak"])
    assert (numbers.tolist(), names) == ([0, 1, 0], ["oak", "dog"])
    with pytest.raises(ValueError, match="'depth'; it must be one of 'shared'"):
        _PETS.groups("depth")


def test_pruning_keeps_what_it_is_told_to():
    tree = Taxonomy.from_paths(["a/b/c/d", "a/b/c/e"])
    assert tree.pruned().nodes == ["a/b/c", "a/b/c/d", "a/b/c/e"]
    assert tree.pruned(keep="a/b").roots == ["a/b"]
    assert Taxonomy([("a", "b"), ("b", "c")]).pruned().nodes == ["c"]


def test_no_part_of_a_tree_is_refused():
    with pytest.raises(ValueError, match="taxonomy is empty"):
        _PETS.restricted([])


def test_the_deepest_node_of_each_row():
    names = ["poodle", "dog", "animal", "oak"]
    Y = LabelMatrix.from_any(
        [[1, 1, 1, 0], [0, 1, 1, 0], [np.nan, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [np.nan] * 4], names
    )
    assert _PETS.deepest(Y).tolist() == ["poodle", "dog", "dog", "poodle", None, None]
    assert _PETS.deepest(Y[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1, 1, 0, 0], r"Row 1 has two most specific nodes, '(cat|oak)' and '(cat|oak)' \(1 of 2 rows"),
        ([1, 0, 1, 1], "Row 1 has two most specific nodes, 'poodle' and 'cat'"),
    ],
)
def test_rows_off_one_path_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        _PETS.deepest(LabelMatrix.from_any([[0, 0, 1, 1], row], ["cat", "oak", "animal", "poodle"]))


def test_labels_without_names_are_refused():
    with pytest.raises(ValueError, match="The labels have no names"):
        _PETS.deepest(LabelMatrix.from_any([[1]]))


def test_data_know_their_tree_and_the_class_of_each_row():
    data = make_taxonomy(30, 2, depth=2, branching=3)
    assert data.taxonomy.nodes[:3] == ["1", "1/1", "1/2"]
    assert set(data.classes) <= set(data.taxonomy.leaves)
    assert all(row[name] for row, name in zip(_named_rows(data.Y), data.classes, strict=True))
    flat = LabeledData(data.X, data.Y)
    assert flat.taxonomy is None
    with pytest.raises(ValueError, match="no taxonomy"):
        _ = flat.classes
    lone = LabeledData(np.ones((1, 1)), LabelMatrix.from_any([[1, 0]], ["b", "a"]), parents=())
    assert lone.taxonomy.roots == ["b", "a"]
    assert LabeledData(
        np.ones((1, 1)), LabelMatrix.from_any([[1, 0]]), parents=(("a", "b"),)
    ).taxonomy.roots == ["a"]


def _named_rows(Y):
    return [dict(zip(Y.names, row, strict=True)) for row in Y.to_dense()]


def test_many_leaves_are_quick_to_compare():
    tree = Taxonomy.from_paths([f"{k % 10}/{k % 100}/{k}" for k in range(1500)])
    distances = tree.distances(tree.leaves)
    assert distances.shape == (1500, 1500)
    assert set(np.unique(distances)) == {0, 1, 2, 3}


@pytest.mark.shared_data
@pytest.mark.skipif(not _FILE.exists(), reason="the shared data are absent")
def test_medical_images():
    data = read_hierarchical_arff(_FILE)
    tree = data.taxonomy
    assert (len(tree), len(tree.leaves), 1 + tree.depth(tree.nodes).max()) == (96, 63, 3)
    assert Taxonomy.from_paths(data.label_names) == tree
    assert tree.is_leaf(data.classes).all()
    assert set(tree.distances(tree.leaves).ravel()) == {0, 1, 2, 3}
    pruned = tree.pruned()
    assert pruned.leaves == tree.leaves
    assert all(len(pruned.children(node)) != 1 for node in pruned.nodes)
