"""Low-rank kernel matrices and their incomplete Cholesky factors, against matrices written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.gram import LowRankGram, incomplete_cholesky
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.foundation.arrays import Workers


def _features(n, d=3, seed=0, copies=1):
    X = np.random.default_rng(seed).normal(size=(-(-n // copies), d))
    return FeatureMatrix(np.repeat(X, copies, axis=0)[:n])


def _low_rank(features, rank, *, kernel=None, constant=0.0, dtype=np.float64, workers=None):
    source = KernelSource(kernel or RBFKernel(0.5), features)
    workers = workers or Workers()
    return LowRankGram(incomplete_cholesky(source, rank, workers), constant, dtype, workers)


def _written_out(gram):
    return gram.product(np.eye(gram.n_rows))


@settings(max_examples=25)
@given(
    n=st.sampled_from([1, 2, 10, 90]),
    rank=st.sampled_from([1, 5, 60, 1000]),
    copies=st.sampled_from([1, 4]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_factor_is_that_of_the_active_rows(n, rank, copies, seed):
    features = _features(n, copies=copies, seed=seed)
    K = RBFKernel(0.5).block(features, features)
    found = incomplete_cholesky(KernelSource(RBFKernel(0.5), features), rank, Workers(), seed)
    rows, G = found.active_rows, found.factor
    assert G.shape == (n, len(rows))
    assert len(rows) <= min(rank, n)
    assert len(set(rows)) == len(rows)
    np.testing.assert_array_equal(G[rows], np.tril(G[rows]))
    assert (G[rows].diagonal() > 0).all()
    np.testing.assert_allclose((G @ G.T)[rows], K[rows], atol=1e-9)
    np.testing.assert_allclose((G * G).sum(axis=1) + found.left, K.diagonal(), atol=1e-9)
    assert (found.left >= 0).all()
    assert (found.left[rows] == 0).all()


@pytest.mark.parametrize("rank", [1, 7, 50])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_the_diagonal_is_the_true_one_and_the_matrix_positive(rank, constant):
    features = _features(120)
    gram = _low_rank(features, rank, kernel=LinearKernel(), constant=constant)
    matrix = _written_out(gram)
    norms = features.squared_norms() + constant
    np.testing.assert_allclose(matrix.diagonal(), norms, rtol=1e-12)
    np.testing.assert_allclose(gram.diagonal(), norms, rtol=1e-12)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10
    which = np.array([5, 0, 119])
    np.testing.assert_allclose(gram.columns(which), matrix[:, which], atol=1e-12)


def test_a_matrix_of_low_rank_is_found_exactly_and_no_column_wasted():
    features = _features(200, d=4)
    gram = _low_rank(features, 100, kernel=LinearKernel())
    assert gram.factor.shape == (200, 4)
    np.testing.assert_allclose(_written_out(gram), features.data @ features.data.T, atol=1e-10)


def test_repeated_rows_are_dropped_and_leave_a_triangle_that_can_be_solved_with():
    features = _features(400, copies=8)
    near = FeatureMatrix(features.data + 1e-9 * np.random.default_rng(0).normal(size=(400, 3)))
    gram = _low_rank(near, 400)
    assert gram.factor.shape[1] <= 50
    assert np.linalg.cond(gram.triangle) < 1e6
    np.testing.assert_allclose(_written_out(gram), RBFKernel(0.5).block(near, near), atol=1e-8)


def test_greater_rank_leaves_less():
    features = _features(300)
    left = [
        incomplete_cholesky(KernelSource(RBFKernel(0.5), features), rank, Workers())
        for rank in (5, 40, 150, 300)
    ]
    sums = [found.left.sum() for found in left]
    assert sums == sorted(sums, reverse=True)
    assert sums[-1] < 1e-6


def test_random_pivots_follow_the_diagonal_that_is_left():
    # two far clusters of 30 and 10 equal rows: the first pivot is of the first one with odds 3 to 1
    data = np.repeat([[0.0], [50.0]], [30, 10], axis=0)
    source = KernelSource(RBFKernel(0.5), FeatureMatrix(data))
    first, second = np.array(
        [incomplete_cholesky(source, 2, Workers(), seed).active_rows for seed in range(400)]
    ).T
    assert abs((first < 30).mean() - 0.75) < 0.08
    assert ((first < 30) != (second < 30)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constant", [0.0, 1.5])
def test_scores_at_new_points_need_the_active_rows_only(dtype, constant):
    features, new = _features(150, seed=1), _features(20, seed=2)
    gram = _low_rank(features, 30, constant=constant, dtype=dtype)
    dual = np.random.default_rng(0).normal(size=(150, 4)).astype(dtype)
    kernel, rows = RBFKernel(0.5), gram.active_rows
    coefficients = gram.active_coefficients(dual)
    assert coefficients.shape == (len(rows), 4)
    assert coefficients.dtype == np.float64
    active = features.rows(rows)
    scores = kernel.block(new, active) @ coefficients + constant * dual.sum(axis=0)
    # the Nystroem form of the kernel between new and training rows
    solved = np.linalg.solve(kernel.block(active, active), kernel.block(active, features))
    dense = kernel.block(new, active) @ solved + constant
    tolerance = 1e-9 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(scores, dense @ dual, atol=tolerance)


def test_training_scores_are_those_of_new_points_but_for_the_diagonal():
    features = _features(150)
    gram = _low_rank(features, 30)
    dual = np.random.default_rng(0).normal(size=(150, 2))
    active = features.rows(gram.active_rows)
    scores = RBFKernel(0.5).block(features, active) @ gram.active_coefficients(dual)
    np.testing.assert_allclose(gram.product(dual), scores + gram.left[:, None] * dual, atol=1e-10)


def test_a_matrix_of_zeros_has_no_active_rows():
    gram = LowRankGram(
        incomplete_cholesky(PrecomputedSource(np.zeros((5, 5))), 3, Workers()), 1.0, np.float64, Workers()
    )
    assert gram.active_rows.shape == (0,)
    np.testing.assert_array_equal(_written_out(gram), np.ones((5, 5)))
    assert gram.active_coefficients(np.ones((5, 2))).shape == (0, 2)


def test_rows_of_very_different_size():
    scales = np.logspace(-8, 4, 60)[:, None]
    features = FeatureMatrix(np.random.default_rng(0).normal(size=(60, 3)) * scales)
    gram = _low_rank(features, 60, kernel=LinearKernel())
    np.testing.assert_allclose(gram.diagonal(), features.squared_norms(), rtol=1e-6)
    assert np.isfinite(gram.active_coefficients(np.ones((60, 1)))).all()


def test_an_entry_of_single_precision_that_is_not_quite_positive_does_no_harm():
    features = _features(200)
    K = RBFKernel(0.05).block(features, features).astype(np.float32)
    gram = LowRankGram(incomplete_cholesky(PrecomputedSource(K), 200, Workers()), 0.0, np.float64, Workers())
    np.testing.assert_allclose(_written_out(gram), K, atol=1e-4)
    np.testing.assert_allclose(gram.diagonal(), 1, atol=1e-4)


def test_the_same_bits_for_any_number_of_threads():
    features, results = _features(1500), []
    for threads in (1, 2, 3):
        with Workers(threads).running() as workers:
            gram = _low_rank(features, 150, workers=workers)
            results.append((gram.factor, gram.active_rows, gram.product(np.ones((1500, 2)))))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_no_pivot_at_all_is_refused():
    with pytest.raises(ValueError, match="rank is 0; pass at least 1"):
        incomplete_cholesky(PrecomputedSource(np.eye(3)), 0, Workers())


def test_no_row_is_drawn_twice_where_the_kernel_tells_it_from_itself():
    source = KernelSource(RBFKernel(1e50), _features(80, d=5))  # rounding of distances is all that it sees
    found = incomplete_cholesky(source, 1000, Workers(), 0)
    assert len(set(found.active_rows)) == len(found.active_rows)
    np.testing.assert_array_equal(found.factor[found.active_rows], np.eye(len(found.active_rows)))
