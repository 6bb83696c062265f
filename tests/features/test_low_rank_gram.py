"""Low-rank kernel matrices, their incomplete Cholesky factors and eigenvalues, against dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel
from labelweave.features.gram import FeatureGram, LowRankGram, StoredGram, StreamedGram, incomplete_cholesky
from labelweave.features.gram.sources import KernelSource, PrecomputedSource
from labelweave.features.gram.spectrum import feature_spectrum, full_spectrum, leading_spectrum
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


def test_no_row_is_drawn_twice_where_the_kernel_tells_it_from_itself():
    source = KernelSource(RBFKernel(1e50), _features(80, d=5))  # it sees only the rounding of distances
    found = incomplete_cholesky(source, 1000, Workers(), 0)
    assert len(set(found.active_rows)) == len(found.active_rows)
    np.testing.assert_array_equal(found.factor[found.active_rows], np.eye(len(found.active_rows)))


def _rows(n, d=3, seed=0, repeated=False):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return FeatureMatrix(np.repeat(X[: max(1, n // 5)], 5, axis=0)[:n] if repeated else X)


def _stored(features, gamma=0.3, constant=1.0, dtype=np.float64, workers=None):
    source = KernelSource(RBFKernel(gamma), features)
    return StoredGram.from_source(source, constant, dtype, workers or Workers())


def _features_gram(table, constant=0.0, dtype=np.float64):
    return FeatureGram(FeatureMatrix(table), constant, dtype, Workers())


def _decomposed(spectrum):
    U = spectrum.vectors.astype(np.float64)
    return (U * spectrum.values) @ U.T


def _orthonormal(spectrum, atol=1e-10):
    U = spectrum.vectors.astype(np.float64)
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=atol)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_a_full_spectrum_is_the_matrix(n, repeated):
    gram = _stored(_rows(n, repeated=repeated))
    spectrum = full_spectrum(gram)
    assert spectrum.is_exact
    assert spectrum.rest == 0
    assert (spectrum.values > 0).all()
    _orthonormal(spectrum)
    np.testing.assert_allclose(_decomposed(spectrum), gram.table, atol=1e-8)
    if repeated:
        assert len(spectrum.values) <= max(1, n // 5)


FEATURES = {
    "full rank": np.random.default_rng(0).normal(size=(60, 4)),
    "fewer rows than features": np.random.default_rng(0).normal(size=(3, 7)),
    "one row": np.array([[1.0, 2.0, 3.0]]),
    "repeated columns": np.tile(np.random.default_rng(0).normal(size=(60, 3)), (1, 3)),
    "repeated rows": np.repeat(np.random.default_rng(0).normal(size=(6, 4)), 10, axis=0),
    "constant columns": np.ones((60, 3)),
    "an empty column": np.random.default_rng(0).normal(size=(60, 4)) * [1, 1, 0, 1],
    "scales far apart": np.random.default_rng(0).normal(size=(60, 4)) * [1, 1e6, 1e-6, 1e3],
    "nothing": np.zeros((60, 4)),
    "a large mean": np.random.default_rng(0).normal(size=(60, 4)) + 1e6,
}


@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("case", FEATURES)
def test_a_feature_spectrum_is_the_dot_products(case, constant):
    table = FEATURES[case]
    gram = _features_gram(table, constant)
    spectrum = feature_spectrum(gram)
    dense = table @ table.T + constant
    assert spectrum.is_exact
    assert len(spectrum.values) <= min(len(table), table.shape[1] + 1)
    _orthonormal(spectrum, atol=1e-9)
    np.testing.assert_allclose(_decomposed(spectrum), dense, atol=1e-13 * len(dense) * abs(dense).max())
    written = np.hstack([table, np.full((len(table), int(constant)), 1.0)])
    if len(table) >= written.shape[1]:
        _reflected_again(gram.exact_table, written)
    variables = np.random.default_rng(1).normal(size=(len(table), 2))
    size = abs(written).max() * len(table)
    found = gram.feature_weights(gram.weights(variables))
    np.testing.assert_allclose(found, written.T @ variables, atol=1e-14 * size)
    np.testing.assert_allclose(gram.scores(gram.weights(variables)), written @ found, atol=1e-13 * size**2)


def _reflected_again(found, written):
    """Dot products stay, the mean lies along one axis, and no column loses its digits to a larger one."""
    mean, size = written.mean(axis=0), np.linalg.norm(written.mean(axis=0))
    assert np.count_nonzero(np.abs(found.mean(axis=0)) > 1e-9 * size) <= 1
    mirror = mean + np.where(np.arange(len(mean)) == np.abs(mean).argmax(), np.copysign(size, mean), 0)
    mirror /= max(np.linalg.norm(mirror), 1e-300)
    again = found - 2 * np.outer(found @ mirror, mirror)
    assert (np.abs(again - written) <= 1e-9 * np.abs(written).max(axis=0)).all()


@settings(max_examples=60)
@given(
    st.integers(1, 30), st.integers(1, 6), st.integers(0, 4), st.integers(-6, 6), st.integers(0, 2**32 - 1)
)
def test_feature_spectra_of_any_rank(n, d, rank, scale, seed):
    random = np.random.default_rng(seed)
    table = random.normal(size=(n, rank)) @ random.normal(size=(rank, d)) * 10.0**scale
    spectrum = feature_spectrum(_features_gram(table, 1.0))
    assert np.isfinite(spectrum.vectors).all()
    _orthonormal(spectrum, atol=1e-6)
    dense = table @ table.T + 1.0
    np.testing.assert_allclose(_decomposed(spectrum), dense, atol=1e-12 * n * abs(dense).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-9, 0.01, 0.3, 1e6])
@pytest.mark.parametrize(("n", "rank"), [(1, 4), (3, 10), (150, 4), (150, 70), (150, 150), (150, 400)])
def test_an_incomplete_factor_leaves_a_semidefinite_rest(n, rank, gamma, dtype):
    gram = _stored(_rows(n), gamma, dtype=dtype)
    factor = incomplete_cholesky(gram, rank, Workers()).factor
    assert factor.dtype == dtype
    factor = factor.astype(np.float64)
    assert factor.shape[1] <= min(n, rank)
    left = gram.table.astype(np.float64) - factor @ factor.T
    rounding = (1e-4 if dtype == np.float32 else 1e-10) * n
    assert np.linalg.eigvalsh(left).min() >= -rounding
    if rank >= n and dtype == np.float64:
        np.testing.assert_allclose(left, 0, atol=1e-5)


def test_an_incomplete_factor_stops_where_nothing_is_left():
    gram = _stored(_rows(200, repeated=True))
    factor = incomplete_cholesky(gram, 200, Workers()).factor
    assert factor.shape[1] <= 60  # 40 different rows
    np.testing.assert_allclose(factor @ factor.T, gram.table, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("gamma", [1e-12, 1e-4, 0.3, 1e6])
@pytest.mark.parametrize(("n", "rank"), [(1, 4), (3, 10), (200, 4), (200, 60), (200, 500)])
def test_a_leading_spectrum_is_below_the_matrix(n, rank, gamma, repeated, dtype):
    gram = _stored(_rows(n, repeated=repeated), gamma, dtype=dtype)
    spectrum = leading_spectrum(gram, rank, Workers(), seed=0)
    assert not spectrum.is_exact
    assert 1 <= len(spectrum.values) <= min(n, rank)
    assert (spectrum.values > 0).all()
    assert spectrum.rest >= 0
    single = dtype == np.float32
    _orthonormal(spectrum, 1e-4 if single else 1e-7)
    left = np.linalg.eigvalsh(gram.table.astype(np.float64) - _decomposed(spectrum))
    # the Nystroem form never exceeds the matrix
    assert left.min() >= -(1e-5 if single else 1e-8) * n


def test_a_leading_spectrum_is_near_the_best_of_its_rank():
    gram = _stored(_rows(300), 0.05)
    values = np.linalg.eigvalsh(gram.table)[::-1]
    spectrum = leading_spectrum(gram, 40, Workers(), seed=0)
    left = np.linalg.eigvalsh(gram.table - _decomposed(spectrum)).max()
    assert left <= 3 * values[40]
    np.testing.assert_allclose(np.sort(spectrum.values)[::-1][:20], values[:20], rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads_and_seeds_matter(dtype):
    features = _rows(700)

    def spectra(threads, seed):
        with Workers(threads).running() as workers:
            streamed = StreamedGram(
                KernelSource(RBFKernel(0.3), features), 1.0, dtype, workers, panel_bytes=2e5
            )
            stored = _stored(features, dtype=dtype, workers=workers)
            return [leading_spectrum(gram, 30, workers, seed).vectors for gram in (streamed, stored)]

    one, two, three, other = spectra(1, 5), spectra(2, 5), spectra(3, 5), spectra(1, 6)
    for k in range(2):
        np.testing.assert_array_equal(one[k], two[k])
        np.testing.assert_array_equal(one[k], three[k])
        assert not np.array_equal(one[k], other[k])


@pytest.mark.parametrize("make", [full_spectrum, lambda gram: leading_spectrum(gram, 30, Workers(), 0)])
def test_the_matrix_is_not_changed(make):
    gram = _stored(_rows(80))
    before = gram.table.copy()
    make(gram)
    np.testing.assert_array_equal(gram.table, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_of_zeros(dtype):
    gram = StoredGram(np.zeros((5, 5), dtype), Workers())
    for spectrum in (full_spectrum(gram), leading_spectrum(gram, 4, Workers(), 0)):
        assert not _decomposed(spectrum).any()
        assert np.isfinite(spectrum.rest)
