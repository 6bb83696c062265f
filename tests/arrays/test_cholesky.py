"""The tiled Cholesky factorization against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.foundation.arrays import CholeskyFactor, Workers

SIZES = [1, 2, 255, 256, 257, 511, 512, 513, 767, 769, 1030]


def _definite(n, dtype=np.float64, seed=0):
    factor = np.random.default_rng(seed).normal(size=(n, n + 3)) / np.sqrt(n + 3)
    return (factor @ factor.T + 0.1 * np.eye(n)).astype(dtype)


def _solve(matrix, right, threads=1):
    with Workers(threads).running() as workers:
        return CholeskyFactor(matrix.copy(), workers).solve(right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_solves_are_numpys(n, dtype):
    matrix = _definite(n, dtype)
    right = np.random.default_rng(1).normal(size=(n, 3)).astype(dtype)
    solution = _solve(matrix, right)
    assert solution.dtype == dtype
    exact = np.linalg.solve(matrix.astype(np.float64), right)
    close = 2e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(solution, exact, rtol=close, atol=close)


@pytest.mark.parametrize("n", [1, 256, 300, 513, 1030])
def test_the_factor_is_numpys(n):
    matrix = _definite(n)
    with Workers().running() as workers:
        made = CholeskyFactor(matrix.copy(), workers)
    factor = np.tril(made.table)
    for tile, inverse in zip(made.tiles, made.inverses, strict=True):
        factor[tile, tile] = np.linalg.inv(inverse)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), atol=1e-11)


@pytest.mark.parametrize("n", [255, 513, 1030])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(n, dtype):
    matrix, right = _definite(n, dtype), np.ones((n, 5), dtype)
    one = _solve(matrix, right, 1)
    for threads in (2, 3):
        np.testing.assert_array_equal(_solve(matrix, right, threads), one)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_small_sizes_with_tiles_to_match(n, n_labels, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelweave.foundation.arrays.tables._TILE", 4)
        matrix = _definite(n, seed=seed)
        right = np.random.default_rng(seed).normal(size=(n, n_labels))
        np.testing.assert_allclose(_solve(matrix, right), np.linalg.solve(matrix, right), atol=1e-9)


def test_the_right_hand_side_is_not_changed():
    right = np.random.default_rng(0).normal(size=(300, 2))
    before = right.copy()
    _solve(_definite(300), right)
    np.testing.assert_array_equal(right, before)


def test_the_upper_triangle_is_not_read():
    matrix, right = _definite(300), np.ones((300, 1))
    spoiled = np.where(np.tri(300, dtype=bool), matrix, np.nan)
    np.testing.assert_allclose(_solve(spoiled, right), np.linalg.solve(matrix, right), atol=1e-11)


@pytest.mark.parametrize("n", [1, 255, 600])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_matrix_that_is_not_definite_is_refused(n, threads):
    matrix = _definite(n)
    matrix[-1, -1] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        _solve(matrix, np.ones((n, 1)), threads)
