"""Candidate cliques, and losses of whole label sets, in the structured margin: by brute force."""

import itertools
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from labelweave.foundation.loops.structured import DualPoint
from labelweave.problems.structured_margin import GrowingMargin, RoundPenalty, growth, set_losses
from labelweave.problems.structured_margin.growth import grown_cliques, pair_scores, violations
from labelweave.problems.structured_margin.label_sets import worst_label_sets
from labelweave.problems.structured_margin.structured_margin import joined
from labelweave.solvers.clique_generation import CliqueGeneration
from labelweave.solvers.passes import BlockFrankWolfe
from reference.structured_problems import AtPoint, margin_data, rows, structured
from reference.structured_twin import StructuredTwin


def _dense_distribution(problem):
    n, n_labels = problem.dual.means.shape
    labelings = np.array(list(itertools.product((0, 1), repeat=n_labels)))
    chances = np.ones((n, len(labelings)))
    problem.moments()
    for label in np.flatnonzero(problem.homes < 0):
        mean = problem.dual.means[:, label, None]
        chances *= np.where(labelings[None, :, label] == 1, mean, 1 - mean)
    for home in range(problem.dual.shares.shape[2]):
        own = np.flatnonzero(problem.homes == home)
        same = (problem.dual.vertices[:, :, None][..., own] == labelings[None, None][..., own]).all(axis=3)
        chances *= (same * problem.dual.shares[:, :, home, None]).sum(axis=1)
    return labelings, chances


def _dense_score(problem, clique):
    labelings, chances = _dense_distribution(problem)
    power = 1 << np.arange(len(clique))
    states = np.eye(2 ** len(clique))
    expected = chances @ states[labelings[:, list(clique)] @ power]
    moments = states[problem.targets[:, list(clique)].astype(int) @ power] - expected
    data = problem.data
    product = (data.arrays.weights[:, None] * data.products.data).T @ moments / problem.alpha
    return (product**2).sum()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_those_of_dense_distributions(missing, monkeypatch):
    X, Y = rows(1, n=40, missing=missing)
    problem = structured(margin_data(X, Y), ((0, 1), (0, 2)), 0.02)
    for seed in range(5):
        problem.sweep(np.random.RandomState(seed).permutation(40))
    monkeypatch.setattr(growth, "_NUMBERS_AT_ONCE", 100)
    scores, pairs = pair_scores(problem.moments()), list(itertools.combinations(range(5), 2))
    expected = [_dense_score(problem, pair) for pair in pairs]
    np.testing.assert_allclose([scores[pair] for pair in pairs], expected)
    np.testing.assert_allclose(violations(problem.moments(), pairs), expected)
    assert (np.tril(scores) == 0).all()
    larger = [(0, 1, 2), (0, 3), (0, 1, 3), (0, 3, 4), (0, 1, 2, 3), (1, 2, 3, 4)]
    expected = [_dense_score(problem, clique) for clique in larger]
    np.testing.assert_allclose(violations(problem.moments(), larger), expected)
    listed = growth.ListedCliques(larger)
    np.testing.assert_allclose(listed.scores(problem.moments()), expected)


def test_the_scores_of_cliques_in_the_graph_are_the_squares_of_z():
    X, Y = rows(2)
    problem = structured(margin_data(X, Y), ((0, 1), (0, 2), (3, 4)), 0.02)
    problem.sweep(np.arange(len(X)))
    np.testing.assert_allclose(violations(problem.moments(), problem.graph.cliques), problem.squares()[1])


def test_cliques_grow_by_joined_labels():
    assert grown_cliques([(0, 1), (1, 2)], 3) == [(0, 1, 2)]
    assert grown_cliques([(0, 1), (2, 3)], 3) == []
    assert grown_cliques([(0, 1), (1, 2), (0, 1, 2), (2, 3)], 3) == [(0, 2, 3), (1, 2, 3)]
    assert (0, 1, 2, 3) in grown_cliques([(0, 1, 2), (2, 3)], 4)


def _growing(data, per_round=1, size=2, n_labels=5, alpha=0.05):
    def pose(graph, penalty):
        return structured(data, graph.cliques, alpha, penalty).problem

    return GrowingMargin(n_labels, pose, per_round, size)


def _learn(growing, max_rounds=10, tol=1e-5):
    passes = BlockFrankWolfe(tol, 3000, 0)
    result, state = CliqueGeneration(passes, passes, max_rounds, 0.0).solve(growing)
    return result, state, AtPoint(growing.at(state.cliques), state.inner.point)


def test_no_candidate_violates_the_learned_optimum():
    X, Y = rows(3, n=80, n_labels=5)
    _, state, problem = _learn(_growing(margin_data(X, Y)))
    assert state.reason == "no cliques outside the graph violate the optimum"
    squares, weights = problem.squares()[1], problem.round_shares
    active = squares[weights > 1e-3]
    np.testing.assert_allclose(active, active.max(), rtol=0.05)
    scores = pair_scores(problem.moments())
    assert scores.max() <= 1.05 * squares.max()
    primals = [record.primal for record in state.records]
    assert all(later <= value + 1e-4 for value, later in itertools.pairwise(primals))


