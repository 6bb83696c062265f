"""The prior covariance against the Kronecker products that it represents."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram import FeatureGram, StoredGram, StreamedGram
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.coupled_gram import CoupledGram, GramTerm
from reference.newton_twins import prior

N, L = 8, 5
X = np.random.default_rng(0).normal(size=(N, 3))
FACTOR = np.random.default_rng(1).normal(size=(L, 2))
PATHS = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
VARIANCES = np.array([0.5, 2.0, 0.0, 1e-3, 7.0])
COVARIANCES = {
    "identity": LabelCovariance.identity(L),
    "variances": FactorCovariance(np.zeros((L, 0)), 1.0 + np.arange(L)),
    "some without variance": FactorCovariance(np.zeros((L, 0)), VARIANCES),
    "single label": FactorCovariance(sp.csr_array(np.eye(L)[:, [3]])),
    "dense": LabelCovariance.dense(FACTOR @ FACTOR.T + 0.1 * np.eye(L)),
    "thin": LabelCovariance.low_rank(FACTOR),
    "thin and sparse": FactorCovariance(sp.csr_array(PATHS)),
    "wide and sparse": FactorCovariance(sp.csr_array(np.hstack([PATHS, np.eye(L), PATHS]))),
    "factor and variances": FactorCovariance(sp.csr_array(PATHS), 0.3),
}
DIAGONAL = ["identity", "variances", "some without variance", "single label"]


def _source(gamma):
    return KernelSource(RBFKernel(gamma), FeatureMatrix(X))


GRAMS = {
    "stored": lambda: StoredGram.from_source(_source(0.3), 0.0, np.float64, Workers()),
    "single": lambda: StoredGram.from_source(_source(0.3), 0.0, np.float32, Workers()),
    "streamed": lambda: StreamedGram(_source(0.3), 0.0, np.float64, Workers()),
    "features": lambda: FeatureGram(FeatureMatrix(X), 0.0, np.float64, Workers()),
}


def _kernel_matrix(name):
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return X @ X.T if name == "features" else np.exp(-0.3 * squares)


def _gram(names, gram="stored", intercept_variance=0.7, **options):
    terms = [GramTerm(GRAMS[gram](), COVARIANCES[name]) for name in names]
    return CoupledGram(terms, intercept_variance, Workers(), **{"is_separate": False, **options})


def _dense(names, gram="stored", intercept_variance=0.7):
    K = _kernel_matrix(gram)
    return prior([K] * len(names), [COVARIANCES[name].to_dense() for name in names], intercept_variance)


def _vectors(groups=1, seed=2):
    return np.random.default_rng(seed).normal(size=(N, groups, L))


@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize("name", COVARIANCES)
def test_products_are_those_of_the_kronecker_matrix(gram, name):
    operator, dense, vectors = _gram([name], gram), _dense([name], gram), _vectors(3)
    found = operator.product(vectors, np.arange(3))
    for group in range(3):
        assert np.allclose(found[:, group].ravel(), dense @ vectors[:, group].ravel(), atol=1e-11)


def test_terms_add_up():
    names = ["dense", "some without variance", "thin and sparse"]
    found = _gram(names).product(_vectors(), np.array([0]))
    assert np.allclose(found.ravel(), _dense(names) @ _vectors().ravel(), atol=1e-11)


@pytest.mark.parametrize("name", COVARIANCES)
def test_the_product_is_its_own_adjoint_and_positive(name):
    operator, left, right = _gram([name]), _vectors(2, 3), _vectors(2, 4)
    every = np.arange(2)
    one = np.sum(left * operator.product(right, every))
    assert np.isclose(one, np.sum(right * operator.product(left, every)), rtol=1e-12)
    assert np.sum(left * operator.product(left, every)) > 0


@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("intercept_variance", [0.0, 0.7])
def test_diagonals_and_row_blocks_are_those_of_the_matrix(name, intercept_variance):
    operator = _gram([name, "dense"], intercept_variance=intercept_variance)
    dense = _dense([name, "dense"], intercept_variance=intercept_variance).reshape(N, L, N, L)
    every, vectors = np.arange(N), _vectors(2)
    blocks = dense[every, :, every, :]
    assert np.allclose(operator.diagonal(), np.einsum("icc->ic", blocks), atol=1e-12)
    assert np.allclose(
        operator.row_covariances(vectors), np.einsum("icd,igd->igc", blocks, vectors), atol=1e-12
    )


@pytest.mark.parametrize("names", [[name] for name in DIAGONAL] + [["variances", "single label"]])
@pytest.mark.parametrize("groups", [np.arange(2 * L), np.array([7, 2, 3]), np.array([2])])
def test_separate_labels_have_a_group_each(names, groups):
    operator, dense = _gram(names, is_separate=True), _dense(names).reshape(N, L, N, L)
    vectors = np.random.default_rng(5).normal(size=(N, len(groups), 1))
    found = operator.product(vectors, groups)
    for position, group in enumerate(groups):
        label = group % L
        expected = dense[:, label, :, label] @ vectors[:, position, 0]
        assert np.allclose(found[:, position, 0], expected, atol=1e-12)


@pytest.mark.parametrize("name", COVARIANCES)
def test_labels_are_separate_where_the_matrix_is_diagonal(name):
    R = COVARIANCES[name].to_dense()
    is_diagonal = np.allclose(R, np.diag(np.diag(R)))
    assert COVARIANCES[name].ties_labels == (not is_diagonal)


@pytest.mark.parametrize("gram", GRAMS)
def test_a_label_that_is_not_tied_has_a_matrix_of_its_own(gram):
    names = ["variances", "some without variance"]
    operator, dense = _gram(names, gram), _dense(names, gram).reshape(N, L, N, L)
    for label in range(L):
        found = operator.dense_prior(label)
        assert np.allclose(found, dense[:, label, :, label], atol=1e-12)
        found[:] = 0.0  # a new array every time
    assert np.allclose(operator.dense_prior(0), dense[:, 0, :, 0], atol=1e-12)


def test_tied_labels_have_no_matrix_of_their_own():
    with pytest.raises(ValueError, match="conjugate gradients"):
        _gram(["variances", "thin"]).dense_prior(0)


def test_products_are_counted_by_the_share_of_groups_in_them():
    operator = _gram(["dense"])
    operator.product(_vectors(), np.array([0]))
    operator.product(_vectors(), np.array([0]), share=0.25)
    assert operator.products == 1.25


@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(1, 3), name=st.sampled_from(list(COVARIANCES)))
@settings(max_examples=25)
def test_groups_do_not_mix(seed, groups, name):
    vectors = np.random.default_rng(seed).normal(size=(N, groups, L))
    together = _gram([name]).product(vectors, np.arange(groups))
    for group in range(groups):
        alone = _gram([name]).product(np.ascontiguousarray(vectors[:, [group]]), np.array([group]))
        assert np.allclose(alone, together[:, [group]], atol=1e-13)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("names", [[name] for name in COVARIANCES] + [["dense", "thin", "variances"]])
def test_plain_arrays_of_rows_and_labels(names, kind):
    vectors = _vectors()[:, 0].astype(kind)
    found = _gram(names).product(vectors)
    assert found.dtype == kind
    assert found.shape == (N, L)
    expected = (_dense(names) @ vectors.ravel().astype(float)).reshape(N, L)
    assert np.allclose(found, expected, atol=1e-4 if kind == np.float32 else 1e-11)


@pytest.mark.parametrize("name", COVARIANCES)
def test_products_with_a_covariance_over_the_last_axis(name):
    vectors, R = _vectors(3), COVARIANCES[name].to_dense()
    for workers in (None, Workers()):
        assert np.allclose(COVARIANCES[name].matmul(vectors, workers), vectors @ R, atol=1e-12)
