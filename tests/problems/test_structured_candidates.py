import itertools

import numpy as np
import pytest

from labelweave.problems.structured_margin import (
    RoundPenalty,
    candidates,
    grown_cliques,
    pair_scores,
    violations,
)
from labelweave.problems.structured_margin.clique_search import CliqueSearch
from labelweave.solvers.block_frank_wolfe import BlockFrankWolfe
from labelweave.solvers.clique_generation import CliqueGeneration
from reference.structured_problems import margin_data, rows, structured


def _dense_distribution(problem):
    """Every row's probability of every labeling."""
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
    moments = states[problem.data.arrays.targets[:, list(clique)].astype(int) @ power] - expected
    data = problem.data
    product = (data.arrays.weights[:, None] * data.products.data).T @ moments / problem.regularization
    return (product**2).sum()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_those_of_dense_distributions(missing, monkeypatch):
    X, Y = rows(1, n=40, missing=missing)
    problem = structured(margin_data(X, Y), ((0, 1), (0, 2)), 0.02)
    for seed in range(5):
        problem.sweep(np.random.RandomState(seed).permutation(40))
    monkeypatch.setattr(candidates, "_NUMBERS_AT_ONCE", 100)
    scores, pairs = pair_scores(problem), list(itertools.combinations(range(5), 2))
    expected = [_dense_score(problem, pair) for pair in pairs]
    np.testing.assert_allclose([scores[pair] for pair in pairs], expected)
    np.testing.assert_allclose(violations(problem, pairs), expected)
    assert (np.tril(scores) == 0).all()
    triples = [(0, 1, 2), (0, 1, 3), (0, 3, 4), (1, 2, 3, 4)]
    np.testing.assert_allclose(
        violations(problem, triples), [_dense_score(problem, clique) for clique in triples]
    )


def test_the_scores_of_cliques_in_the_graph_are_the_squares_of_z():
    X, Y = rows(2)
    problem = structured(margin_data(X, Y), ((0, 1), (0, 2), (3, 4)), 0.02)
    problem.sweep(np.arange(len(X)))
    np.testing.assert_allclose(violations(problem, problem.graph.cliques), problem.squares()[1])


def test_cliques_grow_by_joined_labels():
    assert grown_cliques([(0, 1), (1, 2)], 3) == [(0, 1, 2)]
    assert grown_cliques([(0, 1), (2, 3)], 3) == []
    assert grown_cliques([(0, 1), (1, 2), (0, 1, 2), (2, 3)], 3) == [(0, 2, 3), (1, 2, 3)]
    assert (0, 1, 2, 3) in grown_cliques([(0, 1, 2), (2, 3)], 4)


def _learn(problem, per_round=1, size=2, max_rounds=10, tol=1e-5):
    random = np.random.RandomState(0)

    def solve(final):
        return BlockFrankWolfe(tol, 3000, random).run(problem, problem.data.n_rows, problem.graph.n_cliques)

    search = CliqueSearch(problem, per_round, size, solve)
    return CliqueGeneration(max_rounds, 0.0, lambda: np.nan, lambda record: False).run(search)


def test_no_candidate_violates_the_learned_optimum():
    X, Y = rows(3, n=80, n_labels=5)
    problem = structured(margin_data(X, Y), (), 0.05, RoundPenalty())
    result = _learn(problem)
    assert result.reason == "no candidate clique violates the optimum"
    squares, weights = problem.squares()[1], problem.penalty.shares
    active = squares[weights > 1e-3]
    np.testing.assert_allclose(active, active.max(), rtol=0.05)
    scores = pair_scores(problem)
    assert scores.max() <= 1.05 * squares.max()
    primals = [record.primal for record in result.rounds]
    assert all(later <= value + 1e-4 for value, later in itertools.pairwise(primals))


def test_rounds_of_more_cliques_and_triples():
    X, Y = rows(4, n=80)
    problem = structured(margin_data(X, Y), (), 0.05, RoundPenalty())
    result = _learn(problem, per_round=2, size=3, max_rounds=3, tol=1e-3)
    assert [len(record.cliques) for record in result.rounds] == [0, 2, 2, 2]
    assert problem.penalty.rounds.tolist() == [0, 0, 1, 1, 2, 2]
    assert any(len(clique) == 3 for clique in problem.graph.cliques)
    assert np.isfinite(problem.evaluate().gap)
