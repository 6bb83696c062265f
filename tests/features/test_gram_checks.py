"""Kernels that are none are refused in one sentence."""

import numpy as np
import pytest

from labelweave.features import CallableKernel, FeatureMatrix, Kernel, LinearKernel, RBFKernel
from labelweave.features.gram import sources

X = np.random.default_rng(0).normal(size=(700, 3))
K = RBFKernel(0.3).block(FeatureMatrix(X), FeatureMatrix(X))


class _Own(Kernel):
    def _block(self, rows, columns):
        return rows.data @ columns.data.T

    def _diagonal(self, rows):
        return np.ones(len(rows))


def test_kernels_of_the_library_are_known():
    assert sources.is_known_semidefinite(RBFKernel(0.3) * 2.0 + LinearKernel())
    assert not sources.is_known_semidefinite(CallableKernel(np.dot))
    assert not sources.is_known_semidefinite(RBFKernel(0.3) + CallableKernel(np.dot))
    assert not sources.is_known_semidefinite((RBFKernel(0.3) + LinearKernel() * _Own()) * 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_kernel_matrix_passes_as_it_is(dtype, scale):
    matrix = (K * scale).astype(dtype)
    before = matrix.copy()
    assert sources.checked_kernel_matrix(matrix) is matrix
    sources.check_positive_semidefinite(sources.PrecomputedSource(matrix), 0)
    np.testing.assert_array_equal(matrix, before)


def test_rounding_in_single_precision_passes():
    noise = 1e-7 * np.random.default_rng(0).normal(size=K.shape)
    sources.checked_kernel_matrix(K + noise)
    sources.check_positive_semidefinite(sources.PrecomputedSource(K + noise), 0)


@pytest.mark.parametrize(("i", "j"), [(0, 699), (600, 3), (699, 698)])
def test_an_asymmetric_entry_is_named(i, j):
    spoiled = K.copy()
    spoiled[i, j] += 0.5
    with pytest.raises(ValueError, match="not symmetric") as error:
        sources.checked_kernel_matrix(spoiled)
    assert f"({i}, {j})" in str(error.value)
    assert f"({j}, {i})" in str(error.value)
    assert f"{spoiled[i, j]:g}" in str(error.value)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (0, 2)])
def test_a_matrix_that_is_not_square_is_refused(shape):
    with pytest.raises(ValueError, match="square"):
        sources.checked_kernel_matrix(np.ones(shape))


def test_negative_eigenvalues_are_found():
    with pytest.raises(ValueError, match=r"not positive semi-definite.*smallest eigenvalue is -"):
        sources.check_positive_semidefinite(sources.PrecomputedSource(K - 0.1 * np.eye(700)), 0)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        sources.check_positive_semidefinite(sources.PrecomputedSource(-np.ones((1, 1))), 0)


def test_a_function_that_is_not_symmetric_is_found():
    source = sources.KernelSource(CallableKernel(lambda a, b: a[:, :1] - b[:, 0]), FeatureMatrix(X))
    with pytest.raises(ValueError, match="The kernel is not symmetric"):
        sources.check_positive_semidefinite(source, 0)


def test_zeros_pass():
    sources.checked_kernel_matrix(np.zeros((4, 4)))
    sources.check_positive_semidefinite(sources.PrecomputedSource(np.zeros((4, 4))), 0)
