"""Requirements of every form of solves.  A new form needs one more entry in ``FORMS``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram import FeatureGram, StoredGram
from labelweave.features.gram.sources import KernelSource
from labelweave.features.gram.spectrum import feature_spectrum, full_spectrum, leading_spectrum
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.problems.shifted_solves import CholeskySolves, SpectralSolves
from reference.gram_twins import kronecker

N, L = 9, 4
X = np.random.default_rng(0).normal(size=(N, 3))
FACTOR = np.random.default_rng(1).normal(size=(L, 2))
COVARIANCES = {
    "identity": LabelCovariance.identity(L),
    "dense": LabelCovariance.dense(FACTOR @ FACTOR.T + 0.3 * np.eye(L)),
    "low rank": LabelCovariance.low_rank(FACTOR, 0.0),
    "low rank and diagonal": LabelCovariance.low_rank(FACTOR, 0.5),
    "singular": LabelCovariance.dense(np.ones((L, L))),
    "diagonal": LabelCovariance.dense(np.diag([1.0, 1e-6, 1e3, 1.0])),
}


def _gram(dtype):
    source = KernelSource(RBFKernel(0.3), FeatureMatrix(X))
    return StoredGram.from_source(source, 1.0, dtype, Workers())


def _cholesky(covariance, dtype):
    return CholeskySolves(_gram(dtype), Workers()), _gram(np.float64).table


def _eigenvalues(covariance, dtype):
    spectrum = full_spectrum(_gram(np.float64))
    return _spectral(spectrum, covariance, dtype), _gram(np.float64).table


def _features(covariance, dtype):
    gram = FeatureGram(FeatureMatrix(X), 1.0, dtype, Workers())
    return _spectral(feature_spectrum(gram), covariance, dtype), X @ X.T + 1


def _incomplete(covariance, dtype):
    spectrum = leading_spectrum(_gram(np.float64), 4, Workers(), 0)
    U = spectrum.vectors
    return _spectral(spectrum, covariance, dtype), (U * spectrum.values) @ U.T + spectrum.rest * np.eye(N)


def _spectral(spectrum, covariance, dtype):
    vectors = spectrum.vectors.astype(dtype)
    return SpectralSolves(type(spectrum)(vectors, spectrum.values, spectrum.rest, spectrum.is_exact),
                          covariance, Workers())  # fmt: skip


FORMS = {"cholesky": _cholesky, "eigenvalues": _eigenvalues, "features": _features, "incomplete": _incomplete}
CASES = [
    (form, covariance) for form in FORMS for covariance in COVARIANCES
    if form != "cholesky" or covariance == "identity"
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("form", "covariance"), CASES)
@settings(max_examples=12)
@given(penalty=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]), seed=st.integers(0, 2**32 - 1))
def test_solves_are_those_of_the_kronecker_product(form, covariance, dtype, penalty, seed):
    R = COVARIANCES[covariance]
    solves, H = FORMS[form](R, dtype)
    right = np.random.default_rng(seed).normal(size=(N, L)).astype(dtype)
    before = right.copy()
    solution = solves.solve(right, penalty, solves.first_rest)
    system = kronecker(H, R.to_dense()) + penalty * np.eye(N * L)
    exact = np.linalg.solve(system, right.ravel().astype(np.float64)).reshape(N, L)
    close = (1e-6 if dtype == np.float32 else 1e-13) * np.linalg.cond(system)
    assert solution.dtype == dtype
    np.testing.assert_allclose(solution, exact, atol=close * max(1, abs(exact).max()))
    np.testing.assert_array_equal(right, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("form", "covariance"), CASES)
def test_near_products_and_rest_make_the_operator(form, covariance, dtype):
    R = COVARIANCES[covariance]
    solves, H = FORMS[form](R, dtype)
    B = np.random.default_rng(0).normal(size=(N, L)).astype(dtype)
    product = solves.near_product(B) + solves.first_rest * R.matmul(B)
    close = 1e-5 if dtype == np.float32 else 1e-11
    expected = H @ B @ R.to_dense()
    np.testing.assert_allclose(product, expected, rtol=close, atol=close * abs(expected).max())


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_another_rest_is_another_operator(covariance):
    R = COVARIANCES[covariance]
    solves, H = _incomplete(R, np.float64)
    solves.solve(np.ones((N, L)), 0.7, solves.first_rest)
    H = H + (2.5 - solves.first_rest) * np.eye(N)
    right = np.random.default_rng(0).normal(size=(N, L))
    system = kronecker(H, R.to_dense()) + 0.7 * np.eye(N * L)
    exact = np.linalg.solve(system, right.ravel()).reshape(N, L)
    np.testing.assert_allclose(solves.solve(right, 0.7, 2.5), exact, atol=1e-9)


@pytest.mark.parametrize(("form", "covariance"), CASES)
def test_penalties_can_be_changed_back_and_forth(form, covariance):
    solves, _ = FORMS[form](COVARIANCES[covariance], np.float64)
    right = np.ones((N, L))
    first = solves.solve(right, 0.5, solves.first_rest)
    solves.solve(right, 50.0, solves.first_rest)
    np.testing.assert_array_equal(solves.solve(right, 0.5, solves.first_rest), first)


def test_only_the_full_matrix_is_exact():
    R = COVARIANCES["identity"]
    exact = {form: FORMS[form](R, np.float64)[0].is_exact for form in FORMS}
    assert exact == {"cholesky": True, "eigenvalues": True, "features": True, "incomplete": False}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_that_is_not_semidefinite_is_refused_by_a_cholesky_factorization(dtype):
    solves = CholeskySolves(StoredGram(np.diag([1.0, -5.0]).astype(dtype), Workers()), Workers())
    with pytest.raises(ValueError, match="not positive semi-definite"):
        solves.solve(np.ones((2, 1), dtype), 1.0, 0.0)
