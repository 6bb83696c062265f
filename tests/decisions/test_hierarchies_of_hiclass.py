"""What hiclass's tests ask of hierarchies, asked of ours: paths, missing leaves, roots, names."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave import HierarchicalClassifier, MaxMarginClassifier, Taxonomy
from labelweave.inference import term_lists

_ANIMALS = Taxonomy.from_nested(
    {"Bird": None, "Reptile": ["Snake", "Lizard"], "Mammal": {"Cat": None, "Wolf": ["Dog"]}}
)
_DEPTHS = [
    {"Bird"},
    {"Reptile", "Snake"},
    {"Reptile", "Lizard"},
    {"Mammal", "Cat"},
    {"Mammal", "Wolf", "Dog"},
]


def _found(graph, tags, X=None, **settings):
    X = np.eye(len(tags)) if X is None else X
    model = HierarchicalClassifier(MaxMarginClassifier(C=100.0, tol=1e-6), graph, **settings).fit(X, tags)
    return model, [set(row) for row in term_lists(model.predict(X), model.taxonomy_, model.classes_)]


@pytest.mark.parametrize("enforce", ["max", "projection"])
def test_rows_of_several_paths_and_of_one(enforce):
    graph = Taxonomy.from_nested({"Mammal": ["Human", "Bovine"], "Fish": None})
    tags = [["Mammal", "Human", "Fish"], ["Mammal", "Human", "Bovine"], ["Mammal", "Human"]]
    X = np.array([[1, 2, 0], [3, 4, 1], [5, 6, 9]])
    assert _found(graph, tags, X, enforce=enforce)[1] == [set(row) for row in tags]


@pytest.mark.parametrize("enforce", ["max", "projection"])
def test_rows_end_at_different_depths(enforce):
    tags = [sorted(row) for row in _DEPTHS]
    assert _found(_ANIMALS, tags, enforce=enforce)[1] == _DEPTHS


def test_leaves_that_no_row_has_are_no_labels_and_what_is_above_is_completed():
    graph = Taxonomy.from_nested({"Reptile": ["Snake", "Lizard", "Turtle"], "Bird": None})
    names = ["Reptile", "Snake", "Lizard", "Bird"]
    Y = pd.DataFrame([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], columns=names)
    model, found = _found(graph, Y)
    assert "Turtle" not in model.classes_
    assert found == [{"Reptile", "Snake"}, {"Reptile", "Lizard"}, {"Bird"}, {"Reptile"}]


def test_several_roots_stand_beside_each_other_as_if_below_one_that_all_rows_have():
    tags = [sorted(row) for row in _DEPTHS]
    below_one = Taxonomy([*_ANIMALS.pairs(), *(("all", root) for root in _ANIMALS.roots)])
    apart, found = _found(_ANIMALS, tags)
    whole, within = _found(below_one, [["all", *row] for row in tags])
    assert [row - {"all"} for row in within] == found
    assert all("all" in row for row in within)
    assert apart.taxonomy_.roots == ["Bird", "Reptile", "Mammal"]
    assert whole.taxonomy_.roots == ["all"]


def test_a_chain_and_a_node_alone_are_hierarchies():
    tags = [["a", "b", "c"], ["a", "b"], ["a"], ["z"]]
    assert _found(Taxonomy([("a", "b"), ("b", "c")], nodes=["z"]), tags)[1] == [set(row) for row in tags]


def test_one_name_below_two_parents_is_two_nodes_where_nodes_are_paths():
    paths = Taxonomy.from_paths(["a/b", "b/c", "d/b"])
    tags = [["a", "a/b"], ["b", "b/c"], ["d", "d/b"]]
    assert _found(paths, tags)[1] == [set(row) for row in tags]
    assert len(paths) == 6


def test_numbers_are_names_too():
    graph = Taxonomy([(1, 11), (1, 12), (2, 21)])
    Y = pd.DataFrame(np.eye(4, dtype=int)[:, :3], columns=[11, 12, 21]).assign(**{"1": 0, "2": 0})
    found = _found(graph, Y)[1]
    assert found == [{"1", "11"}, {"1", "12"}, {"2", "21"}, set()]


def test_sparse_rows_and_dense_ones():
    tags = [sorted(row) for row in _DEPTHS]
    dense, sparse = (_found(_ANIMALS, tags, X)[0] for X in (np.eye(5), sp.eye_array(5, format="csr")))
    np.testing.assert_allclose(
        sparse.decision_function(sp.eye_array(5, format="csr")), dense.decision_function(np.eye(5)), atol=1e-4
    )


def test_a_cycle_is_named():
    with pytest.raises(ValueError, match=r"cycle: \w -> \w"):
        Taxonomy([("a", "b"), ("b", "c"), ("c", "a")])
