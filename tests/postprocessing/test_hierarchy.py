"""Consistent scores and sets, and sets of least expected h-loss, against slow references."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.metrics import h_loss
from labelweave.postprocessing import enforce_hierarchy, h_loss_sets, term_lists
from labelweave.postprocessing.hierarchy import LabelOrder
from reference.random_graphs import random_taxonomy, taxonomies

_TREE = Taxonomy.from_nested({"animal": {"dog": ["poodle"], "cat": None}, "plant": None})


def _violations(graph, names, scores):
    """Count pairs of a label and its ancestor whose scores are in the wrong order."""
    place = {name: k for k, name in enumerate(names)}
    pairs = [(place[up], k) for name, k in place.items() for up in graph.ancestors(name) if up in place]
    return sum(int((scores[:, up] < scores[:, k]).sum()) for up, k in pairs)


def _is_optimal(graph, names, given_, found, weights):
    """Check that no upper part of a block of equal values could increase with gain, nor a lower one decrease.

    For every node, by the conditions of Karush, Kuhn and Tucker as a flow: within each block the excess above
    its value flows upward to the deficits.
    """
    import networkx

    for value in np.unique(found):
        block = [name for k, name in enumerate(names) if found[k] == value]
        flow, total = networkx.DiGraph(), 0.0
        flow.add_nodes_from(["source", "sink"])
        for name in block:
            excess = weights[names.index(name)] * (given_[names.index(name)] - value)
            if excess > 0:
                flow.add_edge("source", ("n", name), capacity=excess)
                total += excess
            else:
                flow.add_edge(("n", name), "sink", capacity=-excess)
            for up in graph.ancestors(name):
                if up in block:
                    flow.add_edge(("n", name), ("n", up))
        if total and networkx.maximum_flow_value(flow, "source", "sink") < total - 1e-9:
            return False
    return True


@settings(max_examples=100)
@given(graph=taxonomies(), seed=st.integers(0, 999))
def test_the_greatest_score_below_against_a_slow_one(graph, seed):
    rng = np.random.default_rng(seed)
    names = list(rng.permutation(graph.nodes)[: 1 + rng.integers(len(graph))])
    scores = rng.integers(-3, 4, size=(3, len(names))).astype(float)
    below = [
        [k for k, other in enumerate(names) if other in (name, *graph.descendants(name))] for name in names
    ]
    expected = np.column_stack([scores[:, columns].max(axis=1) for columns in below])
    np.testing.assert_array_equal(enforce_hierarchy(scores, graph, names), expected)


@settings(max_examples=60)
@given(graph=taxonomies(), seed=st.integers(0, 999), are_ties=st.booleans())
def test_the_projection_meets_the_conditions_of_a_least_squares_solution(graph, seed, are_ties):
    pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(graph.nodes)[: 1 + rng.integers(len(graph))]]
    scores = rng.integers(0, 3, size=(2, len(names))) * 1.0 if are_ties else rng.normal(size=(2, len(names)))
    weights = rng.uniform(0.2, 3, len(names))
    found = enforce_hierarchy(scores, graph, names, "projection", label_weight=weights)
    assert _violations(graph, names, found) == 0
    for row, projected in zip(scores, np.round(found, 12), strict=True):
        assert _is_optimal(graph, names, row, projected, weights)
    np.testing.assert_allclose((found * weights).sum(axis=1), (scores * weights).sum(axis=1), atol=1e-9)
    again = enforce_hierarchy(found, graph, names, "projection", label_weight=weights)
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("seed", range(5))
def test_chains_are_what_scikit_learn_makes_of_them(seed):
    rng = np.random.default_rng(seed)
    names = [f"n{k}" for k in range(200)]
    chain = Taxonomy(pairwise(names))
    scores, weights = rng.normal(size=200), rng.uniform(0.1, 2, 200)
    found = enforce_hierarchy([scores], chain, names, "projection", label_weight=weights)[0]
    expected = isotonic_regression(scores, sample_weight=weights, increasing=False)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("block", range(4))
def test_a_thousand_random_graphs_against_a_quadratic_program(block):
    cvxpy = pytest.importorskip("cvxpy")
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    for seed in range(250 * block, 250 * (block + 1)):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 40))
        graph = random_taxonomy(seed, size, (0.7, 1.0, 1.5, 2.5)[seed % 4])
        place = {name: k for k, name in enumerate(graph.nodes)}
        scores, weights = rng.normal(size=size), rng.uniform(0.2, 3, size)
        found = enforce_hierarchy([scores], graph, graph.nodes, "projection", label_weight=weights)[0]
        x = cvxpy.Variable(size)
        order = [x[place[above]] >= x[place[below]] for above, below in graph.pairs()]
        loss = cvxpy.sum(cvxpy.multiply(weights, cvxpy.square(x - scores)))
        cvxpy.Problem(cvxpy.Minimize(loss), order).solve(solver=cvxpy.CLARABEL, **precise)
        np.testing.assert_allclose(found, x.value, atol=1e-6)
        assert _violations(graph, graph.nodes, found[None]) == 0


def test_rows_do_not_depend_on_each_other_and_columns_on_no_order():
    graph, rng = random_taxonomy(3, 60), np.random.default_rng(0)
    scores, order = rng.normal(size=(20, 60)), rng.permutation(60)
    for how in ("max", "projection"):
        whole = enforce_hierarchy(scores, graph, graph.nodes, how)
        alone = [enforce_hierarchy(row[None], graph, graph.nodes, how)[0] for row in scores]
        np.testing.assert_array_equal(whole, alone)
        names = [graph.nodes[k] for k in order]
        np.testing.assert_allclose(
            enforce_hierarchy(scores[:, order], graph, names, how), whole[:, order], atol=1e-12
        )


def test_labels_that_hang_together_through_other_nodes():
    found = enforce_hierarchy([[0.0, 1.0, 5.0]], _TREE, ["animal", "poodle", "plant"], "projection")
    np.testing.assert_array_equal(found, [[0.5, 0.5, 5.0]])


def test_scores_and_weights_with_names_go_by_name():
    names, weights = ["animal", "dog", "cat"], [1.0, 3.0, 1.0]
    scores = pd.DataFrame([[0.2, 0.8, 0.1]], columns=names)
    expected = enforce_hierarchy(scores.to_numpy(), _TREE, names, "projection", label_weight=weights)
    turned = pd.Series(weights, index=names).loc[["cat", "animal", "dog"]]
    found = enforce_hierarchy(
        scores[["dog", "cat", "animal"]], _TREE, names, "projection", label_weight=turned
    )
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="'cow', which is not a label, and lacks the label 'cat'"):
        enforce_hierarchy(scores.rename(columns={"cat": "cow"}), _TREE, names)


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
    with pytest.raises(ValueError, match="probabilities has 'cat', which is not a label"):
        term_lists(labels, _TREE, probabilities=numbers.rename(columns={"dog": "cat"}))


def test_names_that_are_numbers_are_those_of_columns_without_names():
    tree = Taxonomy([("2", "0"), ("2", "1")])
    assert term_lists([[1, 0]], tree, ["1", "0"]) == [["1"]]


def _closed_sets(graph):
    """List all sets of nodes that include all their ancestors, as rows of 0 and 1."""
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
    """Combine 100 disjoint graphs, so that the overhead of a call is paid once."""
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
