"""The preconditioner: the formula, the requirements of conjugate gradients, and where it is the inverse."""

import numpy as np
import pytest

from labelweave.features.gram import StoredGram
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import FactorCovariance
from labelweave.problems.spectral_preconditioner import SpectralPreconditioner, label_modes, row_basis
from reference.newton_twins import prior

N, L = 12, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
DISTANCES = ((X[:, None] - X[None]) ** 2).sum(axis=2)
FACTOR = RNG.normal(size=(L, 2))
COVARIANCES = {
    "equal": LabelCovariance.dense(3.0 * np.eye(L)),
    "variances": FactorCovariance(np.zeros((L, 0)), np.array([1.0, 10.0, 0.1, 0.0])),
    "dense": LabelCovariance.dense(FACTOR @ FACTOR.T + 0.05 * np.eye(L)),
    "singular": LabelCovariance.low_rank(FACTOR),
}
FOLD = np.where(np.arange(N) % 3 == 0, 0.0, 1.0)
ROWS = {
    "even": np.ones(N),
    "uneven": 10.0 ** RNG.uniform(-3, 1, N),
    "fold": FOLD,
    "tiny": 1e-12 * RNG.uniform(1, 2, N),
    "nearly none": np.where(np.arange(N) < 2, 1.0, 1e-300),
    "none": np.zeros(N),
}


def _softmax_like(seed=1):
    """Return a matrix like the mean of ``diag(p) - p p^T``, of trace 1."""
    P = np.random.default_rng(seed).dirichlet(np.ones(L), 5)
    total = sum(np.diag(p) - np.outer(p, p) for p in P)
    return total / np.trace(total)


def _made(K, covariance, rows, curvature, rank, intercept_variance):
    """Make the preconditioner for one group as the problem does."""
    workers, gram = Workers(), StoredGram(K, Workers())
    leading = np.ascontiguousarray(np.linalg.eigh(K)[1][:, N - rank :])
    constant = intercept_variance / max(covariance.spectrum()[0][0], 1e-300)
    bases = [row_basis(gram, constant, leading, rows, workers)]
    modes = label_modes(covariance, curvature)
    return SpectralPreconditioner(bases, modes, constant, intercept_variance, workers)


def _matrices(preconditioner, K_all):
    """Compute M^-1 and K M^-1 by their columns."""
    size = N * L
    inverse, image = np.empty((size, size)), np.empty((size, size))
    for column in range(size):
        unit = np.zeros(size)
        unit[column] = 1.0
        arrays = (unit.reshape(N, 1, L), (K_all @ unit).reshape(N, 1, L))
        found = preconditioner.apply(*arrays)
        inverse[:, column], image[:, column] = found[0].ravel(), found[1].ravel()
    return inverse, image


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", COVARIANCES)
@pytest.mark.parametrize("intercept_variance", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_it_is_self_adjoint_and_positive_in_the_function_space(rows, name, intercept_variance, scale):
    covariance, K = COVARIANCES[name].scaled(scale), np.exp(-0.4 * DISTANCES)
    K_all = prior([K], [covariance.to_dense()], intercept_variance)
    made = _made(K, covariance, ROWS[rows], _softmax_like(), 6, intercept_variance)
    inverse, image = _matrices(made, K_all)
    size = np.abs(K_all).max()
    # M^-1 takes K r, not r, so the images stay exact however large K is
    assert np.allclose(image, K_all @ inverse, atol=1e-9 * size)
    assert np.allclose(image, image.T, atol=1e-9 * size)
    assert np.linalg.eigvalsh((image + image.T) / 2).min() >= -1e-9 * size
    assert np.linalg.eigvalsh(K_all - (image + image.T) / 2).min() >= -1e-9 * size


@pytest.mark.parametrize("rows", ["even", "uneven", "fold", "tiny", "none"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_it_is_the_inverse_where_rows_have_multiples_of_one_curvature(rows, name):
    covariance, K = COVARIANCES[name], np.exp(-0.4 * DISTANCES)
    K_all = prior([K], [covariance.to_dense()], 0.0)
    W = np.kron(np.diag(ROWS[rows]), _softmax_like())
    inverse, _ = _matrices(_made(K, covariance, ROWS[rows], _softmax_like(), N, 0.0), K_all)
    assert np.allclose(inverse @ (np.eye(N * L) + W @ K_all), np.eye(N * L), atol=1e-6)


def test_intercepts_that_are_alike_in_all_labels_are_inverted_too():
    covariance, K = COVARIANCES["equal"], np.exp(-0.4 * DISTANCES)
    K_all = prior([K], [covariance.to_dense()], 2.0)
    W = np.kron(np.diag(ROWS["uneven"]), _softmax_like())
    inverse, _ = _matrices(_made(K, covariance, ROWS["uneven"], _softmax_like(), N, 2.0), K_all)
    assert np.allclose(inverse @ (np.eye(N * L) + W @ K_all), np.eye(N * L), atol=1e-6)


def test_a_smooth_kernel_needs_few_eigenvectors():
    covariance, K = LabelCovariance.dense(100.0 * np.eye(L)), np.exp(-0.02 * DISTANCES)
    K_all = prior([K], [covariance.to_dense()], 1.0)
    W = np.kron(np.diag(ROWS["uneven"]), _softmax_like())
    system = np.eye(N * L) + W @ K_all

    def condition(rank):
        inverse, _ = _matrices(_made(K, covariance, ROWS["uneven"], _softmax_like(), rank, 1.0), K_all)
        sizes = np.abs(np.linalg.eigvals(inverse @ system))
        return sizes.max() / sizes.min()

    assert condition(1) > 5
    assert condition(6) < 1.01


def test_groups_have_bases_of_their_own():
    workers, covariance, K = Workers(), COVARIANCES["dense"], np.exp(-0.4 * DISTANCES)
    leading = np.ascontiguousarray(np.linalg.eigh(K)[1][:, N - 5 :])
    gram, modes = StoredGram(K, workers), label_modes(covariance, _softmax_like())
    bases = [row_basis(gram, 0.0, leading, ROWS[rows], workers) for rows in ("even", "fold")]
    vectors = np.random.default_rng(3).normal(size=(N, 2, L))
    image = np.einsum("ij,jgc,cd->igd", K, vectors, covariance.to_dense())
    together = SpectralPreconditioner(bases, modes, 0.0, 0.0, workers).apply(vectors, image)
    for group, basis in enumerate(bases):
        one = SpectralPreconditioner([basis], modes, 0.0, 0.0, workers)
        alone = one.apply(vectors[:, [group]], image[:, [group]])
        assert np.allclose(alone[0], together[0][:, [group]])
        assert np.allclose(alone[1], together[1][:, [group]])
