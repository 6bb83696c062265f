import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from labelweave.labels import LabelCovariance, Taxonomy
from labelweave.model_files import load_object, save_object

_TREE = Taxonomy([("animal", "dog"), ("animal", "cat"), ("dog", "poodle"), ("plant", "oak")])


def test_paths_run_from_the_root():
    assert _TREE.path("poodle") == ["animal", "dog", "poodle"]
    assert _TREE.path("plant") == ["plant"]
    assert len(_TREE) == 6
    assert repr(_TREE) == "Taxonomy(6 nodes, 2 roots)"
    assert "dog" in _TREE
    assert "bee" not in _TREE
    assert all(_TREE.nodes.index(above) < _TREE.nodes.index(below) for above, below in _TREE.pairs())


def test_nodes_are_listed_depth_first_in_the_order_given():
    assert _TREE.nodes == ["animal", "dog", "poodle", "cat", "plant", "oak"]
    assert Taxonomy(_TREE.pairs(), nodes=["plant", "cat", "fungus"]).nodes == [
        *["plant", "oak", "fungus", "animal", "cat", "dog", "poodle"]
    ]


def test_questions_about_one_name_or_several():
    assert _TREE.roots == ["animal", "plant"]
    assert _TREE.leaves == ["poodle", "cat", "oak"]
    assert _TREE.children("animal") == ["dog", "cat"]
    assert _TREE.children("oak") == []
    assert _TREE.leaves_below("animal") == ["poodle", "cat"]
    assert _TREE.leaves_below("oak") == ["oak"]
    assert (_TREE.depth("animal"), _TREE.depth("poodle")) == (0, 2)
    assert _TREE.depth(np.array(["oak", "poodle"])).tolist() == [1, 2]
    assert _TREE.is_leaf("oak") is True
    assert _TREE.is_leaf(["dog", "oak"]).tolist() == [False, True]
    assert _TREE.top("poodle") == "animal"
    assert _TREE.top(("plant", "oak")) == ["plant", "plant"]
    assert _TREE.parents_of(["poodle", "plant"]) == ["dog", None]
    assert _TREE.common_ancestor("poodle", "cat") == "animal"
    assert _TREE.common_ancestor("dog", "poodle") == "dog"
    assert _TREE.common_ancestor("dog", "oak") is None


def test_names_that_are_no_text_are_written_as_text():
    tree = Taxonomy([(1, 2), (1, 3)])
    assert tree.nodes == ["1", "2", "3"]
    assert tree.depth(np.array([2, 1])).tolist() == [1, 0]


def test_covariances_count_the_nodes_above_both():
    dense = LabelCovariance.from_taxonomy(_TREE, ["dog", "poodle", "cat", "oak"], {"animal": 0.25}).to_dense()
    np.testing.assert_allclose(
        dense, [[1.25, 1.25, 0.25, 0], [1.25, 2.25, 0.25, 0], [0.25, 0.25, 1.25, 0], [0, 0, 0, 2]]
    )


@pytest.mark.parametrize(
    "tree", [_TREE, Taxonomy([("b", "c"), ("a", "b")], nodes=["z", "a"]), Taxonomy([], ["x"])]
)
def test_it_survives_a_model_file(tmp_path, tree):
    save_object(tmp_path / "tree.lw", tree)
    again = load_object(tmp_path / "tree.lw")
    assert again == tree
    assert again.nodes == tree.nodes
    assert again.parent == tree.parent
    for made in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert made.nodes == tree.nodes


def test_a_state_of_pairs_alone_is_read():
    assert Taxonomy.from_state({"pairs": [["a", "b"]]}) == Taxonomy([("a", "b")])


def test_equality_is_of_nodes_and_edges():
    assert Taxonomy(_TREE.pairs()[::-1]) == _TREE
    assert hash(Taxonomy(_TREE.pairs()[::-1])) == hash(_TREE)
    assert Taxonomy(_TREE.pairs(), nodes=["fungus"]) != _TREE
    assert Taxonomy(_TREE.pairs()[1:]) != _TREE
    assert _TREE != "tree"


