"""The methods that Tan et al. 2015 quote: stationary points, and features that known special cases select."""

import numpy as np
from benchmarks.opponents import LSG21, MLF, MLLS, MLRF
from benchmarks.opponents.quoted_methods import penalty_bends
from scipy.optimize import approx_fprime
from sklearn.feature_selection import f_classif

from drawn import draw_labels


def _classes(n=90, d=7):
    """Rows of three classes, of which only the first feature depends on the class."""
    rng = np.random.default_rng(0)
    Y = np.eye(3)[np.arange(n) % 3]
    X = rng.normal(size=(n, d))
    X[:, 0] += 3.0 * (np.arange(n) % 3)
    return X, Y


def test_lsg21_minimizes_its_objective():
    X, Y = draw_labels(60, 5, 3, seed=1)
    model = LSG21(0.05).fit(X, Y)
    lengths = np.linalg.norm(Y, axis=0)
    graph = np.triu(Y.T @ Y / np.outer(lengths, lengths), 1)

    def objective(w):
        W = w.reshape(5, 3)
        errors = (X - model.shift) @ W + model.mean - Y
        norms = np.sqrt(W[:, :, None] ** 2 + W[:, None, :] ** 2 + 1e-8)
        return (errors**2).sum(axis=1).mean() + 0.05 * (graph * norms).sum()

    slope = approx_fprime(model.weights.ravel(), objective, 1e-7)
    assert np.abs(slope).max() < 1e-4


def test_the_ridge_of_the_penalty_touches_it():
    W, graph = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(penalty_bends(W, graph), [[0.2, 0.2], [0.5, 0.5]], rtol=1e-6)


def test_mlf_is_the_f_statistic_of_classes():
    X, Y = _classes()
    ratio = MLF(1.0).relevance(X, Y) / f_classif(X, Y.argmax(axis=1))[0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_mlrf_finds_the_feature_that_depends_on_the_class():
    X, Y = _classes()
    found = MLRF(1.0).relevance(X, Y)
    assert found.argmax() == 0
    assert found[0] > 5.0 * np.sort(found)[-2]


def test_mlls_whitens_the_features():
    X, Y = draw_labels(80, 6, 4, seed=2)
    Z = X @ MLLS(1.0).make_map(X, Y)
    np.testing.assert_allclose(Z.T @ Z / len(X), np.eye(6), atol=1e-4)
