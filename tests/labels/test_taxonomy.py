import numpy as np
import pytest

from labelweave.labels import LabelCovariance, Taxonomy
from labelweave.model_files import load_object, save_object

_TREE = Taxonomy([("animal", "dog"), ("animal", "cat"), ("dog", "poodle"), ("plant", "oak")])


def test_paths_run_from_the_root():
    assert _TREE.path("poodle") == ["animal", "dog", "poodle"]
    assert _TREE.path("plant") == ["plant"]
    assert len(_TREE) == 6
    assert repr(_TREE) == "Taxonomy(6 nodes, 2 roots)"
    assert all(_TREE.nodes.index(above) < _TREE.nodes.index(below) for above, below in _TREE.pairs())


def test_membership_marks_a_label_and_its_ancestors():
    names = ["oak", "poodle", "cat"]
    membership = _TREE.membership(names).toarray()
    for row, name in zip(membership, names, strict=True):
        assert {_TREE.nodes[k] for k in np.flatnonzero(row)} == set(_TREE.path(name))
    assert _TREE.membership([]).shape == (0, 6)


def test_covariances_count_the_nodes_above_both():
    dense = LabelCovariance.from_taxonomy(_TREE, ["dog", "poodle", "cat", "oak"], {"animal": 0.25}).to_dense()
    np.testing.assert_allclose(
        dense, [[1.25, 1.25, 0.25, 0], [1.25, 2.25, 0.25, 0], [0.25, 0.25, 1.25, 0], [0, 0, 0, 2]]
    )


def test_it_survives_a_model_file(tmp_path):
    save_object(tmp_path / "tree.lw", _TREE)
    again = load_object(tmp_path / "tree.lw")
    assert again.nodes == _TREE.nodes
    assert again.parent == _TREE.parent


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "c"), ("b", "c")], "'c' has two parents, 'a' and 'b'"),
        ([("a", "b"), ("b", "a")], "cycle: [ab] -> [ab] -> [ab]"),
        ([("a", "a")], "cycle: a -> a"),
    ],
)
def test_what_is_no_tree_is_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        Taxonomy(pairs)


def test_an_edge_may_be_given_twice():
    assert len(Taxonomy([("a", "b"), ("a", "b")])) == 2


def test_a_label_outside_the_tree_is_named():
    with pytest.raises(ValueError, match=r"'bee' is not in the taxonomy \(1 of 2 are not\)"):
        _TREE.membership(["dog", "bee"])
