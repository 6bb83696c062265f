"""Opponents that use the dependence of labels: LEAD, PLEM and MMOC, with slow references."""

from itertools import product

import numpy as np
import pytest
from benchmarks.opponents import LEAD, MMOC, PLEM
from benchmarks.opponents.label_dependency import best_network, bic, max_margin_metric
from scipy.optimize import minimize


def _labels(n=300, seed=0):
    """Draw features of which the first makes two equal labels, and a third label of its own."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    pair = X[:, 0] + random.normal(size=n) > 0
    return X, np.column_stack([pair, pair, X[:, 1] > 0.3]).astype(int)


def _networks(n_columns):
    """Yield all sets of parents without cycles."""
    pairs = [(a, b) for a in range(n_columns) for b in range(n_columns) if a != b]
    for chosen in product((0, 1), repeat=len(pairs)):
        edges = np.zeros((n_columns, n_columns), int)
        for (a, b), is_edge in zip(pairs, chosen, strict=True):
            edges[a, b] = is_edge
        if not np.linalg.matrix_power(edges, n_columns).any():
            yield {b: tuple(np.flatnonzero(edges[:, b])) for b in range(n_columns)}


@pytest.mark.parametrize("seed", range(3))
def test_no_network_has_a_better_score(seed):
    random = np.random.default_rng(seed)
    values = random.integers(-1, 2, size=(60, 3))
    values[:, 2] = np.where(random.random(60) < 0.8, values[:, seed % 2], values[:, 2])

    def score(network):
        return sum(bic(values, column, parents) for column, parents in network.items())

    found = best_network(values)
    assert score(found) == pytest.approx(max(map(score, _networks(3))))
    known = set()
    for column, parents in found.items():
        assert set(parents) <= known
        known.add(column)


@pytest.mark.parametrize("model", [LEAD(1.0), PLEM(1.0), MMOC(10.0)], ids=["LEAD", "PLEM", "MMOC"])
def test_labels_that_agree_are_predicted_to_agree(model):
    X, Y = _labels()
    predicted = model.fit(X, Y).predict(_labels(seed=1)[0])
    assert predicted.shape == Y.shape
    assert (predicted[:, 0] == predicted[:, 1]).mean() > 0.98
    assert (predicted[:, 2] == _labels(seed=1)[1][:, 2]).mean() > 0.95


def test_errors_of_two_equal_labels_are_joined():
    assert sorted(map(len, LEAD(1.0).fit(*_labels()).network.values())) == [0, 0, 1]


def test_the_tree_spans_the_most_common_pairs():
    Y = np.array([[1, 1, 0, 0]] * 5 + [[0, 1, 1, 0]] * 4 + [[0, 0, 1, 1]] * 3 + [[1, 0, 0, 1]])
    pieces = PLEM(1.0).fit(np.random.default_rng(0).normal(size=(len(Y), 2)), Y).pieces
    assert sorted(map(tuple, pieces[4:])) == [(0, 1), (1, 2), (2, 3)]


def test_the_metric_has_the_largest_margin():
    X, Y = _labels(40)
    P, Y, C = 0.5 + 0.3 * X[:, :2], Y[:, [0, 2]].astype(float), 2.0
    box = np.array(list(product(np.linspace(0, 1, 41), repeat=2)))

    def objective(Q):
        own, other = P - Y, P[:, None] - box
        distances = np.einsum("ij,jk,ik->i", own, Q, own)[:, None] - np.einsum(
            "izj,jk,izk->iz", other, Q, other
        )
        return (np.abs(box - Y[:, None]).sum(axis=2) + distances).max(axis=1).mean() + (Q**2).sum() / (2 * C)

    def of_factor(free):
        factor = np.array([[free[0], 0.0], [free[1], free[2]]])
        return objective(factor @ factor.T)

    best = min(minimize(of_factor, start, method="Nelder-Mead").fun for start in np.eye(3) + 0.5)
    metric = max_margin_metric(P, Y, C)
    assert np.linalg.eigvalsh(metric).min() >= -1e-12
    assert objective(metric) == pytest.approx(best, rel=2e-3)
