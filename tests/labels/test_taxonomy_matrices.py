from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import LabeledData, make_taxonomy, read_hierarchical_arff
from labelweave.labels import LabelMatrix, Taxonomy
from reference import taxonomy_twin as twin

_TREE = Taxonomy([("animal", "dog"), ("animal", "cat"), ("dog", "poodle"), ("plant", "oak")])
_FILE = Path(__file__).parents[2].parent / "shared" / "data" / "imclef07a" / "ImCLEF07A_Test.arff"


@st.composite
def forests(draw):
    """Give each node an earlier one as parent, or none; then shuffle the names."""
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
        _TREE.membership(["dog", "plant"]).toarray(), [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]]
    )
    assert _TREE.membership([]).shape == (0, 6)
    assert _TREE.distances(["animal", "poodle", "oak"]).tolist() == [[0, 1, 1.5], [1, 0, 2.5], [1.5, 2.5, 0]]


def test_targets_mark_the_leaves_below_them():
    under = _TREE.under(["animal", "oak", "poodle", "animal"], ["oak", "cat", "poodle"])
    assert under.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
    assert _TREE.under([], ["oak"]).shape == (0, 1)


def test_groups():
    assert _TREE.groups("shared")[0].tolist() == [0] * 6
    assert _TREE.groups("class")[1] == _TREE.nodes
    assert _TREE.groups("level")[0].tolist() == [0, 1, 2, 1, 0, 1]
    assert _TREE.groups("level")[1] == ["level 0", "level 1", "level 2"]
    assert _TREE.groups("subtree")[1] == ["animal", "plant"]
    numbers, names = Taxonomy([("root", above) for above in _TREE.roots] + _TREE.pairs()).groups("subtree")
    assert names == ["root", "animal", "plant"]
    assert numbers.tolist() == [0, 1, 1, 1, 1, 2, 2]
    numbers, names = _TREE.groups("class", ["oak", "dog", "oak"])
    assert (numbers.tolist(), names) == ([0, 1, 0], ["oak", "dog"])
    with pytest.raises(ValueError, match="'depth'; it must be one of 'shared'"):
        _TREE.groups("depth")


def test_pruning_keeps_what_it_is_told_to():
    tree = Taxonomy.from_paths(["a/b/c/d", "a/b/c/e"])
    assert tree.pruned().nodes == ["a/b/c", "a/b/c/d", "a/b/c/e"]
    assert tree.pruned(keep="a/b").roots == ["a/b"]
    assert Taxonomy([("a", "b"), ("b", "c")]).pruned().nodes == ["c"]


def test_no_part_of_a_tree_is_refused():
    with pytest.raises(ValueError, match="taxonomy is empty"):
        _TREE.restricted([])


def test_the_deepest_node_of_each_row():
    names = ["poodle", "dog", "animal", "oak"]
    Y = LabelMatrix.from_any(
        [[1, 1, 1, 0], [0, 1, 1, 0], [np.nan, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [np.nan] * 4], names
    )
    assert _TREE.deepest(Y).tolist() == ["poodle", "dog", "dog", "poodle", None, None]
    assert _TREE.deepest(Y[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1, 1, 0, 0], r"Row 1 has two most specific nodes, '(cat|oak)' and '(cat|oak)' \(1 of 2 rows"),
        ([1, 0, 1, 1], "Row 1 has two most specific nodes, 'poodle' and 'cat'"),
    ],
)
def test_rows_off_one_path_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        _TREE.deepest(LabelMatrix.from_any([[0, 0, 1, 1], row], ["cat", "oak", "animal", "poodle"]))


def test_labels_without_names_are_refused():
    with pytest.raises(ValueError, match="The labels have no names"):
        _TREE.deepest(LabelMatrix.from_any([[1]]))


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