@pytest.mark.parametrize("per_round", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_cliques_a_round_reach_the_optimum_over_all_sets(per_round):
    n_labels = per_round + 1
    X, Y = rows(4, n=6, d=2, n_labels=n_labels)
    pairs = list(itertools.combinations(range(n_labels), 2))
    sets = list(itertools.combinations(range(len(pairs)), per_round))
    of_pairs = [[number for number, own in enumerate(sets) if pair in own] for pair in range(len(pairs))]
    best = StructuredTwin(X, Y, pairs, 0.1, rounds=of_pairs).optimum()
    growing = _growing(margin_data(X, Y), per_round, n_labels=n_labels, alpha=0.1)
    rough, fine = BlockFrankWolfe(1e-2, 3000, 0), BlockFrankWolfe(1e-4, 3000, 0)
    result, state = CliqueGeneration(rough, fine, 50, 0.0).solve(growing)
    end = result.trace[-1]
    assert end.dual - 1e-6 <= best <= end.primal + 1e-6
    bound = growing.relaxed_bound(growing.at(state.cliques), state.inner.point, end.dual)
    assert end.primal - 2e-4 * best <= bound <= best + 1e-6
    chosen = [clique for cliques in state.cliques for clique in cliques]
    assert len(chosen) > len(set(chosen))  # some return


def test_rounds_of_more_cliques_and_triples():
    X, Y = rows(4, n=80)
    _, state, problem = _learn(_growing(margin_data(X, Y), 2, 3), max_rounds=3, tol=1e-3)
    assert [len(record.cliques) for record in state.records] == [0, 2, 2, 2]
    assert problem.penalty.rounds.tolist() == [0, 0, 1, 1, 2, 2]
    assert any(len(clique) == 3 for clique in problem.graph.cliques)
    assert np.isfinite(problem.evaluate().gap)


def test_where_cliques_are_too_many_they_grow_and_nothing_bounds_the_others(monkeypatch):
    data = margin_data(*rows(4, n=80))
    growing = _growing(data, 2, 3)
    result, state, _ = _learn(growing, max_rounds=3, tol=1e-3)
    problem, point = growing.at(state.cliques), state.inner.point
    assert growing.scores_all
    assert growing.relaxed_bound(problem, point, result.trace[-1].dual) <= result.trace[-1].dual
    monkeypatch.setattr(growth, "MOST_CANDIDATES", 19)  # of ten pairs and ten triples
    growing = _growing(data, 2, 3)
    result, state, _ = _learn(growing, max_rounds=3, tol=1e-3)
    assert not growing.scores_all
    assert all(len(clique) == 2 for clique in state.cliques[1])
    assert any(len(clique) == 3 for cliques in state.cliques for clique in cliques)
    assert np.isnan(growing.relaxed_bound(problem, point, result.trace[-1].dual))


def _point(random, n, capacity, parts):
    """Random vertices and shares for parts, each a list of labels; a part of one label has a mean."""
    n_labels = sum(len(part) for part in parts)
    vertices = random.integers(0, 2, (n, capacity, n_labels)).astype(np.int8)
    shares = random.random((n, capacity, len(parts))) * (random.random((n, capacity, len(parts))) < 0.4)
    shares[:, 0] += 1e-3
    shares /= shares.sum(axis=1, keepdims=True)
    means = random.choice([0.0, 0.25, 1.0], (n, n_labels))
    return DualPoint(means, vertices, shares)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([(1, 1), (2, 0), (3, 2), (1, 3)]), st.booleans())
