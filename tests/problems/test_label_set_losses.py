"""Losses of whole label sets in the structured margin: worst labelings, optimum, and what is refused."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score

from labelweave.problems.structured_margin import RoundPenalty, set_losses
from labelweave.problems.structured_margin.label_sets import worst_label_sets
from labelweave.solvers.passes import BlockFrankWolfe
from reference.structured_problems import margin_data, rows, structured
from reference.structured_twin import StructuredTwin

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
