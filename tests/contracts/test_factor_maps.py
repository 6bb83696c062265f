"""Requirements of every map of a factor.  A new map needs one more entry in ``MAPS``."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features.factor_maps import DenseMap, FactorMap, KernelMap, SparseMap, explicit_map
from labelweave.features.gram import choose_gram
from labelweave.features.gram.sources import PrecomputedSource, checked_kernel_matrix
from labelweave.foundation.arrays import Workers

N, WIDTH, RANK = 14, 9, 4
CONSTANT = 0.7


def _table():
    random = np.random.default_rng(0)
    table = random.normal(size=(N, WIDTH)) * (random.random((N, WIDTH)) < 0.5)
    table[:, 3], table[2] = 0.0, 0.0
    return table


def _sparse(dtype, constant):
    made = explicit_map(sp.csr_array(_with_constant(constant)), dtype, Workers(1))
    assert isinstance(made, SparseMap)
    return made, _with_constant(constant), np.eye(WIDTH + (constant > 0))


def _dense(dtype, constant):
    made = explicit_map(_with_constant(constant), dtype, Workers(1))
    assert isinstance(made, DenseMap)
    return made, _with_constant(constant), np.eye(WIDTH + (constant > 0))


def _kernel(dtype, constant):
    K = _table() @ _table().T
    source = PrecomputedSource(checked_kernel_matrix(K))
    gram = choose_gram(source, None, RANK, 1e6, Workers(1), dtype=np.dtype(dtype), constant=constant**2)
    return KernelMap(gram), K + constant**2, K + constant**2


def _identity(dtype, constant):
    return FactorMap(N), np.eye(N), np.eye(N)


def _with_constant(constant):
    return np.c_[_table(), np.full(N, constant)] if constant else _table()


MAPS = {
    "sparse": (_sparse, 0.0),
    "sparse and a constant": (_sparse, CONSTANT),
    "dense": (_dense, 0.0),
    "dense and a constant": (_dense, CONSTANT),
    "kernel": (_kernel, CONSTANT),
    "identity": (_identity, 0.0),
}


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(params=MAPS)
def parts(request, dtype):
    """A map, the matrix Phi and the matrix of the inner product."""
    make, constant = MAPS[request.param]
    return make(dtype, constant)


def _factors(shape, dtype):
    random = np.random.default_rng(1)
    return [random.normal(size=(rows, RANK)).astype(dtype) for rows in (shape[1], shape[1], shape[0])]


def _close(found, true, dtype):
    return np.allclose(
        found, true, rtol=1e-10 if dtype == np.float64 else 1e-4, atol=1e-4 * (dtype == np.float32)
    )


def test_images_are_products_with_phi(parts, dtype):
    made, phi, _ = parts
    factor = _factors(made.shape, dtype)[0]
    assert made.shape == phi.shape
    image = made.image(factor)
    assert image.dtype == dtype
    assert _close(image, phi @ factor, dtype)


def test_gradients_are_adjoint_to_images_in_the_inner_product(parts, dtype):
    """<other, gradient(derivatives)> = sum of image(other) * derivatives, for every other."""
    made, phi, metric = parts
    factor, other, derivatives = _factors(made.shape, dtype)
    gradient = made.gradient(derivatives)
    assert gradient.shape == factor.shape
    assert gradient.dtype == dtype
    # in the space of the kernel the gradient is known up to what K maps to 0
    assert _close(metric @ gradient, phi.T @ derivatives, dtype)
    along = (other * made.dual(gradient, made.image(gradient))).sum()
    assert _close(along, (made.image(other) * derivatives).sum(), dtype)


def test_inner_products_are_those_of_the_metric(parts, dtype):
    made, _, metric = parts
    factor, other, _ = _factors(made.shape, dtype)
    dual = made.dual(factor, made.image(factor))
    assert _close(np.einsum("ij,ij->j", other, dual), np.einsum("ij,ij->j", other, metric @ factor), dtype)


def test_squares_are_the_diagonal_of_the_curvature(parts, dtype):
    made, phi, _ = parts
    weights = np.random.default_rng(2).uniform(0, 2, made.shape[0]).astype(dtype)
    found = made.squares(weights)
    if isinstance(made, KernelMap):
        assert found.shape == (1, 1)
        assert _close(found[0, 0], np.diag(phi).mean() * weights.mean(), dtype)
    else:
        assert found.shape == (made.shape[1], 1)
        assert _close(found[:, 0], (phi**2).T @ weights, dtype)
    assert found.dtype == dtype