def test_a_small_tree_is_drawn_whole():
    assert str(_TREE).splitlines() == ["animal", "  dog", "    poodle", "  cat", "plant", "  oak"]


def test_a_large_tree_is_drawn_from_the_top_and_says_what_is_omitted():
    tree = Taxonomy(
        [("r", f"c{i}") for i in range(20)] + [(f"c{i}", f"d{i}{j}") for i in range(20) for j in "ab"]
    )
    lines = str(tree).splitlines()
    assert len(lines) == 31
    assert lines[:4] == ["r", "  c0", "    d0a", "    d0b"]
    assert "  c19 (+2)" in lines
    assert lines[-1] == "... 31 of 61 nodes omitted"
    assert sum(int(line.split("(+")[1][:-1]) for line in lines if "(+" in line) == 31
    flat = str(Taxonomy([], nodes=range(50))).splitlines()
    assert flat[29:] == ["29", "... 20 of 50 nodes omitted"]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b"), ("b", "a")], "cycle: [ab] -> [ab] -> [ab]"),
        (
            [("a", "b"), ("b", "c"), ("c", "a"), ("c", "tail"), ("r", "x")],
            "cycle: (?!.*tail)[abc -> ]+; remove",
        ),
        ([("a", "a")], "cycle: a -> a;"),
        ([("a", "")], r"The name at pair 0, \('a', ''\)"),
        ([("a", "b"), (None, "a")], r"name at pair 1, .* is empty \(None\)"),
        ([(np.nan, "a")], r"name at pair 0, .* is empty \(nan\)"),
        ([(pd.NA, "a")], "name at pair 0, .* is empty"),
        (["ab"], "edge at position 0 is 'ab'; pass a pair"),
        ([("a", "b", "c")], r"edge at position 0 is \('a', 'b', 'c'\)"),
        ([("a", "b"), 3], "edge at position 1 is 3"),
    ],
)
def test_what_is_no_taxonomy_is_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        Taxonomy(pairs)


def test_a_cycle_is_shown_along_its_edges():
    with pytest.raises(ValueError, match=r"c -> a -> b -> c|a -> b -> c -> a|b -> c -> a -> b"):
        Taxonomy([("a", "b"), ("b", "c"), ("c", "a")])


@pytest.mark.parametrize(
    ("pairs", "root", "message"),
    [
        ([("a", "b"), ("c", "d")], "a", "not all nodes are below the root 'a': 'c' has no parent"),
        ([("a", "b"), ("c", "d"), ("e", "f")], "a", "root 'a': 'c' and 'e' have no parent"),
        ([("a", "b")], "b", "the root 'b' hangs under 'a'"),
        ([("a", "b")], "r", "the root 'r' is not among the nodes"),
    ],
)
def test_orphans_beside_a_named_root_are_refused(pairs, root, message):
    with pytest.raises(ValueError, match=f"(?i){message}"):
        Taxonomy(pairs, root=root)


def test_a_named_root_above_all_is_accepted():
    assert Taxonomy([("a", "b"), ("b", "c")], root="a").roots == ["a"]


def test_a_node_is_listed_once():
    with pytest.raises(ValueError, match="'1' occurs twice in nodes"):
        Taxonomy([], nodes=["1", 1])


def test_an_edge_may_be_given_twice():
    assert len(Taxonomy([("a", "b"), ("a", "b")])) == 2


@pytest.mark.parametrize(
    "ask", [_TREE.membership, _TREE.distances, _TREE.parents_of, _TREE.depth, _TREE.restricted, _TREE.pruned]
)
def test_a_name_outside_the_tree_is_named(ask):
    with pytest.raises(ValueError, match=r"The (name|label) 'bee' is not in the taxonomy \(1 of 2 are not\)"):
        ask(["dog", "bee"])
    with pytest.raises(ValueError, match="'bee' is not in the taxonomy"):
        _TREE.path("bee")
