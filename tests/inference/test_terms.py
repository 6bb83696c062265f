"""Label sets as lists of terms, against what the definitions say node by node."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.inference import term_lists
from labelweave.labels import LabelMatrix, Taxonomy
from reference.random_graphs import taxonomies

_TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle"], "cat": None}, "plant": None})


@settings(max_examples=60)
@given(graph=taxonomies(), seed=st.integers(0, 999))
def test_lists_are_what_the_graph_says_node_by_node(graph, seed):
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(graph.nodes)[: 1 + rng.integers(len(graph))]]
    sets = rng.integers(0, 2, size=(4, len(names)))
    for row, closed, specific in zip(
        sets,
        term_lists(sets, graph, names, "closed"),
        term_lists(sets, graph, names, "specific"),
        strict=True,
    ):
        chosen = {name for name, has in zip(names, row, strict=True) if has}
        above = {up for name in chosen for up in graph.ancestors(name)}
        assert closed == [name for name in names if name in chosen | above]
        assert specific == [name for name in names if name in chosen - above]
        assert term_lists([row], graph, names, "closed") == term_lists(
            [[name in specific for name in names]], graph, names, "closed"
        )


def test_probabilities_come_with_terms_the_greatest_first():
    labels = pd.DataFrame({"poodle": [1, 0], "dog": [0, 0], "animal": [0, 0], "plant": [1, 0]})
    numbers = [[0.5, 0.5, 0.9, 0.2], [0.0, 0.0, 0.0, 0.0]]
    found = term_lists(labels, _TREE, terms="closed", probabilities=numbers)
    assert found == [[("animal", 0.9), ("poodle", 0.5), ("dog", 0.5), ("plant", 0.2)], []]
    assert term_lists(LabelMatrix.from_any(labels), _TREE) == [["poodle", "plant"], []]


def test_columns_are_matched_by_name():
    labels = pd.DataFrame({"poodle": [1], "dog": [0], "animal": [0], "plant": [0]})
    numbers = pd.DataFrame({"plant": [0.1], "animal": [0.9], "dog": [0.8], "poodle": [0.7]})
    found = [[("animal", 0.9), ("dog", 0.8), ("poodle", 0.7)]]
    for names in (None, list(labels), list(numbers)):
        assert term_lists(labels, _TREE, names, "closed", probabilities=numbers) == found
    assert term_lists(labels.to_numpy(), _TREE, list(labels), "closed", probabilities=numbers) == found
    with pytest.raises(ValueError, match="probabilities has 'cat', which is no label"):
        term_lists(labels, _TREE, probabilities=numbers.rename(columns={"dog": "cat"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]], _TREE), "labels has no names"),
        (([[1]], _TREE, ["bee"]), "label 'bee' is not in the taxonomy"),
        (([[1]], _TREE, ["dog"], "leaves"), "terms"),
        (([[1, 0]], _TREE, ["dog"]), "1 names|2"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        term_lists(*arguments)


def test_a_number_for_every_label():
    with pytest.raises(ValueError, match=r"probabilities has shape \(1, 2\), but labels"):
        term_lists([[1]], _TREE, ["dog"], probabilities=[[0.1, 0.2]])


def test_names_that_are_numbers_are_those_of_columns_without_names():
    tree = Taxonomy([("2", "0"), ("2", "1")])
    assert term_lists([[1, 0]], tree, ["1", "0"]) == [["1"]]
