"""MAP inference against enumeration, on its own budgets, and from compiled loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import labelweave.postprocessing.map as map_inference
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops.map.arrays import Limits, allocate_workspace
from labelweave.foundation.loops.map.solve import solve_one
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.postprocessing.map import MapInference, component_orders, expected_seconds
from reference import map_twin

_WIDTH, _STATES = 6, 256


def searching(graph, nodes=1000, sweeps=50, width=_WIDTH, states=_STATES, dead_ends=1):
    """Inference without a fixed elimination order."""
    inference = MapInference(graph, exact_width=0)
    inference.plan = inference.plan._replace(limits=Limits(nodes, sweeps, width, states, dead_ends))
    return inference


def draw_graph(generator, n_labels):
    return CliqueGraph(
        n_labels, map_twin.random_cliques(generator, n_labels, generator.integers(1, 2 * n_labels))
    )


def draw_scores(generator, graph, n_rows):
    """Scores of mixed sizes; every third problem has whole numbers and therefore many ties."""
    unary = generator.normal(size=(n_rows, graph.n_labels)) * generator.choice([0.1, 1.0, 30.0], (n_rows, 1))
    tables = generator.normal(size=(n_rows, graph.table_starts[-1]))
    tables *= generator.choice([0.1, 1.0, 30.0], (n_rows, 1))
    unary[::3], tables[::3] = np.round(unary[::3]), np.round(tables[::3])
    return unary, tables


def assert_best(graph, unary, tables, result):
    best = map_twin.scores(graph, unary, tables).max(axis=1)
    np.testing.assert_allclose(result.values, best, rtol=1e-10, atol=1e-10)
    own = [map_twin.score_one(graph, *row) for row in zip(unary, tables, result.labels, strict=True)]
    np.testing.assert_allclose(result.values, own, rtol=1e-10, atol=1e-10)
    assert result.proven.all()


@pytest.mark.slow
def test_ten_thousand_problems_agree_with_enumeration():
    generator = np.random.default_rng(0)
    for n_labels in np.resize([3, 6, 7, 8, 9, 10, 11, 12, 13, 14], 100):
        graph = draw_graph(generator, int(n_labels))
        unary, tables = draw_scores(generator, graph, 100)
        result = MapInference(graph).solve(unary, tables)
        assert_best(graph, unary, tables, result)
        assert (result.gaps == 0).all()


@pytest.mark.parametrize(
    "budget",
    [{}, {"width": 2}, {"states": 0}, {"states": 0, "dead_ends": 0, "sweeps": 3}, {"width": 0, "sweeps": 1}],
    ids=str,
)
def test_the_search_agrees_with_enumeration(budget):
    generator = np.random.default_rng(1)
    for n_labels in (2, 5, 8, 9, 10):
        for _ in range(3):
            graph = draw_graph(generator, n_labels)
            unary, tables = draw_scores(generator, graph, 30)
            assert_best(graph, unary, tables, searching(graph, **budget).solve(unary, tables))


@pytest.mark.parametrize("nodes", [1, 2, 5])
@pytest.mark.parametrize("sweeps", [1, 20])
@pytest.mark.parametrize("dead_ends", [0, 1])
def test_a_certificate_is_never_wrong_however_little_may_be_spent(nodes, sweeps, dead_ends):
    generator, proven = np.random.default_rng(2), []
    for n_labels in (4, 8, 10):
        graph = draw_graph(generator, n_labels)
        unary, tables = draw_scores(generator, graph, 60)
        inference = searching(graph, nodes, sweeps, states=0, dead_ends=dead_ends)
        result = inference.solve(unary, tables)
        best = map_twin.scores(graph, unary, tables).max(axis=1)
        rounding = 1e-10 * np.maximum(1.0, np.abs(best))
        assert (result.bounds >= best - rounding).all()
        assert (result.values <= best + rounding).all()
        assert (best - result.values)[result.proven].max(initial=0.0) <= 1e-9 * np.abs(best).max()
        proven.append(result.proven)
    assert 0 < np.concatenate(proven).mean() < 1


def test_message_passing_alone_has_a_bound_that_never_rises():
    generator = np.random.default_rng(3)
    for n_labels in (4, 8, 12):
        graph = draw_graph(generator, n_labels)
        unary, tables = draw_scores(generator, graph, 40)
        best = map_twin.scores(graph, unary, tables).max(axis=1)
        bounds = []
        for sweeps in (1, 2, 3, 5, 10, 30):
            found = MapInference(graph, method="message_passing", max_iter=sweeps).solve(unary, tables)
            bounds.append(found.bounds)
            assert (found.bounds >= best - 1e-9 * np.maximum(1.0, np.abs(best))).all()
        rises = np.diff(bounds, axis=0)
        assert rises.max() <= 1e-9 * np.abs(bounds).max()
        assert (bounds[-1] < bounds[0] - 1e-6).any()


def test_without_cliques_every_label_follows_its_sign():
    unary = np.array([[1.0, -2.0, 0.0], [-1.0, 0.5, 3.0]])
    inference = MapInference(CliqueGraph.empty(3))
    result = inference.solve(unary, np.zeros(0))
    assert result.labels.tolist() == [[1, 0, 0], [0, 1, 1]]
    np.testing.assert_array_equal(result.values, [1.0, 3.5])
    np.testing.assert_array_equal(inference.max_marginals(unary, np.zeros((2, 0))), unary)
    assert inference.solve(unary[:0], np.zeros(0)).labels.shape == (0, 3)


@settings(max_examples=40)
@given(data=st.data(), n_labels=st.integers(1, 8), is_searched=st.booleans())
def test_whole_numbers_and_any_clamp_agree_with_enumeration(data, n_labels, is_searched):
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    graph = draw_graph(generator, n_labels) if n_labels > 1 else CliqueGraph.empty(1)
    unary = generator.integers(-3, 4, (1, n_labels)).astype(float)
    tables = generator.integers(-3, 4, (1, graph.table_starts[-1])).astype(float)
    clamp = np.array(
        data.draw(st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=n_labels, max_size=n_labels))
    )
    inference = searching(graph, width=2) if is_searched else MapInference(graph)
    result = inference.solve(unary, tables, clamp)
    allowed = ((map_twin.all_labelings(n_labels) == clamp) | (clamp < 0)).all(axis=1)
    assert result.values[0] == map_twin.scores(graph, unary, tables)[0, allowed].max()
    assert result.proven[0]
    assert (result.labels[0] == clamp)[clamp >= 0].all()


@pytest.mark.parametrize("make", [MapInference, searching], ids=["exact", "searched"])
def test_max_marginals_agree_with_enumeration(make):
    generator = np.random.default_rng(4)
    for n_labels in (2, 6, 9):
        graph = draw_graph(generator, n_labels)
        unary, tables = draw_scores(generator, graph, 30)
        inference = make(graph)
        margins = inference.max_marginals(unary, tables)
        expected = map_twin.max_marginals(graph, unary, tables)
        np.testing.assert_allclose(margins, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
        labels = inference.solve(unary, tables).labels
        is_clear = np.abs(margins).min(axis=1) > 1e-9  # no other labels are as good
        np.testing.assert_array_equal(labels[is_clear], margins[is_clear] > 0)


@pytest.mark.parametrize("make", [MapInference, searching], ids=["exact", "searched"])
def test_max_marginals_of_labels_that_are_held_are_infinite(make):
    graph = CliqueGraph(4, [(0, 1), (1, 2), (0, 2)])
    tables = np.tile([0.0, 0.0, 0.0, 5.0], 3)
    unary = np.array([[-1.0, -1.0, -1.0, -1.0]])
    margins = make(graph).max_marginals(unary, tables, [1, -1, 0, 1])
    np.testing.assert_allclose(margins, [[np.inf, 4.0, -np.inf, np.inf]])


def test_the_size_of_the_scores_does_not_matter():
    generator = np.random.default_rng(6)
    graph = draw_graph(generator, 10)
    unary = generator.normal(size=(50, 10))
    tables = generator.normal(size=(50, graph.table_starts[-1]))
    for inference in (MapInference(graph), searching(graph, states=0)):
        labels = inference.solve(unary, tables).labels
        for scale in (1e-9, 1e9):
            np.testing.assert_array_equal(inference.solve(scale * unary, scale * tables).labels, labels)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e12])
def test_certificates_of_tiny_scores_are_as_strict(scale):
    generator = np.random.default_rng(13)
    graph = CliqueGraph.complete(7)
    unary = scale * generator.normal(size=(60, 7))
    tables = scale * generator.normal(size=(60, graph.table_starts[-1]))
    found = MapInference(graph, method="message_passing").solve(unary, tables)
    is_best = map_twin.scores(graph, unary, tables).max(axis=1) <= found.values + 1e-9 * scale
    assert is_best[found.proven].all()
    assert 10 < found.proven.sum() < 55


@pytest.mark.parametrize("size", [1e3, 1e12, 1e14])
def test_combinations_may_be_forbidden_by_large_scores(size):
    generator, graph = np.random.default_rng(0), CliqueGraph.complete(12)
    unary, tables = draw_scores(generator, graph, 20)
    tables[:, 4 * generator.choice(graph.n_cliques, 15, replace=False) + 3] = -size
    assert_best(graph, unary, tables, searching(graph, states=0).solve(unary, tables))


@pytest.mark.parametrize("exact_width", [0, 12])
def test_threads_do_not_change_a_bit(exact_width):
    generator = np.random.default_rng(7)
    graph = CliqueGraph(40, map_twin.random_edges(generator, 40, 60))
    unary, tables = draw_scores(generator, graph, 150)
    results = []
    for n_threads in (1, 3):
        inference = MapInference(graph, exact_width=exact_width, max_nodes=20)
        with Workers(n_threads).running() as workers:
            found = inference.solve(unary, tables, workers=workers)
            results.append([*found, inference.max_marginals(unary[:40], tables[:40], workers=workers)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_do_not_depend_on_the_rows_before_them():
    generator = np.random.default_rng(8)
    graph = CliqueGraph(30, map_twin.random_edges(generator, 30, 60))
    unary, tables = draw_scores(generator, graph, 40)
    inference = searching(graph, nodes=8, states=0)
    whole = inference.solve(unary, tables)
    for row in (39, 0, 17):
        alone = inference.solve(unary[row : row + 1], tables[row : row + 1])
        np.testing.assert_array_equal(alone.labels[0], whole.labels[row])
        assert (alone.values[0], alone.bounds[0]) == (whole.values[row], whole.bounds[row])


def test_trees_and_chains_of_many_labels_are_exact_both_ways():
    generator = np.random.default_rng(9)
    parents = [(int(generator.integers(label)), label) for label in range(1, 300)]
    graph = CliqueGraph(300, parents)
    assert graph.width == 1
    unary, tables = draw_scores(generator, graph, 20)
    exact = MapInference(graph, method="exact").solve(unary, tables)
    searched = searching(graph).solve(unary, tables)
    np.testing.assert_allclose(searched.values, exact.values, rtol=1e-12)
    assert exact.proven.all()
    assert searched.proven.all()


@pytest.mark.parametrize(("n_labels", "n_edges"), [(159, 200), (1000, 2000)])
def test_large_graphs_with_loops(n_labels, n_edges):
    generator = np.random.default_rng(10)
    graph = CliqueGraph(n_labels, map_twin.random_edges(generator, n_labels, n_edges))
    unary = generator.normal(size=(5, n_labels))
    tables = 0.2 * generator.normal(size=(5, graph.table_starts[-1]))
    result = MapInference(graph, max_nodes=30).solve(unary, tables)
    assert (result.bounds >= result.values).all()
    assert result.proven.mean() >= 0.8
    flipped = result.labels[0].copy()
    flipped[17] = 1 - flipped[17]
    assert map_twin.score_one(graph, unary[0], tables[0], flipped) <= result.values[0] + 1e-9


def test_large_cliques():
    generator = np.random.default_rng(11)
    graph = CliqueGraph(9, [(0, 1, 2, 3, 4, 5, 6, 7), (1, 3, 5, 7, 8), (0, 8)])
    unary, tables = draw_scores(generator, graph, 40)
    for inference in (MapInference(graph), searching(graph), searching(graph, states=0)):
        assert_best(graph, unary, tables, inference.solve(unary, tables))


@njit(cache=False)
def _sum_of_values(plan, workspace, unary, tables, clamp, labels):
    total = 0.0
    for row in range(len(unary)):
        value, bound = solve_one(plan, workspace, unary[row], tables[row], clamp, labels[row])
        total += value + (bound - value)
    return total


@pytest.mark.slow
def test_a_compiled_loop_calls_it_for_one_example_at_a_time():
    generator = np.random.default_rng(12)
    graph = CliqueGraph.complete(6)
    unary, tables = draw_scores(generator, graph, 20)
    inference = MapInference(graph)
    labels, clamp = np.zeros((20, 6), np.int8), np.full(6, -1, np.int8)
    total = _sum_of_values(inference.plan, allocate_workspace(inference.plan), unary, tables, clamp, labels)
    expected = inference.solve(unary, tables)
    np.testing.assert_array_equal(labels, expected.labels)
    np.testing.assert_allclose(total, expected.values.sum())


def test_the_exact_method_refuses_what_is_too_wide():
    graph = CliqueGraph(9, CliqueGraph.complete(7).cliques)
    assert (
        MapInference(graph, method="exact", exact_width=6).solve(np.ones((1, 9)), np.zeros(84)).proven.all()
    )
    with pytest.raises(ValueError, match=r"7 labels and width 6, above exact_width=4; .* \"auto\" in place"):
        MapInference(graph, method="exact", exact_width=4)


def test_the_time_that_is_expected_counts_tables_and_nodes():
    graph = CliqueGraph(6, [(0, 1), (1, 2), (3, 4)])
    eliminated = expected_seconds(graph, component_orders(graph, 12), 1000)
    # a path of three labels: tables of 4, 4 and 2 states; a pair: 4 and 2
    assert eliminated == pytest.approx(map_inference._SECONDS_A_STATE * (4 + 4 + 2 + 4 + 2))
    searched = expected_seconds(graph, component_orders(graph, 0), 1000)
    assert searched == pytest.approx(map_inference._SECONDS_A_CLIQUE * (2 * 2 + 1 * 2 ** (2 / 3)))
    assert expected_seconds(graph, component_orders(graph, 0), 1) == pytest.approx(
        map_inference._SECONDS_A_CLIQUE * 3
    )
