"""Losses on a taxonomy, against walks from node to node."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave import Taxonomy, metrics

TREE = Taxonomy.from_nested(
    {"animal": {"dog": ["poodle", "boxer"], "cat": None}, "plant": ["oak", "elm"], "stone": None}
)


@st.composite
def cases(draw):
    """A random forest, and true and predicted nodes, leaves or not, some truths unobserved."""
    n_nodes = draw(st.integers(1, 9))
    above = [draw(st.integers(-1, k - 1)) for k in range(n_nodes)]
    names = [f"node {k}" for k in range(n_nodes)]
    pairs = [(names[a], names[k]) for k, a in enumerate(above) if a >= 0]
    n_rows = draw(st.integers(1, 6))
    rows = st.lists(st.sampled_from(names), min_size=n_rows, max_size=n_rows)
    truths, predicted = draw(rows), draw(rows)
    missing = draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    truths = [truths[0], *(None if gone else t for t, gone in zip(truths[1:], missing, strict=False))]
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n_rows, max_size=n_rows))
    return Taxonomy(pairs, nodes=names), truths, predicted, weights


def slow_distance(tree, first, second):
    """Count the edges of both paths that are not shared; one node stands above all roots."""
    paths = [["top", *tree.path(name)] for name in (first, second)]
    edges = [set(pairwise(path)) for path in paths]
    return len(edges[0] ^ edges[1]) / 2


def slow_group(tree, name):
    """The one parent of all leaves below; None if there are several."""
    inner = set(tree.parent.values())
    leaves = [n for n in tree.nodes if name in tree.path(n) and n not in inner]
    groups = {tree.parent.get(leaf, leaf) for leaf in leaves}
    return groups.pop() if len(groups) == 1 else None


def slow_mean(values, weights):
    rows = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    return sum(v * w for v, w in rows) / sum(w for _, w in rows) if rows else np.nan


@given(case=cases())
def test_taxonomic_loss_equals_walks(case):
    tree, truths, predicted, weights = case
    values = [t and slow_distance(tree, t, p) for t, p in zip(truths, predicted, strict=True)]
    loss = metrics.taxonomic_loss(truths, predicted, tree, sample_weight=weights)
    assert loss == pytest.approx(slow_mean(values, weights))


@given(case=cases())
def test_parent_accuracy_equals_walks(case):
    tree, truths, predicted, weights = case
    groups = [
        (t and slow_group(tree, t), slow_group(tree, p)) for t, p in zip(truths, predicted, strict=True)
    ]
    values = [None if truth is None else float(truth == guess) for truth, guess in groups]
    share = metrics.parent_accuracy(truths, predicted, tree, sample_weight=weights)
    assert share == pytest.approx(slow_mean(values, weights), nan_ok=True)


def loss(truth, predicted):
    return metrics.taxonomic_loss([truth], [predicted], TREE)


def parent(truth, predicted):
    return metrics.parent_accuracy([truth], [predicted], TREE)


def test_the_papers_distances():
    assert loss("poodle", "poodle") == 0
    assert loss("poodle", "boxer") == 1
    assert loss("poodle", "oak") == 2.5
    assert loss("oak", "stone") == 1.5
    # a truth known only down to dog
    assert loss("dog", "poodle") == loss("dog", "boxer") == 0.5
    assert loss("dog", "cat") == 1


def test_parents_of_partial_truths():
    assert parent("poodle", "boxer") == 1
    assert parent("poodle", "cat") == 0
    # all leaves below dog have dog as their parent
    assert parent("dog", "poodle") == 1
    assert parent("dog", "cat") == 0
    assert parent("poodle", "dog") == 1
    # below animal there are several parents: nothing was observed
    assert np.isnan(parent("animal", "poodle"))
    assert metrics.parent_accuracy(["animal", "oak"], ["oak", "elm"], TREE) == 1
    # a prediction without a unique parent is wrong
    assert parent("poodle", "animal") == 0
    # without a parent a class is its own group
    assert parent("stone", "stone") == 1
    assert parent("stone", "oak") == 0


def test_numbers_stand_for_names_of_nodes():
    tree = Taxonomy.from_nested({"all": [1, 2], 7: None})
    assert metrics.taxonomic_loss([1, 2.0, np.nan], np.array([2, 2, 2]), tree) == 0.5
    assert metrics.parent_accuracy(np.array([1, 7]), ["2", "1"], tree) == 0.5


def test_only_pairs_that_occur_are_measured(monkeypatch):
    names = [f"c{number}" for number in range(50)]
    tree = Taxonomy([("all", name) for name in names])
    monkeypatch.setattr(Taxonomy, "distances", None)
    assert metrics.taxonomic_loss(names, names[::-1], tree) == 1.0
    assert metrics.taxonomic_loss(names, names, tree) == 0.0
