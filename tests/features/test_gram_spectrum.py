"""Eigenvalues of kernel matrices, against NumPy's of the dense matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram import FeatureGram, StoredGram, StreamedGram, incomplete_cholesky
from labelweave.features.gram.sources import KernelSource
from labelweave.features.gram.spectrum import feature_spectrum, full_spectrum, leading_spectrum
from labelweave.foundation.arrays import Workers


def _rows(n, d=3, seed=0, repeated=False):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return FeatureMatrix(np.repeat(X[: max(1, n // 5)], 5, axis=0)[:n] if repeated else X)


def _stored(features, gamma=0.3, constant=1.0, dtype=np.float64, workers=None):
    source = KernelSource(RBFKernel(gamma), features)
    return StoredGram.from_source(source, constant, dtype, workers or Workers())


def _features_gram(table, constant=0.0, dtype=np.float64):
    return FeatureGram(FeatureMatrix(table), constant, dtype, Workers())


def _written_out(spectrum):
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
    np.testing.assert_allclose(_written_out(spectrum), gram.table, atol=1e-8)
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
    np.testing.assert_allclose(_written_out(spectrum), dense, atol=1e-13 * len(dense) * abs(dense).max())
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
    np.testing.assert_allclose(_written_out(spectrum), dense, atol=1e-12 * n * abs(dense).max())


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
    left = np.linalg.eigvalsh(gram.table.astype(np.float64) - _written_out(spectrum))
    # the Nystroem form never exceeds the matrix
    assert left.min() >= -(1e-5 if single else 1e-8) * n


def test_a_leading_spectrum_is_near_the_best_of_its_rank():
    gram = _stored(_rows(300), 0.05)
    values = np.linalg.eigvalsh(gram.table)[::-1]
    spectrum = leading_spectrum(gram, 40, Workers(), seed=0)
    left = np.linalg.eigvalsh(gram.table - _written_out(spectrum)).max()
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
        assert not _written_out(spectrum).any()
        assert np.isfinite(spectrum.rest)
