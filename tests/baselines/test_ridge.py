"""Matrices without their means, and ridge regressions of many targets."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.linear_model import Ridge

from labelweave.baselines import ridge
from labelweave.baselines.ridge import CenteredMatrix, leading_directions


def _table(n, d, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=(n, d)) + 0.5) * (random.random((n, d)) < 0.7)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", [False, True])
def test_products_are_those_of_the_matrix_written_out(container, center):
    table, random = _table(9, 4), np.random.default_rng(1)
    weights = random.uniform(0.5, 2, 9)
    matrix = CenteredMatrix(container(table), weights, center=center)
    means = np.average(table, axis=0, weights=weights) if center else np.zeros(4)
    expected = np.sqrt(weights)[:, None] * (table - means)
    right, left = random.normal(size=(4, 2)), random.normal(size=(9, 2))
    np.testing.assert_allclose(matrix.matmul(right), expected @ right)
    np.testing.assert_allclose(matrix.rmatmul(left), expected.T @ left, atol=1e-14)
    np.testing.assert_allclose(matrix.columns(slice(1, 3)), expected[:, 1:3])
    np.testing.assert_allclose(matrix.gram(of_rows=True), expected @ expected.T, atol=1e-13)
    np.testing.assert_allclose(matrix.gram(of_rows=False), expected.T @ expected, atol=1e-13)


@pytest.mark.parametrize("kind", [ridge.CholeskyRidge, ridge.SpectralRidge, ridge.IterativeRidge])
@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_all_solvers_agree_with_scikit_learn(kind, shape, container):
    table, random = _table(*shape), np.random.default_rng(2)
    targets, weights = random.normal(size=(shape[0], 3)), random.uniform(0.5, 2, shape[0])
    expected = Ridge(0.3).fit(table, targets, sample_weight=weights).coef_.T
    inputs = CenteredMatrix(container(table), weights, center=True)
    centred = CenteredMatrix(targets, weights, center=True).columns(slice(None))
    np.testing.assert_allclose(kind(inputs, 0.3).solve(centred), expected, atol=1e-8)


@pytest.mark.parametrize("kind", [ridge.SpectralRidge, ridge.IterativeRidge])
def test_without_penalty_the_shortest_solution_is_taken(kind):
    table = _table(12, 3) @ _table(3, 7, seed=1)  # rank 3
    targets = np.random.default_rng(2).normal(size=(12, 2))
    solver = kind(CenteredMatrix(table, np.ones(12), center=False), 0.0)
    np.testing.assert_allclose(solver.solve(targets), np.linalg.pinv(table) @ targets, atol=1e-7)


def test_a_penalty_lost_in_rounding_goes_to_the_spectrum():
    inputs = CenteredMatrix(_table(12, 3), np.ones(12), center=False)
    assert isinstance(ridge.make_ridge(inputs, 1e-3), ridge.CholeskyRidge)
    assert isinstance(ridge.make_ridge(inputs, 1e-12), ridge.SpectralRidge)
    assert isinstance(ridge.make_ridge(inputs, 0.0), ridge.SpectralRidge)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_sparse_columns_with_large_means_lose_no_digits(shape):
    table, random = _table(*shape) + 1e6, np.random.default_rng(2)
    targets, weights = random.normal(size=(shape[0], 3)), random.uniform(0.5, 2, shape[0])
    targets -= np.average(targets, axis=0, weights=weights)
    found = []
    for container in (np.asarray, sp.csr_array):
        inputs = CenteredMatrix(container(table), weights, center=True)
        found.append(ridge.make_ridge(inputs, 1.0).solve(np.sqrt(weights)[:, None] * targets))
    np.testing.assert_allclose(found[1], found[0], atol=1e-7)


def test_large_matrices_are_solved_iteratively(monkeypatch):
    monkeypatch.setattr(ridge, "_LARGEST_GRAM", 2)
    inputs = CenteredMatrix(_table(12, 3), np.ones(12), center=False)
    assert isinstance(ridge.make_ridge(inputs, 1.0), ridge.IterativeRidge)


def test_regressions_that_stop_early_say_so():
    solver = ridge.IterativeRidge(CenteredMatrix(_table(12, 6), np.ones(12), center=False), 0.0)
    solver.max_iter = 1
    solver.solve(np.ones((12, 1)))
    assert not solver.converged


@pytest.mark.parametrize("rank", [1, 4, 30])
def test_directions_are_leading_eigenvectors(rank, monkeypatch):
    factor = _table(30, 30)
    matrix = factor @ factor.T
    values, _ = linalg.eigh(matrix)
    for largest in (2000, 1):  # written out, and by its products
        monkeypatch.setattr("labelweave.baselines.ridge._LARGEST_TABLE", largest)
        found = leading_directions(lambda vectors: matrix @ vectors, 30, rank)
        np.testing.assert_allclose(found.T @ found, np.eye(rank), atol=1e-10)
        np.testing.assert_allclose(found.T @ matrix @ found, np.diag(values[::-1][:rank]), atol=1e-8)


def test_directions_of_nothing_are_orthonormal(monkeypatch):
    monkeypatch.setattr("labelweave.baselines.ridge._LARGEST_TABLE", 1)
    found = leading_directions(np.zeros_like, 10, 2)
    np.testing.assert_array_equal(found.T @ found, np.eye(2))
