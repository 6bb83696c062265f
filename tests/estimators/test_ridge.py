"""Ridge regressions of many targets on the same rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from labelweave.estimators.binary_relevance import ridge


def _table(n, d, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=(n, d)) + 0.5) * (random.random((n, d)) < 0.7)


@pytest.mark.parametrize("kind", [ridge.CholeskyRidge, ridge.SpectralRidge, ridge.IterativeRidge])
@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
@pytest.mark.parametrize("container", [np.array, sp.csr_array])
def test_all_solvers_agree_with_scikit_learn(kind, shape, container):
    table = _table(*shape)
    targets, rows = np.random.default_rng(2).normal(size=(shape[0], 3)), container(table)
    expected = Ridge(0.3, fit_intercept=False).fit(table, targets).coef_.T
    np.testing.assert_allclose(kind(rows, 0.3).solve(targets), expected, atol=1e-8)
    np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, table)


@pytest.mark.parametrize("kind", [ridge.SpectralRidge, ridge.IterativeRidge])
def test_without_penalty_the_shortest_solution_is_taken(kind):
    table = _table(12, 3) @ _table(3, 7, seed=1)  # rank 3
    targets = np.random.default_rng(2).normal(size=(12, 2))
    np.testing.assert_allclose(kind(table, 0.0).solve(targets), np.linalg.pinv(table) @ targets, atol=1e-7)


def test_a_penalty_lost_in_rounding_goes_to_the_spectrum():
    rows = _table(12, 3)
    assert isinstance(ridge.make_ridge(rows, 1e-3), ridge.CholeskyRidge)
    assert isinstance(ridge.make_ridge(rows, 1e-12), ridge.SpectralRidge)
    assert isinstance(ridge.make_ridge(rows, 0.0), ridge.SpectralRidge)


def test_large_matrices_are_solved_iteratively(monkeypatch):
    monkeypatch.setattr(ridge, "_LARGEST_GRAM", 2)
    assert isinstance(ridge.make_ridge(_table(12, 3), 1.0), ridge.IterativeRidge)


def test_regressions_that_stop_early_say_so():
    solver = ridge.IterativeRidge(_table(12, 6), 0.0)
    solver.max_iter = 1
    solver.solve(np.ones((12, 1)))
    assert not solver.converged