def test_margins_of_parts_are_kept(seed, counts, is_tight):
    random, (n_wide, n_alone), n = np.random.default_rng(seed), counts, 6
    labels = np.arange(2 * n_wide + n_alone)
    parts = [labels[2 * k : 2 * k + 2] for k in range(n_wide)] + [[label] for label in labels[2 * n_wide :]]
    old = _point(random, n, 4, parts)
    # room for independent parts, or for the shares of two parts along one line
    capacity = 7 if is_tight and len(parts) == 2 else 4**n_wide * 2**n_alone
    pieces = [
        (old.shares[:, :, k], old.vertices[:, :, part])
        if k < n_wide
        else (np.c_[1 - old.means[:, part[0]], old.means[:, part[0]]], np.tile([[[0], [1]]], (n, 1, 1)))
        for k, part in enumerate(parts)
    ]
    shares, vertices = reduce(lambda one, other: joined(one, other, capacity), pieces)
    shares = shares[:, :, None]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for number, part in enumerate(parts):
        states, power = np.eye(2 ** len(part)), 1 << np.arange(len(part))
        found = (states[vertices[:, :, part] @ power] * shares).sum(axis=1)
        expected = np.stack([1 - old.means[:, part[0]], old.means[:, part[0]]], axis=1)
        if number < n_wide:
            own = old.shares[:, :, number, None]
            expected = (states[old.vertices[:, :, part] @ power] * own).sum(axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_with_too_few_places_the_largest_shares_stay():
    shares = np.array([[[0.7, 0.6], [0.3, 0.4]]])
    vertices = np.array([[[0, 0, 0, 0], [1, 1, 1, 1]]], np.int8)
    found = joined((shares[:, :, 0], vertices[:, :, :2]), (shares[:, :, 1], vertices[:, :, 2:]), capacity=2)
    assert found[1][0].tolist() == [[0, 0, 0, 0], [1, 1, 1, 1]]
    np.testing.assert_allclose(found[0][0], [0.6 / 0.9, 0.3 / 0.9])


LOSSES = {
    "subset": lambda y, to: float((y != to).any()),
    "f1": lambda y, to: 1.0 - 2.0 * (y * to).sum() / max(1, y.sum() + to.sum()) - (y.sum() + to.sum() == 0),
}
GRAPHS = [(), ((0, 1), (1, 2)), ((0, 1, 2), (1, 3)), ((0, 1), (2, 3), (1, 4), (4, 5))]
GRAPHS.append(tuple(itertools.combinations(range(6), 2)))
loss_names = pytest.mark.parametrize("loss", LOSSES)


@loss_names
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_losses_are_those_of_scikit_learn(loss, missing):
    _, Y = rows(0, n=40, n_labels=4, missing=missing)
    labels = np.random.default_rng(1).integers(0, 2, Y.shape).astype(np.int8)
    labels[:3], Y[:2] = 0, 0
    seen = ~np.isnan(Y)
    expected = [LOSSES[loss](y[own], to[own]) for y, to, own in zip(Y, labels, seen, strict=True)]
    np.testing.assert_allclose(set_losses(loss, labels, np.nan_to_num(Y) > 0, seen), expected)
    if loss == "f1":
        peers = [
            f1_score(y[own], to[own], zero_division=1) for y, to, own in zip(Y, labels, seen, strict=True)
        ]
        np.testing.assert_allclose(expected, 1.0 - np.array(peers))


@loss_names
@pytest.mark.parametrize("cliques", GRAPHS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_worst_label_sets_are_those_of_enumeration(loss, cliques, missing):
    X, Y = rows(2, n=30, n_labels=6, missing=missing)
    problem = structured(margin_data(X, Y, loss=loss), cliques)
    twin = StructuredTwin(X, Y, cliques, 0.05, loss=LOSSES[loss])
    scores = np.random.default_rng(0).normal(size=(30, problem.sums.shape[1]))
    chosen = np.arange(29, -1, -2)
    labels, values = worst_label_sets(problem.steps, loss, chosen, problem.data.arrays, scores[chosen])
    one_hot = np.zeros((30, twin.statistics.shape[1]))
    one_hot[:, 1:12:2], one_hot[:, 12:] = scores[:, :6], scores[:, 6:]
    totals = (twin.cost + one_hot @ twin.statistics.T)[chosen]
    np.testing.assert_allclose(values, totals.max(axis=1))
    places = labels @ (1 << np.arange(5, -1, -1))
    np.testing.assert_allclose(totals[np.arange(len(chosen)), places], totals.max(axis=1))


@loss_names
@pytest.mark.parametrize("rounds", [None, (0, 1)])
def test_the_optimum_is_that_of_the_enumerated_dual(loss, rounds):
    X, Y = rows(1, n=8, d=2, n_labels=3)
    cliques, weights = ((0, 1), (1, 2)), np.arange(1.0, 9.0)
    twin = StructuredTwin(X, Y, cliques, 0.1, None, weights, rounds, loss=LOSSES[loss])
    penalty = None if rounds is None else RoundPenalty(rounds)
    problem = structured(margin_data(X, Y, weights, loss=loss), cliques, 0.1, penalty)
    problem.solve(BlockFrankWolfe(1e-5, 5000, 0))
    end, best = problem.evaluate(), twin.optimum()
    assert end.gap <= 1e-5
    assert end.dual - 1e-6 <= best <= end.primal + 1e-6


@loss_names
def test_growing_keeps_expected_costs_and_sweeps_never_lower_the_dual(loss):
    X, Y = rows(5, n=60, missing=0.1)
    data = margin_data(X, Y, loss=loss)
    problem = structured(data, ((0, 1),), 0.02, RoundPenalty([0]))
    before = problem.evaluate()
    for number in range(4):
        problem.sweep(np.random.RandomState(number).permutation(60))
        now, kept = problem.evaluate(), problem.sums.copy()
        assert before.dual - 1e-12 <= now.dual <= now.primal
        problem.recompute()
        np.testing.assert_allclose(problem.sums, kept, atol=1e-9)
        before = now
    moments = problem.moments()
    grown = [np.square(moments.clique_sums(pair)).sum() for pair in itertools.combinations(range(5), 2)]
    problem.regraph(structured(data, ((0, 1), (2, 3)), 0.02, RoundPenalty([0, 1])).problem)
    moments = problem.moments()
    again = [np.square(moments.clique_sums(pair)).sum() for pair in itertools.combinations(range(5), 2)]
    np.testing.assert_allclose(again, grown)
