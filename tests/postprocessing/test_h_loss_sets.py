"""Label sets of least expected h-loss, against all sets there are; and sets that obey over many graphs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.metrics import h_loss
from labelweave.postprocessing import enforce_hierarchy, h_loss_sets
from labelweave.postprocessing.hierarchy import LabelOrder
from reference.random_graphs import random_taxonomy, taxonomies


def _closed_sets(graph):
    """List all sets of nodes that have all that is above their nodes, as rows of 0 and 1."""
    ups = [[graph.nodes.index(up) for up in graph.parents.get(name, ())] for name in graph.nodes]
    rows = product([0, 1], repeat=len(graph))
    return np.array([row for row in rows if all(row[k] <= row[up] for k in range(len(ups)) for up in ups[k])])


@settings(max_examples=20)
@given(graph=taxonomies(most=6, most_parents=1), seed=st.integers(0, 999))
def test_no_set_has_a_lesser_expected_loss_in_a_tree(graph, seed):
    rng = np.random.default_rng(seed)
    sets = _closed_sets(graph)
    truths = sets[rng.integers(len(sets), size=4)]
    chances = rng.dirichlet(np.ones(4))
    found = h_loss_sets([chances @ truths], graph, graph.nodes)
    Y = LabelMatrix.from_any(truths, graph.nodes)

    def expected(row):
        return h_loss(Y, np.tile(row, (4, 1)), graph, sample_weight=chances)

    assert (sets == found).all(axis=1).any()
    assert expected(found[0]) == pytest.approx(min(expected(row) for row in sets), abs=1e-9)


@settings(max_examples=30)
@given(graph=taxonomies(most=7), seed=st.integers(0, 999))
def test_no_set_has_a_lesser_bound_in_a_graph(graph, seed):
    rng = np.random.default_rng(seed)
    p = enforce_hierarchy(rng.random((1, len(graph))), graph, graph.nodes)[0]
    costs, sets = graph.sibling_shares(), _closed_sets(graph)
    parents = [graph.parents.get(name, ()) for name in graph.nodes]
    # without edges that follow from others
    ups = [
        [graph.nodes.index(up) for up in above if not any(up in graph.ancestors(other) for other in above)]
        for above in parents
    ]

    def bound(row):
        total = 0.0
        for k, above in enumerate(ups):
            least = min((p[up] for up in above), default=1.0)
            predicted = np.mean([row[up] for up in above]) if above else 1.0
            total += costs[k] * ((least - p[k]) * row[k] + p[k] * (predicted - row[k]))
        return total

    found = h_loss_sets([p], graph, graph.nodes)[0]
    assert (sets == found).all(axis=1).any()
    assert bound(found) == pytest.approx(min(map(bound, sets)), abs=1e-9)


def test_some_labels_in_another_order_and_none_at_all():
    tree = Taxonomy.from_nested({"animal": {"dog": ["poodle"], "cat": None}})
    assert h_loss_sets([[0.1, 0.9, 0.8]], tree, ["cat", "animal", "poodle"]).tolist() == [[0, 1, 1]]
    with pytest.raises(ValueError, match="from 0 to 1"):
        h_loss_sets([[1.5]], tree, ["dog"])


def test_probabilities_that_are_multiplied_down():
    graph = Taxonomy([("a", "c"), ("b", "c"), ("c", "d")])
    order = LabelOrder.of(graph, ["d", "c", "b", "a"])
    found = order.multiplied(np.array([[0.5, 0.5, 0.8, 0.4]]))
    np.testing.assert_allclose(found, [[0.1, 0.2, 0.8, 0.4]])


def test_entries_of_rows_that_lack_what_is_above_are_unobserved():
    graph = Taxonomy([("a", "c"), ("b", "c")])
    order = LabelOrder.of(graph, ["c", "a", "b"])
    Y = LabelMatrix.from_any([[1, 1, 1], [0, 1, 1], [0, 1, 0], [0, 0, np.nan]], ["c", "a", "b"])
    kept = order.conditional(Y).to_dense()
    np.testing.assert_array_equal(kept, [[1, 1, 1], [0, 1, 1], [np.nan, 1, 0], [np.nan, 0, np.nan]])


def test_probabilities_become_those_given_what_is_above():
    graph = Taxonomy([("a", "c"), ("b", "c"), ("c", "d")])
    names = ["c", "a", "d", "b"]
    order = LabelOrder.of(graph, names)
    table = [[0.6, 0.9, 0.3, 0.8], [0.4, 0.9, 0.4, 0.4], [np.nan, 0.8, np.nan, 1.0]]
    kept = order.conditional(LabelMatrix.from_probabilities(table, names)).to_dense()
    expected = [[0.75, 0.9, 0.5, 0.8], [np.nan, 0.9, np.nan, 0.4], [np.nan, 0.8, np.nan, 1.0]]
    np.testing.assert_allclose(kept, expected)


@pytest.mark.parametrize("incomplete", [False, True])
def test_probabilities_of_10_graphs_given_what_is_above_are_at_most_1(incomplete):
    for seed in range(10):
        rng, graph = np.random.default_rng(seed), random_taxonomy(seed, 20, 2.0)
        table = rng.choice([0.0, 0.3, 0.5, 0.7, 1.0, np.nan], size=(30, len(graph)))
        closed = graph.with_ancestors(
            LabelMatrix.from_probabilities(table, graph.nodes), incomplete=incomplete
        )
        kept = LabelOrder.of(graph, graph.nodes).conditional(closed)
        assert kept.flip_probabilities is not None
        assert kept.flip_probabilities.data.min() >= 0
        sure = LabelOrder.of(graph, graph.nodes).conditional(
            LabelMatrix(closed.positives, closed.observed, closed.names)
        )
        np.testing.assert_array_equal(np.isnan(kept.to_dense()), np.isnan(sure.to_dense()))


@pytest.mark.parametrize("part", range(5))
def test_nothing_disobeys_over_10_000_graphs(part):
    """Put 100 graphs side by side, so that what a call costs is paid once."""
    for seed in range(part * 20, part * 20 + 20):
        rng = np.random.default_rng(seed)
        parts = [
            random_taxonomy(100 * seed + k, int(rng.integers(1, 25)), rng.uniform(0.3, 3)) for k in range(100)
        ]
        pairs = [(f"{k}{up}", f"{k}{down}") for k, one in enumerate(parts) for up, down in one.pairs()]
        graph = Taxonomy(pairs, nodes=[f"{k}{name}" for k, one in enumerate(parts) for name in one.nodes])
        names = [str(name) for name in rng.permutation(graph.nodes)[: len(graph) * 2 // 3]]
        Y = rng.choice([0.0, 1.0, np.nan], size=(3, len(names)), p=[0.6, 0.2, 0.2])
        closed = graph.with_ancestors(LabelMatrix.from_any(Y, names), incomplete=bool(seed % 2)).to_dense()
        scores = rng.random((3, len(names))) if seed % 3 else rng.integers(0, 3, (3, len(names))) / 2
        order = LabelOrder.of(graph, names)
        above = order.columns[order.parents], order.columns[order.owners]
        best = enforce_hierarchy(scores, graph, names)
        found = [np.where(np.isnan(closed), 0.5, closed), best, order.enforced(scores, "projection")]
        found += [order.multiplied(scores), order.h_loss_gains(best) > 0]
        found += [order.enforced(scores - rng.random(len(names)), "projection") > 0]
        for table in found:
            assert (table[:, above[0]] >= table[:, above[1]]).all(), seed


def test_probabilities_of_0_and_1_are_probabilities():
    tree = Taxonomy.from_nested({"animal": ["dog", "cat"]})
    names = ["animal", "dog", "cat"]
    assert h_loss_sets([[1.0, 1.0, 0.0]], tree, names).tolist() == [[1, 1, 0]]
    for wrong in (1 + 1e-6, -1e-6):
        with pytest.raises(ValueError, match="pass numbers from 0 to 1"):
            h_loss_sets([[1.0, 1.0, wrong]], tree, names)
